"""Configured commands as hooks of an engine: what they get, what their end means, and what they cannot do."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
import time

import pytest

from hookturn import Engine, events, hookimpl
from hookturn.redact import Secret
from hookturn.runners import command
from hookturn.runners.entry import HookEntry
from hookturn.spec.errors import RegistrationError

PRE = ["pre_tool_execution"]
PYTHON = [sys.executable, "-S"]
ECHO = "import sys, json; d = json.load(sys.stdin); print(json.dumps({'inject': json.dumps(d['event'])}))"


class Made:
    """An engine with one command hook in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder

    def write(self, name, text, mode=0o755):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        path.chmod(mode)
        return path

    def entry(self, run, timings=PRE, name="hook", files=None, **options):
        return HookEntry(
            name=name, kind="command", run=run, timings=list(timings), options=options, file="hookturn.yaml", line=3,
            layer="user", base_dir=str(self.folder), files=files or {},
        )  # fmt: skip

    def add(self, engine, run, config=None, live=False, **about):
        entry = self.entry(run, **about)
        plugin = command.make(entry, config, engine.registry.timings, live=live)
        engine.register(
            plugin, entry.name, source=entry.source, layer="user", config=config, options=entry.options
        )

    def engine(self, run, config=None, live=False, **about):
        engine = Engine(project_dir=self.folder)
        self.add(engine, run, config, live, **about)
        return engine

    def fire(self, run, event=None, **about):
        event = event or events.PreToolExecution(tool="bash", args={"command": "ls"}, session_id="s1")
        return self.engine(run, **about).fire(event)


@pytest.fixture
def made(tmp_path):
    return Made(tmp_path)


# -- what the end means -----------------------------------------------------------------------------


def test_silence_is_no_opinion(made):
    out = made.fire("exit 0")
    assert (out.decision, out.failures, out.hooks) == (None, (), ())


def test_an_answer(made):
    out = made.fire("""echo '{"deny": "No.", "advice": "Ask."}'""")
    assert (out.decision, out.reason, out.advice, out.by) == ("deny", "No.", "Ask.", "hook")
    assert out.hooks[0].source == "hookturn.yaml:3"


def test_much_on_standard_error_does_not_cost_the_answer(made):
    code = "import sys; sys.stderr.write('e' * 1_500_000); print('{\"warn\": \"w\"}')"
    assert made.fire([*PYTHON, "-c", code]).warnings == ("w",)


def test_more_than_an_answer_may_have_is_no_answer(made):
    out = made.fire([*PYTHON, "-c", "print('{\"deny\": \"' + 'x' * 1_000_000 + '\"}')"])
    assert (out.decision, "printed more than the 1,000,000 bytes" in out.failures[0].message) == (None, True)


def test_exit_2_denies_with_the_words_on_standard_error(made):
    out = made.fire("echo 'no  force' >&2; echo '{}'; exit 2")
    assert (out.decision, out.reason, out.failures) == ("deny", "no  force", ())


def test_exit_2_blocks_where_only_that_is_allowed(made):
    out = made.fire(
        "echo stop >&2; exit 2", events.UserPromptSubmit(prompt="x"), timings=["on_user_prompt_submit"]
    )
    assert (out.decision, out.reason) == ("block", "stop")


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize(
    ("run", "error", "words"),
    [
        ("exit 2", "NoAnswer", "exit code 2 without a reason on standard error"),
        ("exit 1", "NoAnswer", "the command ended with exit code 1"),
        ("echo 'it broke' >&2; exit 1", "NoAnswer", "the command ended with exit code 1: it broke"),
        ("""echo '{"deny": "x"}'; exit 3""", "NoAnswer", "exit code 3"),
        ("kill -9 $$", "NoAnswer", "was ended by signal 9 (SIGKILL)"),
        ("python3 /nope.py", "FailedToStart", "can't open file"),
        ("nope-nope-nope", "FailedToStart", "not found"),
        ("echo hello; echo '{}'", "NoAnswer", "JSON found after 6 bytes of text"),
        ("cat", "NoAnswer", "printed its own input back"),
        ("echo '{\"x\": 1}'", "NoAnswer", "unknown key 'x'"),
        (r"printf '\377'", "NoAnswer", "not UTF-8: byte 0"),
        ("""echo '{"continue": "go on"}'""", "AnswerError", "Continue"),
    ],
)  # fmt: skip
def test_failures_are_loud_and_decide_nothing_unless_the_hook_fails_closed(
    made, hook_log, run, error, words, guard
):
    out = made.fire(run, **({"guard": True} if guard else {}))
    assert out.decision == ("deny" if guard else None)
    (failure,) = out.failures
    assert (failure.hook, failure.error_type) == ("hook", error)
    assert words in failure.message
    if error != "AnswerError":  # the engine's own
        assert failure.message.startswith("hookturn.yaml:3: ")
    assert any(words in text for text in hook_log.of("hook"))
    if guard:
        assert "hook" in out.reason


