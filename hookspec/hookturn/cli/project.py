"""Opens the project that a command is about: the options that choose it, and the notes on what is wrong with it."""

from __future__ import annotations

from contextlib import contextmanager

from ..spec.errors import did_you_mean
from .output import UsageError, complain, count, hooks_at_work, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ..project.assemble import Assembled


def add_options(parser: ArgumentParser) -> None:
    """Add the options that choose the hooks: ``--with CONFIG`` and ``-p no:NAME``."""
    parser.add_argument(
        "--with",
        dest="config",
        metavar="CONFIG",
        help="a configuration file to use instead of the project's; naming it counts as trust",
    )
    parser.add_argument(
        "-p",
        dest="left_out",
        metavar="no:NAME",
        action="append",
        default=[],
        help="leave out a plugin or a configured hook; may be repeated",
    )


def add_live(parser: ArgumentParser) -> None:
    """Add the option that lets hooks act outside of the process although the run is dry."""
    parser.add_argument(
        "--live",
        action="store_true",
        help="run the commands and webhooks of configured hooks, too; without it they are listed as not run",
    )


def disabled(words: Iterable[str]) -> list[str]:
    """Return the names in the words of ``-p``.

    Raises:
        UsageError: for a word that is not ``no:NAME``.
    """
    names = []
    for word in words:
        name = word.removeprefix("no:").strip()
        if not word.startswith("no:") or not name:
            raise UsageError(f"-p {word}: expected no:NAME, such as no:audit-log.")
        names.append(name)
    return names


def check_config(option: str, path: str | None) -> None:
    """Refuse an option's configuration file that is not there; None is no file.

    Raises:
        UsageError: naming the option.
    """
    import os

    if path is not None and not os.path.isfile(path):
        what = "is no file" if os.path.lexists(path) else "does not exist"
        raise UsageError(f"{option} {path}: {what}. Name a configuration file.")


def open_project(args: Namespace, **options: Any) -> Assembled:
    """Build the engine that a command's options choose.

    Parameters:
        args: the command line, with the options of ``add_options``.
        options: further keyword arguments of ``project.assemble.assemble``.

    Raises:
        UsageError: when the file of ``--with`` is not there.
    """
    from ..engine.capabilities import unlogged
    from ..project.assemble import assemble

    check_config("--with", args.config)
    names = disabled(args.left_out)
    with unlogged("custom-loader"):  # the command itself tells what cannot be loaded
        assembled = assemble(args.project, with_config=args.config, disable=names, log=False, **options)
    _note_left_out(names, assembled)
    return assembled


@contextmanager
def dry_project(args: Namespace, *, live: bool = True) -> Iterator[Assembled]:
    """Build the engine for looking at it: events are dry, and whatever its hooks write goes when this is left.

    Parameters:
        args: the command line, with the options of ``add_options``.
        live: whether hooks that act outside of the process would run (nothing runs them but an event).
    """
    from tempfile import TemporaryDirectory

    with hooks_at_work(), TemporaryDirectory(prefix="hookturn-") as folder:
        assembled = open_project(args, dry_run=True, live=live, output_dir=folder)
        with assembled.engine:
            yield assembled


def _note_left_out(names: list[str], assembled: Assembled) -> None:
    """Say which names of ``-p no:NAME`` had no effect."""
    from ..project.model import normal

    rows: dict[str, list[str]] = {}
    for row in assembled.plugins:
        rows.setdefault(normal(row.name), []).append(row.state)
    for name in names:
        states = rows.get(normal(name))
        if states is None:
            near = did_you_mean(name, [row.name for row in assembled.plugins])
            complain(f"-p no:{name}: there is no plugin or hook of this name{near}")
        elif "loaded" in states:
            complain(f"-p no:{name}: it stays, for it is required or managed")


def note_problems(assembled: Assembled) -> None:
    """Say on standard error that something of the project's configuration is not in force: each plugin that is off,
    and the first of the other problems."""
    notices = assembled.engine.notices
    for text in notices:
        complain(short(text, 500))
    others = [text for text in map(str, assembled.problems) if text not in notices]
    if others:
        more = ""
        if len(others) > 1:
            more = f" (and {count(len(others) - 1, 'other problem')}; see `hookturn check`)"
        complain(f"{short(others[0], 500)}{more}")
