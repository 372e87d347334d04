"""References to secrets are resolved into Secret objects, or a problem says why not."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from hookturn.project import secrets
from hookturn.project.secrets import commands, reference, resolve
from hookturn.redact import Secret


def resolved(settings, base="."):
    wrong = []
    return resolve(settings, str(base), wrong), [(item.path, item.cause) for item in wrong]


def test_env(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "s3cret-value")
    found, wrong = resolved({"slack": {"token": {"env": "MY_TOKEN"}}, "list": [{"env": "MY_TOKEN"}], "n": 1})
    assert wrong == []
    token = found["slack"]["token"]
    assert isinstance(token, Secret)
    assert token.reveal() == "s3cret-value"
    assert "s3cret-value" not in f"{found!r}{found}"
    assert "token" in str(token)
    assert found["list"][0].reveal() == "s3cret-value"
    assert found["n"] == 1


def test_env_that_is_not_set(monkeypatch):
    monkeypatch.delenv("NOT_SET", raising=False)
    found, wrong = resolved({"a": {"env": "NOT_SET"}, "b": 2})
    assert found == {"b": 2}
    assert wrong == [(("a", "env"), "the secret cannot be read: the environment variable NOT_SET is not set")]


def test_file(tmp_path):
    (tmp_path / "token").write_text("abc\r\n")
    found, wrong = resolved({"t": {"file": "token"}}, tmp_path)
    assert (found["t"].reveal(), wrong) == ("abc", [])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file or directory"),
        (b"", "gives nothing"),
        (b"\xff", "not UTF-8"),
        (b"x" * 70_000, "more than 65,536 bytes"),
    ],
)
def test_file_that_will_not_do(tmp_path, content, why):
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    _, wrong = resolved({"t": {"file": "token"}}, tmp_path)
    assert wrong[0][0] == ("t", "file")
    assert why in wrong[0][1]


def test_a_fifo_does_not_hold_us_up(tmp_path):
    os.mkfifo(tmp_path / "token")
    _, wrong = resolved({"t": {"file": "token"}}, tmp_path)
    assert "no regular file" in wrong[0][1]


def command(code, *arguments):
    return {"t": {"command": [sys.executable, "-c", code, *arguments]}}


def test_command_runs_without_a_shell_in_the_files_folder(tmp_path):
    found, wrong = resolved(
        command("import os,sys; print(os.getcwd(), sys.argv[1])", "$HOME; echo x"), tmp_path
    )
    assert wrong == []
    assert found["t"].reveal() == f"{os.path.realpath(tmp_path)} $HOME; echo x"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (command("raise SystemExit(3)"), "ended with code 3"),
        (command("pass"), "gives nothing"),
        (command("print('x' * 70000)"), "more than 65,536 bytes"),
        ({"t": {"command": ["/nonexistent/program"]}}, "cannot be started"),
        ({"t": {"command": ["a\0b"]}}, "cannot be started"),
    ],
)
def test_command_that_will_not_do(settings, why):
    found, wrong = resolved(settings)
    assert found == {}
    assert wrong[0][0] == ("t", "command")
    assert why in wrong[0][1]


def test_command_that_hangs_is_ended_with_its_children(monkeypatch, tmp_path):
    monkeypatch.setattr(secrets, "TIMEOUT", 0.5)
    pid_file = tmp_path / "pid"
    code = (
        "import subprocess,sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        f"open({str(pid_file)!r}, 'w').write(str(p.pid)); p.wait()"
    )
    start = time.monotonic()
    _, wrong = resolved(command(code))
    assert "took longer than 0.5 s" in wrong[0][1]
    assert time.monotonic() - start < 20
    child = int(pid_file.read_text())
    deadline = time.monotonic() + 5
    while _alive(child):
        assert time.monotonic() < deadline, "the child is alive"
        time.sleep(0.02)


def _alive(pid):
    """Whether a process runs; one that waits to be collected by init does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_what_is_a_reference():
    assert reference({"env": "A"}) == "env"
    assert reference({"file": "a"}) == "file"
    assert reference({"command": ["a", "b"]}) == "command"
    for other in (
        {"env": 3},
        {"command": "a b"},
        {"command": []},
        {"env": "A", "x": 1},
        {},
        "env",
        ["env"],
        {"env": ""},
    ):
        assert reference(other) == ""
    assert resolved({"env": "production"}) == ({"env": "production"}, [])
    assert commands({"a": [{"command": ["x", "y"]}], "b": {"c": {"command": ["z"]}}}) == [["x", "y"], ["z"]]


def test_the_agents_environment_counts_where_another_process_builds_the_engine(project, monkeypatch):
    """The resident process has none of the agent's variables, and must not need them."""
    from hookturn.project.assemble import assemble

    monkeypatch.delenv("TOKEN_OF_AGENT", raising=False)
    project.user(
        """\
        hooks:
        - name: one
          timings: [pre_tool_execution]
          run: {command: "cat > got.json"}
          config: {direct: {env: TOKEN_OF_AGENT}, printed: {command: [sh, -c, "echo $TOKEN_OF_AGENT"]}}
        """
    )
    environ = {"TOKEN_OF_AGENT": "from-the-agent", "PATH": "/usr/bin:/bin", "HOME": "/nowhere"}
    assembled = assemble(project.folder, environ=environ, log=False)
    assert [str(problem) for problem in assembled.problems] == []
    project.fire(assembled=assembled)
    import json

    config = json.loads((project.folder / "got.json").read_text())["config"]
    assert config == {"direct": "from-the-agent", "printed": "from-the-agent"}
