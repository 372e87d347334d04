"""``hookturn info ROLE``: what a role of rolebox is, and with ``--check`` whether it is as it was installed and its hooks load."""

from __future__ import annotations

import os

from ..agents.rolebox import roles
from .output import CommandError, clean, emit, paint, pairs, say, severity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from ..agents.dialect import HookFile
    from ..project.foreign import ForeignFile
    from ..runners.entry import HookEntry


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "info",
        help="show a role of rolebox; --check verifies it",
        description="Show a role: of the project, of rolebox's installed ones, of a platform's folder, or a path. "
        "With --check its digest is compared with rolebox's lock file, and its hook modules are looked at: those "
        "of an untrusted project are read, the others are loaded. The exit code of --check is 1 when something is wrong.",
    )
    parser.add_argument("role", metavar="ROLE", help="the role's id, its name, its folder or its role.yaml")
    parser.add_argument("--check", action="store_true", help="verify the digest and the hook modules")
    parser.set_defaults(func=run)


def run(args: Namespace) -> int:
    """Show a role, and verify it if asked."""
    from ..project.layers import project_root

    project = project_root(args.project)
    place, lock = _find(args.role, project)
    folder = place.base_dir
    problems: list[Any] = []
    file = _read(place, problems)
    data: dict[str, Any] = file.document.data if file is not None else {}
    report = _about(data, lock, folder)
    entries = file.entries if file is not None else []
    report["recovery"] = _recovery(entries)
    report["hooks"] = _hooks(entries, project, place, check=args.check)
    failed = False
    if args.check:
        failed = _check(report, lock, folder)
    report["problems"] = [problem.to_json() for problem in problems]
    if args.check:
        failed = failed or any(problem.severity == "error" for problem in problems)
    if args.json:
        emit({"schema": 1, **report})
    else:
        _show(report, problems, lock)
    return 1 if failed else 0


# -- finding ------------------------------------------------------------------------------------------


def _find(word: str, project: str) -> tuple[HookFile, dict[str, str]]:
    """Return where a role lies, and its row of rolebox's lock file ({} for one that was not installed).

    Raises:
        CommandError: when there is no such role.
    """
    from ..agents.rolebox import config
    from ..project.role_lock import lock_rows

    locked = lock_rows(os.environ)
    places = config.files(project, os.environ, {})
    if os.sep in word or word == roles.ROLE_FILE or os.path.isfile(os.path.join(word, roles.ROLE_FILE)):
        path = os.path.join(word, roles.ROLE_FILE) if os.path.isdir(word) else word
        place = _place(os.path.abspath(path), project)
    else:
        found = [place for place in places if word in (place.extra["role"], _name(place.path))]
        own = [place for place in found if place.layer == "project"]
        installed = _installed(locked.get(word), project)
        candidates = [*own, *installed, *found]
        if not candidates:
            from ..spec.errors import did_you_mean

            known = [*(place.extra["role"] for place in places), *locked]
            raise CommandError(
                f"Role {word!r} is not installed{did_you_mean(word, known)}. "
                f"Known are {', '.join(dict.fromkeys(known)) or 'none'}."
            )
        place = candidates[0]
    if not os.path.isfile(place.path) and place.extra["role"].partition("@")[0] not in locked:
        raise CommandError(f"{place.path} does not exist. Name a role, its folder or its role.yaml.")
    return place, locked.get(place.extra["role"].partition("@")[0], {})


def _place(path: str, project: str) -> HookFile:
    from ..agents.rolebox import config

    place = config.place(path, project, {})
    if place is None:
        raise CommandError(f"{path} is no role.yaml.")
    return place


def _installed(row: dict[str, str] | None, project: str) -> list[HookFile]:
    if row is None:
        return []
    parts = [row["registry"], f"{row['role']}@{row['version']}"]
    if any(part.startswith(".") or os.sep in part or "\0" in part for part in parts):
        return []  # no path is made from such a lock file
    folder = os.path.join(roles.data_folder(os.environ), "roles", *parts)
    return [_place(os.path.join(folder, roles.ROLE_FILE), project)]