def test_on_failure_deny(made):
    assert made.fire("exit 1", on_failure="deny").denied
    assert made.fire("exit 1").decision is None


@pytest.mark.parametrize("kind", ["missing", "folder", "mode", "interpreter", "script", "no script"])
def test_what_certainly_cannot_start_is_refused_when_it_is_set_up(made, kind):
    made.write("plain.sh", "#!/bin/sh\n", 0o644)
    made.write("odd.sh", "#!/no/such/thing\n")
    (made.folder / "sub").mkdir()
    run, words = {
        "missing": (["./nope.sh"], "nope.sh does not exist"),
        "folder": (["./sub"], "sub is a folder"),
        "mode": (["./plain.sh"], "plain.sh is not executable"),
        "interpreter": (["./odd.sh"], "needs the interpreter /no/such/thing, which is not there"),
        "script": (["python3", "hooks/nope.py"], "hooks/nope.py does not exist"),
        "no script": (["bash", "-e", "sub"], "sub is no file"),
    }[kind]
    with pytest.raises(RegistrationError) as error:
        made.engine(run)
    assert words in str(error.value)


def test_a_script_that_goes_away_is_a_failure_to_start_and_no_deny(made):
    """A missing script makes Python exit with 2; that is not a refusal."""
    path = made.write("hooks/x.py", "print('{}')")
    engine = made.engine([*PYTHON, "hooks/x.py"])
    event = events.PreToolExecution(tool="bash", args={})
    assert engine.fire(event).failures == ()
    path.unlink()
    out = engine.fire(event)
    assert (out.decision, out.failures[0].error_type) == (None, "FailedToStart")
    assert f"{path} does not exist" in out.failures[0].message


# -- what it gets -----------------------------------------------------------------------------------


def seen(out):
    return json.loads(out.injected[0])


AT_POST = ["post_tool_execution"]  # takes Inject


def post(**args):
    return events.PostToolExecution(tool="bash", args=args, session_id="s1")


@pytest.mark.parametrize(
    "text", ["表", "ok \U0001f680\ud83d\x00", "\u2028\x1b[0m", "\ufeff", "a; touch pwned", "$(touch pwned)"]
)
@pytest.mark.parametrize("locale", [{}, {"PYTHONUTF8": "0", "PYTHONIOENCODING": "cp932", "LC_ALL": "C"}])
def test_the_event_arrives_whatever_it_holds(made, monkeypatch, text, locale):
    for name, value in locale.items():
        monkeypatch.setenv(name, value)
    run = [*PYTHON, "-c", ECHO]
    out = made.fire(run, post(command=f'echo "{text}"'), timings=AT_POST)
    assert seen(out)["args"]["command"] == f'echo "{text}"'
    # As text, too: the program's own decoding gives the same.
    code = "import sys; d = sys.stdin.read(); sys.stdout.write('{\"inject\": \"表\"}' if sys.stdin.encoding == 'utf-8' else 'bad')"
    out = made.fire([*PYTHON, "-c", code], post(command=text), timings=AT_POST)
    assert out.injected == ("表",)
    assert not list(made.folder.iterdir())


