"""Composition profiles: what several hooks together decide, and what an approver may change."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import (
    Allow,
    Approval,
    Ask,
    Block,
    Composition,
    Deny,
    Engine,
    Inject,
    Reply,
    Rewrite,
    Warn,
    events,
    hookimpl,
)
from hookturn.engine.composition import Change, Consult, Refuse, Remark

PROFILES = ("first_deny", "run_all", "strictest", "unanimous")


class Says:
    """A hook that gives one answer, and remembers the commands that it saw."""

    def __init__(self, answer):
        self.answer = answer
        self.saw = []

    @hookimpl
    def pre_tool_execution(self, event):
        self.saw.append(event.args["command"])
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Strict(Says):
    @hookimpl(on_failure="deny")
    def pre_tool_execution(self, event):
        return Says.pre_tool_execution(self, event)


class Guard(Says):
    @hookimpl(guard=True)
    def pre_tool_execution(self, event):
        return Says.pre_tool_execution(self, event)


def call(command="ls"):
    return events.PreToolExecution(tool="bash", args={"command": command}, call_id="c1")


def engine_of(profile, *answers, approver=None, permissions=None, mode="enforce", **knobs):
    hooks = [answer if isinstance(answer, Says) else Says(answer) for answer in answers]
    composition = profile if isinstance(profile, Composition) else Composition(profile, **knobs)
    engine = Engine(
        [(f"h{index}", hook) for index, hook in enumerate(hooks)],
        composition=composition,
        approver=approver,
        permissions=permissions,
        mode=mode,
    )
    return engine, hooks


def decided(out):
    return out.decision, out.composed.decided_by, out.event.args["command"]


# -- each profile -------------------------------------------------------------------------------

R1, R2 = Rewrite(command="one"), Rewrite(command="two")


@pytest.mark.parametrize(
    ("profile", "answers", "expected"),
    [
        ("first_deny", [None, None], (None, None, "ls")),
        ("first_deny", [R1, None], (None, 0, "one")),
        ("first_deny", [R1, R2], (None, 1, "two")),
        ("first_deny", [R1, Deny("no"), R2], ("deny", 1, "one")),
        ("first_deny", [Block("stop"), Deny("no")], ("block", 0, "ls")),
        ("run_all", [R1, Deny("no"), None], ("deny", 1, "one")),
        ("run_all", [Ask("sure?"), Deny("no")], ("deny", 1, "ls")),
        ("run_all", [R1, R2], (None, 1, "two")),
        ("run_all", [Deny("a"), Deny("b")], ("deny", 0, "ls")),
        ("strictest", [R1, None], (None, 0, "one")),
        ("strictest", [R1, Deny("no")], ("deny", 1, "ls")),
        ("strictest", [R1, R2], ("deny", None, "ls")),
        ("strictest", [R1, Reply("x")], ("deny", None, "ls")),
        ("unanimous", [None, Warn("hm")], (None, None, "ls")),
        ("unanimous", [None, R1], ("deny", None, "ls")),
        ("unanimous", [Deny("no"), Deny("no")], ("deny", None, "ls")),
    ],
)
def test_what_a_profile_makes_of_answers(profile, answers, expected):
    engine, _ = engine_of(profile, *answers)
    assert decided(engine.fire(call())) == expected


def test_in_sequence_each_hook_sees_what_was_rewritten_and_in_parallel_none_does():
    for profile, seen in (
        ("first_deny", ["ls", "one"]),
        ("run_all", ["ls", "one"]),
        ("strictest", ["ls", "ls"]),
    ):
        engine, hooks = engine_of(profile, R1, None)
        engine.fire(call())
        assert [hook.saw[0] for hook in hooks] == seen, profile


def test_who_is_called_after_a_no():
    engine, hooks = engine_of("first_deny", Deny("no"), None)
    out = engine.fire(call())
    assert [hook.saw for hook in hooks] == [["ls"], []]
    assert out.composed.truncated and out.composed.registered == 2
    for profile in ("run_all", "strictest", "unanimous"):
        engine, hooks = engine_of(profile, Deny("no"), None)
        out = engine.fire(call())
        assert [hook.saw for hook in hooks] == [["ls"], ["ls"]]
        assert not out.composed.truncated


def test_the_words_of_the_winner_reach_the_model():
    engine, _ = engine_of("run_all", None, Deny("no deletes", advice="move it", code="del"))
    out = engine.fire(call())
    assert (out.reason, out.by, out.advice, out.code) == ("no deletes", "h1", "move it", "del")
    assert out.message == "The call of bash was denied by h1: no deletes\nmove it"
    engine, _ = engine_of("strictest", R1, R2)
    out = engine.fire(call())
    assert out.by == "the composition strictest" and "h0, h1" in out.reason and out.code == "rewrite_conflict"


def test_what_only_adds_up_adds_up_in_every_profile():
    for profile in PROFILES:
        engine, _ = engine_of(profile, Warn("w"), [Warn("w"), Warn("v")])
        out = engine.fire(call())
        assert out.warnings == ("w", "v"), profile
    end = events.TurnComplete(text="x")

    class Injects:
        @hookimpl
        def on_turn_complete(self, event):
            return Inject("remember")

    out = Engine([Injects(), ("again", Injects())], composition="run_all").fire(end)
    assert out.injected == ("remember", "remember")


def test_a_reply_counts_as_a_change_and_a_later_no_takes_it_back():
    engine, _ = engine_of("first_deny", Reply("instead"))
    out = engine.fire(call())
    assert out.replied and out.reply == "instead" and out.decision is None
    engine, _ = engine_of("run_all", Reply("instead"), Deny("no"))
    out = engine.fire(call())
    assert not out.replied and out.decision == "deny"


def test_an_allow_is_void_after_a_rewrite():
    engine, _ = engine_of("run_all", R1, Allow())
    assert engine.fire(call()).decision == "allow"
    engine, _ = engine_of("run_all", Allow(), R1)
    assert engine.fire(call()).decision is None


# -- failures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_a_failure_counts_in_its_own_place(profile):
    engine, hooks = engine_of(profile, Strict(RuntimeError("boom")), None)
    out = engine.fire(call())
    assert out.decision == "deny"
    assert [failure.error_type for failure in out.failures] == ["RuntimeError"]
    assert out.composed.ballots[0].code == "hook_failed"
    if profile in ("run_all", "strictest"):
        assert out.composed.decided_by == 0 and hooks[1].saw == ["ls"]
    engine, _ = engine_of(profile, Says(RuntimeError("boom")), None)  # it does not fail closed
    out = engine.fire(call())
    assert out.decision is None and len(out.failures) == 1


def test_a_change_that_cannot_be_made_ends_a_sequence():
    for profile in ("first_deny", "run_all"):
        engine, hooks = engine_of(profile, Strict(Rewrite(nonsense=1)), None)
        out = engine.fire(call())
        assert out.decision == "deny" and out.code == "rewrite_failed"
        assert out.composed.decided_by is None and hooks[1].saw == []
        assert out.composed.truncated
    engine, hooks = engine_of("run_all", Rewrite(nonsense=1), R1)  # it does not fail closed
    out = engine.fire(call())
    assert decided(out) == (None, 1, "one") and len(out.failures) == 1


def test_a_change_that_lost_need_not_be_possible():
    engine, _ = engine_of("strictest", Rewrite(nonsense=1), Deny("no"))
    assert decided(engine.fire(call())) == ("deny", 1, "ls")
    engine, _ = engine_of("strictest", Rewrite(nonsense=1), None)
    assert engine.fire(call()).code == "rewrite_failed"


# -- approvers ----------------------------------------------------------------------------------


def test_a_yes_ends_the_plan_or_goes_on():
    asked = []

    def approve(request):
        asked.append((request.by, request.args["command"]))
        return True

    engine, hooks = engine_of("first_deny", R1, Ask("a?"), R2, approver=approve)
    out = engine.fire(call())
    assert decided(out) == ("allow", 1, "one") and hooks[2].saw == []
    assert out.composed.consulted == "approved" and out.composed.truncated
    engine, hooks = engine_of(
        "first_deny", Ask("a?"), R1, Ask("b?"), None, approver=approve, on_approval="resume"
    )
    asked.clear()
    out = engine.fire(call())
    assert decided(out)[1:] == (1, "one") and hooks[3].saw == ["one"]
    assert asked == [("h0", "ls"), ("h2", "one")] and not out.composed.truncated


def test_all_asks_of_a_fire_are_one_question_when_all_hooks_run():
    asked = []
    engine, _ = engine_of(
        "run_all", Ask("a?"), Ask("b?"), approver=lambda request: asked.append(request) or True
    )
    assert engine.fire(call()).decision == "allow" and len(asked) == 1
    engine, _ = engine_of(
        "run_all", Ask("a?"), Deny("no"), approver=lambda request: asked.append(request) or True
    )
    assert engine.fire(call()).decision == "deny" and len(asked) == 1


@pytest.mark.parametrize(
    ("profile", "knobs", "answers"),
    [
        ("strictest", {"on_transform_conflict": "approval"}, [R1, R2]),
        ("unanimous", {"on_disagreement": "approval"}, [None, Deny("no")]),
    ],
)
def test_an_approver_settles_what_hooks_cannot(profile, knobs, answers):
    engine, _ = engine_of(profile, *answers, approver=lambda request: Rewrite(command="three"), **knobs)
    assert decided(engine.fire(call())) == ("allow", None, "three")
    engine, _ = engine_of(profile, *answers, approver=lambda request: False, **knobs)
    out = engine.fire(call())
    assert out.decision == "deny" and out.composed.consulted == "refused"
    engine, _ = engine_of(profile, *answers, **knobs)  # nobody to ask
    out = engine.fire(call())
    assert out.decision in ("ask", "deny") and out.composed.consulted == ""


def test_a_hook_that_asks_about_its_own_change_gets_it_with_the_yes():
    for profile in ("first_deny", "run_all", "strictest"):
        engine, _ = engine_of(profile, [R1, Ask("like this?")], approver=lambda request: True)
        assert decided(engine.fire(call()))[2] == "one", profile


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (lambda request: Approval(True, "sha256:other"), "identity_mismatch"),
        (lambda request: Approval(True, None), "identity_mismatch"),
        (lambda request: None, "approver_unresolved"),
        (lambda request: Approval(None, request.identity), "approver_unresolved"),
        (lambda request: "yes", "bad_answer"),
        (lambda request: Approval({"ok": 1}, request.identity), "bad_answer"),
        (lambda request: 1 / 0, "approver_failed"),
        (lambda request: Deny("no way", code="mine"), "mine"),
        (lambda request: False, ""),
    ],
)
def test_everything_but_a_yes_to_this_very_call_is_a_no(answer, code):
    engine, _ = engine_of("run_all", Ask("a?"), approver=answer)
    out = engine.fire(call())
    assert out.decision == "deny" and out.code == code
    assert out.composed.consulted == "refused"
    assert out.composed.decided_by == (None if code not in ("mine", "") else 0)


def test_a_yes_is_bound_to_what_was_shown():
    class Shown(Composition):
        def view(self, event):
            return {"command": event.args["command"]}

        def redact(self, view):
            return {"command": view["command"].replace("s3cret", "***")}

        def identity(self, view):
            return "id of " + view["command"]

    seen = []

    def approve(request):
        seen.append((request.about, request.identity))
        return Approval(True, "id of echo ***")

    engine, _ = engine_of(Shown("run_all"), Ask("a?"), approver=approve)
    out = engine.fire(call("echo s3cret"))
    assert out.decision == "allow" and seen == [({"command": "echo ***"}, "id of echo ***")]
    assert out.composed.identity == "id of echo s3cret"

    class Broken(Shown):
        def redact(self, view):
            raise ValueError("cannot")

    engine, _ = engine_of(Broken("run_all"), Ask("a?"), approver=approve)
    out = engine.fire(call())
    assert out.decision == "deny" and out.code == "approver_failed"


def test_what_has_no_identity_is_refused_before_any_hook():
    class Faulty(Composition):
        def identity(self, view):
            raise RuntimeError("no key")

    engine, hooks = engine_of(Faulty("run_all"), None)
    out = engine.fire(call())
    assert out.decision == "deny" and out.code == "no_identity" and hooks[0].saw == []

    class Numbers(Composition):
        def identity(self, view):
            return 5

    engine, hooks = engine_of(Numbers("run_all"), None)
    assert engine.fire(call()).code == "no_identity" and hooks[0].saw == []

    class Canonical(Composition):
        def identity(self, view):
            from hookturn.engine.identity import canonical

            return canonical(view.args)

    engine, _ = engine_of(Canonical("run_all"), Rewrite(args={"command": "x", "n": 2**60}))
    out = engine.fire(call())
    assert out.decision == "deny" and out.code == "no_identity" and out.composed.identity_after is None


async def test_asynchronous_hooks_and_approvers():
    class Later:
        @hookimpl
        async def pre_tool_execution(self, event):
            await asyncio.sleep(0)
            return Ask("a?")

    async def approve(request):
        await asyncio.sleep(0)
        return Approval(True, request.identity)

    engine = Engine([Later()], composition="first_deny", approver=approve)
    assert (await engine.afire(call())).decision == "allow"
    assert engine.fire(call()).decision == "allow"
    slow = Composition("first_deny", approval_seconds=0.01)
    engine = Engine([Later()], composition=slow, approver=lambda request: asyncio.sleep(5))
    assert (await engine.afire(call())).code == "approver_failed"
    engine.close()


def test_permission_request_hooks_are_asked_before_the_approver():
    class Answers:
        def __init__(self, answer):
            self.answer = answer

        @hookimpl
        def on_permission_request(self, event):
            return self.answer

    for answer, decision in ((Allow(), "allow"), (Deny("no"), "deny")):
        engine, _ = engine_of("run_all", Ask("a?"), approver=lambda request: pytest.fail("not needed"))
        engine.register(Answers(answer))
        assert engine.fire(call()).decision == decision
    engine, _ = engine_of("run_all", Ask("a?"), approver=lambda request: True)
    engine.register(Answers(None))
    assert engine.fire(call()).decision == "allow"


# -- guards, rules, monitor ---------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_a_guards_no_holds_in_every_profile(profile):
    for others in ([Allow()], [Ask("a?")], [Deny("mine")], [R1]):
        engine, _ = engine_of(
            profile,
            *others,
            Guard(Deny("never")),
            approver=lambda request: True,
            permissions={"always_allow": ["bash"]},
        )
        out = engine.decide(call())
        assert out.decision == "deny", (profile, others)
    knobs = {"on_disagreement": "approval"} if profile == "unanimous" else {}
    engine, _ = engine_of(profile, None, Guard(Deny("never")), approver=lambda request: True, **knobs)
    assert engine.fire(call()).decision == "deny"


def test_always_allow_sets_a_no_aside_and_a_deny_rule_stands():
    for profile in PROFILES:
        engine, _ = engine_of(profile, Deny("no"), permissions={"always_allow": ["bash"]})
        out = engine.decide(call())
        assert out.decision == "allow" and ("h0", "deny", "no") in out.overruled, profile
        engine, _ = engine_of(profile, None, permissions={"deny": ["bash"]})
        assert engine.decide(call()).decision == "deny"


def test_a_rule_that_asks_does_not_ask_twice():
    asked = []
    engine, _ = engine_of(
        "run_all",
        Ask("a?"),
        permissions={"ask": ["bash"]},
        approver=lambda request: asked.append(request) or True,
    )
    with engine.session() as session, session.turn() as turn:
        assert turn.call_tool("bash", {"command": "ls"}, lambda command: "ran").status == "ok"
    assert len(asked) == 1


@pytest.mark.parametrize("profile", PROFILES)
def test_watching_changes_nothing_and_asks_nobody(profile):
    for answers in ([Deny("no")], [R1, R2], [Ask("a?")], [Strict(RuntimeError("boom"))]):
        engine, _ = engine_of(
            profile, *answers, mode="monitor", approver=lambda request: pytest.fail("asked")
        )
        out = engine.fire(call())
        assert out.decision is None and out.event.args["command"] == "ls" and not out.rewrites
        assert out.composed.watching and out.composed.winner.decision != "allow"
        assert out.composed.identity == out.composed.identity_after


def test_one_hook_in_monitor_mode_has_no_ballot():
    engine, _ = engine_of("unanimous", None)
    engine.register(Says(Deny("would")), "watcher", options={"mode": "monitor"})
    out = engine.fire(call())
    assert out.decision is None and [ballot.name for ballot in out.composed.ballots] == ["h0"]


# -- where it reaches ---------------------------------------------------------------------------


def test_no_hook_is_a_no_only_where_one_is_required():
    composition = Composition("first_deny", required=["pre_tool_execution"])
    ran = []
    with Engine(composition=composition) as engine, engine.session() as session:
        assert session.submit("hi").goes_on
        with session.turn() as turn:
            result = turn.call_tool("bash", {"command": "ls"}, lambda command: ran.append(command))
    assert result.status == "denied" and "no hook" in result.value and not ran


@pytest.mark.parametrize("profile", PROFILES)
def test_a_denied_call_never_enters_the_tool(profile):
    ran = []
    engine, _ = engine_of(profile, None, Deny("no"))
    with engine, engine.session() as session, session.turn() as turn:
        result = turn.call_tool("bash", {"command": "ls"}, lambda command: ran.append(command))
    assert result.status == "denied" and not ran


def test_an_approved_call_runs_as_it_was_rewritten():
    engine, _ = engine_of(
        "first_deny", R1, Ask("a?"), approver=lambda request: Approval(True, request.identity)
    )
    with engine, engine.session() as session, session.turn() as turn:
        result = turn.call_tool("bash", {"command": "ls"}, lambda command: f"ran {command}")
    assert result.value == "ran one" and result.args == {"command": "one"}


def test_refuse_and_consult_mean_a_no_at_every_timing():
    class Everywhere:
        def __init__(self, answer):
            self.answer = answer

        @hookimpl
        def on_message_received(self, event):
            return self.answer

        @hookimpl
        def on_turn_start(self, event):
            return self.answer

        @hookimpl
        def post_tool_execution(self, event):
            return self.answer

    message = events.MessageReceived(text="hi")
    result = events.PostToolExecution(tool="bash", args={}, result="x")
    for answer in (Refuse("no", code="c"), Consult("sure?", "c")):
        engine = Engine([Everywhere(answer)], composition="run_all")
        out = engine.fire(message)
        assert out.decision == "block" and out.code == "c"
        assert engine.fire(result).decision == "deny"
        out = engine.fire(events.TurnStart())  # nothing can be stopped here
        assert out.decision is None and out.composed.winner.code == "c"
    engine = Engine([Everywhere(Consult("sure?"))], composition="run_all", approver=lambda request: True)
    assert engine.fire(message).decision is None
    engine = Engine([Everywhere(Refuse("no"))])  # the usual fold takes what the timing takes
    assert engine.fire(message).failures and engine.fire(result).decision == "deny"


def test_a_change_is_worked_out_when_it_is_applied():
    class Louder(Change):
        def worked_out(self, event):
            return {"command": event.command + "!"}

    for composition, expected in (("run_all", "one!!"), (None, "one!!")):
        engine = Engine(
            [("r", Says(R1)), ("a", Says(Louder())), ("b", Says(Louder()))], composition=composition
        )
        assert engine.fire(call()).event.args["command"] == expected
    engine, _ = engine_of("strictest", None, Louder())
    assert decided(engine.fire(call())) == (None, 1, "ls!")


def test_a_remark_has_no_effect_and_is_kept():
    engine, _ = engine_of("run_all", Remark(origin={"label": 1}))
    out = engine.fire(call())
    assert out.decision is None and not out.warnings
    assert out.composed.ballots[0].answers[0].origin == {"label": 1}


# -- records ------------------------------------------------------------------------------------


def test_the_record_holds_no_payload():
    engine, _ = engine_of(
        "first_deny",
        Rewrite(command="p4yload two"),
        [Ask("p4yload?")],
        approver=lambda request: Rewrite(command="p4yload three"),
    )
    out = engine.fire(call("p4yload"))
    record = out.composed.to_json()
    assert "p4yload" not in json.dumps(record)
    assert record["profile"] == "first_deny" and record["on_approval"] == "stop"
    assert [ballot["decision"] for ballot in record["ballots"]] == ["change", "ask"]
    assert record["consulted"] == "approved" and record["identity"] != record["identity_after"]
    assert out.to_json()["composed"] == record
    assert "composed" not in Engine().fire(call()).to_json()


@pytest.mark.parametrize(
    ("profile", "knobs"),
    [
        ("quorum", {}),
        ("run_all", {"on_approval": "stop"}),
        ("strictest", {"on_disagreement": "deny"}),
        ("first_deny", {"on_approval": "maybe"}),
    ],
)
def test_unknown_profiles_and_knobs_are_refused(profile, knobs):
    with pytest.raises(ValueError):
        Composition(profile, **knobs)


# -- the usual fold -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (lambda request: Approval(True, request.identity), "ok"),
        (lambda request: Approval(True, "sha256:0"), "denied"),
        (lambda request: Approval(False, request.identity), "denied"),
        (lambda request: Approval(Deny("no"), request.identity), "denied"),
        (lambda request: Rewrite(command="other"), "denied"),
        (lambda request: "yes", "denied"),
        (lambda request: None, "denied"),
    ],
)
def test_without_a_composition_an_approval_is_bound_to_the_call_too(answer, status):
    ran = []
    with (
        Engine([Says(Ask("a?"))], approver=answer) as engine,
        engine.session() as session,
        session.turn() as turn,
    ):
        result = turn.call_tool("bash", {"command": "ls"}, lambda command: ran.append(command))
    assert result.status == status and bool(ran) == (status == "ok")


# -- against a model ----------------------------------------------------------------------------

ANSWERS = st.sampled_from(["nothing", "warn", "deny", "ask", "rewrite"])


def model(profile, said, yes):
    """(decision, decided by, command) by the words of the specification; written apart from the engine."""
    command, latest = "ls", None
    if profile == "first_deny":
        for index, word in enumerate(said):
            if word == "deny" or (word == "ask" and not yes):
                return "deny", index, command
            if word == "ask":
                return "allow", index, command
            if word == "rewrite":
                command, latest = f"r{index}", index
        return None, latest, command
    asks, denies = [[i for i, word in enumerate(said) if word == kind] for kind in ("ask", "deny")]
    rewrites = [i for i, word in enumerate(said) if word == "rewrite"]
    if profile == "unanimous":
        return ("deny", None, "ls") if asks or denies or rewrites else (None, None, "ls")
    folded = f"r{rewrites[-1]}" if rewrites and profile == "run_all" else "ls"
    if denies:
        return "deny", denies[0], folded
    if asks:
        return ("allow" if yes else "deny"), asks[0], folded
    if len(rewrites) > 1 and profile == "strictest":
        return "deny", None, "ls"
    return None, (rewrites[-1] if rewrites else None), f"r{rewrites[-1]}" if rewrites else "ls"


@given(st.sampled_from(PROFILES), st.lists(ANSWERS, max_size=5), st.booleans())
def test_random_answers_are_what_the_model_says(profile, said, yes):
    answers = {"nothing": None, "warn": Warn("w"), "deny": Deny("no"), "ask": Ask("a?")}
    made = [answers.get(word, Rewrite(command=f"r{index}")) for index, word in enumerate(said)]
    engine, _ = engine_of(profile, *made, approver=lambda request: yes)
    decision, decided_by, command = model(profile, said, yes)
    out = engine.fire(call())
    got = decided(out)
    if decision == "allow":
        assert got[0] in ("allow", None)
        got = ("allow", *got[1:])
    assert got == (decision, decided_by, command)
