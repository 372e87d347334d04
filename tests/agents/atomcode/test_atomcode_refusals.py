"""Refusals of AtomCode's hooks that are spoilt on their way: they count, or are told, and never pass in silence."""

from __future__ import annotations

import pytest

from hookturn import events

BLOCK = '{"decision":"block","reason":"no"}'
PRETTY = '{\n  "decision": "block",\n  "reason": "no"\n}'
DENY = '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}'


def guard(atom, output, code=0, said="", event="PreToolUse"):
    atom.write("out.txt", output)
    atom.write("guard.sh", f"#!/bin/sh\ncat out.txt\n{f'echo {said} >&2' if said else ''}\nexit {code}\n")
    atom.json({"guard": {"event": event, "command": "./guard.sh"}})


SPOILT = [
    f"hi {BLOCK}",
    f"hi\n{PRETTY}",
    f"{PRETTY}\nbye",
    f"{BLOCK} bye",
    f"{BLOCK}{BLOCK}",
    f"{PRETTY}\n{PRETTY}",
    f"\x1b[0m{BLOCK}",
    f"\u200b{BLOCK}",
    f"{BLOCK}\n{{}}",
    f"[{BLOCK}]",
    f'{{"answer": {BLOCK}}}',
    f"hi {DENY}",
    '{"decision":"block",}',
    "{'decision': 'block'}",
    '{"decision":"block"',
]


@pytest.mark.parametrize("output", SPOILT)
@pytest.mark.parametrize("event", ["PreToolUse", "UserPromptSubmit"])
def test_a_refusal_with_text_around_it_is_told(atom, output, event):
    guard(atom, output, event=event)
    outcome = atom.pre() if event == "PreToolUse" else atom.prompt()
    assert outcome.decision is None
    assert len(outcome.failures) == 1
    assert ".hooks.json:" in outcome.failures[0].message


@pytest.mark.parametrize("output", [f"hi {BLOCK}", f"{PRETTY}\nbye", f"{BLOCK}\n}}"])
@pytest.mark.parametrize("event", ["PreToolUse", "UserPromptSubmit"])
def test_exit_code_2_refuses_with_a_spoilt_answer_too(atom, output, event):
    guard(atom, output, 2, "stop", event)
    outcome = atom.pre() if event == "PreToolUse" else atom.prompt()
    assert outcome.decision == ("deny" if event == "PreToolUse" else "block")
    assert outcome.reason == "stop"


def test_exit_code_2_refuses_with_an_endless_output_too(atom):
    atom.write("guard.sh", "#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x\necho stop >&2\nexit 2\n")
    atom.json({"guard": {"event": "PreToolUse", "command": "./guard.sh"}})
    outcome = atom.pre()
    assert (outcome.decision, outcome.reason) == ("deny", "stop")


@pytest.mark.parametrize("words", ["command not found", "can't open file", "ImportError"])
def test_words_of_the_call_that_a_guard_repeats_do_not_make_its_refusal_a_failure(atom, words):
    atom.write("guard.sh", '#!/bin/sh\necho "Blocked: $(cat)" >&2\nexit 2\n')
    atom.json({"guard": {"event": "PreToolUse", "command": "./guard.sh"}})
    assert atom.pre(args={"command": f"rm -rf / # {words}"}).decision == "deny"


@pytest.mark.parametrize("text", ['see {"decision": "allow"}', '{"note": "a decision: block"}', "{not JSON}"])
def test_words_that_refuse_nothing_are_let_be(atom, text):
    guard(atom, text)
    assert atom.pre().failures == ()


def test_what_a_session_start_prints_is_text_whatever_it_shows(atom):
    text = f"Answer with {PRETTY}, say."
    guard(atom, text, event="SessionStart")
    outcome = atom.engine().fire(events.SessionStart(cwd=str(atom.folder), session_id="s-1"))
    assert [item.text if hasattr(item, "text") else item for item in outcome.injected] == [text]


@pytest.mark.parametrize(
    "output", [f"hi {BLOCK}", '{"result": "deny",}', 'x {"result":"deny","message":"no"} y']
)
def test_a_refusal_of_a_script_with_text_around_it_is_told(atom, output):
    atom.script("out.txt", output)
    atom.script("say.sh", "#!/bin/sh\ncat .atomcode/hooks/out.txt\n")
    atom.toml('[[hooks]]\nname = "guard"\ntrigger = "pre_tool"\nscript_type = "shell"\nscript = \'say.sh\'\n')
    outcome = atom.pre()
    assert outcome.decision is None and len(outcome.failures) == 1


def test_a_script_refuses_in_words_even_where_they_hold_an_answer(atom):
    atom.script("out.txt", f"deny: never {BLOCK} here")
    atom.script("say.sh", "#!/bin/sh\ncat .atomcode/hooks/out.txt\n")
    atom.toml('[[hooks]]\nname = "guard"\ntrigger = "pre_tool"\nscript_type = "shell"\nscript = \'say.sh\'\n')
    assert atom.pre().reason == f"never {BLOCK} here"