def _name(path: str) -> str:
    from ..project.yaml_document import read_yaml
    from ..runners.module import read

    try:
        name = read_yaml(read(path, 1_000_000), path).data.get("name")
    except (OSError, ValueError):
        return ""
    return name if isinstance(name, str) else ""


def _read(place: HookFile, problems: list[Any]) -> ForeignFile | None:
    from ..agents.rolebox import config
    from ..project.foreign import read_file

    module: Any = config
    return read_file(module, place, {}, problems)


# -- what there is to tell ----------------------------------------------------------------------------


def _about(data: dict[str, Any], lock: dict[str, str], folder: str) -> dict[str, Any]:
    from ..agents.rolebox.functions import DEFAULTS

    def words(key: str) -> list[str]:
        value = data.get(key)
        return [str(item) for item in value] if isinstance(value, list) else []

    report: dict[str, Any] = {"role": lock.get("role") or os.path.basename(folder).partition("@")[0]}
    for key in ("name", "description"):
        report[key] = data.get(key)
    for key in ("version", "registry", "installedAt", "integrity"):
        report[key] = lock.get(key) or (data.get(key) if key == "version" else None)
    report["path"] = folder
    for key in ("model", "mode", "temperature"):
        report[key] = data.get(key)
    report["skills"] = words("skills") + words("opencode_skills")
    off = words("disable_functions")
    names = dict.fromkeys([*DEFAULTS, *words("functions"), *words("auto_activate")])
    report["functions"] = [name for name in names if name not in off]
    subagents = data.get("subagents")
    report["subagents"] = [
        {key: item.get(key) for key in ("name", "description")}
        for item in (subagents if isinstance(subagents, list) else [])
        if isinstance(item, dict)
    ]
    team = data.get("collaboration")
    if isinstance(team, dict):
        report["collaboration"] = {
            "topology": team.get("topology"),
            "maxIterations": team.get("max_iterations"),
        }
    links = [os.path.join(folder, report["role"]) for folder in roles.platform_folders(os.environ)]
    report["sync"] = {
        "synced": any(os.path.islink(link) for link in links),
        "symlinkValid": any(os.path.islink(link) and os.path.exists(link) for link in links),
    }
    return report


def _recovery(entries: list[HookEntry]) -> dict[str, Any]:
    """Return what recovery and guards a role switches on."""
    found: dict[str, Any] = {}
    for entry in entries:
        if entry.kind == "plugin" and entry.run in ("recovery", "guards"):
            found.update(entry.config)
    return found


def _hooks(entries: list[HookEntry], project: str, place: HookFile, *, check: bool) -> list[dict[str, Any]]:
    from ..agents.rolebox import config

    trusted = place.layer != "project" or _trusted(project, entries)
    rows = []
    for entry in entries:
        if entry.kind == "plugin":
            continue
        path = config.module_path(entry)
        name, module = entry.extra["name"], entry.run
        if not trusted:  # as written: nobody's file has the environment printed
            name, module = entry.declared.get("name", name), entry.declared["module"]
            path = path if module == entry.run else os.path.join(entry.base_dir, module)
        row = {
            "name": name,
            "events": list(entry.extra["events"]),
            "module": module,
            "path": path,
            "exists": os.path.isfile(path),
        }
        if check:
            row["problem"] = _wrong(entry, path, project, load=trusted)
        rows.append(row)
    return rows


def _trusted(project: str, entries: list[HookEntry]) -> bool:
    """Tell whether all of a project's role is trusted, so that its modules may be run."""
    from ..project.foreign import key_of
    from ..project.survey import Survey

    survey = Survey(project)
    states = []
    for entry in entries:
        key = key_of(entry)
        found = next((item for item in survey.declarations if item.key == key), None)
        states.append(found is not None and survey.trust.state(found) == "trusted")
    return all(states)