@pytest.mark.parametrize("shell", [False, True])
def test_values_of_an_event_never_reach_a_shell(made, shell):
    run = (
        "cat >/dev/null; echo $HOOKTURN_TOOL"
        if shell
        else ["/bin/sh", "-c", "cat >/dev/null; echo $HOOKTURN_TOOL"]
    )
    for text in ("a.py; touch pwned", "$(touch pwned)", "`touch pwned`", "'; touch pwned; '"):
        made.fire(run, events.PreToolExecution(tool=text, args={"path": text}, session_id=text))
    assert not (made.folder / "pwned").exists()


def test_context_in_the_environment(made):
    code = "import os, json; print(json.dumps({'inject': json.dumps({k: v for k, v in os.environ.items() if 'HOOKTURN' in k})}))"
    found = seen(made.fire([*PYTHON, "-c", code], post(), timings=AT_POST))
    assert found["HOOKTURN_RUNNING"].count(".") == 1
    assert {name: value for name, value in found.items() if name.startswith("HOOKTURN_") and "_DIR" not in name} == {
        "HOOKTURN_TIMING": "post_tool_execution", "HOOKTURN_SESSION_ID": "s1", "HOOKTURN_TOOL": "bash", "HOOKTURN_HOOK": "hook",
        "HOOKTURN_RUNNING": found["HOOKTURN_RUNNING"],
    }  # fmt: skip
    assert found["HOOKTURN_PROJECT_DIR"] == found["HOOKTURN_HOOK_DIR"] == str(made.folder)


@pytest.mark.parametrize("value", ["x" * 200_000, "a\0b", "\ud83d", "x" * 1001])
def test_a_value_that_no_environment_holds_comes_by_standard_input_only(made, monkeypatch, value):
    monkeypatch.setenv("HOOKTURN_TOOL", "of an outer hook")
    code = "import os, sys, json; d = json.load(sys.stdin); print(json.dumps({'inject': json.dumps([d['event']['tool'], os.environ.get('HOOKTURN_TOOL')])}))"
    out = made.fire([*PYTHON, "-c", code], events.PostToolExecution(tool=value, args={}), timings=AT_POST)
    assert out.failures == ()
    assert seen(out) == [value, None]


def test_an_environment_that_the_system_refuses_costs_only_the_variable(made, monkeypatch):
    monkeypatch.setenv("HUGE", "x" * 131_000)
    monkeypatch.setenv("SMALL", "fine")
    out = made.fire("""echo "{\\"warn\\": \\"$SMALL${HUGE:-gone}\\"}" """)
    assert (out.warnings, out.failures) == (("finegone",), ())


def test_the_agents_environment_counts(made):
    engine = made.engine("""echo "{\\"deny\\": \\"$AGENTS_OWN\\"}" """)
    env = {"PATH": os.environ["PATH"], "AGENTS_OWN": "word", "BAD=": "x", "NUL": "a\0b", "": "y"}
    with engine.session(env=env) as session, session.turn() as turn:
        assert turn.begin_tool("c1", "bash", {"command": "ls"}).message.endswith("word")


def test_it_runs_in_the_project(made):
    (made.folder / "sub").mkdir()
    engine = Engine(project_dir=made.folder)
    made.add(engine, """echo "{\\"warn\\": \\"$(pwd)\\"}" """)
    out = engine.fire(events.PreToolExecution(tool="bash", args={}, cwd=str(made.folder / "sub")))
    assert out.warnings == (os.path.realpath(made.folder),)


