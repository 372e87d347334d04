"""hooks.toml of AtomCode: scripts as the documents say, run for real (tables A1.3, A4.1, A4.4 and A6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookturn import events

PRE = """
[[hooks]]
name = "h"
trigger = "pre_tool"
script = "h.sh"
"""


def one(atom, body, trigger="pre_tool", **more):
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
    suffix = "py" if more.get("script_type") == "python" else "sh"
    atom.toml(f'[[hooks]]\nname = "h"\ntrigger = "{trigger}"\nscript = "h.{suffix}"\n{lines}')
    atom.script(f"h.{suffix}", body)


def show(out):
    """Return what a script's end came to: decision, words, rewrite and failures."""
    return (
        out.decision,
        out.reason if out.decision else "",
        list(out.warnings),
        dict(out.event.args) if out.rewrites else None,
        [failure.message.partition(": ")[2] for failure in out.failures],
    )


OK = (None, "", [], None, [])


def denied(reason):
    return ("deny", reason, [], None, [])


def warned(text):
    return (None, "", [text], None, [])


def modified(args):
    return (None, "", [], args, [])


def failed(*messages):
    return (None, "", [], None, list(messages))


A44 = {
    "empty": ("exit 0", OK),
    "ok": ("echo ok", OK),
    "any other words": ("echo all is fine here", OK),
    "warning text": ("echo 'warning: something'", warned("something")),
    "WARN text": ("echo 'WARN: something'", warned("something")),
    "deny text": ("echo 'deny: access denied'", denied("access denied")),
    "DENY text": ("echo 'DENY: no'", denied("no")),
    "modify text": ("""echo 'modify: {"a":1}'""", modified({"a": 1})),
    "MODIFY text": ("""echo 'MODIFY: {"a":1}'""", modified({"a": 1})),
    "other spellings": ("echo 'WARNING: x'; echo 'warn: x'; echo 'Deny: x'", OK),
    "result ok": ("""echo '{"result":"ok"}'""", OK),
    "result warning": ("""echo '{"result":"warning","message":"be careful"}'""", warned("be careful")),
    "result deny with reason": ("""echo '{"result":"deny","reason":"no"}'""", denied("no")),
    "message before reason": (
        """echo '{"result":"deny","reason":"no","message":"never"}'""",
        denied("never"),
    ),
    "result deny alone": ("""echo '{"result":"deny"}'""", denied("the hook gave no reason")),
    "modified_content": (
        """echo '{"result":"modify","modified_content":"{\\"command\\":\\"pwd\\"}"}'""",
        modified({"command": "pwd"}),
    ),
    "modified_content as an object": (
        """echo '{"result":"modify","modified_content":{"command":"pwd"}}'""",
        modified({"command": "pwd"}),
    ),
    "modify by message": ("""echo '{"result":"modify","message":"{}"}'""", modified({})),
    "unknown result": (
        """echo '{"result":"later"}'""",
        failed("unknown result 'later'; it takes ok, warning, deny, modify"),
    ),
    "other dialect": ("""echo '{"action":"block","reason":"x"}'""", denied("x")),
    "debug line, then deny": ("echo debug; echo 'deny: no'", denied("no")),
    "deny over two lines": ("echo 'deny: a'; echo b", denied("a\nb")),
    "deny with exit 1": ("echo 'deny: no'; exit 1", denied("no")),
    "JSON deny with exit 1": ("""echo '{"result":"deny","reason":"no"}'; exit 1""", denied("no")),
    "exit 1 with words on stderr": (
        "echo oops >&2; exit 1",
        failed("the command ended with exit code 1: oops"),
    ),
    "modify with exit 1": (
        """echo 'modify: {"a":1}'; exit 1""",
        failed("""the command ended with exit code 1: modify: {"a":1}"""),
    ),
    "modify without JSON": (
        "echo 'modify: later'",
        failed("'modify' needs the tool's new arguments as a JSON object"),
    ),
    "JSON, then noise": (
        """echo '{"result":"deny","reason":"no"}'; echo bye""",
        failed(
            "an answer stands in line 1 of its output, and more text follows ('bye'); print the JSON last"
        ),
    ),
    "byte-order mark": ("""printf '\\357\\273\\277deny: no'""", denied("no")),
}


@pytest.mark.parametrize("row", A44)
def test_a44_what_a_script_prints(atom, row):
    body, expected = A44[row]
    one(atom, f"{body}\n")
    assert show(atom.pre()) == expected


