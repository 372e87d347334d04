"""The resident process: begins, answers, reloads, makes way, ends."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest


def test_a_call_without_a_resident_process_is_answered_and_starts_one(home):
    home.hook(home.GUARD)
    code, answer, _ = home.call("rm -rf /")
    assert (code, home.decision(answer)) == (0, "deny")
    status = home.wait_for(lambda: (found := home.status())["running"] and found)
    assert home.running() == [status["pid"]]
    code, answer, _ = home.call("rm -rf /")
    assert (code, home.decision(answer)) == (0, "deny")
    assert home.status()["calls"] == 1


def test_the_same_answer_with_and_without_it(home):
    home.hook(home.GUARD)
    alone = home.call("rm -rf /")
    home.wait_for(lambda: home.status()["running"])
    assert home.call("rm -rf /") == alone
    assert home.status()["calls"] == 1


def test_its_files_are_the_users_alone(home):
    status = home.serve()
    place = Path(status["socket"])
    assert place.parent == home.state / "serve"
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    for path in place.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_long_state_folder_has_its_socket_elsewhere(home, tmp_path, request):
    # A short name: the test's own folder may be too long for a socket, too.
    folder = tempfile.TemporaryDirectory(prefix="ht", dir="/tmp")
    request.addfinalizer(folder.cleanup)
    runtime = Path(folder.name)
    home.environ["HOOKTURN_STATE_DIR"] = str(tmp_path / ("x" * 150))
    home.environ["XDG_RUNTIME_DIR"] = str(runtime)
    status = home.serve()
    try:
        assert Path(status["socket"]).parent == runtime / "hookturn"
        assert home.call()[0] == 0
        assert home.status()["calls"] == 1
    finally:
        home.hookturn("serve", "--stop")


def test_start_status_stop(home):
    assert home.status()["running"] is False
    began = home.serve()
    assert began["began"] is True
    assert home.serve()["began"] is False
    assert home.status()["pid"] == began["pid"]
    assert home.hookturn("serve", "--stop") == {
        "schema": 1,
        "stopped": True,
        "pid": began["pid"],
        "exit_code": 0,
    }
    home.wait_for(lambda: not home.running())
    assert not Path(began["socket"]).exists()
    assert home.hookturn("serve", "--stop")["stopped"] is False


def test_it_has_no_terminal_no_folder_and_no_secret_of_who_started_it(home):
    home.environ["DEPLOY_TOKEN"] = "hunter2"
    pid = home.serve()["pid"]
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
    assert b"DEPLOY_TOKEN" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert os.getsid(pid) == pid


def test_hooks_see_the_callers_environment(home):
    home.hook(
        """
from hookturn import Deny, hookimpl

@hookimpl
def pre_tool_execution(event, ctx):
    return Deny(ctx.env.get("WHO", "nobody"))
"""
    )
    home.serve()
    for who in ("ada", "bob"):
        home.environ["WHO"] = who
        _, answer, _ = home.call()
        assert answer["hookSpecificOutput"]["permissionDecisionReason"].endswith(who)
    assert home.status()["calls"] == 2


def test_a_changed_configuration_counts_at_the_next_call(home):
    home.serve()
    assert home.decision(home.call("rm -rf /")[1]) == ""
    home.hook(home.GUARD)
    assert home.decision(home.call("rm -rf /")[1]) == "deny"
    (home.project / "hookturn.yaml").write_text('permissions: {deny: ["bash(git push*)"]}\n')
    assert home.decision(home.call("git push")[1]) == "deny"
    home.hook(home.GUARD.replace("rm -rf", "mkfs"))
    assert home.decision(home.call("mkfs /dev/sda")[1]) == "deny"
    assert home.decision(home.call("rm -rf /")[1]) == ""
    assert home.status()["calls"] == 5


def test_an_unchanged_configuration_is_read_once(home):
    home.hook(home.GUARD)
    time.sleep(0.1)  # files younger than that are not believed
    home.serve()
    for _ in range(4):
        home.call()
    assert home.status()["engines_made"] == 1


ROLE = """name: guard
prompt: You watch.
hooks:
  custom:
    - {name: guard, events: [tool.execute.before], module: guard.py}
