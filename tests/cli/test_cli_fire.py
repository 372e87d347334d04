"""``hookturn fire``: what it reads, what it decides, what it prints."""

from __future__ import annotations

import json
import re

import pytest

BASH = {"tool": "bash", "args": {"command": "rm -rf /"}}

KEYS = {
    "schema", "timing", "decision", "reason", "by", "message", "event", "rewrites", "reply", "continue_reason",
    "injected", "warnings", "failures", "hooks",
}  # fmt: skip
HOOK_KEYS = {"name", "plugin", "source", "tier", "priority", "matched", "why", "answer", "error", "micros"}


def fire(cli, timing, event, *words, **more):
    return cli("fire", timing, "--event", "-", "--json", *words, input=json.dumps(event), **more)


def test_json_has_the_keys_of_the_interface(ruled):
    ran = fire(ruled, "pre_tool_execution", BASH)
    assert (ran.code, ran.err) == (0, "")
    out = ran.json
    assert out.keys() >= KEYS
    assert out["schema"] == 1
    assert (out["timing"], out["decision"], out["by"]) == ("pre_tool_execution", "deny", "no-rm")
    assert out["reason"] == "No recursive delete."
    assert "Remove files one by one." in out["message"]
    assert out["event"]["args"] == BASH["args"]
    assert out["event"]["session_id"].startswith("local-")
    assert out["event"]["dry_run"] is False
    by_name = {hook["name"]: hook for hook in out["hooks"]}
    assert by_name["no-rm"].keys() >= HOOK_KEYS
    assert by_name["no-rm"]["answer"]["deny"] == "No recursive delete."
    assert (by_name["no-rm"]["tier"], by_name["no-rm"]["source"]) == ("guard", "hookturn.yaml:2")
    # every hook is there, quiet ones too, each with its time
    assert by_name["self-protection"]["answer"] is None
    assert all(hook["micros"] > 0 for hook in out["hooks"] if hook["matched"])


def test_a_hook_that_does_not_match_is_listed_with_the_reason(ruled):
    out = fire(ruled, "pre_tool_execution", {"tool": "read", "args": {}}).json
    (hook,) = [hook for hook in out["hooks"] if hook["name"] == "no-rm"]
    assert (hook["matched"], hook["why"]) == (False, "tools: read (read) is none of bash")


@pytest.mark.parametrize(
    ("timing", "command", "decision", "by"),
    [
        ("pre_tool_execution", "cd x && git push origin", "ask", "rule bash(git push *)"),
        ("on_tool_call_start", "git push origin", "ask", "rule bash(git push *)"),
        ("on_tool_call_start", "shutdown -h now", "deny", "rule bash(shutdown *)"),
    ],
)
def test_the_permission_ladder_counts(ruled, timing, command, decision, by):
    ruled.write(
        "hookturn.yaml", (ruled.project / "hookturn.yaml").read_text().replace("tools: [bash]", "tools: [x]")
    )
    out = fire(ruled, timing, {"tool": "bash", "args": {"command": command}}).json
    assert (out["decision"], out["by"]) == (decision, by)


