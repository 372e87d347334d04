"""``hookturn report``: a session's report, made from its journal."""

from __future__ import annotations

import os

from hookturn import HookturnError

from ..console import count, emit, newest, printable, project_file
from ..places import session_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .collect import Report

SHOWN = 10
_FORMS = ("md", "json", "html")


def add_parser(subparsers: Any) -> None:
    """Add the command to ``hookturn``."""
    parser = subparsers.add_parser("report", help="the report of a session, as Markdown, JSON and a page")
    parser.add_argument(
        "sessions",
        metavar="SESSION",
        nargs="*",
        help="its id, the beginning of it, or its folder, of several the newest; default: the newest",
    )
    parser.add_argument("--open", action="store_true", help="show the page in the browser")
    parser.add_argument("--format", choices=_FORMS, help="print it in this form, and write nothing")
    parser.add_argument(
        "--output", metavar="FILE", help="write it to FILE only; its ending tells the form, or --format"
    )
    parser.set_defaults(func=run)


def run(args: Any) -> int:
    """Make a session's report."""
    from .collect import collect
    from .journal import NAME
    from .write import render, write

    form = args.format or _form_of(args.output)
    if args.open and form not in ("", "html"):
        raise HookturnError(f"--open shows the page, which is no {form} file; leave --format or --output out")
    folder, base = _find(newest(args.sessions), args)
    try:
        report = collect(os.path.join(folder, NAME))
    except OSError as error:
        raise HookturnError(f"{folder} has no journal that can be read: {error.strerror or error}") from error
    files: list[str] = []
    try:
        if args.output:
            with open(args.output, "w", encoding="utf-8", newline="\n") as file:
                file.write(render(report, form))
            files = [args.output]
        elif not form or args.open:
            files = write(report, folder, _FORMS, base=base)
    except OSError as error:
        raise HookturnError(
            f"the report cannot be written: {error}; print it with --format, or write it elsewhere with --output"
        ) from error
    if args.open:
        _open(files[-1])
    if args.json:
        emit({**report.to_json(), "folder": folder, "files": files})
    elif form and not files:
        print(render(report, form), end="")
    else:
        _digest(report, files)
    return 0


def _form_of(output: str | None) -> str:
    """Return the form that a file's ending names; nothing without a file."""
    if not output:
        return ""
    ending = os.path.splitext(output)[1].lower().lstrip(".")
    form = {"md": "md", "markdown": "md", "json": "json", "html": "html", "htm": "html"}.get(ending)
    if form is None:
        raise HookturnError(
            f"--output {output}: its ending is none of .md, .json and .html; name the --format"
        )
    return form


def _find(session: str, args: Any) -> tuple[str, str]:
    """Return a session's folder, and a folder above it that is trusted as it is."""
    from hookturn.paths import safe_component

    from . import FOLDER
    from .journal import NAME

    if session and os.path.isfile(os.path.join(session, NAME)):
        folder = os.path.abspath(session)
        return folder, os.path.dirname(folder)
    if os.sep in session:
        there = "has no journal, so it is no session's folder" if os.path.isdir(session) else "is no folder"
        raise HookturnError(f"{session} {there}; name a session's own folder, or its id")
    try:
        place = project_file(args, "session-summary", FOLDER)
    except HookturnError as error:
        raise HookturnError(f"{error}. The plugin session-summary must be on while a session runs") from None
    base = os.path.dirname(os.path.dirname(place))
    try:
        names = [entry.name for entry in os.scandir(place) if os.path.isfile(os.path.join(entry.path, NAME))]
    except OSError as error:
        raise HookturnError(f"{place}: {error.strerror or error}") from error
    if not session:
        if not names:
            raise HookturnError(f"{place} has no session yet")
        return max((os.path.join(place, name) for name in names), key=_changed), base
    exact = safe_component(session_name(session))
    if exact in names:
        return os.path.join(place, exact), base
    found = sorted(name for name in names if name.startswith(session))
    if len(found) == 1:
        return os.path.join(place, found[0]), base
    shown = ", ".join(sorted(found or names)[:SHOWN])
    if found:
        raise HookturnError(f"{count(len(found), 'session')} in {place} begin with {session!r}: {shown}")
    known = f"; it has {shown}" if shown else ""
    raise HookturnError(f"there is no session {session!r} in {place}{known}")


def _changed(folder: str) -> float:
    from .journal import NAME

    return os.stat(os.path.join(folder, NAME)).st_mtime


def _open(page: str) -> None:
    import webbrowser
    from pathlib import Path

    if not webbrowser.open(Path(page).absolute().as_uri()):
        raise HookturnError(f"no browser could be started; the page is {page}")


def _digest(report: Report, files: list[str]) -> None:
    from .texts import line, seconds

    parts = [
        count(report.main_turns, "turn"),
        count(report.calls, "tool call"),
        f"{report.denied.count:,} denied",
        f"{report.failed.count:,} failed",
        f"{count(len(report.changed) + report.changed_left_out, 'file')} changed",
        seconds(report.seconds),
    ]
    print(f"session {printable(report.session_id, 100)}: {', '.join(parts)}")
    for note in report.notes:
        print(f"  {note}")
    for word, rows in (("denied", report.denied), ("failed", report.failed)):
        for row in list(rows)[:SHOWN]:
            said = " ".join(part for part in (row.what, row.detail, f"({row.by})" if row.by else "") if part)
            print(f"  {word}  {printable(line(said), 110)}")
        if rows.count > SHOWN:
            print(f"  ... {rows.count - SHOWN:,} more {word}")
    for path in files:
        print(f"  written to {printable(path)}")