"""
ROLE_HOOK = """
def on_tool_before(ctx, input):
    if "rm -rf" in str(input.args):
        ctx.skip("no recursive delete")
"""


def test_a_role_that_turns_up_later_counts(home):
    """Nothing of it was there when the engine was made."""
    home.serve()
    assert home.decision(home.call("rm -rf /")[1]) == ""
    folder = Path(home.environ["HOME"], ".config", "opencode", "rolebox", "guard")
    folder.mkdir(parents=True)
    assert home.decision(home.call("rm -rf /")[1]) == ""
    (folder / "guard.py").write_text(ROLE_HOOK)
    (folder / "role.yaml").write_text(ROLE)
    assert home.decision(home.call("rm -rf /")[1]) == "deny"
    (folder / "guard.py").write_text(ROLE_HOOK.replace("rm -rf", "mkfs"))
    assert home.decision(home.call("mkfs /dev/sda")[1]) == "deny"
    assert home.decision(home.call("rm -rf /")[1]) == ""


def _role(home):
    (home.project / "role.yaml").write_text(ROLE)


def _roles_function(home):
    folder = home.project / "functions"
    folder.mkdir()
    (folder / "plan.md").write_text("Plan first.")


def _atomcode_plugin(home):
    folder = Path(home.environ["HOME"], ".atomcode", "plugins")
    (folder / "a").mkdir(parents=True)
    listed = {"version": 1, "plugins": {"a": {"plugin_dir": "a"}}}
    (folder / "installed_plugins.json").write_text(json.dumps(listed))


def _its_hooks(home):
    Path(home.environ["HOME"], ".atomcode", "plugins", "a", "hooks.json").write_text("{}")


def _atomcode_trust(home):
    Path(home.environ["HOME"], ".atomcode", "plugins", "hook_trust.json").write_text("{}")


@pytest.mark.parametrize(
    "changes",
    [[_role, _roles_function], [_atomcode_plugin, _its_hooks, _atomcode_trust]],
    ids=["rolebox", "atomcode"],
)
def test_whatever_makes_other_agents_hooks_is_looked_at(home, changes):
    home.serve()
    for change in changes:
        made = _settled(home)
        change(home)
        home.call()
        assert home.status()["engines_made"] > made, change.__name__


def test_what_agents_write_in_a_project_makes_no_engine_anew(home):
    home.serve()
    (home.project / "functions").mkdir()
    made = _settled(home)
    for name in ("a.txt", "functions/index.js", "docs"):
        (home.project / name).write_text("x")
    time.sleep(0.1)  # so that their folders' times would count
    home.call()
    assert home.status()["engines_made"] == made


def _settled(home):
    """Engines made once files are old enough to be believed."""
    time.sleep(0.1)
    home.call()
    made = home.status()["engines_made"]
    home.call()
    assert home.status()["engines_made"] == made
    return made


HOLDS_ON = """
import pathlib, time
from hookturn import hookimpl


@hookimpl
def on_turn_start(event):
    pass


@hookimpl
def on_dispose():
    pathlib.Path(__file__).with_name("disposing").write_text("")
    time.sleep({seconds})
    pathlib.Path(__file__).with_name("disposed").write_text("")
"""


def test_a_plugin_that_does_not_let_go_holds_no_call_up(home):
    """A changed configuration disposes of the engine before."""
    plugin = home.hook(HOLDS_ON.format(seconds=300), "holds-on")
    home.serve()
    home.call()
    home.hook(home.GUARD)
    begun = time.monotonic()
    assert home.decision(home.call("rm -rf /")[1]) == "deny"
    home.hook(home.GUARD.replace("rm -rf", "mkfs"))
    assert home.decision(home.call("mkfs /dev/sda")[1]) == "deny"
    assert time.monotonic() - begun < 20
    home.wait_for(plugin.with_name("disposing").exists)
    assert home.hookturn("serve", "--stop")["exit_code"] == 0
    home.wait_for(lambda: not home.running(), 60)


def test_a_module_that_hangs_at_import_holds_up_no_later_configuration(home):
    (home.project / "hookturn.yaml").write_text("{}")
    home.hook("import time\ntime.sleep(300)\n")
    home.serve()
    assert home.decision(home.call("rm -rf /", "--timeout", "2")[1]) == ""
    home.hook(home.GUARD)
    assert home.decision(home.call("rm -rf /", "--timeout", "30")[1]) == "deny"


HANGS = "import time\ntime.sleep(300)\n"
GUARDS = """
from hookturn import Deny, hookimpl


