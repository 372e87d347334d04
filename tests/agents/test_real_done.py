"""A user from the very beginning: a fresh environment, ``pip install``, ``hookturn install``, and a real agent.

Nothing of the checkout is imported by what the agents call: it runs in a virtual environment of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "fake_model"))

from agent_programs import (
    CLAUDE,
    CODEX,
    CODEX_CONFIG,
    COPILOT,
    GEMINI,
    GEMINI_CONFIG,
    QWEN,
    QWEN_CONFIG,
    Home,
)
from agent_run import WEBHOOK_PORT

pytestmark = pytest.mark.agents

CHECKOUT = Path(__file__).parents[2]

PLUGIN = '''\
"""Two plugins: one fails closed, one does not."""

from hookturn import Deny, hookimpl


class Guard:
    """Refuses dangerous commands, and fails closed."""

    @hookimpl(guard=True, tools=["bash"])
    def pre_tool_execution(self, event):
        """Refuse."""
        return Deny("The plugin says no.") if "danger" in event.command else None


class Advice:
    """Refuses dangerous commands as long as it works."""

    @hookimpl(tools=["bash"])
    def pre_tool_execution(self, event):
        """Refuse."""
        return Deny("The plugin says no.") if "danger" in event.command else None
'''

SCRIPT = """\
case $(cat) in
*danger*) echo 'The script says no.' >&2; exit 2;;
esac
"""

NO_PLUGINS = {"no-danger": False, "advice": False}

SOURCES = {
    "plugin": {"plugins": {"advice": False}},
    "script": {
        "plugins": NO_PLUGINS,
        "hooks": [
            {
                "name": "script",
                "timings": ["pre_tool_execution"],
                "filter": {"tools": ["bash"]},
                "run": {"command": ["sh", "deny.sh"]},
                "guard": True,
            }
        ],
    },
    "webhook": {
        "plugins": NO_PLUGINS,
        "hooks": [
            {
                "name": "webhook",
                "timings": ["pre_tool_execution"],
                "filter": {"tools": ["bash"]},
                "run": {"webhook": {"url": f"http://127.0.0.1:{WEBHOOK_PORT}/hook"}},
                "on_failure": "deny",
            }
        ],
        "webhooks": {"allow": [f"127.0.0.1:{WEBHOOK_PORT}"]},
    },
}
"""Who denies: the user's hookturn.yaml, in which nobody else does."""


def opened(settings):
    """Return settings in which nothing fails closed, so that HTTP may be used for all."""
    plugins = {"no-danger": False, **({"advice": False} if "hooks" in settings else {})}
    hooks = [
        {key: value for key, value in hook.items() if key not in ("guard", "on_failure")}
        for hook in settings.get("hooks", [])
    ]
    return {**settings, "plugins": plugins, "hooks": hooks}


