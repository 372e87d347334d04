"""Interceptors written for AGENT-HOOKS-0.1 as hookturn plugins, without its SDK."""

from __future__ import annotations

import asyncio
import copy
from types import SimpleNamespace

import pytest

from hookturn import Engine, Rewrite, events, hookimpl
from hookturn.hosts.agent_hooks import MODEL_ACCEPTS, MODEL_REQUEST, Binding, Host, Interception
from hookturn.hosts.agent_hooks.wire import (
    POINTS,
    TIMINGS,
    context,
    jcs_sha256,
    point_of,
    projected,
    read_verdict,
    replaced,
)

ALLOW = {"decision": "allow"}


class Policy:
    """Answers by interception point; keeps what it was given."""

    def __init__(self, **verdicts):
        self.verdicts = verdicts
        self.seen = []

    def intercept(self, given):
        self.seen.append(copy.deepcopy(given))
        verdict = self.verdicts.get(given["interception_point"], ALLOW)
        if isinstance(verdict, BaseException):
            raise verdict
        return verdict(given) if callable(verdict) else verdict

    def points(self):
        return [item["interception_point"] for item in self.seen]


def transform(path, value):
    return {"decision": "transform", "transform": {"path": path, "value": value}}


def run(engine, *, commands=("ls",), answer="done", tool=None):
    """A whole conversation; returns (what the tool ran, results, the end or None)."""
    ran = []

    def shell(command):
        ran.append(command)
        return f"output of {command}"

    results, end = [], None
    with engine.session(agent="coder", host="My Host") as session:
        prompt = session.submit("hi") if not session.blocked_by else None
        if prompt is not None and prompt.goes_on:
            with session.turn() as turn:
                request = {"model": "m1", "messages": [{"role": "user", "content": prompt.text}]}
                asked = session.event(MODEL_REQUEST, request, accepts=MODEL_ACCEPTS)
                if not asked.denied:
                    calls = [
                        {"id": f"c{n}", "tool": "shell", "args": {"command": command}}
                        for n, command in enumerate(commands)
                    ]
                    response = turn.model_response("thinking", tool_calls=calls, stop_reason="tool_use")
                    if response.goes_on:
                        results = [
                            turn.call_tool("shell", call["args"], tool or shell, call_id=call["id"])
                            for call in calls
                        ]
                        end = turn.complete(answer)
    return ran, results, end


# -- contexts -----------------------------------------------------------------------------------


def test_the_eight_points_of_a_session_in_order_with_their_targets():
    policy = Policy()
    run(Engine([("p", Interception(policy))]))
    assert policy.points() == list(POINTS)
    assert [item["sequence"] for item in policy.seen] == list(range(8))
    by_point = {item["interception_point"]: item for item in policy.seen}
    for item in policy.seen:
        assert item["spec"] == "agent-hooks/0.1" and item["session"]["id"] and item["timestamp"].endswith("Z")
        assert item["agent"] == {"id": "coder", "framework": "my-host"}
    assert by_point["input"]["target"] == {"content": "hi", "role": "user"}
    assert by_point["pre_model_call"]["target"] == [{"role": "user", "content": "hi"}]
    assert by_point["pre_model_call"]["model"] == {"id": "m1"}
    assert by_point["post_model_call"]["target"] == {
        "content": "thinking",
        "tool_calls": [{"id": "c0", "name": "shell", "args": {"command": "ls"}}],
        "finish_reason": "tool_use",
    }
    assert (
        by_point["pre_tool_call"]["target"]
        == by_point["pre_tool_call"]["tool_call"]["args"]
        == {"command": "ls"}
    )
    assert by_point["post_tool_call"]["target"] == "output of ls"
    assert by_point["post_tool_call"]["tool_result"]["is_error"] is False
    assert by_point["output"]["target"] == {"content": "done"}
    assert by_point["agent_shutdown"]["target"] == {"reason": "completed"}