@hookimpl(guard=True)
def pre_tool_execution(event):
    return Deny("no")
"""


@pytest.mark.parametrize("resident", [True, False])
@pytest.mark.parametrize(
    ("source", "options", "decision"),
    [
        (HANGS + GUARDS, {}, "deny"),
        (HANGS + GUARDS.replace("guard=True", ""), {"guard": True}, "deny"),
        (HANGS + GUARDS.replace("guard=True", ""), {"on_failure": "deny"}, "deny"),
        (HANGS + GUARDS.replace("guard=True", ""), {}, ""),
    ],
    ids=["guard in the file", "guard in the configuration", "on_failure", "no guard"],
)
def test_a_guard_that_hangs_at_import_fails_closed(home, resident, source, options, decision):
    """Nobody knows its engine, which is never made: what its files say counts."""
    (home.project / "hookturn.yaml").write_text("{}")
    home.hook(source, **options)
    if resident:
        home.serve()
        answer = home.call("ls", "--timeout", "2")[1]
    else:
        words = [sys.executable, "-I", "-m", "hookturn", "bridge", "claude-code", "--timeout", "2"]
        done = subprocess.run(
            words, input=home.payload("ls"), capture_output=True, env=home.environ, cwd=home.project
        )
        answer = json.loads(done.stdout or "null")
    assert home.decision(answer) == decision


def test_plugins_are_disposed_of_at_the_end(home):
    plugin = home.hook(HOLDS_ON.format(seconds=1), "holds-on")
    home.serve()
    home.call()
    home.hookturn("serve", "--stop")
    home.wait_for(lambda: not home.running())
    assert plugin.with_name("disposed").exists()


def test_projects_are_apart(home):
    other = home.folder / "other"
    other.mkdir()
    (other / "hookturn.yaml").write_text('permissions: {deny: ["bash(ls *)"]}\n')
    home.serve()
    assert home.decision(home.call("ls -l")[1]) == ""
    assert home.decision(home.call("ls -l", cwd=str(other))[1]) == "deny"
    assert home.decision(home.call("ls -l")[1]) == ""
    assert home.status()["projects"] == sorted([str(home.project), str(other)])


def test_it_ends_when_nobody_calls(home):
    home.serve("--idle", "0.5")
    home.wait_for(lambda: not home.running())
    assert home.status()["running"] is False


def test_it_ends_when_its_socket_is_gone(home):
    status = home.serve()
    os.unlink(status["socket"])
    home.wait_for(lambda: not home.running())


def test_sigterm_lets_calls_end(home):
    home.hook(
        """
import pathlib, time
from hookturn import Deny, hookimpl

@hookimpl
def pre_tool_execution(event, ctx):
    pathlib.Path(ctx.project_dir, "inside").touch()
    time.sleep(1.0)
    return Deny("slow")
"""
    )
    pid = home.serve()["pid"]
    call = home.begin()
    home.wait_for((home.project / "inside").exists)
    os.kill(pid, signal.SIGTERM)
    out, _ = call.communicate(timeout=30)
    assert b"slow" in out
    home.wait_for(lambda: not home.running())


def test_another_version_takes_over(home):
    """An upgrade in place changes the client's file; here the process is told of one by a request."""
    import socket

    from hookturn.serve import thin, wire

    status = home.serve()
    frame = thin.frame(["bridge", "claude-code"], {}, home.payload()).replace(
        thin.identity(), b"f" * len(thin.identity())
    )
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(status["socket"])
        sock.sendall(frame)
        assert sock.recv(100) == wire.STALE
    home.wait_for(lambda: status["pid"] not in home.running())
    new = home.wait_for(lambda: (found := home.status())["running"] and found)
    assert new["pid"] != status["pid"]
    assert home.call()[0] == 0


