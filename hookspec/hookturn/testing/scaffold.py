"""What ``hookturn new`` writes: a plugin project with an entry point, a documented hook and a test that passes."""

from __future__ import annotations

from ..spec.errors import HookturnError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

LONGEST = 64
"""Characters of a name."""

_FILES = {
    "pyproject.toml": "pyproject.toml.in",
    "README.md": "README.md.in",
    ".gitignore": "gitignore.in",
    "src/@module@/__init__.py": "plugin.py.in",
    "src/@module@/py.typed": "",
    "tests/test_@module@.py": "test_plugin.py.in",
}
"""File of the project -> its template in the folder ``template`` (none: it is empty)."""

_TAKEN = ("hookturn", "hookturn_builtins", "src", "tests")


class ScaffoldError(HookturnError, ValueError):
    """No project can be made: the name is wrong, or there is something in the way."""


def create(name: str, directory: str | PathLike[str]) -> list[Path]:
    """Make a plugin project in a folder of its own; either all of it or nothing.

    Parameters:
        name: the plugin's name, such as ``no-force-push``; also the project's folder, in its normal form.
        directory: an existing folder, in which the project's folder is made.

    Returns:
        the files, in order.

    Raises:
        ScaffoldError: for a name that cannot be a distribution and a module, a folder in the way that is
            not empty, or a folder that cannot be written.

    Source of the names: https://packaging.python.org/en/latest/specifications/name-normalization/
    """
    import os
    from pathlib import Path
    from secrets import token_hex

    name, module = names(name)
    try:
        parent = Path(directory)
        if not parent.is_dir():
            raise ScaffoldError(f"{parent} is no folder. Make it first, or name another one.")
        project = parent / name
        _check_free(project)
        draft = parent / f".{name}.{token_hex(6)}"
        draft.mkdir()
        try:
            written = [_write(draft, target, source, name, module) for target, source in _FILES.items()]
            if project.is_dir():
                project.rmdir()  # it is empty
            os.rename(draft, project)
        except BaseException:
            _remove(draft)
            raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the folder's name
        if isinstance(error, ScaffoldError):
            raise
        raise ScaffoldError(f"the project {name} cannot be made: {error}") from error
    return [project / path for path in written]


def names(name: str) -> tuple[str, str]:
    """Return a plugin's name in its normal form, and the name of its module.

    Raises:
        ScaffoldError: when it is none.
    """
    import keyword
    import re
    import sys

    if len(name) > LONGEST:
        raise ScaffoldError(f"the name has {len(name)} characters; at most {LONGEST} will do")
    if not re.fullmatch(r"[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]", name):
        raise ScaffoldError(
            f"{name!r} is no name of a Python distribution: letters, digits, and '-', '_' or '.' between them, "
            "such as 'no-force-push'"
        )
    normal = re.sub(r"[-_.]+", "-", name).lower()
    module = normal.replace("-", "_")
    if not module.isidentifier():
        raise ScaffoldError(f"{name!r} gives no importable module name: it must begin with a letter")
    if normal in _builtins():
        raise ScaffoldError(f"{name!r} is a plugin that comes with hookturn; choose another name")
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module in _TAKEN:
        raise ScaffoldError(f"{name!r} gives the module name {module!r}, which is taken; choose another one")
    return normal, module


def _builtins() -> set[str]:
    """Return the names of hookturn's own plugins, which no other plugin can have."""
    from ..project.discovery import PLUGINS, entry_points
    from ..project.self_protection import NAME

    found, _ = entry_points()
    return {NAME, *(item.name for item in found if item.group == PLUGINS and item.builtin)}


def _check_free(project: Path) -> None:
    """Refuse to write where something is."""
    import os

    if not os.path.lexists(project):
        return
    if project.is_symlink() or not project.is_dir():
        raise ScaffoldError(f"{project} exists and is no folder; choose another name")
    if any(project.iterdir()):
        raise ScaffoldError(f"{project} exists and is not empty; choose another name, or remove it")


def _write(draft: Path, target: str, source: str, name: str, module: str) -> str:
    """Write one file of the project and return its path in it."""
    from pathlib import Path

    path = target.replace("@module@", module)
    text = ""
    if source:
        template = Path(__file__).with_name("template") / source
        text = template.read_text(encoding="utf-8").replace("@name@", name).replace("@module@", module)
    file = draft / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return path


def _remove(draft: Path) -> None:
    from shutil import rmtree

    rmtree(draft, ignore_errors=True)
