"""A user from the very beginning: a fresh environment, ``pip install``, ``hookturn install``, and a real agent.

Nothing of the checkout is imported by what the agents call: it runs in a virtual environment of its own.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "fake_model"))

import claude_answers
import codex_answers
import copilot_answers
import gemini_answers
import qwen_answers
from agent_programs import (
    CLAUDE,
    CODEX,
    CODEX_CONFIG,
    COPILOT,
    GEMINI,
    GEMINI_CONFIG,
    OPENCODE,
    OPENCODE_CONFIG,
    QWEN,
    QWEN_CONFIG,
    Home,
)
from agent_run import WEBHOOK_PORT

from hookturn.agents.bridge import BridgeAnswer

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
        elif program is OPENCODE:
            self.write(".config/opencode/opencode.json", OPENCODE_CONFIG)
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
    skip = pytest.mark.skipif(not os.environ.get("HOOKTURN_AGENTS_MORE"), reason="slower: make agents-more")
    return pytest.param(program, marks=skip)


def named(value):
    return getattr(value, "name", None)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("program", [CLAUDE, CODEX, GEMINI, COPILOT, more(QWEN), more(OPENCODE)], ids=named)
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


@pytest.mark.parametrize("program", [CLAUDE, CODEX, GEMINI, COPILOT, more(QWEN)], ids=named)
def test_install_says_which_agents_read_a_projects_settings_in_the_very_folder_only(user, program):
    user = user(program)
    user.scope = ()
    user.settings(**SOURCES["plugin"])
    told = user.install()
    if program is CODEX:
        trust = f'\n[projects."{user.project}"]\ntrust_level = "trusted"\n'
        (user.home / ".codex/config.toml").write_text(CODEX_CONFIG + trust)
    sub = user.project / "sub"
    sub.mkdir()
    user.go(cwd=sub, env={"COPILOT_ALLOW_ALL": "true"})
    assert (sub / "fine.txt").exists()
    assert (sub / "danger.txt").exists() == ("--user counts in sub folders, too" in told)


TALKATIVE = """\
from hookturn import Continue, Deny, Inject, Warn, hookimpl


def on_session_start(event):
    return Inject("At the start.")


def on_user_prompt_submit(event):
    return [Inject("With the prompt."), Warn("A warning.")]


def system_prompt(event):
    return Inject("In the system prompt.")


def pre_tool_execution(event):
    return Deny("Not this one.", advice="Try another.")


def on_permission_request(event):
    return Deny("Not this one, either.")


def post_tool_execution(event):
    return Inject("After the tool.")


def on_turn_complete(event):
    return Continue("Go on.")
"""

CAPTURES = CHECKOUT / "tests/data/captures"


def opencode_check(event, answer):
    """opencode's plugin is ours; it knows these keys."""
    assert answer.exit_code == 0
    known = {"throw", "set", "assign", "replace", "push", "message", "warn"}
    assert set(json.loads(answer.stdout or b"{}")) <= known


CHECKS = {
    "claude": ("claude-code", claude_answers.check),
    "codex": ("codex", codex_answers.check),
    "gemini": ("gemini", gemini_answers.check),
    "copilot": ("copilot", copilot_answers.check),
    "copilot-pascal": ("copilot", copilot_answers.check),
    "qwen": ("qwen", qwen_answers.check),
    "opencode": ("opencode", opencode_check),
}
"""Folder of captures -> the agent, and what it takes."""


def payload_of(folder, path):
    """Return a captured payload as the agent's entry gets it."""
    content = path.read_bytes()
    if folder != "opencode":
        return content
    data = json.loads(content)
    about = {"directory": "/", "worktree": "/", "parent": "", "text": ""}
    if path.parent.name == "bus":
        return json.dumps({"hook": "event", "event": data, **about}).encode()
    return json.dumps({"hook": path.stem, **data, **about}).encode()


def answers_to_captures(user, folder, command):
    """Send all captures of a folder to the installed command, one after another; return the answers by file."""
    agent, check = CHECKS[folder]
    found = {}
    for path in sorted((CAPTURES / folder).rglob("*.json")):
        event = path.stem.partition(".")[0]
        words = [
            *command,
            "bridge",
            agent,
            "--timeout",
            "60",
            *(("--event", event) if agent == "copilot" else ()),
        ]
        done = subprocess.run(
            words,
            input=payload_of(folder, path),
            cwd=user.project,
            env=user.env,
            capture_output=True,
            timeout=60,
        )
        assert b"Traceback" not in done.stderr, done.stderr
        check(event, BridgeAnswer(done.stdout, done.stderr.decode(), done.returncode))
        found[path.name] = (done.returncode, done.stdout, done.stderr)
    return found


@pytest.mark.parametrize("folder", CHECKS)
def test_every_capture_is_answered_alike_in_process_and_by_the_resident_process(
    tmp_path, environment, folder
):
    users = []
    for name in ("own", "resident"):
        (tmp_path / name).mkdir()
        users.append(User(tmp_path / name, environment, CLAUDE))
        (users[-1].config / "talkative.py").write_text(TALKATIVE)
        hook = {"name": "talkative", "run": {"module": "talkative.py"}}
        users[-1].settings(hooks=[hook], plugins=NO_PLUGINS)
    own, resident = users
    (client,) = environment.glob("lib/python*/site-packages/hookturn/serve/client.py")
    commands = [environment / "bin/hookturn"], [environment / "bin/python", "-I", "-S", client]
    try:
        resident.hookturn("serve")
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(answers_to_captures, own, folder, commands[0])
            second = pool.submit(answers_to_captures, resident, folder, commands[1])
            one, other = first.result(), second.result()
        status = json.loads(resident.hookturn("serve", "--status", "--json"))
        assert status["calls"] >= len(other) > 0, status
        assert not own.resident()
    finally:
        for user in users:
            user.close()
    assert other == one
    assert any(stdout.strip() not in (b"", b"{}") for _, stdout, _ in one.values())