def test_the_users_always_allow_sets_a_projects_guard_aside_and_says_so(ruled, tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    (config / "hookturn.yaml").write_text("permissions: {always_allow: [bash]}\n")
    env = {"HOOKTURN_CONFIG_DIR": str(config)}
    out = fire(ruled, "pre_tool_execution", BASH, env=env).json
    assert out["decision"] == "allow"
    assert out["overruled"] == [{"by": "no-rm", "decision": "deny", "reason": "No recursive delete."}]
    ran = ruled("fire", "pre_tool_execution", "--event", "-", input=json.dumps(BASH), env=env)
    assert "set aside  deny by no-rm: No recursive delete." in ran.out


def test_human_output(ruled):
    ran = ruled("fire", "pre_tool_execution", "--event", "-", input=json.dumps(BASH))
    assert ran.code == 0
    lines = ran.out.split("\n")
    assert lines[0] == "pre_tool_execution: deny by no-rm"
    assert lines[1] == "  reason       No recursive delete."
    assert lines[2].startswith("  model reads  The call of bash was denied by no-rm")
    assert any(line.split()[:4] == ["guard", "50", "no-rm", "hookturn.yaml:2"] for line in lines)


def test_long_texts_are_cut_for_people_only(cli):
    text = "x" * 100_000
    ran = cli("fire", "on_user_prompt_submit", "--event", "-", input=json.dumps({"prompt": text}))
    assert ran.code == 0
    cli.write("hooks.yaml", "hooks: [{name: echo, run: {module: echo.py}}]")
    cli.write(
        "echo.py",
        "from hookturn import Block\ndef on_user_prompt_submit(event): return Block(event.prompt)\n",
    )
    words = ["fire", "on_user_prompt_submit", "--with", "hooks.yaml", "--event", "-"]
    human = cli(*words, input=json.dumps({"prompt": text}))
    assert len(human.out) < 5_000
    assert "(+99,800 characters)" in human.out
    assert cli(*words, "--json", input=json.dumps({"prompt": text})).json["reason"] == text


def test_without_an_event_the_fields_are_empty(ruled):
    out = ruled("fire", "on_turn_start", "--json").json
    assert (out["event"]["phase"], out["event"]["agent"]) == ("", "main")


def test_an_event_from_a_file_with_blanks_in_its_path(ruled):
    ruled.write("some events/an event.json", json.dumps(BASH))
    out = ruled("fire", "pre_tool_execution", "--json", "--event", "some events/an event.json").json
    assert out["decision"] == "deny"


def test_what_an_event_carries_arrives(ruled):
    event = {
        **BASH,
        "session_id": "s-1",
        "agent": "a",
        "time": "2026-01-02T03:04:05Z",
        "cwd": "/x",
        "call_id": "c",
        "own": [1],
    }
    got = fire(ruled, "pre_tool_execution", event).json["event"]
    assert got["session_id"] == "s-1"
    assert got["time"] == "2026-01-02T03:04:05.000Z"
    assert (got["cwd"], got["call_id"], got["own"]) == ("/x", "c", [1])
    assert fire(ruled, "pre_tool_execution", event, "--agent", "b").json["event"]["agent"] == "b"
    # the printed event can be fired again
    assert fire(ruled, "pre_tool_execution", got).json["event"] == got


GOOD = json.dumps(BASH)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace(", ", ",\r\n").encode() + b"\r\n",
        b"\n\n " + GOOD.encode(),
        GOOD.replace('"rm', '"\\ud800 \\u0000 rm').encode(),
        '{"tool": "bash", "args": {"command": "rm 删除"}}'.encode(),
    ],
    ids=["BOM", "CRLF", "blank lines", "lone surrogate and NUL", "UTF-8"],
)
def test_tolerated_input(ruled, content):
    ran = ruled("fire", "pre_tool_execution", "--event", "-", "--json", input=content)
    assert (ran.code, ran.json["decision"]) == (0, "deny"), ran


