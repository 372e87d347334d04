"""The audit-log plugin in a real engine: what it records, what it hides, what it does when it cannot write."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hookturn import (
    Allow,
    Continue,
    Deny,
    Engine,
    Inject,
    Recover,
    Reply,
    Rewrite,
    SetEnv,
    Warn,
    events,
    hookimpl,
)
from hookturn.paths import config_root, state_root
from hookturn_builtins.audit_log import Config, plugin
from hookturn_builtins.audit_log.trail import segments
from hookturn_builtins.audit_log.verify import verify

TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"[::-1]


def config(**settings: object) -> Config:
    made = Config()
    for name, value in settings.items():
        setattr(made, name, value)
    made.validate()
    return made


def engine(project: Path, *plugins: object, settings: dict | None = None, **options: object) -> Engine:
    made = Engine(plugins=plugins, project_dir=project, **options)  # type: ignore[arg-type]
    chosen = config(**(settings or {}))
    made.register(plugin(chosen), "audit-log", layer="builtin", config=chosen)
    return made


def trail(project: Path) -> list[dict]:
    path = project / ".hookturn" / "audit.jsonl"
    files = [*segments(path), *([path] if path.exists() else [])]
    return [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]


class Hooks:
    """Answers what a test tells it to."""

    hookturn_name = "hooks"

    def __init__(self, **answers: object) -> None:
        self.answers = answers

    @hookimpl
    def pre_tool_execution(self, event):
        return self.answers.get("pre")

    @hookimpl
    def post_tool_execution(self, event):
        return self.answers.get("post")

    @hookimpl
    def on_user_prompt_submit(self, event):
        return self.answers.get("prompt")

    @hookimpl
    def on_turn_complete(self, event):
        return self.answers.get("complete")

    @hookimpl
    def on_session_start(self, event):
        return self.answers.get("start")


def call(made: Engine, command: str = "ls", result: object = "a.txt", **about: object) -> object:
    with (
        made.session(session_id="s1", agent="coder", host="demo", **about) as session,
        session.turn() as turn,
    ):
        return turn.call_tool("bash", {"command": command}, execute=lambda **_: result)


def test_every_end_of_a_tool_call_is_recorded_and_nothing_else_without_an_answer(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        call(made, "ls -la")
    [record] = trail(tmp_path)
    assert {name: record[name] for name in ("schema", "timing", "session_id", "agent", "turn", "host", "tool", "kind")} == {
        "schema": 1, "timing": "post_tool_execution", "session_id": "s1", "agent": "coder", "turn": 1, "host": "demo",
        "tool": "bash", "kind": "bash",
    }  # fmt: skip
    assert record["args"] == {"command": "ls -la"}
    assert (record["status"], record["result"], record["decision"]) == ("ok", "a.txt", None)
    assert len(record["id"]) == 32 and record["time"].endswith("Z")


def test_a_denial_is_recorded_with_who_and_why(tmp_path: Path) -> None:
    with engine(tmp_path, Hooks(pre=Deny("no", advice="try ls", code="X1"))) as made:
        call(made, "rm -rf /")
    decided, ended = trail(tmp_path)
    assert (decided["timing"], decided["decision"], decided["by"], decided["reason"], decided["code"]) == (
        "pre_tool_execution", "deny", "hooks", "no", "X1",
    )  # fmt: skip
    assert decided["hooks"] == [{"answer": ["Deny"], "name": "hooks", "source": ""}]
    assert (ended["status"], ended["by"], ended["reason"]) == ("denied", "hooks", "no")


def test_rewrites_replies_and_texts_are_recorded(tmp_path: Path) -> None:
    hooks = Hooks(
        pre=Rewrite(command="ls -l"), post=[Rewrite(result_text="b"), Inject("note"), Warn("hm")],
        prompt=Inject("hint"), complete=Continue("go on"), start=SetEnv({"A_TOKEN": "abc"}),
    )  # fmt: skip
    with engine(tmp_path, hooks) as made, made.session() as session:
        session.submit("do it")
        with session.turn() as turn:
            turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "a")
            turn.complete("done")
    by_timing = {record["timing"]: record for record in trail(tmp_path)}
    assert by_timing["pre_tool_execution"]["rewrites"] == [
        {"by": "hooks", "field": "args", "before": {"command": "ls"}, "after": {"command": "ls -l"}}
    ]
    post = by_timing["post_tool_execution"]
    assert (post["args"], post["result"], post["injected"], post["warnings"]) == (
        {"command": "ls -l"}, "a", ["note"], ["hm"],
    )  # fmt: skip
    assert by_timing["on_user_prompt_submit"]["event"] == {"prompt": "do it"}
    assert by_timing["on_user_prompt_submit"]["injected"] == ["hint"]
    assert by_timing["on_turn_complete"]["continue_reason"] == "go on"
    assert by_timing["on_session_start"]["env"] == ["A_TOKEN"]


def test_a_reply_and_a_failure_are_recorded(tmp_path: Path) -> None:
    class Broken:
        @hookimpl
        def post_tool_execution(self, event):
            raise ValueError(f"bad {TOKEN}")

    with engine(tmp_path, Hooks(pre=Reply("cached")), Broken()) as made:
        call(made)
    replied, ended = (record for record in trail(tmp_path) if "tool" in record)
    assert replied["reply"] == "cached"
    assert ended["failures"][0]["error_type"] == "ValueError"
    assert TOKEN not in json.dumps(ended)


def test_an_allow_and_a_monitored_answer_are_recorded(tmp_path: Path) -> None:
    class Watching:
        @hookimpl(mode="monitor")
        def pre_tool_execution(self, event):
            return Deny("would not")

    with engine(tmp_path, Hooks(pre=Allow("fine")), Watching()) as made:
        call(made)
    decided = trail(tmp_path)[0]
    assert (decided["decision"], decided["by"]) == ("allow", "hooks")
    assert decided["hooks"][1]["would"] == [{"deny": "would not"}]


def test_secrets_are_replaced_before_hashing_and_equal_ones_correlate(tmp_path: Path) -> None:
    with engine(tmp_path, Hooks(prompt=Warn(f"found {TOKEN}"))) as made, made.session() as session:
        session.submit(f"my token is {TOKEN}")
        with session.turn() as turn:
            args = {"command": f"curl -H 'Authorization: Bearer {TOKEN}'", "password": "hunter2", "n": 3}
            turn.call_tool("bash", args, execute=lambda **_: {"stdout": f"got {TOKEN}"})
    text = (tmp_path / ".hookturn" / "audit.jsonl").read_text()
    assert TOKEN not in text and "hunter2" not in text
    marks = {mark.split("]")[0] for mark in text.split("[REDACTED:github:")[1:]}
    assert len(marks) == 1
    assert verify(tmp_path / ".hookturn" / "audit.jsonl").ok
    with engine(tmp_path) as other:
        call(other, f"echo {TOKEN}")
    assert f"[REDACTED:github:{marks.pop()}]" in trail(tmp_path)[-1]["args"]["command"]


def test_payloads_can_be_left_out(tmp_path: Path) -> None:
    with engine(tmp_path, settings={"payloads": "hash"}) as made:
        call(made, "cat diary.txt", "dear diary")
    text = (tmp_path / ".hookturn" / "audit.jsonl").read_text()
    assert "diary" not in text
    [record] = trail(tmp_path)
    assert record["result"]["chars"] == len("dear diary")
    assert len(record["result"]["hmac"]) == 64


class Quoting:
    """Quotes what it is given in everything it says."""

    @hookimpl
    def on_session_start(self, event):
        return [Inject(f"model {SECRET}"), SetEnv({"NAME": SECRET})]

    @hookimpl
    def on_message_received(self, event):
        return Rewrite(f"{event.text}!")

    @hookimpl
    def on_user_prompt_submit(self, event):
        return [Inject(f"you said {event.prompt}"), Warn(event.prompt)]

    @hookimpl
    def system_prompt(self, event):
        return Rewrite([*event.parts, SECRET])

    @hookimpl
    def on_model_response(self, event):
        return [Rewrite(f"{event.text}!"), Warn(event.text)]

    @hookimpl
    def pre_tool_execution(self, event):
        if "deny" in event.command:
            return Deny(f"no {event.command}", advice=SECRET, code=SECRET)
        if "reply" in event.command:
            return Reply({"text": event.command})
        if "fail" in event.command:
            raise ValueError(event.command)
        return [Allow(event.command), Rewrite(command=f"{event.command} 2")]

    @hookimpl
    def post_tool_execution(self, event):
        return [Rewrite(result_text=f"{event.result_text} more"), Inject(event.result_text)]

    @hookimpl
    def on_error(self, event):
        return [Warn(event.message), Recover("fallback_model", model=SECRET)]

    @hookimpl
    def on_turn_complete(self, event):
        return [Continue(event.text), Inject(event.text)]


class Watching:
    @hookimpl(mode="monitor")
    def pre_tool_execution(self, event):
        return Deny(f"would deny {event.command}")


SECRET = "xylophone"


def everything(made: Engine) -> None:
    """Go through every timing with the text in all payloads."""
    with made.session(session_id="s1") as session:
        session.submit(f"{SECRET} please")
        with session.turn() as turn:
            turn.system_prompt([f"You are {SECRET}"])
            turn.model_response(text=f"I do {SECRET}", stop_reason="end")
            for word in ("deny", "reply", "fail", "run"):
                args = {"command": f"{word} {SECRET}", SECRET: [1, {SECRET: SECRET}]}
                turn.call_tool("bash", args, execute=lambda **_: {"stdout": SECRET, SECRET: 1})

            def broken(**_: object) -> None:
                raise OSError(SECRET)

            with contextlib.suppress(OSError):
                turn.call_tool("bash", {"command": SECRET}, execute=broken)
            turn.complete(f"done {SECRET}")
    made.fire(events.Error(error_type="Oops", message=SECRET))


def test_payload_free_mode_keeps_no_text_of_any_payload(tmp_path: Path) -> None:
    for mode in ("full", "hash"):
        project = tmp_path / mode
        with engine(project, Quoting(), Watching(), settings={"payloads": mode}) as made:
            everything(made)
    seen = {mode: trail(tmp_path / mode) for mode in ("full", "hash")}
    assert [record["timing"] for record in seen["full"]] == [record["timing"] for record in seen["hash"]]
    said = {field for record in seen["full"] for field in record if SECRET in json.dumps(record[field])}
    # The text went through all of these, so the test would see it.
    assert said >= {
        "args", "result", "error", "event", "reason", "message", "code", "rewrites", "reply", "injected", "warnings",
        "continue_reason", "recover", "failures", "hooks",
    }  # fmt: skip
    text = (tmp_path / "hash" / ".hookturn" / "audit.jsonl").read_text().lower()
    for word in (SECRET, "you are", "please", "i do", "would deny"):
        assert word not in text, word
    assert verify(tmp_path / "hash" / ".hookturn" / "audit.jsonl").ok


def test_facts_stay_in_payload_free_mode_and_equal_payloads_correlate(tmp_path: Path) -> None:
    with engine(tmp_path, Hooks(start=Warn("hm")), settings={"payloads": "hash"}) as made:
        call(made, "ls", "same", source="startup", model="m1")
        call(made, "ls", "same", source="startup", model="m1")
    records = trail(tmp_path)
    ends = [record for record in records if record["timing"] == "post_tool_execution"]
    assert ends[0]["result"] == ends[1]["result"] and ends[0]["args"] == ends[1]["args"]
    assert (ends[0]["tool"], ends[0]["status"]) == ("bash", "ok")
    assert records[0]["event"]["source"] == "startup"


def test_long_texts_are_cut_without_halving_a_secret(tmp_path: Path) -> None:
    with engine(tmp_path, settings={"max_chars": 200}) as made:
        call(made, result="x" * 190 + " " + TOKEN + " end " * 100)
    result = trail(tmp_path)[0]["result"]
    assert len(result) < 500
    assert "more characters, hmac " in result
    assert TOKEN[:12] not in result


def test_sub_agents_are_named(tmp_path: Path) -> None:
    with (
        engine(tmp_path) as made,
        made.session(agent="coder") as session,
        session.turn() as turn,
        turn.subagent("reviewer") as sub,
    ):
        sub.call_tool("bash", {"command": "ls"}, execute=lambda **_: "")
    record = next(record for record in trail(tmp_path) if record.get("tool"))
    assert (record["agent"], record["parent_agent"]) == ("reviewer", "coder")
    assert record["agent_id"]


def test_folder_key_and_file_are_private_and_git_ignores_them(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        call(made)
    folder = tmp_path / ".hookturn"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "audit.jsonl").stat().st_mode) == 0o600
    assert "*" in (folder / ".gitignore").read_text()
    [key] = state_root().rglob("redact.key")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert not list(tmp_path.rglob("redact.key"))


@pytest.mark.parametrize("session", ["../../x", "a\nb", "x" * 5000, "CON", "\ud800", "a\0b"])
def test_hostile_session_ids_are_harmless(tmp_path: Path, session: str) -> None:
    project = tmp_path / "a" / "b" / "project"
    project.mkdir(parents=True)
    with engine(project) as made:
        made.fire(events.PostToolExecution(tool="bash", args={"command": session}, session_id=session))
    assert trail(project)[0]["session_id"] == session
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        ".gitignore",
        "audit.jsonl",
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"duration": float("nan")},
        {"result": object()},
        {"result": {1: {2, 3}}},
        {"time": 1e300},
        {"error": "\ud800"},
    ],
)
def test_odd_values_are_recorded_all_the_same(tmp_path: Path, fields: dict) -> None:
    with engine(tmp_path) as made:
        out = made.fire(events.PostToolExecution(tool="bash", args={}, **fields))
    assert out.failures == () and out.warnings == ()
    assert len(trail(tmp_path)) == 1


def test_a_dry_run_writes_only_below_its_own_folder(tmp_path: Path) -> None:
    project, output = tmp_path / "p", tmp_path / "out"
    project.mkdir()
    with engine(project, dry_run=True, output_dir=output) as made:
        call(made)
    assert not (project / ".hookturn").exists()
    assert not state_root().exists()
    assert verify(output / "audit.jsonl").records == 1


def test_a_path_of_its_own_and_rotation(tmp_path: Path) -> None:
    settings = {"path": "logs/deep/trail.jsonl", "max_bytes": 1500}
    with engine(tmp_path, settings=settings) as made, made.session() as session, session.turn() as turn:
        for number in range(20):
            turn.call_tool("bash", {"command": f"echo {number}"}, execute=lambda **_: "")
    report = verify(tmp_path / "logs" / "deep" / "trail.jsonl")
    assert (report.ok, report.records) == (True, 20)
    assert len(report.files) > 3


def test_parallel_calls_in_threads(tmp_path: Path) -> None:
    with engine(tmp_path) as made, made.session() as session, session.turn() as turn:

        def work() -> None:
            for _ in range(25):
                turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    report = verify(tmp_path / ".hookturn" / "audit.jsonl")
    assert (report.ok, report.records) == (True, 100)


# -- failure ------------------------------------------------------------------------------------------


def block(project: Path) -> Path:
    """Put a folder where the trail's file belongs."""
    path = project / ".hookturn" / "audit.jsonl"
    path.mkdir(parents=True)
    return path