def test_what_is_no_interception_point():
    denied = events.PostToolExecution(tool="t", args={}, status="denied")
    for event in (
        denied,
        events.Event(type="session.idle"),
        events.TurnStart(),
        events.UserPromptSubmit(prompt="x"),
        events.TurnComplete(),
        events.TurnComplete(text="x", agent_id="sub"),
        events.MessageReceived(text="x", agent_id="sub"),
    ):
        assert point_of(event) is None, event
    assert point_of(events.TurnComplete(result={"a": 1})) == "output"


def test_the_result_of_a_failed_tool_and_of_an_object():
    failed = events.PostToolExecution(tool="t", args={}, status="error", error="ValueError: no")
    given = context(failed)
    assert given["tool_result"]["is_error"] is True and given["target"] == "ValueError: no"
    made = events.PostToolExecution(tool="t", args={}, result=SimpleNamespace(a=1))
    assert context(made)["target"] == "namespace(a=1)"


@pytest.mark.parametrize("composed", [True, False])
def test_each_interceptor_gets_a_context_of_its_own(composed):
    def tamper(given):
        given["target"] = "tampered"
        given["tool_call"]["args"]["command"] = "rm -rf /"
        return ALLOW

    first, second = Policy(pre_tool_call=tamper), Policy()
    engine = (
        Host([first, second]).engine
        if composed
        else Engine([("a", Interception(first)), ("b", Interception(second))])
    )
    ran, _, _ = run(engine)
    assert ran == ["ls"]
    assert second.seen[4]["target"] == {"command": "ls"}


# -- verdicts in an ordinary engine -------------------------------------------------------------


def test_a_deny_at_each_point_has_the_effect_of_the_timing():
    deny = {"decision": "deny", "reason": "no_way", "message": "not today"}
    stops = {
        "agent_startup": ["agent_startup", "agent_shutdown"],
        "input": ["agent_startup", "input", "agent_shutdown"],
        "pre_model_call": [*POINTS[:3], "agent_shutdown"],
        "post_model_call": [*POINTS[:4], "agent_shutdown"],
    }
    for point, seen in stops.items():
        policy = Policy(**{point: deny})
        ran, _, end = run(Engine([("p", Interception(policy))]))
        assert policy.points() == seen and not ran and end is None, point
    ran, [result], end = run(Engine([("p", Interception(Policy(pre_tool_call=deny)))]))
    assert not ran and result.status == "denied" and end.text == "done"
    assert result.value == "The call of shell was denied by p: not today" and result.denied_by == "p"
    ran, [result], _ = run(Engine([("p", Interception(Policy(post_tool_call=deny)))]))
    assert ran == ["ls"] and "output of ls" not in result.value and "not today" in result.value
    _, _, end = run(Engine([("p", Interception(Policy(output=deny)))]))
    assert end.blocked_by == "p" and "done" not in end.text
    _, _, end = run(Engine([("p", Interception(Policy(agent_shutdown=deny)))]))
    assert end.text == "done"


def test_a_transform_at_each_point_is_written_back():
    policy = Policy(
        input=transform("$target.content", "hello"),
        pre_model_call=transform("$target[0].content", "hello model"),
        post_model_call=transform("$target.content", "thought"),
        pre_tool_call=transform('$target["command"]', "pwd"),
        post_tool_call=transform("$target", "hidden"),
        output=transform("$policy_target.content", "over"),
    )
    ran, [result], end = run(Engine([("p", Interception(policy)), ("q", Interception(watcher := Policy()))]))
    assert ran == ["pwd"] and result.value == "hidden" and end.text == "over"
    targets = {item["interception_point"]: item["target"] for item in watcher.seen}
    assert targets["input"]["content"] == "hello" and targets["pre_model_call"][0]["content"] == "hello model"
    assert targets["post_model_call"]["content"] == "thought" and targets["post_tool_call"] == "hidden"


def test_a_liftable_deny_is_an_ask_where_a_tool_is_called():
    liftable = {"decision": "deny", "reason": "sure", "approval": {}}
    for answer, status in ((True, "ok"), (False, "denied")):
        plugin = Interception(Policy(pre_tool_call=liftable))
        engine = Engine([("p", plugin)], approver=lambda request, answer=answer: answer)
        ran, [result], _ = run(engine)
        assert result.status == status and bool(ran) is answer
    engine = Engine([("p", Interception(Policy(input=liftable)))], approver=lambda request: True)
    assert run(engine)[2] is None