def test_relative_paths_start_at_the_declaring_file(made, tmp_path_factory):
    """From whatever folder the agent runs: programs, scripts and files that arguments name."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    made.write("hooks/x.sh", '#!/bin/sh\necho "{\\"warn\\": \\"$0 $*\\"}"\n')
    made.write("hooks/data.json", "{}")
    for run in (
        ["hooks/x.sh", "hooks/data.json", "nope.json", "--a=b", "word"],
        ["./hooks/x.sh", "hooks/data.json", "nope.json", "--a=b", "word"],
        ["/bin/sh", "hooks/x.sh", "hooks/data.json", "nope.json", "--a=b", "word"],
        ["/usr/bin/env", "sh", "-e", "hooks/x.sh", "hooks/data.json", "nope.json", "--a=b", "word"],
    ):
        engine = Engine(project_dir=elsewhere)
        made.add(engine, run)
        out = engine.fire(events.PreToolExecution(tool="bash", args={}))
        assert out.failures == ()
        (words,) = out.warnings
        script, *rest = words.split()
        assert (os.path.normpath(script), rest) == (
            str(made.folder / "hooks/x.sh"), [str(made.folder / "hooks/data.json"), "nope.json", "--a=b", "word"],
        )  # fmt: skip


def test_programs_come_from_absolute_folders_of_path_only(made, monkeypatch):
    made.write("sneaky", '#!/bin/sh\necho \'{"warn": "sneaky"}\'\n')
    monkeypatch.setenv("PATH", f".::sub:{os.environ['PATH']}")
    monkeypatch.chdir(made.folder)
    out = made.fire(["sneaky"])
    assert (out.warnings, out.failures[0].error_type) == ((), "FailedToStart")
    assert "no program 'sneaky' in PATH" in out.failures[0].message


def test_a_login_shells_banner_does_not_come_in(made, monkeypatch):
    for name in (".bashrc", ".profile", ".bash_profile"):
        made.write(name, "echo banner\n")
    monkeypatch.setenv("HOME", str(made.folder))
    assert made.fire('echo \'{"warn": "fine"}\'').warnings == ("fine",)
    out = made.fire(". ./.profile; echo '{}'")
    assert "hookturn.yaml:3: JSON found after 7 bytes of text" in out.failures[0].message


def test_settings_come_with_the_event_and_secrets_stay_out_of_everything_else(made, hook_log):
    config = {"branch": "main", "token": Secret("s3cret-value", "token")}
    code = """
        import json, os, sys
        config = json.load(sys.stdin)["config"]
        assert config == {"branch": "main", "token": "s3cret-value"}, config
        assert "s3cret-value" not in str(os.environ)
        sys.stderr.write("with " + config["token"])
        if sys.argv[1] == "json": print(json.dumps({"deny": "because " + config["token"]}))
        elif sys.argv[1] == "noise": print(config["token"])
        else: sys.exit(int(sys.argv[1]))
    """
    for word, decision in (("json", "deny"), ("2", "deny"), ("1", None), ("noise", None)):
        out = made.fire([*PYTHON, "-c", textwrap.dedent(code), word], config=config)
        assert out.decision == decision, out.failures
        shown = json.dumps(out.to_json()) + repr(out) + repr(out.failures)
        assert "s3cret-value" not in shown
        assert "[REDACTED:token:" in shown
    assert "s3cret-value" not in repr(list(hook_log))


# -- time -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threaded", [False, True])
def test_its_own_time_limit(made, threaded):
    engine = Engine(project_dir=made.folder, threaded=threaded)
    made.add(engine, 'sleep 60; echo \'{"deny": "late"}\'', timeout=0.3)
    begun = time.monotonic()
    out = engine.fire(events.PreToolExecution(tool="bash", args={}))
    assert time.monotonic() - begun < 5
    assert (out.decision, out.failures[0].error_type) == (None, "TimeoutError")
    assert "no answer within 0.3 s" in out.failures[0].message


def test_a_guard_that_hangs_denies(made):
    out = made.fire("sleep 60", timeout=0.3, guard=True)
    assert out.denied
    assert "hook" in out.reason


def test_the_deadline_of_the_fire_counts(made):
    engine = made.engine("sleep 60")
    begun = time.monotonic()
    out = engine.fire(events.PreToolExecution(tool="bash", args={}), deadline=0.4)
    assert (out.failures[0].error_type, time.monotonic() - begun < 4) == ("TimeoutError", True)


def test_five_seconds_unless_said_otherwise(made):
    steps = made.engine("exit 0").plan("pre_tool_execution").steps
    assert steps[0].timeout == 5
    assert made.engine("exit 0", timeout=60).plan("pre_tool_execution").steps[0].timeout == 60


async def test_in_an_asyncio_program_the_loop_goes_on(made):
    engine = made.engine('sleep 0.5; echo \'{"deny": "x"}\'')
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.02)
            ticks += 1

    task = asyncio.create_task(tick())
    event = events.PreToolExecution(tool="bash", args={})
    outs = await asyncio.gather(*(engine.afire(event) for _ in range(3)))
    task.cancel()
    assert [out.decision for out in outs] == ["deny"] * 3
    assert ticks > 5
    assert engine.fire(event).decision == "deny"  # synchronous, in the loop's own thread


def alive(word):
    ran = subprocess.run(["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True)
    return [line for line in ran.stdout.splitlines() if word in line and not line.startswith("Z")]


def gone(word):
    end = time.monotonic() + 10
    while alive(word) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(word)


async def test_cancelling_the_fire_stops_the_process(made):
    engine = made.engine("trap '' TERM; sleep 61.7531")
    task = asyncio.create_task(engine.afire(events.PreToolExecution(tool="bash", args={})))
    while not alive("sleep 61.7531"):
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gone("sleep 61.7531")


async def test_its_time_limit_in_a_coroutine(made):
    engine = made.engine("trap '' TERM; sleep 62.7531", timeout=0.4)
    out = await engine.afire(events.PreToolExecution(tool="bash", args={}))
    assert out.failures[0].error_type == "TimeoutError"
    assert gone("sleep 62.7531")


def test_a_program_that_ends_at_once_after_a_cancelled_fire_leaves_nothing(made):
    code = f"""
        import asyncio
        from hookturn import Engine, events
        from hookturn.runners import command
        from hookturn.runners.entry import HookEntry
        entry = HookEntry(name="h", kind="command", run="trap '' TERM; sleep 63.7531", timings=["on_turn_start"],
                          base_dir={str(made.folder)!r})
        engine = Engine(project_dir={str(made.folder)!r})
        engine.register(command.make(entry), "h", options={{"timeout": 0.4}})
        asyncio.run(engine.afire(events.TurnStart()))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, timeout=60)
    assert not alive("sleep 63.7531")


