"""``hookturn replay`` on recorded sessions: exact figures, order, what hooks make of it, what stays untouched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "data" / "transcripts"

DENY = """
permissions:
  deny: ["bash(rm -rf *)"]
"""


def replay(
    project: Path, *words: str, stdin: bytes | None = None, code: int = 0
) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-m", "hookturn", "replay", "--project", str(project), *words]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "120"}
    done = subprocess.run(argv, input=stdin, capture_output=True, env=environment, cwd=project, check=False)
    assert done.returncode == code, done.stderr.decode()
    return done


def summary(project: Path, *words: str, stdin: bytes | None = None, code: int = 0) -> dict:
    return json.loads(replay(project, *words, "--json", stdin=stdin, code=code).stdout)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("file", "by_tool", "by_status", "tokens"),
    [
        ("claude/plain", {}, {}, (10, 10)),
        ("claude/files", {"Write": 1, "Read": 1, "Edit": 1, "Bash": 1}, {"ok": 4}, (50, 50)),
        ("codex/failing", {"exec_command": 2}, {"ok": 1, "error": 1}, (30, 30)),
        ("gemini/secretive", {"run_shell_command": 1}, {"ok": 1}, (20, 20)),
        ("copilot/failing", {"bash": 2}, {"ok": 1, "error": 1}, (30, 30)),
    ],
)
def test_every_recorded_figure_arrives_once(
    tmp_path: Path, file: str, by_tool: dict, by_status: dict, tokens: tuple[int, int]
) -> None:
    found = summary(tmp_path, str(DATA / f"{file}.jsonl"))
    assert found["sessions"] == found["turns"] == 1
    assert found["tool_calls"] == sum(by_tool.values())
    assert found["by_tool"] == by_tool
    assert found["by_status"] == by_status
    assert (found["tokens"]["input"], found["tokens"]["output"]) == tokens
    assert found["skipped_lines"] == found["not_run"] == []
    calls = found["tool_calls"]
    assert found["timings"].get("pre_tool_execution", 0) == calls
    assert found["timings"].get("post_tool_execution", 0) == calls
    assert found["timings"]["on_session_start"] == found["timings"]["on_session_end"] == 1
    assert found["errors"] == by_status.get("error", 0) == found["timings"].get("on_error", 0)


def test_every_timing_fires_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(
        "from hookturn import hookimpl\n"
        "from pathlib import Path\n"
        "@hookimpl\n"
        "def on_outcome(event):\n"
        "    with open(Path(__file__).with_name('order.txt'), 'a') as file:\n"
        "        print(event.of, getattr(event.before, 'tool', ''), file=file)\n"
    )
    config = tmp_path / "watch.yaml"
    config.write_text("hooks:\n  - name: watch\n    timings: [on_outcome]\n    run: {module: hooks.py}\n")
    summary(tmp_path, str(DATA / "claude/files.jsonl"), "--with", str(config))
    order = (tmp_path / "order.txt").read_text().split("\n")
    call = ["on_tool_call_start", "pre_tool_execution", "post_tool_execution"]
    model = ["system_prompt ", "on_model_response "]
    expected = ["on_session_start ", "on_message_received ", "on_user_prompt_submit ", "on_turn_start "]
    for tool in ("Write", "Read", "Edit", "Bash"):
        expected += [*model, *(f"{timing} {tool}" for timing in call)]
    expected += [*model, "on_turn_complete ", "post_turn ", "on_session_end ", ""]
    assert order == expected


def test_a_rule_denies_in_replay_and_nothing_real_is_touched(tmp_path: Path) -> None:
    (tmp_path / "hookturn.yaml").write_text(DENY)
    found = summary(tmp_path, str(DATA / "gemini/secretive.jsonl"))
    assert found["denied"] == 1
    assert found["by_status"] == {"denied": 1}
    hookturn = tmp_path / ".hookturn"
    assert sorted(path.name for path in hookturn.iterdir()) == [".gitignore", "replay"]
    (folder,) = (hookturn / "replay").iterdir()
    assert Path(found["output_dir"]) == folder
    records = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    assert any(record.get("decision") == "deny" for record in records)
    assert (folder / "stats.sqlite").stat().st_size > 0
    assert "AKIA" + "Q3EGRTXBV7HNW2LM" not in (folder / "audit.jsonl").read_text()


def test_the_timeline_names_who_denied_and_why(tmp_path: Path) -> None:
    (tmp_path / "hookturn.yaml").write_text(DENY)
    text = replay(tmp_path, str(DATA / "gemini/secretive.jsonl")).stdout.decode()
    assert "turn 1  > please do: secretive" in text
    assert "denied by rule bash(rm -rf *)" in text
    assert "1 denied" in text


def test_diff_tells_which_past_calls_another_configuration_would_stop(tmp_path: Path) -> None:
    other = tmp_path / "stricter.yaml"
    other.write_text(
        "permissions:\n  deny: ['bash(rm -rf *)']\n"
        "hooks:\n  - name: ask-first\n    timings: [on_tool_call_start]\n    filter: {tools: [write]}\n"
        "    run: {answer: {ask: 'Writing?'}}\n"
    )
    found = summary(tmp_path, str(DATA / "gemini/secretive.jsonl"), "--diff", str(other), code=1)
    (change,) = found["differences"]
    assert (change["before"], change["after"], change["tool"]) == ("run", "deny", "run_shell_command")
    assert change["by"] == "rule bash(rm -rf *)"
    found = summary(tmp_path, str(DATA / "claude/files.jsonl"), "--diff", str(other), code=1)
    assert [(row["tool"], row["after"]) for row in found["differences"]] == [
        ("Write", "ask"),
        ("Edit", "ask"),
    ]
    same = tmp_path / "same.yaml"
    same.write_text("permissions: {deny: ['bash(nothing like it)']}\n")
    assert summary(tmp_path, str(DATA / "claude/files.jsonl"), "--diff", str(same))["differences"] == []


def test_bad_lines_cost_only_themselves(tmp_path: Path) -> None:
    lines = (DATA / "claude/files.jsonl").read_bytes().splitlines()
    lines[3:3] = [b"{broken", b"[1, 2]", b"\xff\xfe", b'"\\ud800"', b""]
    recording = tmp_path / "a recording.jsonl"
    recording.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    found = summary(tmp_path, str(recording), code=1)
    assert [row["line"] for row in found["skipped_lines"]] == [4, 5, 6, 7]
    assert found["tool_calls"] == 4
    assert found["tokens"]["input"] == 50
    messages = replay(tmp_path, str(recording), code=1).stderr.decode()
    assert "line 4, column 2: skipped: not JSON" in messages


@pytest.mark.smoke
def test_without_a_file_the_sample_shows_hooks_at_work(tmp_path: Path) -> None:
    text = replay(tmp_path).stdout.decode()
    assert "no-recursive-delete" in text
    found = summary(tmp_path)
    assert found["denied"] >= 1
    assert found["turns"] >= 2
    assert found["injected"] >= 1
    assert found["skipped_lines"] == []


def test_standard_input_is_a_file(tmp_path: Path) -> None:
    found = summary(tmp_path, "-", stdin=(DATA / "codex/failing.jsonl").read_bytes())
    assert found["format"] == "codex"
    assert found["tool_calls"] == 2


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"hello\nworld\n", "JSON object"),
        (b'{"a": 1}\n', "looked for"),
        (b"\x00\xff" * 50, "JSON object"),
    ],
)
def test_what_is_no_recording_is_said_so(tmp_path: Path, content: bytes, word: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(content)
    message = replay(tmp_path, str(file), code=1).stderr.decode()
    assert word in message.replace("Looked", "looked")
    assert "Traceback" not in message


def test_a_missing_file_is_wrong_usage(tmp_path: Path) -> None:
    assert "nowhere.jsonl" in replay(tmp_path, "nowhere.jsonl", code=2).stderr.decode()


def test_hostile_texts_reach_no_terminal(tmp_path: Path) -> None:
    event = {
        "timing": "on_user_prompt_submit",
        "session_id": "s\n\x1b[31m",
        "prompt": "\x1b]0;owned\x07 \ud800 \x00 hi",
    }
    file = tmp_path / "own.jsonl"
    file.write_text(json.dumps(event) + "\n")
    out = replay(tmp_path, str(file)).stdout
    assert b"\x1b" not in out
    assert b"\x07" not in out
    assert b"owned" in out


def test_a_tools_name_reaches_no_terminal_either(tmp_path: Path) -> None:
    (tmp_path / "with.yaml").write_text('permissions: {ask: ["*"]}\n')
    file = tmp_path / "own.jsonl"
    event = {"timing": "pre_tool_execution", "session_id": "s", "tool": "x\x1b]0;owned\x07\u202e\x9b1m"}
    file.write_text(json.dumps(event) + "\n")
    out = replay(tmp_path, str(file), "--with", "with.yaml").stdout.decode()
    assert "would ask" in out
    assert not [line for line in out.splitlines() if not line.isprintable()]


def test_an_endless_call_fits_its_line(tmp_path: Path) -> None:
    call = {"session_id": "s", "tool": "bash", "call_id": "c", "args": {"command": "ls"}}
    file = tmp_path / "own.jsonl"
    lines = [
        {**call, "timing": "pre_tool_execution", "time": 0},
        {**call, "timing": "post_tool_execution", "duration": 1e300},
        {**call, "timing": "pre_tool_execution", "call_id": "d", "time": 0},
        {**call, "timing": "on_turn_complete", "time": 1e300},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = replay(tmp_path, str(file)).stdout.decode()
    assert all(len(line) <= 120 for line in out.splitlines() if "bash" in line)
