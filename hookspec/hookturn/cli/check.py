"""``hookturn check``: every problem of the configuration, with its place, cause and remedy."""

from __future__ import annotations

from .output import UsageError, clean, count, emit, paint, say
from .project import add_options, dry_project

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from ..project.assemble import Assembled
    from ..project.problems import Problem


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "check",
        help="find everything that is wrong with the configuration",
        description="Check the configuration of a project, or a configuration file: its entries, permission "
        "rules, plugins and modules. Nothing of an untrusted project is run, its modules are only read; a file "
        "named here that is no project's own counts as trusted. The exit code is 1 when there is an error.",
    )
    parser.add_argument(
        "path",
        metavar="PATH",
        nargs="?",
        help="a project's folder or a configuration file; default: --project",
    )
    add_options(parser)
    parser.set_defaults(func=run)


def run(args: Namespace) -> int:
    """Check the configuration."""
    from ..project.unread import problems as unread

    if args.path is not None:
        _choose(args)
    with dry_project(args) as assembled:
        problems = [*assembled.problems, *unread(assembled.survey), *_of_scripts(assembled)]
    files = [layer.label for layer in assembled.layers]
    files += [file.place.label for file in assembled.survey.foreign]
    problems.sort(key=lambda problem: (problem.file, problem.line, problem.column))
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    if args.json:
        emit(
            {
                "schema": 1,
                "project": assembled.root,
                "files": files,
                "problems": [problem.to_json() for problem in problems],
                "errors": errors,
                "warnings": warnings,
            }
        )
        return 1 if errors else 0
    for problem in problems:
        style = "red" if problem.severity == "error" else "yellow"
        say(f"{paint(problem.severity, style)}: {clean(str(problem))}")
    where = ", ".join(clean(name) for name in files) or f"{clean(assembled.root)} (it has no configuration)"
    say(f"{count(errors, 'error')}, {count(warnings, 'warning')} in {where}")
    return 1 if errors else 0


def _of_scripts(assembled: Assembled) -> list[Problem]:
    """Load the JavaScript files of the hooks in force and return what is wrong with them. Without Node there is nothing to say."""
    import os

    found = []
    for record in assembled.engine.plugins:
        script = getattr(record.plugin, "script", None)
        if script is None:
            continue
        from ..runners.node.resident import find_node

        if find_node(os.environ)[1]:  # which has been told
            break
        entry = script.entry
        document = assembled.survey.models[entry.layer].document
        place = ("hooks", entry.index, "run", entry.kind)
        found += [
            document.problem(place, wrong.cause, wrong.remedy) for wrong in script.wrongs(assembled.root)
        ]
    return found


def _choose(args: Namespace) -> None:
    """Let PATH choose the project, or the configuration file."""
    import os

    from ..project.layers import NAMES, TABLE, project_root

    path = args.path
    if args.config is not None:
        raise UsageError("PATH and --with name two configurations. Give one of them.")
    if os.path.isdir(path):
        args.project = path
        return
    if not os.path.isfile(path):
        what = "is no file" if os.path.lexists(path) else "does not exist"
        raise UsageError(f"{path} {what}. Name a project's folder or a configuration file.")
    root = project_root(os.path.dirname(os.path.abspath(path)))
    own = (os.path.join(root, *name.split("/")) for name in (*NAMES, TABLE))
    if any(os.path.exists(name) and os.path.samefile(name, path) for name in own):
        args.project = root
    else:
        args.config = path