def test_output_of_hooks_is_no_answer(home):
    home.hook(
        """
import os, sys
from hookturn import hookimpl

@hookimpl
def pre_tool_execution(event):
    print("noise")
    os.write(1, b"more noise")
"""
    )
    home.serve()
    assert home.call()[:2] == (0, None)
    assert home.status()["calls"] == 1


@pytest.mark.parametrize(
    "payload", [b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"hook_event_name": 3}', b"\0" * 100]
)
def test_bad_payloads_are_answered(home, payload):
    home.serve()
    code, answer, err = home.call(payload=payload)
    assert code == 0
    assert answer["decision"] == "block"  # the project has a deny rule, which fails closed
    assert err
    assert home.status()["calls"] == 1


def test_a_payload_of_ten_megabytes(home):
    home.hook(home.GUARD)
    home.serve()
    assert home.decision(home.call("rm -rf / " + "x" * 10_000_000)[1]) == "deny"
    assert home.status()["calls"] == 1


def test_a_closed_standard_input(home):
    import subprocess

    home.serve()
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *home.argv()], env=home.environ, capture_output=True, timeout=30
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_words_that_are_not_known_never_deny(home):
    home.serve()
    assert home.call("ls", "--no-such-option")[:2] == (0, None)


def test_a_foreign_client_is_not_answered(home):
    import socket

    status = home.serve()
    for junk in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\n",
        b"HT1 1 2 3\n",
        b"HT1 0 99999999999 0 0 0 0\n",
        b"HT9 0 0 0 0 0 0\n",
    ):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(10)
            sock.connect(status["socket"])
            sock.sendall(junk)
            assert sock.recv(100) == b""
    assert home.status()["running"] is True


@pytest.mark.parametrize("for_the_user_only", [False, True])
def test_a_checkouts_own_hookturn_is_never_run(tmp_path, monkeypatch, for_the_user_only):
    """The process begins in the folder in which the agent works, which may be anybody's checkout."""
    import site
    import subprocess
    import sys

    import hookturn
    from hookturn.serve import start

    (tmp_path / "hookturn.py").write_text("print('the checkout was run')\n")
    if for_the_user_only:
        root = str(Path(hookturn.__file__).parents[1])
        monkeypatch.setattr(site, "getusersitepackages", lambda: root)
    done = subprocess.run(
        [sys.executable, "-I", *start._hookturn(), "--version"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.startswith("hookturn "), done
    assert "-m" not in start._hookturn() or not for_the_user_only


@pytest.mark.parametrize("limit", ["nan", "1e300", "inf", "-5", "x", ""])
def test_an_odd_time_limit_changes_no_answer(home, limit):
    home.hook(home.GUARD)
    home.serve()
    code, answer, _ = home.call("rm -rf /", f"--timeout={limit}")
    assert (code, home.decision(answer)) == (0, "deny")
    assert home.status()["calls"] == 1


def test_an_agent_that_keeps_the_pipe_open_is_answered(home):
    import subprocess

    home.hook(home.GUARD)
    home.serve()
    child = subprocess.Popen(
        home.argv("--timeout", "4"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=home.project, env=home.environ,
    )  # fmt: skip
    with child:
        child.stdin.write(home.payload("rm -rf /"))
        child.stdin.flush()
        assert b'"deny"' in child.stdout.read()
        assert child.wait(30) == 0


def test_errors_that_nobody_reads_hold_no_answer_up(home):
    """The pipe of errors is full already, and the agent reads standard output only."""
    import subprocess

    home.hook(home.GUARD)
    home.serve()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 65_536)
    except BlockingIOError:
        os.set_blocking(writer, True)
    # A payload that cannot be read is told about on standard error.
    child = subprocess.Popen(
        home.argv("--timeout", "30"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writer,
        cwd=home.project, env=home.environ,
    )  # fmt: skip
    os.close(writer)
    with child:
        child.stdin.write(b'{"hook_event_name": "PreToolUse", "tool_name": 5}')
        child.stdin.close()
        child.stdin = None
        assert child.stdout.read()
        assert child.wait(30) == 0
    os.close(reader)