def _wrong(entry: HookEntry, path: str, project: str, *, load: bool) -> str:
    """Return what keeps a hook from running, or an empty string. A module that may not be run is only read."""
    from ..agents.rolebox import config
    from ..engine.capabilities import unlogged
    from ..spec.errors import RegistrationError
    from .output import hooks_at_work

    if not os.path.isfile(path):
        return f"{path} does not exist, so the hook cannot be registered"
    if load:
        try:
            with hooks_at_work(), unlogged("custom-loader"):
                config.make(entry, entry.config, {}, live=True)
        except RegistrationError as error:
            return f"{error.cause}. {error.remedy}"
    wrongs = (wrong for wrong in config.wrongs(entry, project) if wrong.severity == "error")
    return "; ".join(wrong.cause for wrong in wrongs)


def _check(report: dict[str, Any], lock: dict[str, str], folder: str) -> bool:
    """Add the check of the digest; return whether anything is wrong."""
    from ..agents.rolebox.integrity import integrity

    failed = any(row["problem"] for row in report["hooks"])
    if not os.path.isdir(folder):
        report["missing"] = True
        return True
    actual = integrity(folder)
    expected = lock.get("integrity")
    if expected is None:
        report["integrity"] = actual
        return failed
    report["integrityCheck"] = {"passed": actual == expected, "expected": expected, "actual": actual}
    return failed or actual != expected


# -- for people ---------------------------------------------------------------------------------------


def _functions(names: list[str]) -> str:
    """Return a role's functions; those that rolebox gives every role do nothing here, which has no texts for them."""
    from ..agents.rolebox.functions import DEFAULTS

    own = ", ".join(name for name in names if name not in DEFAULTS)
    rest = ", ".join(name for name in names if name in DEFAULTS)
    return "; ".join(
        part for part in (own, rest and f"of rolebox itself, without effect here: {rest}") if part
    )


def _show(report: dict[str, Any], problems: list[Any], lock: dict[str, str]) -> None:
    say(paint(clean(report["role"]), "bold"))
    rows = [
        ("Name", report["name"]),
        ("Description", report["description"]),
        ("Version", report["version"]),
        ("Registry", report["registry"]),
        ("Installed", report["installedAt"]),
        ("Integrity", report["integrity"]),
        ("Path", report["path"]),
        ("Model", report["model"]),
        ("Mode", report["mode"]),
        ("Skills", ", ".join(report["skills"])),
        ("Functions", _functions(report["functions"])),
        ("Subagents", ", ".join(str(item["name"]) for item in report["subagents"])),
        ("Recovery", ", ".join(key for key, value in report["recovery"].items() if value is True)),
        ("Attempts", report["recovery"].get("max_total_attempts")),
        ("Chains", "; ".join(_chains(report["recovery"]))),
    ]
    pairs([(label, clean(str(text))) for label, text in rows if text not in (None, "")])
    for row in report["hooks"]:
        wrong = row.get("problem")
        mark = "" if "problem" not in row else paint("✗ ", "red") if wrong else paint("✓ ", "green")
        say(f"  {mark}hook {clean(row['name'])}: {clean(row['module'])} at {', '.join(row['events'])}")
        if wrong:
            say(f"    {paint('warning', 'yellow')}: {clean(wrong)}")
    for problem in problems:
        say(f"  {severity(problem)}: {clean(str(problem))}")
    if report.get("missing"):
        say(f"  {paint('✗', 'red')} {clean(report['path'])} is not there")
    check = report.get("integrityCheck")
    if check is not None and check["passed"]:
        say(f"  {paint('✓', 'green')} Integrity check passed")
    elif check is not None:
        say(f"  {paint('✗', 'red')} Integrity check FAILED")
        say(f"    Expected: {clean(check['expected'])}")
        say(f"    Actual:   {check['actual']}")
    elif not lock and report["integrity"]:
        say("  The role is not in rolebox's lock file, so there is nothing to compare with.")


def _chains(recovery: dict[str, Any]) -> list[str]:
    chains = recovery.get("chains") or {}
    return [
        f"{category}: {' → '.join(step['strategy'] for step in steps) or 'off'}"
        for category, steps in chains.items()
    ]
