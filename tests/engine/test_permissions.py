"""Permission rules: how they are read, what they look at, and where they stand in the ladder of a session."""

from __future__ import annotations

import pytest

from hookturn import Allow, AnswerError, Ask, Deny, Engine, Reply, Rewrite, Tool, Warn, events, hookimpl

NOTHING = object()


def decide(tool, args, *, cwd="/project", tools=None, **rules):
    event = events.PreToolExecution(tool=tool, args=args, cwd=cwd)
    return Engine(permissions=rules, tools=tools).decide(event).decision


@pytest.mark.parametrize(
    ("rule", "tool", "args", "hit"),
    [
        ("bash", "Bash", {"command": "ls"}, True),
        ("bash", "run_shell_command", {"command": "ls"}, True),
        ("Bash", "Bash", {"command": "ls"}, True),
        ("Bash", "run_shell_command", {"command": "ls"}, False),
        ("*", "anything", {}, True),
        ("mcp__git__*", "mcp__git__push", {}, True),
        ("mcp__git__*", "mcp__other__push", {}, False),
        ("write", "Edit", {"file_path": "/x"}, True),
        ("write(/etc/*)", "Edit", {"file_path": "/etc/passwd"}, True),
        ("write(/etc/*)", "Edit", {"file_path": "/etc/deep/er"}, True),
        ("write(/etc/*)", "Edit", {"file_path": "/home/etc"}, False),
        ("write(/etc/*)", "Read", {"file_path": "/etc/passwd"}, False),
        ("write(/etc/*)", "Edit", {"file_path": "/etc/../home/x"}, False),
        ("write(/etc/*)", "Edit", {"file_path": "../etc/passwd"}, True),
        ("write(src/*)", "Edit", {"file_path": "src/a.py"}, True),
        ("write(src/*)", "Edit", {"file_path": "/project/src/a.py"}, True),
        ("write(src/*)", "Edit", {"file_path": "/other/src/a.py"}, False),
        ("write(*.py)", "apply_patch", {"input": "*** Update File: a.py\n"}, True),
        ("write(*.lock)", "apply_patch", {"input": "*** Update File: a.py\n*** Add File: b.lock\n"}, True),
        ("fetch(https://evil.example/*)", "WebFetch", {"url": "https://evil.example/x"}, True),
        ("fetch(https://evil.example/*)", "web_fetch", {"prompt": "get https://evil.example/x now"}, True),
        ("fetch(https://evil.example/*)", "WebFetch", {"url": "https://good.example/"}, False),
        ("*(*secret*)", "mcp__x__y", {"note": "a secret b"}, True),
        ("*(*secret*)", "mcp__x__y", {"list": [{"deep": "a secret b"}]}, True),
        ("*(*secret*)", "mcp__x__y", {"note": "nothing", "n": 5}, False),
        ("bash( ls)", "Bash", {"command": "ls"}, False),
        (" bash ", "Bash", {"command": "ls"}, True),
        ("bash ( ls )", "Bash", {"command": "ls"}, False),
        ("bash(echo $(date))", "Bash", {"command": "echo $(date)"}, True),
        ("bash(*)", "Bash", {"command": "a 'broken"}, True),
        ("bash(*)", "Bash", {}, True),
        ("read(/x)", "Read", {"file_path": 5}, False),
        ("read(/x)", "Read", {}, False),
        ("read(*)", "Read", {}, True),
    ],
)
def test_what_a_deny_rule_looks_at(rule, tool, args, hit):
    assert (decide(tool, args, deny=[rule]) == "deny") is hit


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        # A text in an argument of another kind must not hide the path.
        ("mcp__fs__write", {"path": "/etc/passwd", "url": "https://x"}),
        ("mcp__fs__write", {"path": "/etc/passwd", "command": "create"}),
        ("mcp__fs__write", {"path": "/etc/passwd", "file": "/tmp/x"}),
        ("mcp__fs__write", {"path": ["/tmp/x", "/etc/passwd"]}),
    ],
)
def test_no_other_argument_hides_what_a_rule_is_about(tool, args):
    assert decide(tool, args, deny=["*(/etc/*)"]) == "deny"


