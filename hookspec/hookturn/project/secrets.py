"""Secrets in settings: ``{env: NAME}``, ``{file: path}`` and ``{command: [argv]}`` become ``Secret`` objects.

They are resolved when a trusted layer's hook or plugin is set up, and never for
an untrusted one. A mapping is a reference only when it has exactly one of these
keys, with a text (env, file) or a list of texts (command), and stands inside the
settings: the settings as a whole are never one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .problems import Path

MAX_BYTES = 65_536
"""A secret is not longer."""

TIMEOUT = 10.0
"""Seconds that the program of a ``{command: ...}`` secret may take."""


class Wrong:
    """Something wrong with one setting.

    Attributes:
        path: where in the settings.
        cause, remedy: as in a problem.
        key: the key is wrong, not its value.
        severity: error or warning.
    """

    __slots__ = ("cause", "key", "path", "remedy", "severity")

    def __init__(
        self, path: Path, cause: str, remedy: str, *, key: bool = False, severity: str = "error"
    ) -> None:
        self.path = path
        self.cause = cause
        self.remedy = remedy
        self.key = key
        self.severity = severity


def reference(value: object) -> str:
    """Return the kind of a secret reference (env, file or command), or an empty string for any other value."""
    if not isinstance(value, dict) or len(value) != 1:
        return ""
    ((kind, item),) = value.items()
    if kind in ("env", "file") and isinstance(item, str) and item:
        return str(kind)
    if kind == "command" and isinstance(item, list) and item and all(isinstance(part, str) for part in item):
        return "command"
    return ""


def has_reference(value: object) -> bool:
    """Tell whether a value is a secret reference, or one stands in it."""
    if reference(value):
        return True
    if isinstance(value, dict):
        return any(has_reference(item) for item in value.values())
    return isinstance(value, list) and any(has_reference(item) for item in value)


def commands(value: object) -> list[list[str]]:
    """Return the argument lists of all ``{command: ...}`` references in settings."""
    if reference(value) == "command":
        return [list(value["command"])]  # type: ignore[index]
    if isinstance(value, dict):
        return [argv for item in value.values() for argv in commands(item)]
    if isinstance(value, list):
        return [argv for item in value for argv in commands(item)]
    return []


def resolve(settings: dict[str, Any], base_dir: str, wrong: list[Wrong]) -> dict[str, Any]:
    """Return settings with every secret reference replaced by a ``Secret``.

    Parameters:
        settings: as declared, by a layer that may run programs.
        base_dir: the folder that relative paths start from.
        wrong: gets what could not be resolved; such a setting is left out.
    """
    resolved: dict[str, Any] = _resolve(settings, base_dir, (), wrong)
    return resolved


_MISSING = object()


def _resolve(value: Any, base_dir: str, path: Path, wrong: list[Wrong]) -> Any:
    kind = reference(value) if path else ""
    if kind:
        from ..redact import Secret

        try:
            return Secret(_READERS[kind](value[kind], base_dir), _mark(path))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            wrong.append(Wrong((*path, kind), f"the secret cannot be read: {why}", _REMEDIES[kind]))
            return _MISSING
    if isinstance(value, dict):
        items = {key: _resolve(item, base_dir, (*path, key), wrong) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not _MISSING}
    if isinstance(value, list):
        found = [_resolve(item, base_dir, (*path, index), wrong) for index, item in enumerate(value)]
        return [item for item in found if item is not _MISSING]
    return value


def _mark(path: Path) -> str:
    """Return the word that a secret shows: its setting's name."""
    import re

    names = [part for part in path if isinstance(part, str)]
    return re.sub(r"[^a-z0-9]+", "-", names[-1].lower()).strip("-") or "secret"


def _env(name: str, base_dir: str) -> str:
    from ..platform import agent_environ

    value = agent_environ().get(name)
    if value is None:
        raise ValueError(f"the environment variable {name} is not set")
    return value


def _file(name: str, base_dir: str) -> str:
    import os

    from ..runners.module import read

    path = os.path.join(base_dir, os.path.expanduser(name))
    try:
        content = read(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ValueError(f"{path}: {why}") from None
    return _text(content, path)


def _text(content: bytes, where: str) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{where} gives bytes that are not UTF-8") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise ValueError(f"{where} gives nothing")
    return text


def _command(argv: list[str], base_dir: str) -> str:
    """Run a program without a shell and return what it prints."""
    import subprocess
    from threading import Thread

    from ..platform import agent_environ

    name = argv[0]
    try:
        process = subprocess.Popen(  # noqa: S603  # a trusted layer names the program
            argv,
            cwd=base_dir,
            env=dict(agent_environ()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ValueError(f"{name} cannot be started: {error}") from None
    stream = process.stdout
    assert stream is not None
    found: list[bytes] = []
    # On a thread, since a child of the program's may keep the pipe open for ever.
    reader = Thread(target=lambda: found.append(stream.read(MAX_BYTES + 1)), daemon=True)
    reader.start()
    try:
        code = process.wait(TIMEOUT)
        reader.join(1.0)
    except subprocess.TimeoutExpired:
        raise ValueError(f"{name} took longer than {TIMEOUT:g} s") from None
    finally:
        _end_group(process)
        reader.join(1.0)
        if not reader.is_alive():
            stream.close()
    if code != 0:
        raise ValueError(f"{name} ended with code {code}")
    if not found:
        raise ValueError(f"a child of {name} keeps its output open")
    if len(found[0]) > MAX_BYTES:
        raise ValueError(f"{name} prints more than {MAX_BYTES:,} bytes")
    return _text(found[0], name)


def _end_group(process: Any) -> None:
    """Kill whatever is left of a program and the children in its session, and collect the program."""
    import os
    import signal

    try:
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # nothing is left (macOS says so by refusing)
    finally:
        process.wait()


_READERS: dict[str, Any] = {"env": _env, "file": _file, "command": _command}
_REMEDIES = {
    "env": "Set the variable in the environment of the agent.",
    "file": "Make the file, readable by you alone.",
    "command": "Run the program by hand to see what it says.",
}
