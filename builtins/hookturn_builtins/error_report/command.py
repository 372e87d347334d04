"""``hookturn errors``: what failed in a project."""

from __future__ import annotations

import os

from hookturn import HookturnError
from hookturn.spec.events import rfc3339

from ..console import count, emit, printable, project_file, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "errors.sqlite"
SHOWN = 20
MESSAGE = 70

_LED_TO = {
    "cause": "That was the cause of:",
    "context": "While that was being handled, another exception came:",
}


def add_parser(subparsers: Any) -> None:
    """Add the command to ``hookturn``."""
    from argparse import SUPPRESS

    parser = subparsers.add_parser("errors", help="what failed, how often, where")
    _add_file(parser, None)
    parser.add_argument("--session", default="", metavar="ID", help="only those seen in this session")
    parser.add_argument("--clear", action="store_true", help="forget them")
    parser.set_defaults(func=run)
    show = parser.add_subparsers(title="commands", metavar="COMMAND").add_parser(
        "show", help="one error with its traceback"
    )
    show.add_argument("number", type=int, metavar="N", help="its number in the list")
    _add_file(show, SUPPRESS)
    show.set_defaults(func=run_show)


def _add_file(parser: Any, default: Any) -> None:
    parser.add_argument(
        "--file",
        default=default,
        metavar="PATH",
        help="the file; default: the project's .hookturn/errors.sqlite",
    )


def _path(args: Any) -> str:
    """Return the file, which need not exist: it is made by the first error."""
    if args.file is not None:
        if not os.path.lexists(args.file):
            raise HookturnError(f"{args.file}: there is no such file")
        return str(args.file)
    try:
        return project_file(args, "error-report", NAME)
    except HookturnError:
        return os.path.join(project_file(args, "error-report", ""), NAME)


def _errors(path: str, session: str = "") -> list[dict[str, Any]]:
    import sqlite3

    from .store import read

    try:
        return read(path, session)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HookturnError(f"{path}: {error.strerror or error}") from error
    except sqlite3.Error as error:
        raise HookturnError(f"{path} is no error report that can be read: {error}") from error


def run(args: Any) -> int:
    """List the errors, those seen last first; or forget them."""
    path = _path(args)
    errors = _errors(path, args.session)
    if args.clear:
        return _clear(path, args, bool(errors))
    if args.json:
        brief = [{name: item for name, item in _told(error).items() if name != "trace"} for error in errors]
        emit({"schema": 1, "path": path, "errors": brief})
        return 0
    if not errors:
        print("no errors")
        return 0
    total = sum(error["count"] for error in errors)
    print(f"{count(len(errors), 'error')}, seen {count(total, 'time')}")
    print()
    table(
        ("N", "times", "last seen", "where", "error"),
        [
            (
                str(error["id"]).rjust(len(str(max(row["id"] for row in errors)))),
                f"{error['count']:,}".rjust(5),
                rfc3339(error["last_seen"])[:19] + "Z",
                _where(error),
                printable(f"{error['type']}: {error['message']}", MESSAGE),
            )
            for error in errors[:SHOWN]
        ],
        texts=5,
    )
    if len(errors) > SHOWN:
        print(f"... and {len(errors) - SHOWN:,} older ones (--json shows all)")
    print("\n`hookturn errors show N` shows one with its traceback.")
    return 0


def _clear(path: str, args: Any, some: bool) -> int:
    import sqlite3

    from .store import Store

    gone = 0
    if some:
        try:
            store = Store(path, os.path.dirname(os.path.abspath(path)), max_errors=1)
            try:
                gone = store.clear(args.session)
            finally:
                store.close()
        except (OSError, sqlite3.Error) as error:
            raise HookturnError(f"{path} cannot be written: {error}") from error
    if args.json:
        emit({"schema": 1, "path": path, "cleared": gone})
    else:
        print(f"{count(gone, 'error')} forgotten")
    return 0


def run_show(args: Any) -> int:
    """Show one error."""
    path = _path(args)
    error = next((error for error in _errors(path) if error["id"] == args.number), None)
    if error is None:
        raise HookturnError(f"there is no error {args.number}; `hookturn errors` lists them")
    if args.json:
        emit({"schema": 1, "path": path, "error": _told(error)})
        return 0
    print(f"{printable(error['type'])}: {_indented(error['message'], 0)}")
    print()
    about = {
        "where": _where(error),
        "seen": f"{count(error['count'], 'time')}, first {rfc3339(error['first_seen'])}, last {rfc3339(error['last_seen'])}",
        "session": f"{error['session_id']}, turn {error['turn']}"
        + (
            f" (and {count(len(error['sessions']) - 1, 'other session')})"
            if len(error["sessions"]) > 1
            else ""
        ),
        "agent": error["agent"] + (f" ({error['agent_id']})" if error["agent_id"] else ""),
        "call": error["call_id"],
        "with": ", ".join(f"{name} {value}" for name, value in error["environment"].items() if value),
        "fingerprint": error["fingerprint"],
    }
    for name, text in about.items():
        if text:
            print(f"  {name.ljust(11)}  {printable(text)}")
    _print_trace(error["trace"])
    return 0


def _print_trace(trace: list[dict[str, Any]]) -> None:
    for item in trace:
        print("\nTraceback, the innermost place last:")
        for frame in item["frames"]:
            if "omitted" in frame:
                print(f"  ... {count(frame['omitted'], 'frame')} ...")
                continue
            print(f"  {printable(frame['file'])}:{frame['line']} in {printable(frame['function'])}")
            if frame["code"]:
                print(f"    {printable(frame['code'])}")
        print(f"{printable(item['type'])}: {_indented(item['message'], 2)}")
        for member in item.get("members", ()):
            print(f"  - {printable(member)}")
        if item["led_to"]:
            print(f"\n{_LED_TO[item['led_to']]}")


def _indented(text: str, spaces: int) -> str:
    return f"\n{' ' * spaces}".join(printable(line) for line in text.split("\n"))


def _where(error: dict[str, Any]) -> str:
    if error["hook"]:
        return f"hook {error['hook']}"
    if error["tool"]:
        return f"tool {error['tool']}"
    return str(error["phase"] or "-")


def _told(error: dict[str, Any]) -> dict[str, Any]:
    """Return an error with its times as texts."""
    times = ("first_seen", "last_seen")
    sessions = [{**row, **{name: rfc3339(row[name]) for name in times}} for row in error["sessions"]]
    return {**error, **{name: rfc3339(error[name]) for name in times}, "sessions": sessions}