@pytest.mark.parametrize(
    ("rules", "tool", "args", "allowed"),
    [
        (["read"], "Read", {"file_path": "/x"}, True),
        (["read(/project/*)"], "Read", {"file_path": "a"}, True),
        (["read(/project/*)"], "Read", {"file_path": "/etc/x"}, False),
        (["read(/project/*)"], "read_many_files", {"paths": ["a", "b"]}, True),
        (["read(/project/*)"], "read_many_files", {"paths": ["a", "/etc/x"]}, False),
        (["read(/project/*)", "read(/etc/x)"], "read_many_files", {"paths": ["a", "/etc/x"]}, True),
        (["read(/project/*)"], "Read", {"file_path": "../etc/x"}, False),
        (["read(/project/*)"], "Read", {"file_path": "/project/../etc/x"}, False),
        (["read(*)"], "Read", {}, True),
        (["read(/project/*)"], "Read", {}, False),
        (["read(/project/*)"], "Read", {"file_path": ["a"]}, True),
        (["write(*.py)"], "apply_patch", {"input": "*** Update File: a.py\n*** Add File: b.sh\n"}, False),
        (["mcp__x__y(ok*)"], "mcp__x__y", {"a": "ok1", "b": "ok2"}, True),
        (["mcp__x__y(ok*)"], "mcp__x__y", {"a": "ok1", "b": "evil"}, False),
        (["mcp__x__y(ok*)"], "mcp__x__y", {"a": "ok1", "b": ["evil"]}, False),
        (["mcp__x__y(ok*)"], "mcp__x__y", {"a": "ok1", "b": {"c": "evil"}}, False),
        (["mcp__x__y(ok*)"], "mcp__x__y", {"n": 5}, False),
        (["mcp__x__y(/project/*)"], "mcp__x__y", {"path": "a", "url": "https://evil"}, False),
        (["fetch(https://good.example/*)"], "fetch", {"urls": ["https://good.example/a"]}, True),
        (
            ["fetch(https://good.example/*)"],
            "fetch",
            {"urls": ["https://good.example/a", "https://evil"]},
            False,
        ),
        (["bash(ls)"], "Bash", {"command": "ls"}, True),
        (["bash(ls)"], "Bash", {"command": ["ls"]}, True),
        (["bash(ls)"], "Bash", {"command": ["bash", "-lc", "ls; evil"]}, False),
        (["bash(ls)"], "Bash", {"command": 5, "x": "ls"}, True),
        (["bash(ls)"], "Bash", {}, False),
        (["bash"], "Bash", {"command": "any (thing"}, True),
        (["*"], "anything", {}, True),
        ([], "Read", {}, False),
    ],
)
def test_always_allow_needs_all_parts(rules, tool, args, allowed):
    assert (decide(tool, args, always_allow=rules) == "allow") is allowed


def test_the_hosts_table_counts():
    tools = {"save": Tool("write", paths=["target"])}
    assert decide("save", {"target": "/etc/x"}, tools=tools, deny=["write(/etc/*)"]) == "deny"
    assert decide("save", {"target": "/etc/x"}, deny=["write(/etc/*)"]) is None


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"deny": [""]}, "empty permission rule"),
        ({"deny": ["  "]}, "empty permission rule"),
        ({"deny": ["(rm *)"]}, "needs a tool or a kind before the bracket"),
        ({"deny": ["bash(rm *"]}, "unclosed bracket"),
        ({"deny": ["bash rm *)"]}, "unclosed bracket"),
        ({"deny": "bash"}, "a list"),
        ({"denny": ["bash"]}, r"unknown permissions key 'denny' \(did you mean 'deny'\?\)"),
        ({"allow": ["bash"]}, "unknown permissions key 'allow'"),
    ],
)
def test_rules_that_cannot_be_read(rules, words):
    with pytest.raises(AnswerError, match=words):
        Engine(permissions=rules)


@pytest.mark.parametrize("rules", [None, {}, {"deny": []}])
def test_no_rules(rules):
    assert Engine(permissions=rules).decide(events.PreToolExecution(tool="x", args={})).decision is None


@pytest.mark.parametrize(
    ("rules", "decision"),
    [
        ({"deny": ["bash"], "always_allow": ["bash"], "ask": ["bash"]}, "deny"),
        ({"always_allow": ["bash"], "ask": ["bash"]}, "allow"),
        ({"ask": ["bash"]}, "ask"),
        ({}, None),
    ],
)
def test_the_order_of_rules(rules, decision):
    assert decide("Bash", {"command": "ls"}, **rules) == decision