def test_no_asyncio_is_loaded_for_a_synchronous_fire(made):
    code = f"""
        import sys
        from hookturn import Engine, events
        from hookturn.runners import command
        from hookturn.runners.entry import HookEntry
        entry = HookEntry(name="h", kind="command", run="exit 0", timings=["on_turn_start"], base_dir="/")
        engine = Engine(project_dir={str(made.folder)!r})
        engine.register(command.make(entry), "h")
        assert not engine.fire(events.TurnStart()).failures
        print([name for name in ("asyncio", "loguru", "yaml") if name in sys.modules])
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert ran.stdout == "[]\n", ran.stderr


# -- several ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["slow", "fast"])
def test_two_that_rewrite_the_order_decides_and_never_the_speed(made, first):
    runs = {
        "slow": """sleep 0.2; echo '{"rewrite": {"command": "slow"}}'""",
        "fast": """echo '{"rewrite": {"command": "fast"}}'""",
    }
    last = "fast" if first == "slow" else "slow"
    for _ in range(5):
        engine = Engine(project_dir=made.folder)
        made.add(engine, runs[last], name=last, priority=60)
        made.add(engine, runs[first], name=first, priority=40)
        out = engine.fire(events.PreToolExecution(tool="bash", args={"command": "x"}))
        assert out.event.command == last
        assert [(record.by) for record in out.rewrites] == [first, last]


@pytest.mark.parametrize("order", [("says", "silent"), ("silent", "says")])
def test_one_that_says_nothing_wipes_nothing(made, order):
    engine = Engine(project_dir=made.folder)
    for name in order:
        run = """echo '{"rewrite": {"command": "new"}}'""" if name == "says" else "echo '{}'"
        made.add(engine, run, name=name)
    assert engine.fire(events.PreToolExecution(tool="bash", args={"command": "x"})).event.command == "new"


def test_filters_of_the_entry(made):
    engine = made.engine("""echo '{"warn": "w"}'""", tools=["read"])
    assert engine.fire(events.PreToolExecution(tool="bash", args={})).warnings == ()
    assert engine.fire(events.PreToolExecution(tool="read", args={})).warnings == ("w",)


# -- safety -----------------------------------------------------------------------------------------


def test_a_denied_tool_is_never_entered(made):
    engine = made.engine("echo no >&2; exit 2")
    entered = []
    with engine.session() as session, session.turn() as turn:
        result = turn.call_tool("bash", {"command": "ls"}, execute=lambda **args: entered.append(args))
    assert (result.status, entered) == ("denied", [])


def test_dry_events_run_nothing_unless_live(made):
    event = events.PreToolExecution(tool="bash", args={}, dry_run=True)
    for live in (False, True):
        out = made.fire("touch ran", event, live=live)
        assert (out.failures, (made.folder / "ran").exists()) == ((), live)


def test_files_that_were_trusted_must_be_as_they_were(made):
    from hookturn.runners.module import digest_of

    path = made.write("x.sh", '#!/bin/sh\necho \'{"warn": "one"}\'\n')
    engine = made.engine(["./x.sh"], files={str(path): digest_of(str(path))})
    event = events.PreToolExecution(tool="bash", args={})
    assert engine.fire(event).warnings == ("one",)
    assert engine.fire(event).warnings == ("one",)
    made.write("x.sh", '#!/bin/sh\necho \'{"warn": "two"}\'\n')
    out = engine.fire(event)
    assert (out.warnings, out.failures[0].error_type) == ((), "FailedToStart")
    assert "x.sh is not what was trusted" in out.failures[0].message


NESTED = """
    import os, sys
    from pathlib import Path
    from hookturn import Engine, events
    from hookturn.runners import command
    from hookturn.runners.entry import HookEntry
    count = Path("count")
    with count.open("a") as file: file.write("x")
    options = {"guard": True} if sys.argv[1] == "guard" else {}
    entry = HookEntry(name="hook", kind="command", run=[sys.executable, "nested.py", sys.argv[1]], timings=["pre_tool_execution"],
                      options=options, file="hookturn.yaml", line=3, base_dir=os.getcwd())
    engine = Engine(project_dir=os.getcwd())
    engine.register(command.make(entry), "hook", options=options)
    out = engine.fire(events.PreToolExecution(tool="bash", args={}))
    Path("inner").write_text(str(out.decision))