BAD = {
    "empty": (b"", "standard input is empty: expected one JSON object"),
    "blank": (b" \r\n", "standard input is empty"),
    "only a BOM": (b"\xef\xbb\xbf", "standard input is empty"),
    "two BOMs": (b"\xef\xbb\xbf\xef\xbb\xbf{}", "standard input:1:1: a second byte-order mark"),
    "an array": (b"\n [1]", "standard input:2:2: an event is one JSON object, got an array"),
    "a text": (b'"x"', "an event is one JSON object, got a string"),
    "a number": (b"12", "an event is one JSON object, got a number"),
    "null": (b"null", "an event is one JSON object, got null"),
    "true": (b"true", "an event is one JSON object, got a boolean"),
    "truncated": (b'{"tool": "bash",\n "args": {"co', "standard input:2:11: not JSON: unterminated string"),
    "truncated after a comma": (b'{"tool": "bash",', "(the text ends too early)"),
    "two documents": (b"{}\n{}", "standard input:2:1: not JSON: extra data"),
    "single quotes": (b"{'tool': 1}", "standard input:1:2: not JSON: expecting property name"),
    "NaN": (b'{"tool": "NaN",\n "args": {"x": NaN}}', "standard input:2:16: NaN is no JSON value"),
    "infinity": (b'{"turn": -Infinity}', "standard input:1:10: -Infinity is no JSON value"),
    "a huge number": (b'{"turn": ' + b"9" * 10_000 + b"}", "standard input: Exceeds the limit"),
    "deep": (b"[" * 100_000, "standard input: nested too deep"),
    "rather deep": (b'{"tool": "x", "args": ' + b'{"a":' * 300 + b"1" + b"}" * 301, "nested deeper than"),
    "a key twice": (b'{"tool": "a", "tool": "b"}', "standard input: the key 'tool' is given twice"),
    "UTF-16": ("\ufeff{}".encode("utf-16-le"), "standard input:1:1: not UTF-8: byte 0xff; it looks like UTF-16"),
    "Latin-1": (b'{"tool":\n "b\xfcsh"}', "standard input:2:4: not UTF-8: byte 0xfc"),
    "a field is missing": (b'{"tool": "bash"}', "standard input: PreToolExecution needs args."),
    "a misspelt field": (b'{"tool": "bash", "agrs": {}}', "PreToolExecution needs args. Unknown here: 'agrs' (did you mean 'args'?)"),
    "a wrong type": (b'{"tool": "bash", "args": []}', "PreToolExecution.args must be an object, got an array"),
    "another wrong type": (b'{"tool": 5, "args": {}}', "PreToolExecution.tool must be a string, got a number"),
    "true for a number": (b'{"tool": "x", "args": {}, "turn": true}', "PreToolExecution.turn must be a whole number, got a boolean"),
    "a wrong time": (b'{"tool": "x", "args": {}, "time": "soon"}', "PreToolExecution.time must be RFC 3339 text"),
    "another timing": (b'{"timing": "on_error"}', "the event says timing 'on_error', the command line 'pre_tool_execution'"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("command", ["fire", "explain"])
def test_bad_input_says_where_and_why(ruled, content, message, command):
    ran = ruled(command, "pre_tool_execution", "--event", "-", input=content)
    assert (ran.code, ran.out) == (2, ""), ran
    assert ran.err.startswith("hookturn: ")
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err) < 1_000


def test_bad_files(ruled):
    ruled.write("bad.json", "{]")
    assert "hookturn: bad.json:1:2: not JSON" in ruled("fire", "on_turn_start", "--event", "bad.json").err
    ran = ruled("fire", "on_turn_start", "--event", "missing.json")
    assert (ran.code, "missing.json cannot be read: No such file or directory." in ran.err) == (2, True)
    ran = ruled("fire", "on_turn_start", "--event", ".")
    assert (ran.code, ". cannot be read: Is a directory." in ran.err) == (2, True)


def test_required_fields_of_each_timing_are_named(cli):
    from hookturn.spec.timings import TIMINGS

    for name, timing in TIMINGS.items():
        if name == "on_outcome":
            continue
        ran = cli("fire", name)
        if timing.event._required or name == "on_event":
            assert ran.code == 2
            assert "needs" in ran.err
            example = re.search(r"or --event - <<< '(\{.*\})'\.$", ran.err.strip())
            assert example, ran.err
            assert cli("fire", name, "--event", "-", input=example[1]).code == 0
        else:
            assert ran.code == 0, ran


def test_a_misspelt_optional_field_is_passed_on_and_told(ruled):
    ran = fire(ruled, "on_turn_start", {"phse": "x"})
    assert ran.json["event"]["phse"] == "x"
    assert ran.err == "hookturn: standard input: unknown and only passed on: 'phse' (did you mean 'phase'?)\n"


def test_an_unknown_field_is_passed_on_and_told(ruled):
    ran = fire(ruled, "on_turn_start", {"colour": "x"})
    assert ran.json["event"]["colour"] == "x"
    assert ran.err == "hookturn: standard input: unknown and only passed on: 'colour'\n"


HOOKS = """\
from hookturn import *

def on_turn_start(event, ctx):
    ctx.inject("for the next prompt")
    return [Inject("now"), Warn("careful"), SetEnv({"A": "1"})]

def on_message_received(event):
    return [Rewrite(event.text.upper())]

def on_turn_complete(event):
    return Continue("run the tests")

def on_user_prompt_submit(event):
    raise ValueError("broken")

def pre_tool_execution(event):
    return Reply({"a": 1})

def on_error(event):
    return Recover("retry", attempts=3)
"""


@pytest.fixture
def own(cli):
    cli.write("hooks.yaml", "hooks: [{name: own, run: {module: own.py}}]")
    cli.write("own.py", HOOKS)
    return cli


def test_every_answer_is_in_the_outcome(own):
    words = ["--with", "hooks.yaml"]
    out = fire(own, "on_turn_start", {}, *words).json
    assert (out["injected"], out["warnings"], out["env"]) == (["now"], ["careful"], {"A": "1"})
    assert out["pending"] == "for the next prompt"
    out = fire(own, "on_message_received", {"text": "hi"}, *words).json
    assert out["event"]["text"] == "HI"
    assert out["rewrites"] == [{"by": "own", "field": "text", "before": "hi", "after": "HI"}]
    assert fire(own, "on_turn_complete", {}, *words).json["continue_reason"] == "run the tests"
    out = fire(own, "pre_tool_execution", BASH, *words).json
    assert (out["reply"], out["replied"]) == ({"a": 1}, True)
    out = fire(own, "on_error", {"error_type": "E", "message": "m"}, *words).json
    assert out["recover"] == {"recover": "retry", "config": {"attempts": 3}}


@pytest.mark.parametrize(
    ("timing", "event", "lines"),
    [
        ("on_turn_start", {}, ["injected     now", "warning      careful", "environment  A=1", "next prompt  for the next prompt"]),
        ("on_message_received", {"text": "hi"}, ["text  changed by own", "- hi", "+ HI"]),
        ("on_turn_complete", {}, ["goes on with  run the tests"]),
        ("pre_tool_execution", BASH, ["pre_tool_execution: reply by own", 'reply  {"a": 1}']),
        ("on_user_prompt_submit", {"prompt": "x"}, ["failure  own: ValueError: broken", "failed: ValueError: broken"]),
        ("on_error", {"error_type": "E", "message": "m"}, ["recover", "retry"]),
    ],
)  # fmt: skip
def test_every_answer_is_shown(own, timing, event, lines):
    ran = own("fire", timing, "--event", "-", "--with", "hooks.yaml", input=json.dumps(event))
    assert ran.code == 0
    for line in lines:
        assert line in ran.out


def test_a_failing_hook_is_a_record_and_not_an_exit_code(own):
    ran = fire(own, "on_user_prompt_submit", {"prompt": "x"}, "--with", "hooks.yaml")
    assert ran.code == 0
    (failure,) = ran.json["failures"]
    assert (failure["hook"], failure["error_type"], failure["message"]) == ("own", "ValueError", "broken")
    (hook,) = ran.json["hooks"]
    assert hook["error"] == "ValueError: broken"


def test_tracebacks_in_logs_hide_values(cli):
    cli.write("hooks.yaml", "hooks: [{name: own, run: {module: own.py}}]")
    cli.write(
        "own.py",
        "def on_turn_start(event):\n    password = 'hun' + 'ter2'\n    raise ValueError(len(password))\n",
    )
    ran = cli("fire", "on_turn_start", "--with", "hooks.yaml")
    assert "ValueError: 7" in ran.err
    assert "hunter2" not in ran.err + ran.out


def test_fire_is_for_real_and_explain_is_not(cli):
    cli.write("hooks.yaml", "hooks: [{name: own, run: {module: own.py}}]")
    cli.write(
        "own.py",
        "def on_turn_start(event, ctx):\n"
        "    from hookturn import Warn\n"
        "    return Warn(f'{event.dry_run} {ctx.store.add(\"n\"):g}')\n",
    )
    words = ["--with", "hooks.yaml", "--json", "--event", "-"]
    said = [
        cli(word, "on_turn_start", *words, input="{}").json for word in ("fire", "explain", "fire", "explain")
    ]
    assert [(out.get("outcome") or out)["warnings"] for out in said] == [
        ["False 1"],
        ["True 1"],
        ["False 2"],
        ["True 1"],
    ]


def test_leaving_hooks_out(ruled):
    assert fire(ruled, "pre_tool_execution", BASH, "-p", "no:no-rm").json["decision"] is None
    assert fire(ruled, "pre_tool_execution", BASH, "-pno:No_RM").json["decision"] is None
    ran = fire(ruled, "pre_tool_execution", BASH, "-p", "no:no-mr")
    assert ran.json["decision"] == "deny"
    assert "-p no:no-mr: there is no plugin or hook of this name (did you mean 'no-rm'?)" in ran.err


def test_a_problem_in_the_configuration_is_noted(ruled):
    ruled.write(
        "hookturn.yaml", "hooks: [{name: x, timings: [on_tern_start], run: {answer: {warn: x}}}]\nmod: 1\n"
    )
    ran = fire(ruled, "on_turn_start", {})
    assert ran.code == 0
    assert ran.err.startswith("hookturn: hookturn.yaml:2:1: mod: unknown key 'mod'")
    assert "(and 1 other problem; see `hookturn check`)" in ran.err


def test_timings_of_installed_frameworks(cli, plugin_path):
    env = plugin_path(
        "planner",
        "[hookturn.hookspecs]\nplanner = planner_specs\n",
        planner_specs=(
            "from hookturn import Deny, events, hookspec\n"
            "class PlanCreated(events.Event, timing='on_plan_created'):\n"
            "    steps: list[str]\n"
            "@hookspec(event=PlanCreated, answers=(Deny,))\n"
            "def on_plan_created(event, ctx):\n"
            "    'A plan was made.'\n"
        ),
    )
    env["HOOKTURN_DISABLE_PLUGIN_AUTOLOAD"] = ""
    cli.write(
        "hooks.yaml", "hooks: [{name: no, timings: [on_plan_created], run: {answer: {deny: 'no plans'}}}]"
    )
    ran = fire(cli, "on_plan_created", {"steps": ["a"]}, "--with", "hooks.yaml", env=env)
    assert (ran.json["decision"], ran.json["event"]["steps"]) == ("deny", ["a"])
    assert "PlanCreated needs steps" in cli("fire", "on_plan_created", env=env).err