def test_a44_a_script_that_sleeps_past_its_timeout_lets_the_tool_run(atom):
    one(atom, "sleep 30\n", timeout_secs=1)
    out = atom.pre()
    assert out.decision is None
    assert [failure.error_type for failure in out.failures] == ["TimeoutError"]


@pytest.mark.parametrize("words", ["deny: no", "modify: {}"])
@pytest.mark.parametrize("timing", ["post_tool", "post_turn"])
def test_after_a_tool_or_a_turn_nothing_can_be_refused_or_changed(atom, timing, words):
    one(atom, f"echo '{words}'\n", timing)
    if timing == "post_tool":
        out = atom.post()
        assert out.event.result == "done"
    else:
        out = atom.engine().fire(events.PostTurn(text="bye", session_id="s-1", turn=3))
    assert (out.decision, out.failures, len(out.warnings)) == (None, (), 1)


CONTEXT = {"session_id": "s-1", "turn_number": 3}


@pytest.mark.parametrize("trigger", ["pre_tool", "pre_tool_execution"])
def test_a41_pre_tool_payload(atom, trigger):
    one(atom, 'cat > "$PWD/seen.json"\n', trigger)
    atom.pre(args={"command": "echo 表", "n": 1})
    seen = atom.seen()
    assert json.loads(seen.pop("tool_args")) == {"command": "echo 表", "n": 1}
    assert seen == {"tool_name": "bash", "working_dir": str(atom.folder), **CONTEXT}


@pytest.mark.parametrize("trigger", ["post_tool", "post_tool_execution"])
def test_a41_post_tool_payload(atom, trigger):
    one(atom, "cat > seen.json\n", trigger)
    atom.post(status="error", result="bad")
    args = {"tool_name": "bash", "tool_args": '{"command":"ls"}'}
    assert atom.seen() == {
        "hook_context": {**args, "working_dir": str(atom.folder), **CONTEXT},
        "result_context": {**args, "result": "bad", "success": False, "duration_ms": 250},
    }


@pytest.mark.parametrize(("calls", "result"), [(0, "Responded"), (1, "UsedTools")])
def test_a41_post_turn_payload(atom, calls, result):
    one(atom, "cat > seen.json\n", "post_turn")
    engine = atom.engine()
    with engine.session(session_id="s-1", cwd=str(atom.folder)) as session, session.turn() as turn:
        for number in range(calls):
            turn.call_tool("bash", {"command": "ls"}, execute=lambda command: "", call_id=str(number))
        turn.complete("bye")
    context = {
        "tool_name": "",
        "tool_args": "",
        "working_dir": str(atom.folder),
        "session_id": "s-1",
        "turn_number": 1,
    }
    assert atom.seen() == {"hook_context": context, "turn_result": result}


def test_a41_system_prompt_payload_and_answer(atom):
    one(atom, "cat > seen.json\necho ok\n", "system_prompt")
    out = atom.engine().fire(events.SystemPrompt(parts=["You are."], session_id="s-1", turn=3))
    assert list(out.injected) == ["ok"]  # the word ok is text here
    assert atom.seen()["tool_name"] == ""


@pytest.mark.parametrize("body", ["exit 0", "echo x; exit 1"])
def test_a41_system_prompt_without_text_adds_nothing(atom, body):
    one(atom, f"{body}\n", "system_prompt")
    assert not atom.engine().fire(events.SystemPrompt(parts=[], session_id="s-1")).injected


def test_a41_scripts_get_no_variables_of_the_event(atom):
    one(atom, "env | grep -c '^ATOMCODE_\\|^HOOKTURN_HOOK' > seen.json\nexit 0\n")
    atom.pre()
    assert atom.seen() == 0


def test_a9_bash_is_really_bash(atom):
    one(atom, 'x=(deny: arrays); [[ ${#x[@]} == 2 ]] && echo "${x[@]}"\n', script_type="bash")
    assert atom.pre().reason == "arrays"


def test_a9_a_shell_script_whose_first_line_names_bash_gets_bash(atom):
    one(atom, '#!/usr/bin/env bash\nx=(deny: arrays); echo "${x[@]}"\n')
    assert atom.pre().reason == "arrays"


def test_a1_shell_scripts_need_no_executable_bit(atom):
    one(atom, "echo 'deny: no'\n")
    (atom.folder / ".atomcode/hooks/h.sh").chmod(0o644)
    assert atom.pre().reason == "no"


