"""``hookturn replay``: a recorded session through the hooks, dry, with a timeline and a summary."""

from __future__ import annotations

from .output import (
    CommandError,
    UsageError,
    clean,
    coloured,
    complain,
    count,
    emit,
    hooks_at_work,
    on_terminal,
    pairs,
    say,
)
from .output import progress as show_progress
from .project import add_live, add_options, check_config, disabled, note_problems, open_project

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from ..engine.engine import Engine
    from ..replay.run import Recording
    from ..replay.tally import Tally

_PROGRESS_EVERY = 0.2  # seconds


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command."""
    parser = subparsers.add_parser(
        "replay",
        help="drive a recorded session through every hook",
        description=(
            "Drive a recorded session through every hook, dry: nothing outside .hookturn/replay/ is changed. "
            "Reads hookturn's own JSONL events, Claude Code transcripts, Codex rollouts, Gemini CLI chats, "
            "Qwen Code chats and Copilot CLI session events; the format is recognised from the content. "
            "Without FILE, a sample session with sample hooks."
        ),
        epilog=(
            "Exit codes: 0 fine, whatever was decided; 1 lines were skipped, or --diff found differences; 2 usage."
        ),
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="the recording; - for standard input")
    parser.add_argument(
        "--diff", metavar="CONFIG", help="tell which recorded calls CONFIG would treat otherwise"
    )
    parser.add_argument("--summary", action="store_true", help="no timeline, only the closing summary")
    add_live(parser)
    add_options(parser)
    parser.set_defaults(func=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import os

    from ..agents.transcripts import TranscriptError
    from ..replay.run import open_recording
    from ..replay.tally import Tally

    check_config("--with", args.config)
    check_config("--diff", args.diff)
    disabled(args.left_out)
    sample = args.file is None
    path = _sample() if sample else args.file
    try:
        recording = open_recording(path)
    except TranscriptError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}. Name a file that can be read.") from None
    folder = _output_dir(args.project or os.getcwd())
    tally = Tally()
    with hooks_at_work():
        engine, not_run = _engine(args, args.config, folder, tally if not args.diff else None, sample)
        watched = not (args.json or args.summary) and not args.diff and on_terminal()
        progress = None if watched else _progress(tally)  # a timeline on the terminal is progress enough
        try:
            if args.diff:
                return _compare(args, recording, engine, folder, tally, progress)
            return _replay(args, recording, engine, folder, tally, progress, not_run, sample)
        finally:
            engine.close()
            if progress is not None:
                show_progress("")


def _sample() -> str:
    from pathlib import Path

    return str(Path(__file__).parent.parent / "replay" / "sample.jsonl")


def _output_dir(project: str) -> Path:
    """Make the replay's own folder: in the project, or in the user's state folder where that cannot be written."""
    import os
    from pathlib import Path
    from secrets import token_hex
    from time import strftime

    from ..paths import hookturn_dir, private_dir, project_state
    from ..project.layers import project_root

    name = f"{strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{token_hex(2)}"
    root = project_root(project)
    try:
        base = hookturn_dir(root)
    except OSError as error:
        base = Path(project_state(root))
        complain(f"{error}; the replay's records go to {base}")
        private_dir(base, base=base.parent.parent.parent if base.parent.parent.parent.is_dir() else None)
    return private_dir(base / "replay" / name, base=base)


def _engine(
    args: argparse.Namespace, config: str | None, folder: Path, tally: Tally | None, sample: bool
) -> tuple[Engine, list[str]]:
    """Build a dry engine with the usual builtins on; also returns the configured hooks that it cannot run."""
    from argparse import Namespace

    from ..project.survey import CALLS_US
    from ..replay.sample_hooks import plugins

    chosen = Namespace(**{**vars(args), "config": config})
    assembled = open_project(chosen, dry_run=True, live=args.live, output_dir=folder, builtins=True)
    note_problems(assembled)
    engine = assembled.engine
    if sample:
        for plugin in plugins():
            engine.register(plugin, source="the packaged sample")
    if tally is not None:
        engine.register(tally)
    not_run = [
        f"{row.name}: {row.reason}"
        for row in assembled.plugins
        # By an entry that calls us an agent asks these very hooks: it is none of them.
        if row.kind == "config" and row.state != "loaded" and row.reason != CALLS_US
    ]
    return engine, not_run


def _replay(
    args: argparse.Namespace,
    recording: Recording,
    engine: Engine,
    folder: Path,
    tally: Tally,
    progress: Any,
    not_run: list[str],
    sample: bool,
) -> int:
    from ..replay.run import replay
    from ..replay.timeline import Silent, Timeline

    quiet = args.json or args.summary
    watcher = Silent(tally) if quiet else Timeline(say, tally, width=_width(), colour=coloured())
    replay(recording, engine, watcher, progress=progress)
    summary = tally.to_json(not_run)
    if args.json:
        emit({**summary, "format": recording.name, "output_dir": str(folder)})
    else:
        if not quiet:
            say()
        _print_summary(summary, recording, folder)
        if sample:
            say()
            theirs = any(plugin.layer not in ("host", "builtin") for plugin in engine.plugins)
            say(
                f"This was the packaged sample with sample hooks{' and yours' if theirs else ''}. "
                "Try your own: hookturn replay FILE"
            )
    return 1 if tally.skipped_count else 0


def _compare(
    args: argparse.Namespace, recording: Recording, engine: Engine, folder: Path, tally: Tally, progress: Any
) -> int:
    from ..replay.run import compare
    from ..replay.timeline import Silent, brief, one_line

    other, _ = _engine(args, args.diff, folder, tally, False)
    changes = []
    try:
        for change in compare(recording, engine, other, Silent(tally), progress=progress):
            if args.json:
                changes.append(change)
                continue
            changes.append({})
            say(f"line {change['line']}: {clean(change['tool'])}  {brief(change['args'])}")
            by = f" by {clean(change['by'])}" if change["by"] else ""
            reason = f": {one_line(change['reason'])}" if change["reason"] else ""
            say(f"    {change['before']} -> {change['after']}{by}{reason}")
            if "rewritten" in change:
                say(f"    {brief(change['rewritten'])}")
    finally:
        other.close()
    if args.json:
        emit({"differences": changes, **tally.to_json([])})
    else:
        say(f"{count(tally.tool_calls, 'call')}, {count(len(changes), 'difference')}")
        _print_skipped(tally.to_json([]))
    return 1 if changes or tally.skipped_count else 0


def _print_summary(summary: dict[str, Any], recording: Recording, folder: Path) -> None:
    calls = ", ".join(f"{clean(name)} {number}" for name, number in summary["by_tool"].items())
    statuses = ", ".join(f"{number} {name}" for name, number in summary["by_status"].items())
    tokens = summary["tokens"]
    cached = f" ({tokens['cache_read']:,} from cache)" if tokens["cache_read"] else ""
    said = [f"{summary[key]:,} {key}" for key in ("denied", "rewritten", "asked", "injected") if summary[key]]
    if summary["warnings"]:
        said.append(count(summary["warnings"], "warning"))
    failures = f"{count(summary['failures'], 'hook failure')}" if summary["failures"] else ""
    fired = sum(summary["timings"].values())
    pairs(
        [
            ("recorded by", recording.name),
            ("sessions", f"{summary['sessions']:,}, {count(summary['turns'], 'turn')}"),
            ("tool calls", f"{summary['tool_calls']:,}" + (f": {calls}" if calls else "")),
            ("ended", statuses),
            ("tokens", f"{tokens['input']:,} in{cached}, {tokens['output']:,} out"),
            ("hooks said", ", ".join(said) or "nothing"),
            ("failures", failures),
            ("errors", f"{summary['errors']:,}" if summary["errors"] else ""),
            (
                "events",
                f"{fired:,} fired in {summary['seconds']:.2f} s, {summary['hook_seconds']:.2f} s of it in hooks",
            ),
            ("not run", "\n".join(summary["not_run"])),
            ("records", str(folder)),
        ],
        indent="",
    )
    _print_skipped(summary)


def _print_skipped(summary: dict[str, Any]) -> None:
    for row in summary["skipped_lines"][:20]:
        where = f"{row['file']}: " if row["file"] else ""
        complain(f"{where}line {row['line']}, column {row['column']}: skipped: {row['cause']}")
    if summary["skipped_count"] > 20:
        complain(f"... and {summary['skipped_count'] - 20:,} more; --json lists up to 1,000 skipped lines")


def _progress(tally: Tally) -> Callable[[], None]:
    from time import monotonic

    last = [monotonic()]

    def show() -> None:
        now = monotonic()
        if now - last[0] >= _PROGRESS_EVERY:
            last[0] = now
            fired, seconds = tally.fired, tally.seconds
            show_progress(f"{fired:,} events, {fired / seconds:,.0f} a second")

    return show


def _width() -> int:
    from shutil import get_terminal_size

    return min(get_terminal_size((110, 24)).columns, 160)