def degraded() -> list[dict]:
    found = list((state_root() / "projects").glob("*/audit.jsonl"))
    return [json.loads(line) for path in found for line in path.read_text().splitlines()]


def test_degrade_writes_elsewhere_says_so_once_and_tells_the_trail_later(tmp_path: Path, hook_log) -> None:
    path = block(tmp_path)
    with engine(tmp_path) as made, made.session() as session, session.turn() as turn:
        first = turn.call_tool("bash", {"command": "one"}, execute=lambda **_: "")
        second = turn.call_tool("bash", {"command": "two"}, execute=lambda **_: "")
        path.rmdir()
        third = turn.call_tool("bash", {"command": "three"}, execute=lambda **_: "")
        fourth = turn.call_tool("bash", {"command": "four"}, execute=lambda **_: "")
    assert [first.status, second.status] == ["ok", "ok"]
    assert len(first.warnings) == 1 and "cannot be written" in first.warnings[0]
    assert second.warnings == []
    assert len(third.warnings) == 1 and "written again" in third.warnings[0]
    assert fourth.warnings == []
    assert len(hook_log.of("audit-log")) == 1
    assert [record["args"]["command"] for record in degraded()] == ["one", "two"]
    again = trail(tmp_path)
    assert [record["args"]["command"] for record in again] == ["three", "four"]
    assert again[0]["missed"] == {"elsewhere": 2, "lost": 0}
    assert "missed" not in again[1]


