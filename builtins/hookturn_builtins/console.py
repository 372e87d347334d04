"""What the builtins' commands share: finding a project's files, and printing texts that come from outside."""

from __future__ import annotations

import os

from hookturn import HookturnError
from hookturn.paths import project_output

from .places import OWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def project_file(args: Any, plugin: str, name: str, *, folder: str | None = None) -> str:
    """Return the path of a file in the ``.hookturn`` of a project, or where it lies for a folder that is none.

    Parameters:
        args: the command's arguments.
        plugin: whose file it is.
        name: the file's name.
        folder: a folder in another project than ``args.project``.

    Raises:
        HookturnError: when there is none.
    """
    root, _ = args.settings(plugin, folder)
    return _in_project(root, name)


def _in_project(root: str, name: str) -> str:
    for path in (os.path.join(root, OWN, name), os.path.join(project_output(root), name)):
        if os.path.lexists(path):
            return path
    raise HookturnError(
        f"there is no {OWN}/{name} in {root}; name the file, or another project with --project"
    )


def plugin_file(args: Any, plugin: str, config: Any, name: str, *, folder: str | None = None) -> str:
    """Return the path of the file that a plugin's setting ``path`` names, for a command.

    Parameters:
        args: the command's arguments.
        plugin: the plugin's name.
        config: its ``Config`` class.
        name: the file's usual name in ``.hookturn``.
        folder: a folder in another project than ``args.project``.
    """
    root, settings = args.settings(plugin, folder)
    chosen = settings.get("path")
    path = os.path.join(root, chosen if isinstance(chosen, str) and chosen else config.path)
    if "path" in settings or os.path.lexists(path):
        return path
    try:
        return _in_project(root, name)
    except HookturnError:
        return path


def newest(paths: Sequence[str]) -> str:
    """Return the path that was changed last, and say so where there are several; an empty text for none.

    Parameters:
        paths: files or folders, as a shell's pattern names them.
    """
    if len(paths) < 2:
        return paths[0] if paths else ""
    import sys

    def changed(path: str) -> float:
        try:
            return os.stat(path).st_mtime
        except OSError:
            return 0.0

    chosen = max(paths, key=changed)
    print(f"hookturn: the newest of {len(paths)}: {printable(chosen)}", file=sys.stderr)
    return chosen


def emit(value: Any) -> None:
    """Print one JSON document (ASCII, so that lone surrogates are valid)."""
    from json import dumps

    print(dumps(value, indent=2))


def count(number: int, thing: str) -> str:
    """Return ``1 turn``, ``2,000 turns``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def moment(text: str) -> float | None:
    """Return the time that an option names, in seconds since the epoch; None when it names none.

    Parameters:
        text: how long ago (``30m``, ``12h``, ``7d``), or a date or time as RFC 3339 has them.
    """
    if text[-1:] in _UNITS and text[:-1].isascii() and text[:-1].isdigit():
        from time import time

        return max(time() - float(text[:-1]) * _UNITS[text[-1]], 0.0)
    from hookturn.spec.events import parse_time

    return parse_time(text)


def printable(text: object, limit: int = 0) -> str:
    """Return a text as a terminal may show it: control characters escaped, cut at ``limit`` characters (0: never)."""
    line = str(text)
    if limit and len(line) > limit:
        line = f"{line[: limit - 3]}..."
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], *, texts: int = 1) -> None:
    """Print an aligned table.

    Parameters:
        headers: the columns' names.
        rows: the cells.
        texts: how many of the first columns hold texts; the others are numbers, aligned to the right.
    """
    cells = [list(headers), *([printable(cell, 60) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    for row in cells:
        parts = [
            cell.ljust(width) if column < texts else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(parts).rstrip())