def test_warnings_are_for_the_user():
    policy = Policy(
        pre_tool_call={"decision": "allow", "warnings": [{"reason": "odd", "message": "looks odd"}]}
    )
    _, [result], _ = run(Engine([("p", Interception(policy, at=["pre_tool_call"]))]))
    assert result.status == "ok"
    engine = Engine([("p", Interception(policy, at=["pre_tool_call"]))])
    out = engine.fire(events.PreToolExecution(tool="shell", args={}))
    assert out.warnings == ("looks odd",)


@pytest.mark.parametrize(
    "verdict",
    [
        RuntimeError("boom"),
        None,
        "allow",
        {},
        {"decision": "warn"},
        {"decision": "transform"},
        transform("$target.nowhere", 1),
        transform("$other", 1),
    ],
)
def test_whatever_goes_wrong_the_tool_is_not_entered(verdict):
    ran, [result], _ = run(Engine([("p", Interception(Policy(pre_tool_call=verdict)))]))
    assert not ran and result.status == "denied" and "fails closed" in result.value


def test_asynchronous_interceptors():
    class Later:
        async def intercept(self, given):
            await asyncio.sleep(0)
            return (
                {"decision": "deny", "reason": "later"}
                if given["interception_point"] == "pre_tool_call"
                else ALLOW
            )

    for engine in (Engine([("p", Interception(Later()))]), Host([Later()]).engine):
        with engine:
            ran, [result], _ = run(engine)
        assert not ran and "later" in result.value

    class Never:
        async def intercept(self, given):
            await asyncio.sleep(30)

    with Host([Binding(Never(), "slow", ["pre_tool_call"], 0.01), Binding(Policy(), "ok")]).engine as engine:
        ran, [result], _ = run(engine)
    assert not ran and "TimeoutError" in result.value


def test_an_object_without_intercept_and_an_unknown_point_are_refused():
    with pytest.raises(TypeError, match="intercept"):
        Interception(object())
    for at in (["pre_tool"], []):
        with pytest.raises(ValueError, match="interception points"):
            Interception(Policy(), at=at)


def test_it_is_asked_only_at_its_points():
    policy = Policy()
    plugin = Interception(policy, at=["pre_model_call", "output"])
    engine = Engine([("p", plugin)])
    run(engine)
    assert policy.points() == ["pre_model_call", "output"]
    assert set(engine.plugins[0].hooks) == {TIMINGS["pre_model_call"], TIMINGS["output"]}


# -- the whole contract -------------------------------------------------------------------------


def test_a_record_of_each_emission_without_payload():
    policy = Policy(
        pre_tool_call={
            **transform("$target.command", "s3cret"),
            "warnings": [{"message": "m" * 400}],
            "message": "x" * 400,
        },
        post_tool_call={"decision": "deny", "reason": "tainted", "approval": {"note": "s3cret"}},
    )
    host = Host([Binding(policy, "guard")], tools=["shell"])
    run(host.engine)
    records = host.records
    assert [record["interception_point"] for record in records] == list(POINTS)
    assert [record["sequence"] for record in records] == list(range(8))
    assert "s3cret" not in str(records)
    assert policy.seen[0]["agent_init"] == {"tools_registered": ["shell"]}
    tool = records[4]
    assert tool["verdict"]["transform"] == {"path": "$target.command"}
    assert len(tool["verdict"]["message"].encode()) <= 256 and tool["verdict"]["message"].endswith("…")
    assert len(tool["verdict"]["warnings"][0]["message"].encode()) <= 256
    assert tool["decided_by"] == 0 and tool["interceptors_registered"] == 1
    assert tool["verdicts"] == [{"index": 0, "decision": "transform", "name": "guard"}]
    assert tool["input_identity"] != tool["enforced_identity"] and tool["input_identity"].startswith(
        "sha256:"
    )
    assert records[5]["verdict"] == {"decision": "deny", "reason": "tainted", "approval": {}}
    assert records[0]["composition"] == {"profile": "sequential/first_deny", "on_approval": "stop"}


