"""``hookturn trust`` and ``hookturn untrust``: what a project's file may run, as the user agreed to it."""

from __future__ import annotations

import sys

from .output import CommandError, UsageError, clean, complain, count, emit, paint, say, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from ..project.survey import Pending, Survey


def add_parser(subparsers: Any) -> None:
    """Add the parsers of both commands."""
    parser = subparsers.add_parser(
        "trust",
        help="show what the project's configuration would run, and trust it",
        description="Show what the project's configuration would run, loosen or configure, then ask whether to "
        "trust it: exactly this, in this form.",
    )
    parser.add_argument("--yes", action="store_true", help="trust it without asking")
    parser.set_defaults(func=run)
    parser = subparsers.add_parser(
        "untrust",
        help="trust nothing of the project any more",
        description="Trust nothing of the project any more: its configuration can only tighten.",
    )
    parser.set_defaults(func=run_untrust)


def run(args: Namespace) -> int:
    """Show what waits for trust, ask, and trust it."""
    from ..project.survey import Survey
    from ..project.unread import of_plugins

    survey = Survey(args.project, guards=True)
    layer = survey.layer("project")
    if layer is not None and layer.document.broken:
        # Trusting an unreadable file would mean to forget every guard in it.
        why = next(item for item in (*layer.document.problems, *survey.problems) if item.file == layer.label)
        raise CommandError(f"{why} Nothing was trusted.")
    model = survey.models.get("project")
    if model is not None and model.unread_guards:
        guard = model.unread_guards[0]
        # The rest would be trusted without its guard, and one that was trusted would be given up.
        raise CommandError(
            f"{guard.source}: the guard {guard.name} cannot be read: {guard.cause}. {guard.remedy} "
            "Nothing was trusted."
        )
    waiting, dropped = survey.pending(), _dropped_rules(survey)
    files = [] if layer is None else [layer.label]
    files += [file.place.label for file in survey.foreign if file.place.layer == "project"]
    report = {
        "schema": 1,
        "project": survey.root,
        "file": layer.label if layer is not None else None,
        "files": files,
        "pending": [item.to_json() for item in waiting],
        "dropped_rules": dropped,
        "trusted": not (waiting or dropped),
    }
    if waiting or dropped:
        if not args.json:
            _show(survey, waiting, dropped)
        if not args.yes:
            _need_terminal(args, report)
            if not _agreed():
                complain("nothing was trusted")
                return 1
        survey.trust_all()
        report["trusted"] = True
    unread = [file for item in waiting for file, digest in item.declaration.files.items() if not digest]
    if args.json:
        emit(report)
    elif waiting or dropped:
        say(f"{paint('trusted', 'green')}: {clean(survey.root)}")
    elif not files:
        say(f"{clean(survey.root)} has no configuration: there is nothing to trust.")
    else:
        say(f"{clean(survey.root)}: nothing in {clean(', '.join(files))} waits for trust.")
    if unread:
        complain(
            f"{count(len(unread), 'file')} cannot be read, so what needs it does not run: {', '.join(unread)}"
        )
    wrong = of_plugins(survey)
    for problem in wrong:
        complain(f"{problem} Until it is mended the plugin is not in force.")
    return 1 if unread or wrong else 0


def run_untrust(args: Namespace) -> int:
    """Forget what was trusted."""
    from ..project.layers import project_root
    from ..project.trust import Trust

    root = project_root(args.project)
    known = Trust.load().remove(root)
    if args.json:
        emit({"schema": 1, "project": root, "trusted": False, "was_trusted": known})
    else:
        say(f"{clean(root)} {'is no longer' if known else 'was not'} trusted.")
    return 0


def _dropped_rules(survey: Survey) -> list[str]:
    """Return the deny and ask rules that were trusted and are gone from the project's file."""
    model = survey.models.get("project")
    return [
        f"{kind}: {rule.text}"
        for kind, rules in survey.trust.rules(survey.root).items()
        for rule in rules
        if model is None or rule.text not in {kept.text for kept in model.rules[kind]}
    ]


def _show(survey: Survey, waiting: list[Pending], dropped: list[str]) -> None:
    from ..project.problems import without_secrets

    say(f"{paint(clean(survey.root), 'bold')}")
    for item in waiting:
        declaration = item.declaration
        where = f" ({clean(declaration.source)})" if declaration.source else ""
        state = "new" if item.state == "untrusted" else item.state
        say(
            f"  {paint(state, 'yellow')}: {clean(declaration.title or declaration.name)} {clean(without_secrets(declaration.what))}{where}"
        )
        for file, digest in declaration.files.items():
            say(f"    {clean(file)}  {f'sha256 {digest}' if digest else 'cannot be read'}")
    for rule in dropped:
        say(f"  {paint('gone', 'yellow')}: the rule {short(rule)}")
    if survey.problems:
        complain(f"{count(len(survey.problems), 'problem')} in the configuration: see `hookturn check`")


def _need_terminal(args: Namespace, report: dict[str, Any]) -> None:
    """Refuse where nobody can answer."""
    if not args.json and sys.stdin is not None and sys.stdin.isatty():
        return
    raise UsageError(
        "nobody can be asked here. Look at what would be trusted, then run `hookturn trust --yes`.",
        report=report,
    )


def _agreed() -> bool:
    """Ask on standard error, since standard output may go elsewhere."""
    if sys.stdout is not None:
        sys.stdout.flush()
    print("Trust this, in exactly this form? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
