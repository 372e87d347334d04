"""A reply instead of a tool: the record says who replied, and nobody denied."""

from __future__ import annotations

from hookturn import Engine, Reply, hookimpl


class Cached:
    hookturn_name = "cache"

    @hookimpl
    def pre_tool_execution(self, event):
        return Reply("from the cache")


class Seen:
    def __init__(self) -> None:
        self.posts = []

    @hookimpl
    def post_tool_execution(self, event):
        self.posts.append((event.status, event.by, event.result))


def test_the_post_event_names_who_replied() -> None:
    seen = Seen()
    with Engine([Cached(), seen]) as engine, engine.session() as session, session.turn() as turn:
        done = turn.call_tool("bash", {"command": "ls"}, execute=lambda command: "real")
        call = turn.begin_tool("c9", "bash", {"command": "ls"})
    assert (done.status, done.value, done.denied_by) == ("replied", "from the cache", "")
    assert (call.go, call.replied_by) == (False, "cache")
    assert seen.posts == [("replied", "cache", "from the cache")] * 2
