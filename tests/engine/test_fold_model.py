"""The fold and the ladder against a slow reference that is written down here from the design's words alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookturn import (
    Allow,
    Ask,
    Block,
    Continue,
    Deny,
    Engine,
    Inject,
    Reply,
    Rewrite,
    SetEnv,
    Warn,
    events,
    hookimpl,
)

COMMANDS = ["a", "b", "c"]
WORDS = st.sampled_from(["x", "y", "z"])

PRE = {
    "deny": WORDS.map(Deny),
    "ask": WORDS.map(Ask),
    "block": WORDS.map(Block),
    "allow": WORDS.map(Allow),
    "reply": st.sampled_from([None, "r", 5]).map(Reply),
    "rewrite": st.sampled_from(COMMANDS).map(lambda text: Rewrite({"command": text})),
    "warn": WORDS.map(Warn),
}
TIMINGS = {
    "pre_tool_execution": (
        lambda text: events.PreToolExecution(tool="bash", args={"command": text}),
        lambda event: event.command,
        PRE,
    ),
    "on_message_received": (
        lambda text: events.MessageReceived(text=text),
        lambda event: event.text,
        {
            "block": WORDS.map(Block),
            "reply": st.sampled_from([None, "r"]).map(Reply),
            "rewrite": st.sampled_from(COMMANDS).map(Rewrite),
            "inject": WORDS.map(Inject),
            "warn": WORDS.map(Warn),
        },
    ),
    "on_turn_complete": (
        lambda text: events.TurnComplete(text=text),
        lambda event: event.text,
        {
            "block": WORDS.map(Block),
            "continue": WORDS.map(Continue),
            "rewrite": st.sampled_from(COMMANDS).map(Rewrite),
            "inject": WORDS.map(Inject),
            "warn": WORDS.map(Warn),
        },
    ),
    "on_turn_start": (
        lambda text: events.TurnStart(phase=text),
        lambda event: event.phase,
        {
            "inject": WORDS.map(Inject),
            "set_env": st.dictionaries(st.sampled_from("AB"), WORDS, max_size=2).map(SetEnv),
            "warn": WORDS.map(Warn),
        },
    ),
}
DECISIONS = ("deny", "ask", "block", "allow")
GUARD_WORDS = ("deny", "ask", "block", "warn")


@st.composite
def hooks(draw, timing):
    """One hook: what it says (kind, answer) in order, or a failure; where it stands; how it fails."""
    kinds = TIMINGS[timing][2]
    guard = draw(st.booleans()) and bool({"deny", "block"} & set(kinds))
    words = [word for word in kinds if not guard or word in GUARD_WORDS]
    said = draw(
        st.lists(
            st.sampled_from(words).flatmap(lambda word: kinds[word].map(lambda a: (word, a))), max_size=3
        )
    )
    seen = False
    kept = []
    for word, answer in said:  # at most one decision
        if word in DECISIONS and seen:
            continue
        seen = seen or word in DECISIONS
        kept.append((word, answer))
    return {
        "said": "fails" if draw(st.integers(0, 9)) == 0 else kept,
        "phase": draw(st.sampled_from(["before", "", "after"])),
        "priority": draw(st.sampled_from([10, 50, 90])),
        "guard": guard,
        "closed": draw(st.booleans()),
        "monitor": draw(st.integers(0, 5)) == 0,
        "layer": draw(st.sampled_from(["user", "project", "managed", "installed", "host"])),
    }


# Each command is under no rule, one, or two.
rules = st.tuples(
    *[
        st.lists(st.sampled_from(["deny", "ask", "ask", "always_allow", "always_allow"]), max_size=2)
        for _ in COMMANDS
    ]
).map(
    lambda under: {
        name: [command for command, names in zip(COMMANDS, under, strict=True) if name in names]
        for name in ("deny", "ask", "always_allow")
    }
)


def reference(timing, text, registry, permissions):
    """What must come out, straight from sections 3, 4 and 5."""
    tiers = {"before": 1, "": 2, "after": 3}
    order = sorted(
        range(len(registry)),
        key=lambda i: (
            9 if registry[i]["guard"] else tiers[registry[i]["phase"]],
            registry[i]["priority"],
            i,
        ),
    )
    can = TIMINGS[timing][2]
    now, ended, reply = text, False, None
    votes = []  # (decision, name, words, enforced)
    seen, injected, warnings, continues, env, rewrites, failed = [], [], [], [], {}, [], []

    def rule_says(command):
        if permissions is None:
            return None
        for name in ("deny", "always_allow", "ask"):
            if command in permissions[name]:
                return name
        return None

    for i in order:
        hook, name = registry[i], f"h{i}"
        if ended and not hook["guard"]:
            continue  # the first standing Deny, Block or Reply ends the plan; guards are asked even so
        seen.append((name, now))
        enforced = hook["guard"] and hook["layer"] != "project"
        if hook["said"] == "fails":
            failed.append(name)
            if (hook["guard"] or hook["closed"]) and not hook["monitor"]:
                if "deny" in can:
                    votes.append(("deny", name, None, enforced))
                elif "block" in can:
                    votes.append(("block", name, None, enforced))
                else:
                    warnings.append(None)
                    continue
                if not hook["guard"]:
                    ended = True
            continue
        if hook["monitor"]:
            continue
        said = hook["said"]
        for word, answer in said:
            if word == "rewrite":
                new = answer.value["command"] if timing == "pre_tool_execution" else answer.value
                rewrites.append((name, now, new))
                now = new
        if any(word == "rewrite" for word, _ in said):
            votes = [vote for vote in votes if vote[0] != "allow"]  # given for other arguments
        for word, answer in said:
            if word in DECISIONS:
                votes.append((word, name, answer.reason, enforced))
                if word in ("deny", "block") and not hook["guard"] and rule_says(now) != "always_allow":
                    ended = True
            elif word == "reply":
                reply, ended = (name, answer.value), True
            elif word == "inject":
                injected.append(answer.text)
            elif word == "warn":
                warnings.append(answer.text)
            elif word == "continue":
                continues.append(answer.reason)
            elif word == "set_env":
                env.update(answer.variables)

    rule = rule_says(now)

    def first(decision, enforced=False):
        return next(((d, n, w) for d, n, w, e in votes if d == decision and (e or not enforced)), None)

    rungs = [
        ("deny", "rule", None) if rule == "deny" else None,
        first("block", True),
        first("deny", True),
        first("ask", True),
        ("allow", "rule", None) if rule == "always_allow" else None,
        first("block"),
        first("deny"),
        first("ask"),
        ("ask", "rule", None) if rule == "ask" else None,
        first("allow"),
    ]
    decision = next((rung for rung in rungs if rung is not None), (None, "", ""))
    overruled = []
    if rungs.index(decision) == 4 if decision in rungs else False:
        overruled = [(n, d) for d, n, w, e in votes if d != "allow"]
    if decision[0] in ("deny", "block"):
        reply = None
    return {
        "decision": decision,
        "text": now,
        "seen": seen,
        "rewrites": rewrites,
        "injected": injected,
        "warnings": warnings,
        "continues": continues,
        "env": env,
        "reply": reply,
        "failed": failed,
        "overruled": overruled,
    }


def build(timing, registry, permissions, seen, asynchronous):
    engine = Engine(
        permissions={key: [f"bash({text})" for text in texts] for key, texts in permissions.items()}
        if permissions is not None
        else None
    )
    read = TIMINGS[timing][1]
    for index, hook in enumerate(registry):
        name = f"h{index}"

        def say(event, hook=hook, name=name):
            seen.append((name, read(event)))
            if hook["said"] == "fails":
                raise ValueError("broken")
            answers = [answer for _, answer in hook["said"]]
            return (answers if len(answers) != 1 else answers[0]) or None

        if asynchronous:

            async def function(self, event, say=say):
                return say(event)
        else:

            def function(self, event, say=say):
                return say(event)

        function.__defaults__ = None
        source = "async def" if asynchronous else "def"
        scope = {"say": say}
        exec(f"{source} function(self, event):\n    return say(event)", scope)
        plugin = type("P", (), {timing: hookimpl(scope["function"])})()
        engine.register(
            plugin,
            name,
            layer=hook["layer"],
            options={
                "phase": hook["phase"],
                "priority": hook["priority"],
                "guard": hook["guard"],
                "on_failure": "deny" if hook["closed"] else "ignore",
                "mode": "monitor" if hook["monitor"] else "enforce",
            },
        )
    return engine


def check(out, want, timing):
    read = TIMINGS[timing][1]
    decision, by, words = want["decision"]
    assert out.decision == decision
    if by == "rule":
        assert out.by.startswith("rule bash(")
    elif by:
        assert out.by == by
        if words is not None:
            assert out.reason == words
        else:
            assert by in out.reason and "fails closed" in out.reason
    assert read(out.event) == want["text"]
    changed = [
        (item.by, item.before["command"], item.after["command"])
        if timing == "pre_tool_execution"
        else (item.by, item.before, item.after)
        for item in out.rewrites
    ]
    assert changed == want["rewrites"]
    assert list(out.injected) == want["injected"]
    said = [text for text in out.warnings if "always_allow" not in text]
    assert len(said) == len(want["warnings"])
    assert all(theirs is None or ours == theirs for ours, theirs in zip(said, want["warnings"], strict=True))
    assert out.continue_reason == "\n".join(want["continues"])
    assert out.env == want["env"]
    if want["reply"] is None:
        assert (out.replied, out.reply) == (False, None)
    else:
        assert (out.replied, out.reply) == (True, want["reply"][1])
    assert [failure.hook for failure in out.failures] == want["failed"]
    assert [(name, word) for name, word, _ in out.overruled] == want["overruled"]
    if decision in ("deny", "block"):
        assert out.reason in out.message and out.by in out.message
    else:
        assert out.message == ""


def play(timing, text, registry, permissions, measure, asynchronous):
    want = reference(timing, text, registry, permissions)
    seen = []
    event = TIMINGS[timing][0](text)
    with build(timing, registry, permissions, seen, asynchronous) as engine:
        out = engine.decide(event, measure=measure)
        assert seen == want["seen"]
        check(out, want, timing)
        if measure:
            assert {record.name for record in out.hooks} == {f"h{index}" for index in range(len(registry))}
        for record in out.hooks:
            hook = registry[int(record.name[1:])]
            if record.matched and hook["said"] != "fails":
                assert record.would == (hook["monitor"] and bool(hook["said"]))
        if permissions is None:
            check(engine.fire(event), want, timing)


@settings(max_examples=300)
@given(st.data(), st.sampled_from(list(TIMINGS)), st.sampled_from(COMMANDS), st.booleans(), st.booleans())
def test_the_fold_is_the_references(data, timing, text, measure, asynchronous):
    registry = data.draw(st.lists(hooks(timing), max_size=6))
    play(timing, text, registry, None, measure, asynchronous)


@st.composite
def voters(draw):
    """Hooks of which each has little to say, so that every rung of the ladder is reached often."""
    guard = draw(st.booleans())
    words = ["ask", "ask", "deny", "block", "allow", "allow", "rewrite", "reply"]
    word = draw(st.sampled_from([word for word in words if not guard or word in GUARD_WORDS]))
    return {
        "said": [(word, draw(PRE[word]))],
        "phase": "",
        "priority": 50,
        "guard": guard,
        "closed": False,
        "monitor": False,
        "layer": draw(st.sampled_from(["user", "project"])),
    }


@settings(max_examples=700)
@given(st.lists(voters(), max_size=4), st.sampled_from(COMMANDS), rules)
def test_the_ladder_is_the_references(registry, text, permissions):
    play("pre_tool_execution", text, registry, permissions, False, False)


@settings(max_examples=100)
@given(st.data(), st.sampled_from(list(TIMINGS)), st.sampled_from(COMMANDS), st.booleans())
async def test_afire_folds_alike(data, timing, text, asynchronous):
    registry = data.draw(st.lists(hooks(timing), max_size=6))
    want = reference(timing, text, registry, None)
    seen = []
    engine = build(timing, registry, None, seen, asynchronous)
    out = await engine.afire(TIMINGS[timing][0](text))
    assert seen == want["seen"]
    check(out, want, timing)


class Says:
    def __init__(self, *answers, timing="pre_tool_execution"):
        self.answers = answers

    @hookimpl
    def pre_tool_execution(self, event):
        return list(self.answers)


class GuardSays(Says):
    @hookimpl(guard=True)
    def pre_tool_execution(self, event):
        return list(self.answers)


def call(command="ls", tool="bash"):
    return events.PreToolExecution(tool=tool, args={"command": command})


def test_no_opinion_never_removes_one():
    out = Engine([Says(Ask("sure?")), Says(), Says(Allow()), Says()]).fire(call())
    assert (out.decision, out.by) == ("ask", "Says")


def test_an_allow_before_a_later_rewrite_is_void_and_one_after_it_counts():
    rewrite = Says(Rewrite(command="rm x"))
    assert Engine([Says(Allow("ok")), rewrite]).fire(call()).decision is None
    assert Engine([rewrite, Says(Allow("ok"))]).fire(call()).decision == "allow"
    assert Engine([Says(Rewrite(command="rm x"), Allow("mine"))]).fire(call()).decision == "allow"


def test_an_allow_never_lifts_a_deny_or_a_rule():
    out = Engine([Says(Allow("ok"))], permissions={"deny": ["bash"]}).decide(call())
    assert (out.decision, out.by) == ("deny", "rule bash")
    out = Engine([Says(Allow("ok")), Says(Deny("no"))]).fire(call())
    assert out.decision == "deny"


def test_a_hooks_deny_against_always_allow_is_recorded_logged_and_shown(hook_log):
    engine = Engine([("strict", Says(Deny("not today")))], permissions={"always_allow": ["bash(ls)"]})
    out = engine.decide(call())
    assert out.decision == "allow"
    assert out.overruled == (("strict", "deny", "not today"),)
    [record] = out.hooks
    assert record.answer == Deny("not today")
    assert "always_allow" in record.why
    [shown] = out.warnings
    assert "strict" in shown and "not today" in shown and "always_allow" in shown
    assert any("not today" in message and "always_allow" in message for message in hook_log.of("strict"))


@pytest.mark.parametrize(
    ("layer", "decision"),
    [("host", "deny"), ("managed", "deny"), ("user", "deny"), ("installed", "deny"), ("project", "allow")],
)
def test_a_guard_of_the_user_is_not_set_aside_by_always_allow(layer, decision):
    engine = Engine(permissions={"always_allow": ["bash"]})
    engine.register(GuardSays(Deny("no")), "guard", layer=layer)
    assert engine.decide(call()).decision == decision


def test_the_rules_look_at_the_final_arguments():
    rules = {"deny": ["bash(rm *)"], "always_allow": ["bash(ls)"]}
    engine = Engine([Says(Rewrite(command="rm x"))], permissions=rules)
    assert engine.decide(call("ls")).decision == "deny"
    engine = Engine([Says(Rewrite(command="ls"))], permissions=rules)
    assert engine.decide(call("rm x")).decision == "allow"


def test_a_deny_that_always_allow_set_aside_stands_once_the_arguments_are_others():
    engine = Engine(
        [Says(Deny("no")), Says(Rewrite(command="pwd"))], permissions={"always_allow": ["bash(ls)"]}
    )
    out = engine.decide(call("ls"))
    assert (out.decision, out.reason, out.event.command) == ("deny", "no", "pwd")


@pytest.mark.parametrize("where", ["hook", "plugin", "engine"])
def test_monitor_mode_records_without_effect(where):
    class P:
        @hookimpl(mode="monitor" if where == "hook" else "enforce")
        def pre_tool_execution(self, event):
            return [Rewrite(command="rm"), Deny("no"), Warn("w")]

    class Later:
        @hookimpl
        def pre_tool_execution(self, event):
            return Warn(event.command)

    engine = Engine(mode="monitor" if where == "engine" else "enforce")
    engine.register(P(), "p", options={"mode": "monitor"} if where == "plugin" else None)
    engine.register(Later(), "later")
    out = engine.fire(call("ls"))
    assert (out.decision, out.event.command, out.rewrites) == (None, "ls", ())
    assert out.warnings == (() if where == "engine" else ("ls",))
    record = out.hooks[0]
    assert record.would and record.answers == (Rewrite(command="rm"), Deny("no"), Warn("w"))
    assert record.to_json()["would"] is True
    assert "monitor" in record.why


@pytest.mark.parametrize("guard", [True, False])
def test_a_failure_in_monitor_mode_denies_nothing(guard):
    class P:
        @hookimpl(guard=guard, on_failure="deny", mode="monitor")
        def pre_tool_execution(self, event):
            raise ValueError("x")

    out = Engine([P()]).fire(call())
    assert out.decision is None
    assert out.failures and out.hooks[0].would


def test_the_message_is_what_the_model_reads():
    out = Engine([("guardian", Says(Deny("no force push", advice="Open a PR.", code="git")))]).fire(call())
    assert (out.reason, out.by, out.advice, out.code) == ("no force push", "guardian", "Open a PR.", "git")
    assert out.message == "The call of bash was denied by guardian: no force push\nOpen a PR."
    out = Engine([("guardian", Says(Block("enough")))]).fire(call())
    assert out.message == "The call of bash was blocked by guardian: enough"
    assert out.denied


def test_the_outcome_as_json():
    import json

    out = Engine([("p", Says(Rewrite(command="x"), Deny("no"), Warn("w")))]).fire(call("ls"))
    data = json.loads(json.dumps(out.to_json(), allow_nan=False))
    for name in (
        "schema", "timing", "decision", "reason", "by", "message", "event", "rewrites", "reply", "continue_reason",
        "injected", "warnings", "failures", "hooks",
    ):  # fmt: skip
        assert name in data
    assert (data["schema"], data["timing"], data["decision"], data["by"]) == (
        1,
        "pre_tool_execution",
        "deny",
        "p",
    )
    assert data["event"]["args"] == {"command": "x"}
    assert data["rewrites"] == [
        {"by": "p", "field": "args", "before": {"command": "ls"}, "after": {"command": "x"}}
    ]
    [hook] = data["hooks"]
    for name in (
        "name",
        "plugin",
        "source",
        "tier",
        "priority",
        "matched",
        "why",
        "answer",
        "error",
        "micros",
    ):
        assert name in hook
    assert hook["answer"] == {"rewrite": {"command": "x"}, "deny": "no", "warn": "w"}