def test_killing_the_resident_process_loses_no_decision_and_no_record(user):
    user = user(CLAUDE)
    user.settings(**SOURCES["plugin"])
    user.install()
    calls = [f"touch {'danger' if number % 3 == 0 else 'fine'}{number}.txt" for number in range(30)]
    batches = [{"calls": [{"shell": call} for call in calls[at : at + 3]]} for at in range(0, 30, 3)]
    over, killed = Event(), []

    def kill():
        chance = random.Random(6)
        while not over.wait(chance.uniform(0.02, 0.4)):
            for pid in user.resident():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    thread = Thread(target=kill)
    thread.start()
    try:
        user.go([*batches, {"text": "Finished."}])
    finally:
        over.set()
        thread.join()
    assert len(killed) >= 5
    ran = {path.name for path in user.project.glob("*.txt")}
    assert ran == {call.split()[1] for call in calls if "fine" in call}
    ended = [row for row in user.audit if row["timing"] == "post_tool_execution"]
    assert len({row["call_id"] for row in ended}) == 30
    # A kill between the record of an end and the note that all hooks have had it has them told again.
    assert len(ended) <= 30 + len(killed)
    assert {row["status"] for row in ended} <= {"denied", "ok", "unknown"}
    user.hookturn("audit", "verify")


MINE = {"type": "command", "command": "true"}


def test_doctor_follows_an_installation_from_begin_to_end(user):
    user = user(CLAUDE)
    user.settings(**SOURCES["plugin"])
    settings = user.project / ".claude/settings.json"
    user.write("project/.claude/settings.json", {"model": "sonnet", "hooks": {"Stop": [{"hooks": [MINE]}]}})
    before = settings.read_bytes()

    assert user.doctor()["installations"] == []
    assert "No agent calls hookturn here" in user.hookturn("doctor")

    user.install()
    found = user.doctor()
    (about,) = found["installations"]
    assert (about["state"], about["calls"]) == ("ok", {})
    assert {guard["name"]: guard["last"] for guard in found["guards"]}["no-danger"] is None
    text = user.hookturn("doctor")
    assert "never" in text
    assert text.count("warning") == 1 and "hooks.Stop[0].hooks[0]: ignored" in text  # the user's own

    user.go([{"text": "Finished."}])
    found = user.doctor()
    assert {"SessionStart", "UserPromptSubmit", "Stop"} <= found["installations"][0]["calls"].keys()
    assert {guard["name"]: guard["last"] for guard in found["guards"]}["no-danger"] is None

    user.go()
    found = user.doctor()
    assert "PreToolUse" in found["installations"][0]["calls"]
    assert {guard["name"]: guard["last"] for guard in found["guards"]}["no-danger"]

    installed = settings.read_bytes()
    settings.write_bytes(before)
    (about,) = user.doctor(code=1)["installations"]
    assert (about["state"], about["remedy"]) == ("gone", "Run `hookturn install claude-code` again.")
    settings.write_bytes(installed)
    assert user.doctor()["ok"]

    user.hookturn("uninstall", "claude-code", "--yes")
    assert settings.read_bytes() == before
    assert user.doctor()["installations"] == []


def test_doctor_tells_whether_http_is_answered(user):
    user = user(CLAUDE)
    user.settings(**opened(SOURCES["plugin"]))
    user.install("--http")
    assert user.doctor()["resident"] is False
    assert "does not answer" in user.hookturn("doctor")
    user.hookturn("serve")
    assert user.doctor()["resident"] is True
    user.hookturn("serve", "--stop")
    assert user.doctor()["resident"] is False
    user.hookturn("uninstall", "claude-code", "--yes")
    assert not list(user.project.glob(".claude/*.json"))


@pytest.mark.parametrize("program", [CLAUDE, CODEX, GEMINI, COPILOT, more(QWEN)], ids=named)
def test_what_agents_do_when_hookturn_was_removed_and_doctor_says_so(user, program):
    user = user(program)
    user.install()
    (settings,) = [
        path
        for path in user.home.rglob("*.json")
        if b"bridge" in path.read_bytes() and ".cache" not in path.parts
    ]
    gone = str(user.environment.parent / "gone")
    settings.write_text(settings.read_text().replace(str(user.environment), gone))
    out = user.run(program, [{"shell": "touch ran.txt"}, {"text": "Finished."}])
    refuses = program in (GEMINI, COPILOT)
    assert user.ran("ran.txt") is not refuses, (out.stdout, out.stderr)
    (found,) = user.doctor(code=1)["installations"]
    then = "refuses every call" if refuses else "goes on without your hooks"
    assert found["state"] == "broken"
    assert found["cause"] == f"it calls {gone}/bin/python, which is not there, so {program.name} {then}"
    user.install()
    assert user.doctor()["ok"]