def test_no_interceptor_is_a_no_in_such_a_host():
    host = Host([])
    ran, results, end = run(host.engine)
    assert not ran and not results and end is None
    assert {record["verdict"]["reason"] for record in host.records} == {"host_error:no_interceptor"}
    only_tools = Host([Binding(Policy(), at=["pre_tool_call"])])
    run(only_tools.engine)
    assert only_tools.records[0]["verdict"]["reason"] == "host_error:no_interceptor"


def test_evaluate_only_records_and_does_nothing():
    host = Host(
        [Policy(pre_tool_call={"decision": "deny", "reason": "no"}, input=transform("$target.content", "x"))],
        mode="evaluate_only",
    )
    ran, [result], end = run(host.engine)
    assert ran == ["ls"] and result.status == "ok" and end.text == "done"
    assert host.records[4]["verdict"]["decision"] == "deny" and host.records[4]["mode"] == "evaluate_only"
    assert host.records[1]["verdict"]["decision"] == "transform"


class Resolver:
    def __init__(self, outcome, verdict=None, identity=lambda given: given):
        self.outcome, self.verdict, self.identity = outcome, verdict, identity
        self.requests = []

    def resolve(self, request):
        self.requests.append(request)
        return SimpleNamespace(
            outcome=self.outcome,
            verdict=self.verdict,
            context_identity=self.identity(request.context_identity),
        )


@pytest.mark.parametrize(
    ("resolver", "reason", "command"),
    [
        (Resolver("approve", ALLOW), None, "ls"),
        (Resolver("approve", transform("$target.command", "pwd")), None, "pwd"),
        (Resolver("approve", transform("$target.no", "pwd")), "host_error:transform_invalid", None),
        (Resolver("approve", {"decision": "deny"}), "host_error:verdict_invalid", None),
        (Resolver("approve", {"decision": "what"}), "host_error:verdict_invalid", None),
        (Resolver("reject", {"decision": "deny", "reason": "no"}), "no", None),
        (Resolver("reject", ALLOW), "host_error:verdict_invalid", None),
        (Resolver("unresolved"), "host_error:approval_unresolved", None),
        (Resolver("approve", ALLOW, lambda given: "sha256:0"), "host_error:approval_identity_mismatch", None),
        (Resolver("approve", ALLOW, lambda given: None), "host_error:approval_identity_mismatch", None),
        (Resolver("approve", ALLOW, lambda given: 1 / 0), "host_error:approval_resolver_failed", None),
    ],
)
def test_what_an_approval_resolver_can_do(resolver, reason, command):
    liftable = {"decision": "deny", "reason": "sure", "approval": {}}
    host = Host([Policy(pre_tool_call=liftable)], resolver=resolver)
    ran, _, _ = run(host.engine)
    record = host.records[4]
    assert record["interception_point"] == "pre_tool_call"
    assert ran == ([command] if command else [])
    assert record["verdict"].get("reason") == reason
    permitted = record["verdict"]["decision"] != "deny"
    assert permitted is bool(command)
    expected = "rejection" if command is None and reason != "host_error:transform_invalid" else "approval"
    assert record["resolved_by"] == expected


def test_an_approval_is_for_what_was_shown_and_at_every_point():
    liftable = {"decision": "deny", "reason": "sure", "approval": {}}
    resolver = Resolver("approve", ALLOW)
    policy = Policy(**dict.fromkeys(POINTS, liftable))
    host = Host(
        [policy], resolver=resolver, redactor=lambda given: {**given, "extensions": {"redacted": True}}
    )
    ran, [result], end = run(host.engine)
    assert ran == ["ls"] and result.value == "output of ls" and end.text == "done"
    # There is nothing to approve about an end (section 6.1a).
    assert [request.interception_point for request in resolver.requests] == list(POINTS[:-1])
    for request in resolver.requests:
        assert request.context["extensions"] == {"redacted": True}
        assert request.context_identity == jcs_sha256(request.context)
        assert request.verdict == liftable
    assert [record.get("resolved_by") for record in host.records] == ["approval"] * 7 + [None]
    assert host.records[-1]["verdict"]["reason"] == "sure"