RUN = [{"shell": "touch fine.txt"}, {"shell": "touch danger.txt"}, {"text": "Finished."}]
WEBHOOK = ("danger", "The webhook says no.")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A new virtual environment, in a path with a blank, with hookturn and a plugin installed by pip."""
    base = tmp_path_factory.mktemp("fresh") / "an environment"
    base.mkdir()
    made = [sys.executable, "-m", "hookturn", "new", "no-danger", "--directory", str(base)]
    for words in (made, [sys.executable, "-m", "venv", str(base / "venv")]):
        subprocess.run(words, check=True, capture_output=True)
    (base / "no-danger/src/no_danger/__init__.py").write_text(PLUGIN)
    about = base / "no-danger/pyproject.toml"
    line = 'no-danger = "no_danger:plugin"\n'
    assert line in about.read_text()
    entries = 'no-danger = "no_danger:Guard"\nadvice = "no_danger:Advice"\n'
    about.write_text(about.read_text().replace(line, entries))
    pip = [str(base / "venv/bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    done = subprocess.run([*pip, str(CHECKOUT), str(base / "no-danger")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return base / "venv"


class User(Home):
    """A user who has just installed hookturn: default folders, nothing in the environment.

    Parameters:
        base: an empty folder.
        environment: where hookturn is installed.
        program: the agent program.
    """

    def __init__(self, base, environment, program):
        super().__init__(base)
        self.environment = environment
        self.program = program
        path = os.pathsep.join([str(environment / "bin"), os.environ["PATH"]])
        self.env = {**{k: v for k, v in self.env.items() if not k.startswith("HOOKTURN_")}, "PATH": path}
        self.config = self.home / ".config/hookturn"
        self.config.mkdir(parents=True)
        (self.config / "deny.sh").write_text(SCRIPT)
        self.scope = () if program in (CLAUDE, GEMINI) else ("--user",)
        if program is CODEX:
            (self.home / ".codex").mkdir()
            (self.home / ".codex/config.toml").write_text(CODEX_CONFIG)
        elif program is GEMINI:
            self.write(".gemini/settings.json", GEMINI_CONFIG)
        elif program is QWEN:
            self.write(".qwen/settings.json", QWEN_CONFIG)

    def settings(self, **data):
        """Write the user's hookturn.yaml."""
        (self.config / "hookturn.yaml").write_text(json.dumps(data))

    def hookturn(self, *words, code=0, cwd=None):
        """Run a command of hookturn and return what it printed."""
        done = subprocess.run(
            [self.environment / "bin/hookturn", *words],
            cwd=cwd or self.project, env=self.env, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def install(self, *options):
        return self.hookturn("install", self.program.name, *self.scope, "--yes", *options)

    def doctor(self, code=0):
        """Return what doctor says, as data."""
        return json.loads(self.hookturn("doctor", "--json", code=code))

    def go(self, script=None, **more):
        out = self.run(self.program, script or RUN, **more)
        assert out.code == 0, (out.stdout, out.stderr)
        return out

    def ran(self, name):
        return (self.project / name).exists()

    def resident(self):
        """Return the resident processes of this user, by the process table."""
        mark = f"HOME={self.home}".encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
                    if b"--foreground" in words and mark in Path(f"/proc/{entry}/environ").read_bytes().split(
                        b"\0"
                    ):
                        found.append(int(entry))
                except OSError:
                    continue
        return found

    def close(self):
        for pid in self.resident():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


@pytest.fixture
def user(tmp_path, environment):
    """Make users: ``user(program)``."""
    made = []

    def make(program):
        made.append(User(tmp_path, environment, program))
        return made[-1]

    yield make
    for one in made:
        one.close()


def more(program):
    """A parameter that runs where the slower programs are asked for."""
    skip = pytest.mark.skipif(not os.environ.get("HOOKTURN_AGENTS_MORE"), reason="make agents-more")
    return pytest.param(program, marks=skip)


def named(value):
    return getattr(value, "name", None)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("program", [CLAUDE, CODEX, GEMINI, COPILOT, more(QWEN)], ids=named)
def test_each_kind_of_hook_alone_denies_a_dangerous_command(user, program, source):
    user = user(program)
    user.settings(**SOURCES[source])
    user.install()
    out = user.go(webhook=WEBHOOK)
    assert user.ran("fine.txt") and not user.ran("danger.txt")
    assert f"The {source} says no." in out.request(2)
    denied = [row for row in user.audit if row.get("decision") == "deny"]
    assert [row["by"] for row in denied] == ["no-danger" if source == "plugin" else source]
    assert [row["status"] for row in user.audit if row["timing"] == "post_tool_execution"] == ["ok", "denied"]
    assert ("touch danger.txt" in out.webhook) == (source == "webhook")
    user.hookturn("audit", "verify")


@pytest.mark.parametrize("source", SOURCES)
def test_each_kind_of_hook_denies_over_http(user, source):
    user = user(CLAUDE)
    user.settings(**opened(SOURCES[source]))
    told = user.install("--http")
    assert "every event fails open" in told, told[-900:]
    local = json.loads((user.project / ".claude/settings.local.json").read_text())["hooks"]
    assert local["PreToolUse"][0]["hooks"][0]["type"] == "http"
    assert "PreToolUse" not in json.loads((user.project / ".claude/settings.json").read_text())["hooks"]
    out = user.go(webhook=WEBHOOK)
    assert user.ran("fine.txt") and not user.ran("danger.txt")
    assert f"The {source} says no." in out.request(2)
    assert ("touch danger.txt" in out.webhook) == (source == "webhook")
    assert user.resident()
    user.hookturn("audit", "verify")


def test_with_a_guard_http_leaves_what_decides_to_commands(user):
    user = user(CLAUDE)
    user.settings(**SOURCES["plugin"])
    told = user.install("--http")
    assert "every event but PermissionRequest, PreSkillShellCommand, PreToolUse, SessionStart" in told
    out = user.go()
    assert user.ran("fine.txt") and not user.ran("danger.txt")
    assert "The plugin says no." in out.request(2)


@pytest.mark.parametrize("program", [CLAUDE, CODEX, GEMINI, COPILOT, more(QWEN)], ids=named)
def test_an_agent_in_a_sub_folder_has_the_projects_hooks(user, program):
    user = user(program)
    user.scope = ("--user",)
    user.settings(plugins=NO_PLUGINS)
    user.install()
    (user.project / "hookturn.yaml").write_text('permissions: {deny: ["bash(touch danger.txt)"]}\n')
    sub = user.project / "a folder/deeper"
    sub.mkdir(parents=True)
    user.go(cwd=sub)
    assert (sub / "fine.txt").exists() and not (sub / "danger.txt").exists()
    assert [row["timing"] for row in user.audit if row.get("decision") == "deny"]
    assert not (sub / ".hookturn").exists()
    (found,) = user.doctor()["installations"]
    assert found["state"] == "ok" and found["calls"]
