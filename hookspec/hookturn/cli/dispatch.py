"""Finds the command that the command line names, imports only its module, and runs it.

A command is a module with ``add_parser(subparsers)``, which adds a parser and
sets ``func`` on it: ``subparsers.add_parser("fire", help=...).set_defaults(func=run)``.
``run(args)`` returns the exit code; ``args.project`` (a folder or None)
and ``args.json`` exist for every command. Other distributions add commands by
entry point: group ``hookturn.commands``, the name is the word, the value the module;
theirs also have ``args.settings``, see ``_settings``.
"""

from __future__ import annotations

import argparse

from ..spec.errors import HookturnError, RegistrationError, did_you_mean
from .output import CommandError, UsageError, complain, emit, prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

    from ..project.discovery import Found

GROUP = "hookturn.commands"

COMMANDS = {
    "replay": "replay",
    "fire": "fire",
    "explain": "explain",
    "hooks": "hooks",
    "plugins": "plugins",
    "check": "check",
    "info": "info",
    "trust": "trust",
    "untrust": "trust",
    "doctor": "doctor",
    "install": "install",
    "uninstall": "install",
    "migrate": "migrate",
    "new": "new",
    "bridge": "bridge",
    "serve": "serve",
    "webhook": "webhook",
}
"""Our own commands: word -> module of this package."""


class Parser(argparse.ArgumentParser):
    """A parser whose commands all take ``--project`` and ``--json``, and whose errors are exceptions."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("conflict_handler", "resolve")  # a foreign command's own --json is its own
        super().__init__(**options)
        # Without SUPPRESS a command's default would undo what was given before its word.
        self.add_argument(
            "--project",
            metavar="DIR",
            default=argparse.SUPPRESS,
            help="a folder in the project; default: the current one",
        )
        self.add_argument(
            "--json",
            action="store_true",
            default=argparse.SUPPRESS,
            help="print one JSON document on standard output",
        )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the word that was probably meant."""
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action, f"{value!r} is none of {', '.join(known)}{did_you_mean(str(value), known)}"
            )

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError in place of exiting."""
        raise UsageError(message, usage=self.format_usage())


def dispatch(words: list[str]) -> int:
    """Run the command that the words name.

    Parameters:
        words: the command line after the program's name.

    Returns:
        the exit code.
    """
    prepare()
    try:
        return _run(words)
    except HookturnError as error:
        known = error if isinstance(error, CommandError) else CommandError(str(error))
        complain(f"{known}\n{known.usage}".rstrip())
        if "--json" in words:
            emit({"schema": 1, **known.report, "error": str(known)})
        # To an agent an exit code is an answer, and a mistake in a command line must not be a refusal.
        return 0 if _command(words) == "bridge" else known.code


def _run(words: list[str]) -> int:
    word = _command(words)
    if word == "--version":
        return _version("--json" in words)
    if word == "--help":
        print(_full_parser().format_help(), end="")
        return 0
    if word == "help":
        rest = words[words.index("help") + 1 :]
        return _run([*rest, "--help"])
    parser, commands = _parser()
    if word is None:
        raise UsageError(
            f"a command is missing. {_one_of(_entry_points())}",
            usage=parser.format_usage(),
        )
    found = None
    if word in COMMANDS:
        _own(word).add_parser(commands)
    else:
        found = _foreign(word)
        _add_foreign(found, commands)
    try:
        args, rest = parser.parse_known_args(words)
    except SystemExit as stop:  # --help
        return int(stop.code or 0)
    if rest:
        usage = commands.choices[word].format_usage()
        raise UsageError(f"unknown argument {rest[0]!r}{_near_option(rest[0], usage)}", usage=usage)
    args.project = getattr(args, "project", None)
    args.json = getattr(args, "json", False)
    _check_project(args.project)
    if found is None:
        return int(args.func(args) or 0)
    args.settings = lambda plugin, folder=None: _settings(plugin, folder or args.project)
    return _run_foreign(found, args)


def _command(words: list[str]) -> str | None:
    """Return the command's word, ``--version``, ``--help``, or None when there is none."""
    rest = iter(words)
    for word in rest:
        if word == "--project":
            next(rest, None)
        elif word in ("--version", "-V"):
            return "--version"
        elif word in ("--help", "-h"):
            return "--help"
        elif not word.startswith("-"):
            return word
    return None


def _version(as_json: bool) -> int:
    from .. import __version__

    if as_json:
        emit({"schema": 1, "name": "hookturn", "version": __version__})
    else:
        print(f"hookturn {__version__}")
    return 0