@pytest.mark.parametrize("policy", ["degrade", "deny", "ignore"])
def test_a_process_that_was_stopped_with_the_lock_holds_no_decision_up(
    tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch, hook_log
) -> None:
    monkeypatch.setattr("hookturn_builtins.audit_log.trail.PATIENCE", 0.2)
    with (
        engine(tmp_path, settings={"on_failure": policy}) as made,
        made.session() as session,
        session.turn() as turn,
    ):
        turn.call_tool("bash", {"command": "one"}, execute=lambda **_: "")
        with (tmp_path / ".hookturn" / "audit.jsonl").open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            second = turn.call_tool("bash", {"command": "two"}, execute=lambda **_: "")
        third = turn.call_tool("bash", {"command": "three"}, execute=lambda **_: "")
    assert third.status == "ok"
    assert [record["args"]["command"] for record in trail(tmp_path)] == ["one", "three"]
    assert [record["args"]["command"] for record in degraded()] == (["two"] if policy == "degrade" else [])
    assert ("denied by audit-log" in second.value) == (policy == "deny")
    assert verify(tmp_path / ".hookturn" / "audit.jsonl").ok


@pytest.mark.fault
@pytest.mark.parametrize("policy", ["degrade", "deny", "ignore"])
def test_a_full_disk_is_treated_by_the_policy_and_survived(tmp_path: Path, policy: str, hook_log) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        with (
            engine(disk, Hooks(pre=Warn("look")), settings={"on_failure": policy}) as made,
            made.session() as session,
            session.turn() as turn,
        ):
            ran = [
                turn.call_tool("bash", {"command": f"{number} {'x ' * 5000}"}, execute=lambda **_: "").status
                for number in range(30)
            ]
            subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
            after = turn.call_tool("bash", {"command": "after"}, execute=lambda **_: "")
        assert set(ran) == ({"ok", "denied"} if policy == "deny" else {"ok"})
        assert after.status == "ok"
        assert bool(degraded()) == (policy == "degrade")
        assert bool(hook_log.of("audit-log")) == (policy != "ignore")
        path = disk / ".hookturn" / "audit.jsonl"
        assert verify(path).ok
        records = trail(disk)
        assert records[-1]["args"] == {"command": "after"}
        missed = next((record["missed"] for record in records if "missed" in record), None)
        if policy == "degrade":
            assert missed == {"elsewhere": len(degraded()), "lost": 0}
            assert len(records) + len(degraded()) == 2 * (len(ran) + 1)
        elif policy == "ignore":
            assert missed is not None and missed["lost"] > 0
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_degrade_without_a_second_place_counts_what_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook_log
) -> None:
    path = block(tmp_path)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOOKTURN_STATE_DIR", str(tmp_path / "file" / "state"))
    with engine(tmp_path) as made, made.session() as session, session.turn() as turn:
        first = turn.call_tool("bash", {"command": "one"}, execute=lambda **_: "")
        path.rmdir()
        turn.call_tool("bash", {"command": "two"}, execute=lambda **_: "")
    assert "LOST" in first.warnings[0]
    assert trail(tmp_path)[0]["missed"] == {"elsewhere": 0, "lost": 1}


