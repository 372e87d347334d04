"""What is wrong with a configuration, and where: one record a problem, never an exception."""

from __future__ import annotations

from ..spec.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Path = tuple[str | int, ...]


class Problem(Record):
    """Something wrong with a configuration, a plugin or its trust. One problem costs only what it names.

    Parameters:
        file: the file, or where a plugin came from, or "".
        line: from 1; 0 for the file as a whole.
        column: from 1; 0 for the file as a whole.
        path: where in the document, such as ``hooks[2].timings`` (items count from 0), or "".
        cause: what is wrong, with the likely right word where there is one.
        remedy: what to do about it: a sentence.
        severity: ``error`` or ``warning``; a warning has cost nothing.
    """

    file: str
    line: int
    column: int
    path: str
    cause: str
    remedy: str = ""
    severity: str = "error"

    def __str__(self) -> str:
        where = self.file
        if self.line:
            where += f":{self.line}:{self.column}"
        parts = [part for part in (where, self.path, self.cause) if part]
        text = ": ".join(parts)
        return printable(without_secrets(f"{text}. {self.remedy}" if self.remedy else text))

    def to_json(self) -> dict[str, Any]:
        """Return all fields, texts without secrets."""
        fields = {name: getattr(self, name) for name in self._fields}
        for name in ("path", "cause", "remedy"):
            fields[name] = without_secrets(fields[name])
        return fields


def show_path(path: Path) -> str:
    """Return a path in a document as text: ``("hooks", 2, "timings")`` as ``hooks[2].timings``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part and all(c.isalnum() or c in "_-" for c in part):
            text += f".{part}" if text else part
        else:
            text += f"[{show(part)}]"
    return text


def without_secrets(text: str) -> str:
    """Return a message without the secrets that people write into commands and rules."""
    import re

    if re.search(r"[\w-]{16}", text) is None:  # no secret is shorter; most messages need no rules
        return text
    from ..redact import redact

    return redact(text)


def printable(text: str) -> str:
    """Return a text with line ends, control characters and lone surrogates as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def show(value: object, limit: int = 60) -> str:
    """Return a value's repr for a message: one line, printable, cut where it is long."""
    # Cut before the repr: a value may be a megabyte.
    text = repr(value[: limit + 1]) if isinstance(value, str) else repr(value)
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    return printable(text)


def kind_of(value: object) -> str:
    """Return what a value is, in the words of someone who writes YAML."""
    names = {
        bool: "true or false",
        str: "a text",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "a mapping",
    }
    if value is None:
        return "nothing"
    for kind, name in names.items():
        if isinstance(value, kind):
            return name
    return type(value).__name__