def _parser() -> tuple[Parser, Any]:
    parser = Parser(prog="hookturn", description="Lifecycle hooks for AI agents.")
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    return parser, parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")


def _full_parser() -> Parser:
    """The parser with all commands, for the full help; foreign ones that are broken are told and left out."""
    parser, commands = _parser()
    for name in dict.fromkeys(COMMANDS.values()):
        _own(name).add_parser(commands)
    for found in _entry_points(tell=True).values():
        try:
            _add_foreign(found, commands)
        except CommandError as error:
            complain(str(error))
    parser.epilog = "`hookturn COMMAND --help` tells about one command."
    return parser


def _own(word: str) -> Any:
    from importlib import import_module

    return import_module(f".{COMMANDS.get(word, word)}", __package__)


def _near_option(word: str, usage: str) -> str:
    import re

    if not word.startswith("-"):
        return ""
    return did_you_mean(word, re.findall(r"(?<=[\s\[])--?[a-z][a-z-]*", usage))


def _check_project(folder: str | None) -> None:
    import os

    if folder is not None and not os.path.isdir(folder):
        what = "is no folder" if os.path.lexists(folder) else "does not exist"
        raise UsageError(f"--project {folder}: {what}. Name a folder in the project.")


# -- commands of other distributions ----------------------------------------------------------------


def _entry_points(*, tell: bool = False) -> dict[str, Found]:
    """Return the foreign commands by word; ``tell`` says which entry points are ignored."""
    from ..project.discovery import entry_points, split_duplicates

    found, _ = entry_points()
    kept, doubles = split_duplicates(item for item in found if item.group == GROUP)
    own = [item for item in kept if item.name in COMMANDS]
    if tell:
        who = [(item, other.provider) for item, other in doubles] + [(item, "hookturn") for item in own]
        for item, other in who:
            complain(f"the command {item.name!r} of {item.provider} is ignored: {other} has one of this name")
    return {item.name: item for item in kept if item not in own}


def _foreign(word: str) -> Found:
    foreign = _entry_points()
    if word not in foreign:
        near = did_you_mean(word, [*COMMANDS, *foreign])
        raise UsageError(f"unknown command {word!r}{near}. {_one_of(foreign)}")
    return foreign[word]


def _one_of(foreign: Iterable[str]) -> str:
    return f"One of {', '.join([*COMMANDS, *foreign])}; `hookturn --help` tells more."


def _add_foreign(found: Found, commands: Any) -> None:
    """Let a foreign module add its parser.

    Raises:
        CommandError: when it cannot be loaded, or does not add what its entry point promises.
    """
    from ..project.discovery import load

    who = f"the command {found.name!r} of {found.provider}"
    try:
        load(found).add_parser(commands)
    except RegistrationError as error:
        raise CommandError(f"{who} cannot be loaded: {error.cause}. Update or uninstall it.") from error
    except (Exception, SystemExit) as error:
        raise CommandError(
            f"{who} cannot be set up: {_told(error)}. Its module needs add_parser(subparsers)."
        ) from error
    parser = commands.choices.get(found.name)
    if parser is None or parser.get_default("func") is None:
        raise CommandError(
            f"{who} is not usable: its add_parser must add {found.name!r} and set_defaults(func=...)."
        )


def _run_foreign(found: Found, args: Any) -> int:
    try:
        return int(args.func(args) or 0)
    except (HookturnError, BrokenPipeError):
        raise
    except Exception as error:
        raise CommandError(
            f"the command {found.name!r} of {found.provider} failed: {_told(error)}"
        ) from error


def _settings(plugin: str, folder: str | None) -> tuple[str, dict[str, Any]]:
    """Return a project's folder and what its configuration says of a plugin, as hooks would get it.

    Layers and trust count, so an untrusted file says nothing; secrets stay references; nothing is checked
    against the plugin's ``Config``, and what nobody sets is not in it.

    Parameters:
        plugin: its name.
        folder: a folder in the project, or None for the current one.
    """
    from ..project.model import normal
    from ..project.survey import Survey
    from ..spec.record import thaw

    survey = Survey(folder)
    wanted = survey.wanted.get(normal(plugin))
    return survey.root, thaw(wanted.entry.settings) if wanted is not None and wanted.entry is not None else {}


def _told(error: BaseException) -> str:
    """Return an exception's type, text and innermost place."""
    from ..spec.record import safe_text

    trace, place = error.__traceback__, ""
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    text = safe_text(error)
    return f"{type(error).__name__}{': ' if text else ''}{text} ({place})"