def test_a10_python_is_python3_where_there_is_no_python(atom, without_python):
    one(atom, "import sys, json\nprint('deny:', json.load(sys.stdin)['tool_name'])\n", script_type="python")
    assert atom.pre().reason == "bash"


def test_a13_a_script_that_does_not_read_two_megabytes_and_talks_on_stderr_still_decides(atom):
    one(atom, "head -c 300000 /dev/zero >&2\necho 'deny: no'\n")
    assert atom.pre(args={"content": "x" * 2_000_000}).reason == "no"


def test_a14_what_a_script_left_running_is_gone_after_its_timeout(atom):
    one(atom, "sleep 300 & echo $! > child\nwait\n", timeout_secs=1)
    atom.pre()
    child = (atom.folder / "child").read_text().strip()
    try:
        state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        state = "gone"
    assert state in ("gone", "Z")  # a container may have nobody to bury it


def test_a15_home_and_variables_in_a_script_path(atom, monkeypatch):
    atom.write("tools/h.sh", "echo 'deny: found'\n", atom.home)
    for path in ("~/.atomcode/tools/h.sh", "$TOOLS/h.sh"):
        monkeypatch.setenv("TOOLS", str(atom.home / "tools"))
        atom.toml(f'[[hooks]]\nname = "h"\ntrigger = "pre_tool"\nscript = "{path}"\n')
        assert atom.pre().reason == "found"


# -- the file ---------------------------------------------------------------------------------------


def test_defaults(atom):
    one(atom, "exit 0\n")
    (hook,) = [file.entries[0] for file in atom_files(atom)]
    assert hook.options == {"timeout": 2}
    assert hook.run[0] == "sh"


def atom_files(atom):
    from hookturn.project.assemble import Survey

    return [file for file in Survey(atom.folder).foreign if file.entries]


def test_an_empty_file_is_fine(atom):
    atom.toml("")
    assert atom.problems() == []


BAD = {
    'name = 5\ntrigger = "pre_tool"\nscript = "x"': "6:8: hooks[1].name: expected a string, got a number",
    'trigger = "pre_tool"\nscript = "x"': "5:1: hooks[1]: the entry has no 'name'",
    'name = "b"\nscript = "x"': "5:1: hooks[1]: the entry has no 'trigger'",
    'name = "b"\ntrigger = "pre_tool"': "5:1: hooks[1]: the entry has no 'script'",
    'name = "b"\ntrigger = "pre_tol"\nscript = "x"': "unknown trigger 'pre_tol' (did you mean 'pre_tool'?)",
    'name = "b"\ntrigger = "PRE_TOOL"\nscript = "x"': "7:11: hooks[1].trigger: unknown trigger 'PRE_TOOL'",
    'name = "b"\ntrigger = "on_turn_complete"\nscript = "x"': "use .hooks.json or a webhook",
    'name = "b"\ntrigger = "pre_tool"\nscript = "x"\nscript_type = "zsh"': "9:15: hooks[1].script_type: unknown script_type 'zsh'",
    'name = "b"\ntrigger = "pre_tool"\nscript = "x"\ntimeout_secs = "3"': "expected seconds as a whole number, got a string",
    'name = "b"\ntrigger = "pre_tool"\nscript = "x"\ntimeout_secs = 0': "expected seconds from 1 to 86400, got 0",
    'name = "b"\ntrigger = "pre_tool"\nscript = "x"\nenabled = "no"': "expected true or false, got a string",
    'name = "good"\ntrigger = "pre_tool"\nscript = "x"': "an entry named 'good' stands in line 1 already",
    'name = "b"\ntrigger = "pre_tool"\nscript = "missing.sh"': "missing.sh does not exist",
}


@pytest.mark.parametrize("entry", BAD)
def test_a7_a_bad_entry_costs_only_itself(atom, entry):
    good = '[[hooks]]\nname = "{}"\ntrigger = "pre_tool"\nscript = "good.sh"\n'
    atom.toml(f"{good.format('good')}[[hooks]]\n{entry}\n{good.format('last')}")
    atom.script("good.sh", "echo 'warning: ran'\n")
    made = atom.assemble()
    (problem,) = [str(problem) for problem in made.problems]
    assert BAD[entry] in problem
    assert problem.startswith(".atomcode/hooks/hooks.toml:")
    assert list(atom.pre(engine=made.engine).warnings) == ["ran", "ran"]