def test_the_reason_names_the_rule_and_where_it_stands():
    from hookturn.engine.match import Rule

    out = Engine(permissions={"deny": [Rule("bash(rm *)", "hookturn.yaml:3")]}).decide(
        events.PreToolExecution(tool="Bash", args={"command": "rm x"})
    )
    assert out.by == "rule bash(rm *)"
    assert "hookturn.yaml:3" in out.reason and "Bash" in out.message


class Says:
    def __init__(self, answer, timing="pre_tool_execution", **options):
        @hookimpl(**options)
        def hook(event):
            return answer() if callable(answer) else answer

        hook.__name__ = timing
        setattr(self, timing, hook)


def call(plugins=(), rules=None, *, command="ls", approver=NOTHING, **options):
    """One whole tool call in a session; returns its result and the commands that really ran."""
    ran = []
    more = {} if approver is NOTHING else {"approver": approver}
    engine = Engine(plugins, permissions=rules, **more, **options)
    with engine.session() as session, session.turn() as turn:
        result = turn.call_tool("bash", {"command": command}, lambda command: ran.append(command) or "done")
    return result, ran


class TestInSessions:
    def test_a_deny_rule_keeps_the_tool_from_running(self):
        result, ran = call(rules={"deny": ["bash"]})
        assert (result.status, result.denied_by, ran) == ("denied", "rule bash", [])
        assert "denied by rule bash" in result.value

    def test_a_rule_denies_before_hooks_of_pre_tool_execution_run(self):
        called = []
        result, _ = call([Says(lambda: called.append(1))], {"deny": ["bash"]})
        assert result.status == "denied"
        assert called == []

    def test_rules_look_at_rewritten_arguments(self):
        rewrite = Says(Rewrite(command="rm x"))
        result, ran = call([rewrite], {"deny": ["bash(rm *)"]})
        assert (result.status, ran) == ("denied", [])
        assert result.args == {"command": "rm x"}
        result, ran = call([rewrite], {"ask": ["bash(rm *)"]})
        assert (result.status, ran) == ("denied", [])
        result, ran = call([Says(Rewrite(command="pwd"))], {"ask": ["bash(ls)"]})
        assert (result.status, ran) == ("ok", ["pwd"]), "the arguments that were to be asked about are gone"

    def test_a_hooks_ask_at_the_start_is_kept_whatever_comes(self):
        ask = Says(Ask("sure?"), "on_tool_call_start")
        for plugins, rules in (
            ([ask], None),
            ([ask, Says(Allow("fine"))], None),
            ([ask, Says(Rewrite(command="pwd"))], None),
            ([ask, Says(Rewrite(command="pwd"))], {"ask": ["bash(ls)"]}),
        ):
            result, ran = call(plugins, rules, approver=lambda request: Deny(f"asked: {request.reason}"))
            assert (result.status, ran) == ("denied", [])
            assert "asked: sure?" in result.value

    def test_an_enforced_guards_ask_at_the_start_is_not_set_aside_by_always_allow(self):
        ask = Says(Ask("sure?"), "on_tool_call_start", guard=True)
        asked = []
        result, ran = call(
            [ask], {"always_allow": ["bash"]}, approver=lambda request: asked.append(request.reason)
        )
        assert asked == ["sure?"]
        assert (result.status, ran) == ("denied", [])

    def test_an_ordinary_hooks_ask_at_the_start_is(self):
        result, ran = call([Says(Ask("sure?"), "on_tool_call_start")], {"always_allow": ["bash"]})
        assert (result.status, ran) == ("ok", ["ls"])
        result, ran = call([Says(Deny("no"), "on_tool_call_start")], {"always_allow": ["bash"]})
        assert (result.status, ran) == ("ok", ["ls"])
        assert any("always_allow" in text for text in result.warnings), "and it is shown"

    def test_an_allow_skips_the_prompt_of_nobody_but_hooks_without_opinion(self):
        assert call([Says(Allow("ok"))])[0].status == "ok"
        assert call([Says(Allow("ok"))], {"ask": ["bash"]})[0].status == "denied"
        assert call([Says(Allow("ok")), Says(Ask("hm"))])[0].status == "denied"

    def test_permission_tells_hooks_what_the_rules_said(self):
        seen = []

        class P:
            @hookimpl
            def pre_tool_execution(self, event):
                seen.append(event.permission)

        for rules in ({"ask": ["bash"]}, {"always_allow": ["bash"]}, None):
            call([P()], rules, approver=lambda request: True)
        assert seen == ["ask", "allow", ""]

    def test_a_reply_instead_of_a_denied_tool_has_no_effect(self):
        result, ran = call([Says(Reply("fake"))], {"deny": ["bash"]})
        assert (result.status, ran) == ("denied", [])