def test_deny_refuses_what_it_cannot_record(tmp_path: Path) -> None:
    block(tmp_path)
    ran: list[str] = []
    made = engine(tmp_path, Hooks(pre=Warn("look")), settings={"on_failure": "deny"})
    with made, made.session() as session, session.turn() as turn:
        result = turn.call_tool("bash", {"command": "one"}, execute=lambda **_: ran.append("ran"))
    assert (result.status, result.denied_by, ran) == ("denied", "audit-log", [])


def test_ignore_says_nothing(tmp_path: Path, hook_log) -> None:
    path = block(tmp_path)
    with (
        engine(tmp_path, settings={"on_failure": "ignore"}) as made,
        made.session() as session,
        session.turn() as turn,
    ):
        first = turn.call_tool("bash", {"command": "one"}, execute=lambda **_: "")
        path.rmdir()
        second = turn.call_tool("bash", {"command": "two"}, execute=lambda **_: "")
    assert (first.status, first.warnings, second.warnings, degraded()) == ("ok", [], [], [])
    assert trail(tmp_path)[0]["missed"] == {"elsewhere": 0, "lost": 1}


def test_a_linked_hookturn_folder_is_not_followed(tmp_path: Path, hook_log) -> None:
    project, elsewhere = tmp_path / "p", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    (project / ".hookturn").symlink_to(elsewhere)
    with engine(project) as made:
        call(made)
    assert list(elsewhere.iterdir()) == []
    assert len(degraded()) == 1


