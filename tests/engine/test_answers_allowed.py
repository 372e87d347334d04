"""Which timing takes which answer: an allowed one has its effect, another is a named failure without effect."""

from __future__ import annotations

import pytest

from hookturn import (
    Allow,
    Answer,
    Ask,
    Block,
    Continue,
    Deny,
    Engine,
    Inject,
    Recover,
    Reply,
    Rewrite,
    SetEnv,
    Warn,
    events,
    hookimpl,
)

EVENTS = {
    "on_session_start": events.SessionStart(),
    "on_message_received": events.MessageReceived(text="old"),
    "on_user_prompt_submit": events.UserPromptSubmit(prompt="old"),
    "on_turn_start": events.TurnStart(),
    "system_prompt": events.SystemPrompt(parts=["old"]),
    "on_model_response": events.ModelResponse(text="old"),
    "on_tool_call_start": events.ToolCallStart(tool="bash", args={"command": "old"}),
    "pre_tool_execution": events.PreToolExecution(tool="bash", args={"command": "old"}),
    "post_tool_execution": events.PostToolExecution(tool="bash", args={"command": "old"}, result="old"),
    "on_turn_complete": events.TurnComplete(text="old"),
    "post_turn": events.PostTurn(text="old"),
    "on_error": events.Error(error_type="X", message="old"),
    "on_session_end": events.SessionEnd(),
    "on_event": events.Event(type="a.b", properties={"a": "old"}),
    "on_permission_request": events.PermissionRequest(tool="bash", args={"command": "old"}),
}
# Section 2 of the design, written down once more: what each timing takes beside Warn.
TAKES = {
    "on_session_start": {Inject, SetEnv, Block},
    "on_message_received": {Rewrite, Reply, Inject, Block},
    "on_user_prompt_submit": {Inject, Block},
    "on_turn_start": {Inject, SetEnv},
    "system_prompt": {Inject, Rewrite},
    "on_model_response": {Rewrite, Inject, Block},
    "on_tool_call_start": {Deny, Ask},
    "pre_tool_execution": {Rewrite, Deny, Ask, Allow, Block, Reply},
    "post_tool_execution": {Rewrite, Deny, Inject, Recover},
    "on_turn_complete": {Continue, Rewrite, Block, Inject},
    "post_turn": set(),
    "on_error": {Recover},
    "on_session_end": set(),
    "on_event": set(),  # what the event accepts, tested below
    "on_permission_request": {Allow, Deny},
}
MAIN = {
    "on_message_received": ("text", "new"),
    "system_prompt": ("parts", ["new"]),
    "on_model_response": ("text", "new"),
    "pre_tool_execution": ("args", {"command": "new"}),
    "post_tool_execution": ("result", "new"),
    "on_turn_complete": ("text", "new"),
    "on_event": ("properties", {"a": "new"}),
}


class Own(Answer):
    points: int


def make(kind: type[Answer], timing: str) -> Answer:
    return {
        Allow: Allow("words"),
        Ask: Ask("words"),
        Deny: Deny("words", advice="advice", code="code"),
        Block: Block("words"),
        Reply: Reply("value"),
        Rewrite: Rewrite(MAIN.get(timing, ("", "new"))[1]),
        Inject: Inject("words"),
        Warn: Warn("words"),
        Continue: Continue("words"),
        SetEnv: SetEnv({"A": "b"}),
        Recover: Recover("retry", attempts=2),
        Own: Own(1),
    }[kind]


ALL = (Allow, Ask, Deny, Block, Reply, Rewrite, Inject, Warn, Continue, SetEnv, Recover, Own)
PAIRS = [(timing, kind) for timing in EVENTS for kind in ALL]


class Hook:
    def __init__(self, timing, answer, **options):
        @hookimpl(specname=timing, **options)
        def hook(event, ctx):
            return answer

        self.hook = hook


def effects(out, timing):
    """The names of all effects that an outcome shows."""
    before = EVENTS[timing]
    found = set()
    if out.decision:
        found.add(out.decision)
    if out.replied or out.reply is not None:
        found.add("reply")
    if out.event != before or out.rewrites:
        found.add("rewrite")
    for name in ("injected", "warnings", "continue_reason", "env", "recover", "failures"):
        if getattr(out, name):
            found.add(name)
    if out.of(Own):
        found.add("own")
    return found


EFFECT = {
    Allow: "allow",
    Ask: "ask",
    Deny: "deny",
    Block: "block",
    Reply: "reply",
    Rewrite: "rewrite",
    Inject: "injected",
    Warn: "warnings",
    Continue: "continue_reason",
    SetEnv: "env",
    Recover: "recover",
}