def test_an_unbound_host_has_no_identities_and_echoes_none():
    resolver = Resolver("approve", ALLOW)
    liftable = {"decision": "deny", "approval": {}}
    host = Host([Policy(pre_tool_call=liftable)], resolver=resolver, identity_provider=None)
    assert run(host.engine)[0] == ["ls"]
    assert resolver.requests[0].context_identity is None
    assert {record["input_identity"] for record in host.records} == {None}
    host = Host(
        [Policy(pre_tool_call=liftable)],
        resolver=Resolver("approve", ALLOW, lambda given: ""),
        identity_provider=None,
    )
    assert run(host.engine)[0] == []


def test_a_provider_of_ones_own_needs_a_name_and_a_function():
    for name, provider in (("mine", None), ("jcs-mine", lambda given: "x")):
        with pytest.raises(ValueError, match="identity provider"):
            Host([], identity_provider=name, provider=provider)
    host = Host([Policy()], identity_provider="mine", provider=lambda given: given["interception_point"])
    run(host.engine)
    assert host.records[1]["input_identity"] == "input" and host.records[1]["identity_provider"] == "mine"


def test_hooks_of_hookturn_and_interceptors_share_an_engine():
    class Redirect:
        @hookimpl(tryfirst=True)
        def pre_tool_execution(self, event):
            return Rewrite(args={"command": "pwd"})

    policy = Policy()
    host = Host([policy])
    host.engine.register(Redirect(), "redirect")
    ran, _, _ = run(host.engine)
    assert ran == ["pwd"] and policy.seen[4]["target"] == {"command": "pwd"}
    assert host.records[4]["verdicts"][0] == {"index": 0, "decision": "transform", "name": "redirect"}


def test_the_oldest_records_go_when_only_some_are_kept():
    sunk = []
    host = Host([Policy()], keep=2, sink=sunk.append)
    run(host.engine)
    assert [record["sequence"] for record in host.records] == [6, 7] and len(sunk) == 8


# -- the wire -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$target", "new"),
        ("$target.a", {"a": "new", "l": [1, {"b": 2}], "n-x_1": None}),
        ('$target["a"]', {"a": "new", "l": [1, {"b": 2}], "n-x_1": None}),
        ("$policy_target.l[0]", {"a": 1, "l": ["new", {"b": 2}], "n-x_1": None}),
        ("$target.l[1].b", {"a": 1, "l": [1, {"b": "new"}], "n-x_1": None}),
        ("$target.n-x_1", {"a": 1, "l": [1, {"b": 2}], "n-x_1": "new"}),
        ("$target.c", "rewrite_failed"),
        ("$target.l[2]", "rewrite_failed"),
        ("$target.l.0", "rewrite_failed"),
        ("$target.a.b", "rewrite_failed"),
        ("$target[0]", "rewrite_failed"),
        ("$target.", "rewrite_failed"),
        ("$target..a", "rewrite_failed"),
        ("$target['a']", "rewrite_failed"),
        ("$target.*", "rewrite_failed"),
        ("$targets", "rewrite_failed"),
        ("$.a", "rewrite_forbidden"),
        ("target.a", "rewrite_forbidden"),
        ("", "rewrite_forbidden"),
    ],
)
def test_transform_paths(path, expected):
    value = {"a": 1, "l": [1, {"b": 2}], "n-x_1": None}
    if isinstance(expected, str) and expected.startswith("rewrite"):
        with pytest.raises(ValueError) as caught:
            replaced(value, path, "new")
        assert caught.value.code == expected
    else:
        assert replaced(value, path, "new") == expected


