"""Finds the configuration files that count for a project: managed, user and project, and the project's root.

    managed   /etc/hookturn/hookturn.yaml, root's own
    project   hookturn.yaml or .hookturn/hookturn.yaml in the project's root, or [tool.hookturn] in pyproject.toml
    user      hookturn.yaml in the user's configuration folder

Managed wins over project, project over user; what a project file may do before
the user trusts it is decided in ``assemble``.
"""

from __future__ import annotations

from .document import MAX_BYTES, Document
from .problems import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

PROJECT_VARIABLES = (
    "GEMINI_PROJECT_DIR",
    "QWEN_PROJECT_DIR",
    "COPILOT_PROJECT_DIR",
    "CURSOR_PROJECT_DIR",
    "CLAUDE_PROJECT_DIR",
)
"""Environment variables in which agents name the project; several set Claude's beside their own."""

MANAGED_OWNER = 0
"""The user that must own the managed file and its folder: root."""

CACHED_FORM = 1
"""Number of the way in which YAML is read; a new one makes the caches of the old void."""

NAMES = ("hookturn.yaml", ".hookturn/hookturn.yaml")
TABLE = "pyproject.toml"


class Layer:
    """One configuration file.

    Attributes:
        name: managed, user or project.
        path: the file, absolute.
        label: the file as messages show it: relative to the project for a project's own.
        base_dir: the folder that relative paths in it start from.
        document: what was read.
        authority: whether it may do what its layer may. Without, it can only tighten, as an untrusted
            project file; for a project file the trust store decides besides.
        given: whether the user named the file on the command line, which counts as trust.
    """

    def __init__(
        self,
        name: str,
        path: str,
        label: str,
        document: Document,
        *,
        authority: bool = True,
        given: bool = False,
    ) -> None:
        from os.path import dirname

        self.name = name
        self.path = path
        self.label = label
        self.base_dir = dirname(path)
        self.document = document
        self.authority = authority
        self.given = given

    def __repr__(self) -> str:
        return f"<Layer {self.name}: {self.path}>"


def project_root(
    start: str | os.PathLike[str] | None = None, *, environ: Mapping[str, str] | None = None
) -> str:
    """Return the absolute folder of the project.

    Parameters:
        start: a folder in the project; None asks the agent's project variable, then the current folder.
            Agents name there the folder that they were started in, which may lie below the root.
        environ: the agent's environment; default: the process's own.

    Returns:
        ``start`` or the nearest folder above it that the user owns and that holds a hookturn
        configuration or ``.git``; without one, ``start`` itself.
    """
    import os

    if start is None:
        for name in PROJECT_VARIABLES:
            value = (environ if environ is not None else os.environ).get(name, "")
            if os.path.isabs(value) and os.path.isdir(value):
                start = value
                break
        else:
            start = os.getcwd()
    folder = first = os.path.abspath(start)
    if not os.path.isdir(folder):
        return first
    while True:
        if _is_root(folder):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return first
        folder = above