@pytest.mark.parametrize(
    ("timing", "kind"), PAIRS, ids=[f"{timing}-{kind.__name__}" for timing, kind in PAIRS]
)
@pytest.mark.parametrize("given", ["alone", "in a list"])
def test_every_timing_takes_exactly_the_answers_of_the_table(timing, kind, given):
    answer = make(kind, timing)
    out = Engine([("hook", Hook(timing, answer if given == "alone" else [answer]))]).fire(EVENTS[timing])
    if kind in TAKES[timing] or kind is Warn:
        assert effects(out, timing) == {EFFECT[kind]}
        [record] = out.hooks
        assert (record.name, record.answer, record.error) == ("hook", answer, "")
    else:
        assert effects(out, timing) == {"failures"}
        [failure] = out.failures
        assert (failure.hook, failure.timing, failure.error_type) == ("hook", timing, "AnswerError")
        assert kind.__name__ in failure.message
        for taken in TAKES[timing] | {Warn}:
            if timing != "on_event":
                assert taken.__name__ in failure.message
        [record] = out.hooks
        assert record.error and record.answer is None


@pytest.mark.parametrize(
    ("timing", "kind"), PAIRS, ids=[f"{timing}-{kind.__name__}" for timing, kind in PAIRS]
)
def test_a_wrong_answer_spoils_the_whole_list(timing, kind):
    if kind in TAKES[timing] or kind is Warn:
        return
    out = Engine([Hook(timing, [Warn("w"), make(kind, timing)])]).fire(EVENTS[timing])
    assert effects(out, timing) == {"failures"}


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind not in (Warn, Own)])
def test_on_event_takes_what_the_event_accepts(kind):
    event = events.Event(type="a.b", properties={"a": "old"}, accepts=[kind.__name__])
    engine = Engine([("hook", Hook("on_event", make(kind, "on_event")))])
    out = engine.fire(event)
    assert not out.failures
    assert {EFFECT[kind]} == effects(out, "on_event") - ({"rewrite"} if kind is not Rewrite else set())
    other = "Deny" if kind is not Deny else "Inject"
    out = engine.fire(event.replace(accepts=[other]))
    [failure] = out.failures
    assert f"takes {other}, Warn" in failure.message
    assert out.decision is None and not out.injected


GUARDED = [timing for timing in EVENTS if TAKES[timing] & {Deny, Block}]


@pytest.mark.parametrize("timing", GUARDED)
@pytest.mark.parametrize("kind", ALL)
def test_a_guard_answers_only_deny_ask_block_and_warn(timing, kind):
    out = Engine([("guard", Hook(timing, make(kind, timing), guard=True))]).fire(EVENTS[timing])
    if kind is Warn or (kind in TAKES[timing] and kind in (Deny, Ask, Block)):
        assert not out.failures
        assert effects(out, timing) == {EFFECT[kind]}
        return
    [failure] = out.failures
    assert "a guard takes" in failure.message
    for taken in {Deny, Ask, Block} & TAKES[timing]:
        assert taken.__name__ in failure.message
    # It fails closed: a bad answer stops what it guards, in its name.
    assert out.denied
    assert out.by == "guard"
    assert not (out.rewrites or out.replied or out.injected)


@pytest.mark.parametrize(
    "pair", [(Deny("a"), Allow("b")), (Ask("a"), Block("b")), (Allow(), Allow()), (Deny("a"), Deny("a"))]
)
def test_a_list_holds_at_most_one_decision(pair):
    event = EVENTS["pre_tool_execution"]
    out = Engine([Hook("pre_tool_execution", [Warn("w"), *pair])]).fire(event)
    assert effects(out, "pre_tool_execution") == {"failures"}
    assert "at most one of Allow, Ask, Deny and Block" in out.failures[0].message


def test_a_list_of_answers_has_all_their_effects():
    answer = [Rewrite({"command": "new"}), Warn("w1"), Warn("w2"), Deny("no")]
    out = Engine([Hook("pre_tool_execution", answer)]).fire(EVENTS["pre_tool_execution"])
    assert out.decision == "deny"
    assert out.warnings == ("w1", "w2")
    assert out.event.command == "new"
    assert out.hooks[0].answers == tuple(answer)


@pytest.mark.parametrize("answer", [[], (), None])
def test_no_opinion(answer):
    out = Engine([Hook("pre_tool_execution", answer)]).fire(EVENTS["pre_tool_execution"])
    assert effects(out, "pre_tool_execution") == set()


@pytest.mark.parametrize("kind", ["allow", "deny", "block", "ask"])
def test_an_answer_in_a_tuple_counts(kind):
    answer = {"allow": Allow(), "deny": Deny("x"), "block": Block("x"), "ask": Ask("x")}[kind]
    out = Engine([Hook("pre_tool_execution", (answer,))]).fire(EVENTS["pre_tool_execution"])
    assert out.decision == kind


@pytest.mark.parametrize(
    "wrong",
    [True, False, 0, "deny", {"deny": "x"}, Deny, object(), [None], ["deny"], [Deny("x"), None], Ellipsis],
    # an object's repr holds its address, which differs between the processes of a parallel run
    ids=lambda value: repr(value).split(" at 0x")[0],
)
@pytest.mark.parametrize("guard", [False, True])
def test_wrong_returns_are_failures(wrong, guard):
    out = Engine([("hook", Hook("pre_tool_execution", wrong, guard=guard))]).fire(
        EVENTS["pre_tool_execution"]
    )
    [failure] = out.failures
    assert "None, an answer or a list of answers" in failure.message
    assert out.decision == ("deny" if guard else None)


