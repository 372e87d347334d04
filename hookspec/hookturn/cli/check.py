"""``hookturn check``: every problem of the configuration, with its place, cause and remedy."""

from __future__ import annotations

from .output import UsageError, clean, count, emit, say, severity
from .project import add_options, dry_project

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from ..project.assemble import Assembled
    from ..project.foreign_file import Named
    from ..project.problems import Problem


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "check",
        help="find everything that is wrong with the configuration",
        description="Check the configuration of a project, a configuration file, or a hook file of another agent: "
        "its entries, permission rules, plugins, modules and scripts. Nothing of an untrusted project is run, its "
        "modules are only read, and so are those of another agent's file that lies in no project; a hookturn.yaml "
        "named here counts as trusted. The exit code is 1 when there is an error.",
    )
    parser.add_argument(
        "path",
        metavar="PATH",
        nargs="?",
        help="a project's folder, a role's or plugin's folder, or a file: hookturn.yaml, role.yaml, .hooks.json, "
        "hooks.toml, settings.json, ...; default: --project",
    )
    add_options(parser)
    parser.set_defaults(func=run)


def run(args: Namespace) -> int:
    """Check the configuration."""
    named = _choose(args) if args.path is not None else None
    if named is not None and not named.own:
        from ..project import foreign_file

        project = args.project
        problems, files = foreign_file.problems(named, project), [named.place.label]
    else:
        project, problems, files = _of_project(args)
        if named is not None:
            label = named.place.label
            problems, files = [item for item in problems if item.file == label], [label]
    # What concerns a file as a whole comes last: it may only follow from a mistake in one of the lines.
    problems.sort(key=lambda problem: (problem.file, not problem.line, problem.line, problem.column))
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    if args.json:
        emit(
            {
                "schema": 1,
                "project": project,
                "files": files,
                "problems": [problem.to_json() for problem in problems],
                "errors": errors,
                "warnings": warnings,
            }
        )
        return 1 if errors else 0
    for problem in problems:
        say(f"{severity(problem)}: {clean(str(problem))}")
    where = ", ".join(clean(name) for name in files) or f"{clean(project)} (it has no configuration)"
    say(f"{count(errors, 'error')}, {count(warnings, 'warning')} in {where}")
    return 1 if errors else 0


def _of_project(args: Namespace) -> tuple[str, list[Problem], list[str]]:
    """Return a project's folder, its problems and its files."""
    import os

    from ..project.doubts import doubts
    from ..project.role_lock import changed
    from ..project.unread import problems as unread

    with dry_project(args) as assembled:
        survey = assembled.survey
        problems = [*assembled.problems, *unread(survey), *_of_scripts(assembled), *doubts(assembled)]
    roles = (changed(file.place, os.environ) for file in survey.foreign if file.place.kind == "role")
    problems += [problem for problem in roles if problem is not None]
    files = [layer.label for layer in assembled.layers]
    return assembled.root, problems, files + [file.place.label for file in survey.foreign]


def _of_scripts(assembled: Assembled) -> list[Problem]:
    """Load the JavaScript files of the hooks in force and return what is wrong with them. Without Node there is nothing to say."""
    import os

    found = []
    survey = assembled.survey
    foreign = {entry.source: file.document for file in survey.foreign for entry in file.entries}
    for record in assembled.engine.plugins:
        script = getattr(record.plugin, "script", None)
        if script is None:
            continue
        from ..runners.node.resident import find_node

        if find_node(os.environ)[1]:  # which has been told
            break
        entry = script.entry
        if entry.dialect:
            document, place = foreign[entry.source], entry.where
        else:
            document = survey.models[entry.layer].document
            place = ("hooks", entry.index, "run", entry.kind)
        found += [
            document.problem(place, wrong.cause, wrong.remedy) for wrong in script.wrongs(assembled.root)
        ]
    return found


def _choose(args: Namespace) -> Named | None:
    """Let PATH choose the project, the configuration file, or the hook file of another agent, which is returned."""
    import os

    from ..project import foreign_file
    from ..project.layers import NAMES, TABLE, project_root

    path = args.path
    if args.config is not None:
        raise UsageError("PATH and --with name two configurations. Give one of them.")
    if os.path.isdir(path):
        args.project = path
        inside = foreign_file.file_in(path)
        if not inside:
            return None
        path = inside
    elif not os.path.isfile(path):
        what = "is no file" if os.path.lexists(path) else "does not exist"
        raise UsageError(f"{path} {what}. Name a project's folder or a configuration file.")
    root = project_root(os.path.dirname(os.path.abspath(path)))
    own = (os.path.join(root, *name.split("/")) for name in (*NAMES, TABLE))
    if any(os.path.exists(name) and os.path.samefile(name, path) for name in own):
        args.project = root
        return None
    found = foreign_file.find(path, root, os.environ)
    if found is None:
        args.config = path
    else:
        args.project = root
    return found