def is_project(root: str) -> bool:
    """Tell whether a ``project_root`` is a project's, and not just the folder where somebody happens to be.

    The home folder, the system's temporary ones and ``/`` are none without a hookturn configuration, ``.git`` or a
    ``.hookturn`` of their own, and without an agent that was installed there.
    """
    import os

    from . import installations

    if _is_root(root):  # most are, and an agent waits for this
        return True
    nobodys = (os.path.expanduser("~"), os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp", os.sep)  # noqa: S108
    return (
        os.path.realpath(root) not in {os.path.realpath(folder) for folder in nobodys if folder}
        or os.path.isdir(os.path.join(root, ".hookturn"))
        or any(item.project == os.path.realpath(root) for item in installations.known())
    )


def _is_root(folder: str) -> bool:
    import os

    from ..platform import user_id

    if os.path.basename(folder) == ".hookturn":
        return False  # the project is the folder above
    user = user_id()
    try:
        if user is not None and os.stat(folder).st_uid != user:
            return False
    except OSError:
        return False
    if any(os.path.lexists(os.path.join(folder, name)) for name in (*NAMES, ".git")):
        return True
    table = os.path.join(folder, TABLE)
    content, _ = _read(table) if os.path.isfile(table) else (None, "")
    if content is None:
        return False
    from .toml_document import read_toml

    return read_toml(content, TABLE) is not None


def _read(path: str) -> tuple[bytes | None, str]:
    """Return a file's bytes, or None and why not ("" for a file that is not there)."""
    from ..runners.module import read

    try:
        return read(path, MAX_BYTES), ""
    except (FileNotFoundError, NotADirectoryError):
        import os

        return None, "it is a symbolic link to nothing" if os.path.islink(path) else ""
    except OSError as error:
        return None, error.strerror or type(error).__name__
    except ValueError as error:
        return None, str(error)


def find(
    root: str, *, with_config: str | os.PathLike[str] | None = None
) -> tuple[list[Layer], list[Problem]]:
    """Find and read the files of all layers.

    Parameters:
        root: the project's folder.
        with_config: a file to use instead of the project's own; naming it counts as trust.

    Returns:
        the layers that have a file, in order of registration (managed, user, project), and problems
        with the files as such. Problems in a file are in its document.
    """
    import os

    from .. import paths

    layers: list[Layer] = []
    problems: list[Problem] = []
    managed = paths.MANAGED_CONFIG
    why = not_managed(managed)
    layer = _load("managed", managed, managed, problems)
    if layer is not None:
        if why:
            layer.authority = False
            problems.append(
                Problem(
                    managed,
                    0,
                    0,
                    "",
                    f"the managed configuration counts only as far as it tightens: {why}",
                    "Give the file and its folder to root, writable by nobody else.",
                )
            )
        layers.append(layer)
    user = os.path.join(paths.config_folder(), "hookturn.yaml")
    layer = _load("user", user, user, problems)
    if layer is not None:
        why = not_users(user)
        if why:
            layer.authority = False
            problems.append(
                Problem(
                    user,
                    0,
                    0,
                    "",
                    f"the user's configuration counts only as far as it tightens: {why}",
                    "Make it yours, writable by nobody else.",
                )
            )
        layers.append(layer)
    if with_config is not None:
        given = os.path.abspath(with_config)
        layer = _load("project", given, os.fspath(with_config), problems, given=True, must_exist=True)
    else:
        layer = _project(root, problems)
    others = {os.path.realpath(other.path) for other in layers}
    if layer is not None and os.path.realpath(layer.path) not in others:
        layers.append(layer)  # in the user's own configuration folder, the two are one file
    return layers, problems


def _project(root: str, problems: list[Problem]) -> Layer | None:
    import os

    found = [
        layer
        for name in NAMES
        if (layer := _load("project", os.path.join(root, *name.split("/")), name, problems)) is not None
    ]
    table = _load("project", os.path.join(root, TABLE), TABLE, problems)
    if table is not None:
        found.append(table)
    for other in found[1:]:
        problems.append(
            Problem(
                other.label,
                0,
                0,
                "",
                f"the project has a configuration in {found[0].label} already",
                "Merge the two; this one is ignored.",
            )
        )
    wrong = os.path.join(root, "hookturn.yml")
    if not found and os.path.isfile(wrong):
        problems.append(
            Problem(
                "hookturn.yml",
                0,
                0,
                "",
                "a file of this name is not read",
                "Rename it to hookturn.yaml.",
                "warning",
            )
        )
    return found[0] if found else None


def _load(
    name: str,
    path: str,
    label: str,
    problems: list[Problem],
    *,
    given: bool = False,
    must_exist: bool = False,
) -> Layer | None:
    content, why = _read(path)
    if content is None:
        if why or must_exist:
            problems.append(
                Problem(label, 0, 0, "", f"cannot be read: {why or 'there is no such file'}", "Correct it.")
            )
            if why and not given:
                document = Document(label)
                document.broken = True
                return Layer(name, path, label, document)
        return None
    found: Document | None
    if path.endswith(".toml"):
        from .toml_document import read_toml

        found = read_toml(content, label)
    else:
        found = read_cached_yaml(content, label)
    if found is None:
        if must_exist:
            problems.append(Problem(label, 0, 0, "", "has no [tool.hookturn] table", "Name another file."))
        return None
    return Layer(name, path, label, found, given=given)


def read_cached_yaml(content: bytes, label: str) -> Document:
    """Read YAML, or take what was read of the same bytes before: PyYAML alone takes a Python start's time."""
    from ..quick import sha256_hex
    from . import cache

    key = f"{CACHED_FORM}:{sha256_hex(content)}"
    stored = cache.load("yaml", key)
    if stored is not None:
        try:
            return Document.from_json(label, stored)
        except (KeyError, TypeError, ValueError):
            stored = None  # damaged: read the file itself
    from .yaml_document import read_yaml

    document = read_yaml(content, label)
    if not document.problems and len(content) > 0:
        cache.store("yaml", key, document.to_json())
    return document


def not_managed(path: str) -> str:
    """Return why a file is not really the administrator's, or an empty string."""
    import os
    import stat

    if os.name == "nt":  # the folder's own access list decides there
        return ""
    for place in (path, os.path.dirname(path)):
        try:
            found = os.stat(place)
        except OSError:
            return ""
        if found.st_uid != MANAGED_OWNER:
            return f"{place} belongs to user {found.st_uid}, not to root"
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"{place} is writable by others than root"
    return ""


def not_users(path: str) -> str:
    """Return why a file may be somebody else's work, or an empty string."""
    import os
    import stat

    from ..platform import user_id

    user = user_id()
    if user is None:
        return ""
    found = os.stat(path)
    if found.st_uid not in (user, 0):
        return f"it belongs to user {found.st_uid}"
    if found.st_mode & stat.S_IWOTH:
        return "it is writable by everybody"
    return ""
