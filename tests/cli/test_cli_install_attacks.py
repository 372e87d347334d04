"""``hookturn install`` and ``uninstall`` where files are odd, others' or changed at once, and where we are killed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hookturn.agents.json_text import without_comments

GUARD = "hooks:\n- name: no-rm\n  timings: [pre_tool_execution]\n  guard: true\n  run: {answer: {deny: no}}\n"


@pytest.fixture
def settings(cli):
    path = cli.project / ".claude/settings.json"
    path.parent.mkdir()
    return path


def stop(handler):
    return json.dumps({"hooks": {"Stop": [{"hooks": [handler]}]}})


FOREIGN = {
    "speaks of it": stop({"type": "command", "command": "echo see hookturn bridge docs"}),
    "looks for it": stop({"type": "command", "command": 'pgrep -f "hookturn bridge claude-code" || true'}),
    "another's server": stop({"type": "http", "url": "http://127.0.0.1:9/hooks/mine"}),
    "another's server of our name": stop({"type": "http", "url": "http://127.0.0.1:9/hooks/claude-code"}),
    "a key twice": '{"hooks": {"Stop": []}, "x": 1, "hooks": {"Stop": [{"hooks": [{"command": "b"}]}]}}',
    "a comment in an empty table": '{"hooks": { // nothing yet\n}}',
    "line ends of old": '{\r"a": 1,\r"hooks": {"Stop": [{"hooks": [{"command": "b"}]}]}\r}',
    "comments": '// a\n{ /*x*/ "hooks" /*y*/ : /*z*/ {"Stop": [{"hooks": []}] /*in*/ } /*q*/, // t\n"b": [1 /*,*/] }',
    "odd groups": '{"hooks": {"Stop": [null, 1, {"hooks": 3}, {"hooks": [null]}]}}',
    "surrogates and NUL": '{"a": "\\ud800\\u0000", "é": "表"}',
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_is_not_ours_comes_out_as_it_went_in(cli, settings, kind):
    before = FOREIGN[kind].encode()
    settings.write_bytes(before)
    assert cli("install", "claude-code", "--yes").code == 0
    json.loads(without_comments(settings.read_text("utf-8")))
    assert settings.read_bytes() != before
    assert cli("uninstall", "claude-code", "--yes").code == 0
    if kind == "a comment in an empty table":
        assert "// nothing yet" in settings.read_text()
    else:
        assert settings.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_another_users_file_stays_theirs(cli, settings):
    settings.write_text("{}")
    os.chown(settings, 12345, 12345)
    ran = cli("install", "claude-code", "--yes")
    assert (ran.code, "another user" in ran.err) == (1, True), ran
    assert (settings.read_text(), settings.stat().st_uid) == ("{}", 12345)


def test_no_token_is_left_in_the_project(cli):
    assert cli("install", "claude-code", "--http", "--yes").code == 0
    local = cli.project / ".claude/settings.local.json"
    data = json.loads(local.read_text())
    token = data["hooks"]["Stop"][0]["hooks"][0]["headers"]["Authorization"].split()[1]
    (cli.project / "hookturn.yaml").write_text(GUARD)
    ran = cli("install", "claude-code", "--http", "--yes", "--json")
    (backup,) = [row["backup"] for row in ran.json["changes"] if row["path"] == str(local)]
    assert not backup.startswith(str(cli.project))
    assert os.stat(backup).st_mode & 0o777 == 0o600
    assert json.loads(Path(backup).read_text()) == data
    assert token not in ran.out
    assert cli("uninstall", "claude-code", "--yes").code == 0
    for path in cli.project.rglob("*"):
        assert not path.is_file() or token not in path.read_text("utf-8", "replace"), path


def test_another_installation_takes_the_entries_over(cli, settings):
    assert cli("install", "claude-code", "--yes").code == 0
    text = settings.read_text()
    old = text.replace(sys.executable, "/an old venv/bin/python")
    assert old != text
    for other in (
        text.replace(sys.executable, "'/an old venv/bin/python'"),
        text.replace("--timeout 60", "--timeout 5"),
    ):
        settings.write_text(other)
        assert cli("install", "claude-code", "--yes").code == 0
        assert settings.read_text() == text


def test_entries_that_a_hand_changed_are_found(cli, settings):
    before = '{\n  "a": 1\n}\n'
    settings.write_text(before)
    assert cli("install", "claude-code", "--yes").code == 0
    data = json.loads(settings.read_text())
    for groups in data["hooks"].values():
        groups[0]["matcher"] = "Bash"
        groups[0]["hooks"][0]["timeout"] = 3
    data["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "mine"})
    settings.write_text(json.dumps(data))
    assert cli("uninstall", "claude-code", "--yes").code == 0
    hooks = {"Stop": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}]}
    assert json.loads(settings.read_text()) == {"a": 1, "hooks": hooks}


@pytest.mark.parametrize("before", ['{"model":"x"}', '{\n  "model": "x"\n}\n'])
def test_a_backup_outlives_the_run_that_restores_it(cli, settings, before):
    """Who is killed between the two files must find it there next time, to put back what stood on one line."""
    settings.write_text(before)
    assert cli("install", "claude-code", "--yes").code == 0
    backup = settings.with_name("settings.json.hookturn-backup")
    (change,) = cli("uninstall", "claude-code", "--yes", "--json").json["changes"]
    assert change["backup"] == ""
    assert settings.read_text() == backup.read_text() == before


@pytest.mark.fault
def test_many_at_once_and_killed_leave_a_whole_file(cli, settings):
    before = '{"a": 1, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}'
    settings.write_text(before)
    words = [["install", "claude-code", "--yes"], ["uninstall", "claude-code", "--yes"]] * 4
    with ThreadPoolExecutor(8) as pool:
        for ran in pool.map(lambda line: cli(*line), words):
            assert ran.code == 0 or "changed by somebody else" in ran.err, ran
    draw = random.Random(5)
    for number in range(12):
        process = subprocess.Popen(
            [*cli.command, *words[number % 2]], cwd=cli.project, env=cli.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(draw.uniform(0.02, 0.4))
        process.kill()
        process.wait()
        assert "mine" in str(json.loads(settings.read_text())["hooks"]["Stop"])
    assert cli("install", "claude-code", "--yes").code == 0
    assert cli("uninstall", "claude-code", "--yes").code == 0
    assert settings.read_text() == before


@pytest.mark.parametrize("name", ['it\'s "quoted" $HOME `x`', "表 \u00e9", "-n --yes"])
def test_a_project_of_any_name(cli, name):
    folder = cli.project / name
    folder.mkdir()
    (folder / ".git").mkdir()
    for agent in ("claude-code", "codex", "gemini", "qwen", "copilot", "atomcode", "opencode"):
        assert cli("install", agent, "--yes", cwd=folder).code == 0
        assert cli("install", agent, "--yes", "--json", cwd=folder).json["changes"] == []
        assert cli("uninstall", agent, "--yes", cwd=folder).code == 0
    left = [path.name for path in folder.rglob("*") if path.is_file()]
    assert [found for found in left if not found.endswith(".hookturn-backup")] == []


ODD_PLACES = {
    "a folder": lambda place: place.mkdir(),
    "a link": lambda place: place.symlink_to("theirs"),
    "a link out of the project": lambda place: place.symlink_to(place.parents[2] / "theirs"),
    "a link to nothing": lambda place: place.symlink_to("nowhere"),
    "a FIFO": lambda place: os.mkfifo(place),
}


@pytest.mark.parametrize("kind", ODD_PLACES)
@pytest.mark.parametrize("word", ["install", "uninstall"])
def test_what_stands_in_the_place_of_a_backup_stays_and_costs_nothing(cli, settings, kind, word):
    theirs = [settings.with_name("theirs"), cli.project.parent / "theirs"]
    for path in theirs:
        path.write_text("theirs")
    place = settings.with_name("settings.json.hookturn-backup")
    settings.write_text('{\n  "model": "x"\n}\n')
    if word == "uninstall":
        assert cli("install", "claude-code", "--yes").code == 0
        place.unlink()
    before = settings.read_bytes()
    ODD_PLACES[kind](place)
    stood = os.lstat(place)
    ran = cli(word, "claude-code", "--yes", "--json")
    assert ran.code == 0, ran
    (change,) = ran.json["changes"]
    assert os.lstat(place).st_ino == stood.st_ino
    assert [path.read_text() for path in theirs] == ["theirs", "theirs"]
    assert not change["backup"].startswith(str(cli.project))
    assert Path(change["backup"]).read_bytes() == before
    assert ("bridge" in settings.read_text()) is (word == "install")
    assert json.loads(settings.read_text())["model"] == "x"


@pytest.mark.parametrize("kept", [b"no UTF-8: \xff", b" " * 6_000_000, None], ids=["bytes", "large", "gone"])
def test_a_backup_that_is_none_costs_nothing_at_the_end(cli, settings, kept):
    settings.write_text('{"model":"x"}')
    assert cli("install", "claude-code", "--yes").code == 0
    place = settings.with_name("settings.json.hookturn-backup")
    place.unlink()
    if kept is not None:
        place.write_bytes(kept)
    ran = cli("uninstall", "claude-code", "--yes")
    assert ran.code == 0, ran
    assert json.loads(settings.read_text()) == {"model": "x"}
