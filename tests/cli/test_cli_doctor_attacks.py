"""``hookturn doctor`` when what is remembered is damaged: it tells what it can, and never breaks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

TROUBLE = {
    "a NUL": b'{"project": "a\\u0000b"}\n',
    "a surrogate": b'{"project": "\\ud800"}\n',
    "nested": b"[" * 100_000 + b"\n",
    "other types": b'[1]\n7\nnull\n{"project": 5}\n',
    "no text": b"\xff\xfe\x00\n",
    "cut": b'{"project": "',
}


@pytest.fixture
def bridges(cli):
    """The folder of what bridges remember, after one call that could not be answered and one that could."""
    cli.env["HOME"] = os.environ["HOME"]
    payload = {"session_id": "s", "hook_event_name": "Stop", "cwd": str(cli.project)}
    for content in (json.dumps(payload), "{"):
        assert cli("bridge", "claude-code", "--timeout", "30", input=content).code == 0
    return Path(os.environ["HOOKTURN_STATE_DIR"]) / "bridges"


def sound(ran):
    assert ran.code == 0, ran
    assert "Traceback" not in ran.err
    return ran.json


@pytest.mark.parametrize("kind", TROUBLE)
def test_damaged_lines_of_trouble_cost_only_themselves(cli, bridges, kind):
    path = bridges / "trouble.jsonl"
    good = path.read_bytes()
    path.write_bytes(TROUBLE[kind] + b"\n" + good)
    assert len(sound(cli("doctor", "--json"))["trouble"]) == 1


def test_odd_things_among_the_marks_of_calls(cli, bridges):
    (folder,) = bridges.glob("*/claude-code")
    (folder / "folder").mkdir()
    os.symlink("nowhere", folder / "link")
    os.symlink("loop", folder / "loop")
    (folder.parent / "no-such-agent").mkdir()
    (folder.parent / "no-such-agent" / "Event").write_text("")
    for times in ((1e12, 1e12), (-1e9, -1e9)):
        os.utime(folder / "Stop", times)
        sound(cli("doctor", "--json"))