@pytest.mark.parametrize("base", [Deny, Block, Ask, Allow])
def test_an_answer_derived_from_a_decision_is_that_decision(base):
    class Derived(base):
        pass

    out = Engine([Hook("pre_tool_execution", Derived("words"))]).fire(EVENTS["pre_tool_execution"])
    assert not out.failures
    assert (out.decision, out.reason) == (base.__name__.lower(), "words")


@pytest.mark.parametrize("guard", [False, True])
def test_a_derived_deny_ends_the_plan_like_deny(guard):
    class Derived(Deny):
        pass

    called = []

    class Later:
        @hookimpl(trylast=True)
        def pre_tool_execution(self, event):
            called.append(1)

    hook = Hook("pre_tool_execution", Derived("words"), guard=guard)
    out = Engine([hook, Later()]).fire(EVENTS["pre_tool_execution"])
    assert out.decision == "deny"
    assert called == ([1] if guard else [])


@pytest.mark.parametrize(
    ("timing", "field", "value"),
    [
        ("on_message_received", "origin", "me"),
        ("on_model_response", "usage", {}),
        ("on_model_response", "stop_reason", "x"),
        ("pre_tool_execution", "tool", "other"),
        ("pre_tool_execution", "permission", "allow"),
        ("pre_tool_execution", "session_id", "x"),
        ("pre_tool_execution", "kind", "read"),
        ("post_tool_execution", "args", {}),
        ("post_tool_execution", "status", "ok"),
        ("on_turn_complete", "result", "x"),
        ("on_turn_complete", "usage", {}),
        ("system_prompt", "turn", 5),
    ],
)
def test_only_writable_fields_can_be_written(timing, field, value):
    out = Engine([("hook", Hook(timing, Rewrite(**{field: value})))]).fire(EVENTS[timing])
    assert effects(out, timing) == {"failures"}
    assert f"Rewrite({field}=...)" in out.failures[0].message
    assert MAIN[timing][0] in out.failures[0].message


@pytest.mark.parametrize("timing", MAIN)
def test_the_main_field_by_value_and_by_name(timing):
    field, value = MAIN[timing]
    event = EVENTS[timing].replace(accepts=["Rewrite"]) if timing == "on_event" else EVENTS[timing]
    for answer in (Rewrite(value), Rewrite(**{field: value})):
        out = Engine([("hook", Hook(timing, answer))]).fire(event)
        assert getattr(out.event, field) == value
        [change] = out.rewrites
        assert (change.by, change.field, change.after) == ("hook", field, value)
        assert change.before == getattr(event, field)


@pytest.mark.parametrize(
    ("timing", "value"),
    [
        ("on_message_received", None),
        ("on_message_received", 5),
        ("system_prompt", "text"),
        ("system_prompt", ["a", 5]),
        ("on_model_response", {"text": "x"}),
        ("pre_tool_execution", "ls"),
        ("pre_tool_execution", None),
        ("pre_tool_execution", [("command", "ls")]),
        ("on_turn_complete", None),
    ],
)
def test_a_rewrite_of_a_wrong_type_is_a_failure(timing, value):
    out = Engine([Hook(timing, Rewrite(value))]).fire(EVENTS[timing])
    assert effects(out, timing) == {"failures"}
    assert "must be" in out.failures[0].message


def test_a_result_may_become_anything():
    for value in (None, 5, {"a": [1]}, ["x"]):
        out = Engine([Hook("post_tool_execution", Rewrite(value))]).fire(EVENTS["post_tool_execution"])
        assert out.event.result == value


def test_a_rewrite_that_nests_too_deep_is_a_failure():
    deep = []
    for _ in range(150):
        deep = [deep]

    class Deeper:
        @hookimpl
        def pre_tool_execution(self, event):
            return Rewrite({"a": deep, "b": event.args})

    class Deepest:
        @hookimpl
        def pre_tool_execution(self, event):
            wrapped = event.args["a"]
            for _ in range(100):
                wrapped = [wrapped]
            return Rewrite({"a": wrapped})

    out = Engine([Deeper(), Deepest()]).fire(EVENTS["pre_tool_execution"])
    assert out.event.to_json()


def test_an_own_answer_derived_from_ours_does_both():
    class Because(Deny):
        merge = "first"

    class Hint(Inject):
        pass

    out = Engine([Hook("pre_tool_execution", [Because("words")])]).fire(EVENTS["pre_tool_execution"])
    assert (out.decision, out.of(Because)) == ("deny", Because("words"))
    out = Engine([Hook("on_turn_start", Hint("words"))]).fire(EVENTS["on_turn_start"])
    assert (out.injected, out.of(Hint)) == (("words",), [Hint("words")])
    event = EVENTS["on_event"].replace(accepts=["Deny"])
    assert Engine([Hook("on_event", Because("words"))]).fire(event).decision == "deny"