GOOD = [
    {"decision": "allow", "reason": None, "message": None, "warnings": None, "result_labels": None},
    {"decision": "deny", "approval": {}, "reason": "", "evidence": {"artefact": "sha256:0"}},
    {"decision": "transform", "transform": {"path": "$target"}},
    {"decision": "allow", "warnings": [{}, {"reason": "a"}], "result_labels": ["x"]},
    {"decision": "allow", "evidence": {"verification_pointers": {"a": "https://x"}}},
]
BAD = [
    {"decision": "allow", "extra": 1},
    {"decision": ["allow"]},
    {"decision": "allow", "reason": 5},
    {"decision": "allow", "reason": "host_error:x"},
    {"decision": "allow", "message": "\ud800"},
    {"decision": "allow", "approval": {}},
    {"decision": "deny", "approval": []},
    {"decision": "allow", "transform": {"path": "$target", "value": 1}},
    {"decision": "transform", "transform": {"path": "$target", "value": 1, "more": 2}},
    {"decision": "transform", "transform": {"value": 1}},
    {"decision": "allow", "warnings": {}},
    {"decision": "allow", "warnings": [{"other": "x"}]},
    {"decision": "allow", "warnings": [{"reason": "host_error:x"}]},
    {"decision": "allow", "result_labels": [1]},
    {"decision": "allow", "evidence": []},
    {"decision": "allow", "evidence": {"other": 1}},
    {"decision": "allow", "evidence": {"artefact": 1}},
    {"decision": "allow", "evidence": {"artefact": "x" * 10_240}},
    {"decision": "allow", "evidence": {"artefact": "\ud800"}},
]


@pytest.mark.parametrize("verdict", GOOD)
def test_verdicts_that_are_taken(verdict):
    assert read_verdict(verdict) == {key: value for key, value in verdict.items() if value is not None}
    assert read_verdict(SimpleNamespace(to_wire=lambda: verdict))["decision"] == verdict["decision"]


@pytest.mark.parametrize("verdict", BAD)
def test_verdicts_that_are_refused(verdict):
    with pytest.raises(ValueError):
        read_verdict(verdict)


def test_a_record_cuts_on_a_character():
    said = projected(
        {"decision": "deny", "message": "é" * 200, "warnings": [{"message": "日" * 100}, {"reason": "r"}]}
    )
    assert said["message"] == "é" * 126 + "…" and said["warnings"][0]["message"] == "日" * 84 + "…"
    assert projected({"decision": "deny", "message": "é" * 128})["message"] == "é" * 128


def test_the_identity_looks_at_required_members_only():
    event = events.MessageReceived(text="hi", session_id="s", time=0.0)
    given = context(event)
    same = {**given, "trace": {"trace_id": "1"}, "session": {"id": "s", "turn": 9}, "extensions": {"x": 1}}
    assert jcs_sha256(given) == jcs_sha256(same)
    assert jcs_sha256(given) != jcs_sha256({**given, "sequence": 7})
    for broken in (
        {**given, "interception_point": "other"},
        {**given, "input": {"content": "x"}},
        {**given, "agent": None},
    ):
        with pytest.raises(ValueError):
            jcs_sha256(broken)
    for value in (2**53, -(2**53), float("nan"), "\ud800"):
        bad = {**given, "target": {"content": value, "role": "user"}}
        with pytest.raises(ValueError):
            jcs_sha256(bad)


def test_a_known_identity():
    # The kit's golden fixture G-03 (agent-hooks conformance/golden/identity.json).
    args = {"i": 1, "f": 1.0, "neg0": -0.0, "big": 1e21, "small": 1e-07, "pi": 3.141592653589793}
    given = {
        "spec": "agent-hooks/0.1",
        "interception_point": "pre_tool_call",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "sequence": 4,
        "agent": {"id": "agent-1", "framework": "reference"},
        "session": {"id": "sess-1"},
        "tool_call": {"id": "tc-1", "name": "calc", "args": args},
        "target": args,
    }
    assert jcs_sha256(given) == "sha256:4b48672d73d5c4b53974d536d92d210ef4b2d7594d55d8abfbeafc29e56a97c9"