@pytest.mark.parametrize("settings", [{"path": ""}, {"path": "a\0b"}, {"max_bytes": -1}, {"max_chars": 3}])
def test_impossible_settings_are_refused(settings: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        config(**settings)


def test_the_plugin_comes_by_its_entry_point_with_checked_settings(tmp_path: Path) -> None:
    config_root().mkdir(parents=True)
    (config_root() / "hookturn.yaml").write_text("plugins:\n  audit-log: {payloads: hash, max_bytes: 5000}\n")
    made = Engine.from_project(tmp_path)
    with made:
        record = next(item for item in made.plugins if item.name == "audit-log")
        assert (record.config.payloads, record.config.max_bytes, record.layer) == ("hash", 5000, "builtin")
        call(made)
    assert "hmac" in trail(tmp_path)[0]["result"]


# -- the command --------------------------------------------------------------------------------------


def hookturn(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hookturn", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        env=os.environ,
    )


def test_the_command_verifies_and_shows(tmp_path: Path) -> None:
    with engine(tmp_path, Hooks(pre=Deny("no \x1b[31mred"))) as made:
        call(made)
    done = hookturn("audit", "verify", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 records" in done.stdout
    as_json = json.loads(hookturn("audit", "verify", "--json", cwd=tmp_path).stdout)
    assert (as_json["ok"], as_json["records"]) == (True, 2)
    tail = hookturn("audit", "tail", "-n", "1", cwd=tmp_path)
    assert "denied" in tail.stdout and len(tail.stdout.splitlines()) == 1
    assert "\x1b" not in tail.stdout
    records = json.loads(
        hookturn("audit", "tail", "--json", "--project", str(tmp_path), cwd=Path("/")).stdout
    )["records"]
    assert [record["timing"] for record in records] == ["pre_tool_execution", "post_tool_execution"]


def test_the_command_names_the_first_bad_line_and_exits_1(tmp_path: Path) -> None:
    with engine(tmp_path, Hooks(pre=Deny("no"))) as made:
        call(made)
    path = tmp_path / ".hookturn" / "audit.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"reason":"no"', b'"reason":"ok"', 1))
    done = hookturn("audit", "verify", str(path), cwd=tmp_path)
    assert done.returncode == 1
    assert f"{path}:1: " in done.stdout


def test_the_command_says_where_there_is_no_trail(tmp_path: Path) -> None:
    done = hookturn("audit", "verify", cwd=tmp_path)
    assert done.returncode == 1
    assert "audit.jsonl" in done.stderr and "Traceback" not in done.stderr
    assert hookturn("audit", cwd=tmp_path).returncode == 2
