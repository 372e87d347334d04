"""Commands of other distributions: entry point group ``hookturn.commands``."""

from __future__ import annotations

import pytest

COMMAND = """\
import json

def add_parser(subparsers):
    parser = subparsers.add_parser("greet", help="say hello")
    parser.add_argument("who", nargs="?", default="world")
    inner = parser.add_subparsers(dest="how")
    loud = inner.add_parser("loud")
    loud.set_defaults(func=run)
    parser.set_defaults(func=run)

def run(args):
    print(json.dumps({"who": args.who, "how": args.how, "project": args.project, "json": args.json}))
    return 1
"""
FAILS = """\
def add_parser(subparsers):
    subparsers.add_parser("fails").set_defaults(func=run)
def run(args):
    raise ValueError("deep down")
"""
NO_FUNC = "def add_parser(subparsers): subparsers.add_parser('nofunc')\n"
OTHER_WORD = "def add_parser(subparsers): subparsers.add_parser('otherword').set_defaults(func=print)\n"


@pytest.fixture
def foreign(cli, plugin_path):
    names = ["greet", "fails", "nofunc", "badimport", "exits", "nothing", "wrongword", "crashes"]
    points = "".join(f"{name} = cmd_{name}\n" for name in names)
    env = plugin_path(
        "hookturn-extra",
        f"[hookturn.commands]\n{points}fire = cmd_greet\n",
        cmd_greet=COMMAND,
        cmd_fails=FAILS,
        cmd_nofunc=NO_FUNC,
        cmd_badimport="import no_such_module_anywhere\n",
        cmd_exits="raise SystemExit(0)\n",
        cmd_nothing="",
        cmd_wrongword=OTHER_WORD,
        cmd_crashes="def add_parser(subparsers): 1/0\n",
    )
    cli.env.update(env)
    return cli


def test_a_foreign_command_runs(foreign):
    ran = foreign("greet")
    assert (ran.code, ran.err) == (1, "")
    assert ran.json == {"who": "world", "how": None, "project": None, "json": False}


@pytest.mark.parametrize(
    "words",
    [["--project", ".", "--json", "greet", "x", "loud"], ["greet", "--json", "--project", ".", "x", "loud"], ["greet", "x", "loud", "--json", "--project", "."]],
)  # fmt: skip
def test_every_command_and_its_own_commands_take_project_and_json(foreign, words):
    assert foreign(*words).json == {"who": "x", "how": "loud", "project": ".", "json": True}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("badimport", "cannot be loaded: import of cmd_badimport failed: ModuleNotFoundError"),
        ("exits", "cannot be loaded: import of cmd_exits failed: SystemExit"),
        ("nothing", "cannot be set up: AttributeError"),
        ("crashes", "cannot be set up: ZeroDivisionError"),
        ("nofunc", "is not usable: its add_parser must add 'nofunc' and set_defaults(func=...)"),
        ("wrongword", "is not usable: its add_parser must add 'wrongword'"),
        ("fails", "failed: ValueError: deep down"),
    ],
)
def test_a_broken_one_is_a_message(foreign, word, message):
    ran = foreign(word)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"hookturn: the command '{word}' of hookturn-extra 1.0 ")
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert foreign(word, "--json").json["error"] in ran.err


def test_the_full_help_lists_them_and_tells_of_the_broken(foreign):
    ran = foreign("--help")
    assert ran.code == 0
    assert "greet" in ran.out
    assert "say hello" in ran.out
    assert "the command 'badimport' of hookturn-extra 1.0 cannot be loaded" in ran.err
    assert "the command 'fire' of hookturn-extra 1.0 is ignored: hookturn has one of this name" in ran.err
    assert "hookturn fire" in foreign("fire", "--help").out


def test_ours_load_none_of_them(foreign):
    assert foreign("hooks").err == ""
    assert foreign("fire", "on_turn_start").err == ""


def test_unknown_words_get_the_likely_one_of_all(foreign):
    assert "(did you mean 'greet'?)" in foreign("great").err


def test_wrong_usage_of_a_foreign_command(foreign):
    ran = foreign("greet", "x", "lod")
    assert ran.code == 2
    assert "usage: hookturn greet" in ran.err