def test_unknown_keys_and_tables_are_told_and_cost_nothing(atom):
    one(atom, "echo 'deny: no'\n", tiemout_secs=3)
    path = atom.folder / ".atomcode/hooks/hooks.toml"
    path.write_text(path.read_text() + "[other]\nx = 1\n")
    made = atom.assemble()
    assert [problem.severity for problem in made.problems] == ["warning", "warning"]
    assert "unknown key 'tiemout_secs' (did you mean 'timeout_secs'?)" in str(made.problems[1])
    assert atom.pre(engine=made.engine).reason == "no"


def test_a_broken_file_is_told_with_its_place(atom):
    atom.toml("[[hooks]]\nname = \n")
    (problem,) = atom.problems()
    assert problem.startswith(".atomcode/hooks/hooks.toml:2:")


def test_a_disabled_script_does_not_run(atom):
    one(atom, "echo 'deny: no'\n", enabled=False)
    assert atom.states()["h"][0] == "disabled"
    assert atom.pre().decision is None


# -- scopes -----------------------------------------------------------------------------------------


def test_a4_a_projects_script_replaces_the_users_of_its_name(atom):
    atom.toml(PRE, user=True)
    atom.script("h.sh", "echo 'deny: user'\n", user=True)
    assert atom.pre().reason == "user"
    one(atom, "echo 'deny: project'\n")
    out = atom.pre()
    assert (out.reason, len(out.hooks)) == ("project", 1)


def test_a4_a_project_can_switch_a_users_script_off(atom):
    atom.toml(PRE, user=True)
    atom.script("h.sh", "echo 'deny: user'\n", user=True)
    atom.toml('[[hooks]]\nname = "h"\nenabled = false\n')
    made = atom.assemble()
    assert atom.pre(engine=made.engine).decision is None
    reasons = {row.reason for row in made.plugins if row.kind == "config"}
    assert "switched off by .atomcode/hooks/hooks.toml:1" in reasons


def test_merge_concatenate_runs_both(atom):
    atom.settings = {"merge": "concatenate"}
    atom.toml(PRE, user=True)
    atom.script("h.sh", "echo 'warning: user'\n", user=True)
    one(atom, "echo 'warning: project'\n")
    assert list(atom.pre().warnings) == ["user", "project"]


def test_the_same_script_in_two_scopes_runs_once(atom):
    path = atom.write("tools/h.sh", "echo 'warning: ran'\n", atom.home)
    for user, name in ((True, "one"), (False, "two")):
        atom.toml(f'[[hooks]]\nname = "{name}"\ntrigger = "pre_tool"\nscript = "{path}"\n', user=user)
    assert list(atom.pre().warnings) == ["ran"]


def test_an_untrusted_projects_script_does_not_run_until_it_is_trusted(atom):
    one(atom, "echo 'deny: no'\n")
    made = atom.assemble(trust=False)
    assert atom.pre(engine=made.engine).decision is None
    assert atom.pre().reason == "no"
    atom.script("h.sh", "echo 'deny: changed'\n")
    made = atom.assemble(trust=False)
    assert atom.pre(engine=made.engine).decision is None


def test_a1_modify_reaches_approval_execution_and_the_post_hook(atom):
    body = """case "$(cat)" in *result_context*) cat > /dev/null; exit 0;; esac\necho 'modify: {"command": "pwd"}'\n"""
    one(atom, body)
    path = atom.folder / ".atomcode/hooks/hooks.toml"
    path.write_text(
        path.read_text() + '[[hooks]]\nname = "post"\ntrigger = "post_tool"\nscript = "post.sh"\n'
    )
    atom.script("post.sh", "cat > seen.json\n")
    engine = atom.engine()
    ran = []
    with engine.session(cwd=str(atom.folder)) as session, session.turn() as turn:
        turn.call_tool("bash", {"command": "rm x"}, execute=lambda command: ran.append(command))
    assert ran == ["pwd"]
    assert json.loads(atom.seen()["result_context"]["tool_args"]) == {"command": "pwd"}


def test_fold_first_deny_ends_the_plan_and_later_hooks_see_the_rewritten_call(atom):
    names = ("one", "two", "three")
    atom.toml("".join(f'[[hooks]]\nname = "{n}"\ntrigger = "pre_tool"\nscript = "{n}.sh"\n' for n in names))
    atom.script("one.sh", """echo 'modify: {"command": "first"}'\n""")
    atom.script("two.sh", """grep -q first && echo 'deny: saw it'\n""")
    atom.script("three.sh", "touch ran\n")
    out = atom.pre()
    assert (out.reason, out.by) == ("saw it", "two")
    assert not (atom.folder / "ran").exists()