class TestAsking:
    """on_permission_request, then the approver, then nobody: refused."""

    @pytest.mark.parametrize(
        ("answer", "status", "by"),
        [
            (True, "ok", ""),
            (Allow("yes"), "ok", ""),
            (False, "denied", "the approver"),
            (Deny("not now"), "denied", "the approver"),
            (None, "denied", "rule bash"),
            ("yes", "denied", "the approver"),
            (1, "denied", "the approver"),
            ({"allow": True}, "denied", "the approver"),
            (Allow, "denied", "the approver"),
        ],
        ids=repr,
    )
    def test_the_approvers_answers(self, answer, status, by):
        result, ran = call(rules={"ask": ["bash"]}, approver=lambda request: answer)
        assert (result.status, bool(ran), result.denied_by) == (status, status == "ok", by)
        if isinstance(answer, Deny):
            assert "not now" in result.value

    def test_an_asynchronous_approver(self):
        async def approver(request):
            return True

        assert call(rules={"ask": ["bash"]}, approver=approver)[0].status == "ok"

    @pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt(), SystemExit(1)])
    def test_a_failing_approver_lets_nothing_run(self, error):
        posts, ran = [], []

        def approver(request):
            raise error

        class P:
            @hookimpl
            def post_tool_execution(self, event):
                posts.append(event.status)

        engine = Engine([P()], permissions={"ask": ["bash"]}, approver=approver)
        try:
            with engine.session() as session, session.turn() as turn:
                turn.call_tool("bash", {"command": "ls"}, lambda command: ran.append(command))
        except BaseException as caught:
            assert caught is error
        assert ran == []
        assert len(posts) == 1

    def test_nobody_to_ask_is_refused_and_said_so(self):
        result, ran = call(rules={"ask": ["bash"]})
        assert (result.status, ran) == ("denied", [])
        assert "nobody to ask" in result.value
        assert result.denied_by == "rule bash"

    @pytest.mark.parametrize(("answer", "status"), [(Allow("yes"), "ok"), (Deny("no"), "denied")])
    def test_hooks_come_before_the_approver(self, answer, status):
        asked = []
        hook = Says(answer, "on_permission_request")
        result, ran = call([hook], {"ask": ["bash"]}, approver=lambda request: asked.append(request))
        assert (result.status, asked) == (status, [])
        assert bool(ran) is (status == "ok")

    def test_the_first_answer_wins(self):
        called = []
        plugins = [
            Says(None, "on_permission_request"),
            Says(Allow("first"), "on_permission_request"),
            Says(lambda: called.append(1) or Deny("second"), "on_permission_request"),
        ]
        assert call(plugins, {"ask": ["bash"]})[0].status == "ok"
        assert called == []

    def test_the_request_carries_the_final_arguments_and_their_identity(self):
        seen = []
        plugins = [Says(Rewrite(command="pwd")), Says(Ask("sure?"))]
        call(plugins, approver=lambda request: seen.append(request) or True)
        [request] = seen
        assert isinstance(request, events.PermissionRequest)
        assert (request.tool, request.args, request.command) == ("bash", {"command": "pwd"}, "pwd")
        assert (request.reason, request.by) == ("sure?", "Says-2")
        from hookturn.engine.identity import identity

        assert request.identity == identity("bash", {"command": "pwd"})
        assert request.call_id

    @pytest.mark.parametrize("args", [{"n": 10**5000}, {"n": float("nan")}, {"t": "\ud800"}, {"o": object()}])
    def test_any_arguments_can_be_asked_about(self, args):
        engine = Engine(permissions={"ask": ["x"]}, approver=lambda request: bool(request.identity))
        with engine.session() as session, session.turn() as turn:
            assert turn.call_tool("x", args, lambda **given: "done").status == "ok"

    def test_hooks_that_fail_are_no_yes(self):
        class P:
            @hookimpl
            def on_permission_request(self, event):
                raise ValueError("x")

        assert call([P()], {"ask": ["bash"]})[0].status == "denied"

    def test_warnings_reach_the_host(self):
        plugins = [Says(Warn("careful"), "on_permission_request"), Says(Ask("sure?"))]
        engine = Engine(plugins, approver=lambda request: True)
        with engine.session() as session, session.turn() as turn:
            begun = turn.begin_tool("c1", "bash", {"command": "ls"})
            assert "careful" in begun.warnings