"""


@pytest.mark.parametrize(("kind", "inner"), [("plain", "None"), ("guard", "deny")])
def test_a_hook_that_leads_to_itself_runs_once(made, kind, inner):
    made.write("nested.py", NESTED)
    options = {"guard": True} if kind == "guard" else {}
    out = made.fire([sys.executable, "nested.py", kind], timeout=60, **options)
    assert out.failures == ()
    assert (made.folder / "count").read_text() == "x"
    assert (made.folder / "inner").read_text() == inner


def test_hooks_that_start_hooks_come_to_an_end(made, monkeypatch):
    monkeypatch.setenv("HOOKTURN_RUNNING", " ".join(f"other{number}.0" for number in range(8)))
    out = made.fire("touch ran")
    assert (out.decision, (made.folder / "ran").exists()) == (None, False)
    assert made.fire("touch ran", guard=True).denied


def test_a_child_that_keeps_the_output_is_told(made, hook_log):
    out = made.fire("""sleep 60 & echo '{"warn": "w"}'""")
    assert out.warnings == ("w",)
    assert any("still held its output" in text for text in hook_log.of("hook"))


def test_failures_reach_on_error(made):
    engine = made.engine("exit 7")
    heard = []

    class Listener:
        @hookimpl
        def on_error(self, event):
            heard.append((event.hook, event.error_type, event.message))

    engine.register(Listener())
    engine.fire(events.PreToolExecution(tool="bash", args={}))
    assert heard == [
        ("hook", "NoAnswer", "hookturn.yaml:3: the command ended with exit code 7 (exit code 2 with words on "
         "standard error denies; any other is a failure, and the agent goes on)")
    ]  # fmt: skip


def test_a_guards_exit_code_promises_not_to_go_on(made):
    (failure,) = made.fire("exit 1", guard=True).failures
    assert failure.message.endswith(
        "(exit code 2 with words on standard error denies; any other is a failure)"
    )
