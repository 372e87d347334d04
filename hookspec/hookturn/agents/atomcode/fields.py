"""Takes single values out of an entry of a hook file, checked; what is wrong becomes a problem at its place."""

from __future__ import annotations

from ...spec.errors import did_you_mean, json_kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ..dialect import Path, Reading, Source

LONGEST = 86_400
"""Seconds; no time limit is longer."""


class Fields:
    """One entry of a hook file.

    Parameters:
        source: the file.
        where: the entry's place in it.
        data: the entry.
        reading: where problems go.
        kind_of: says what a value is, in the words of the file's format.

    Attributes:
        wrong: whether something was wrong that costs the entry.
    """

    def __init__(
        self,
        source: Source,
        where: Path,
        data: dict[str, Any],
        reading: Reading,
        kind_of: Callable[[object], str] = json_kind,
    ) -> None:
        self.source = source
        self.where = where
        self.data = data
        self.reading = reading
        self.kind_of = kind_of
        self.wrong = source.spoiled(where)

    def problem(self, key: str, cause: str, remedy: str = "", *, at_key: bool = False) -> None:
        """Report what costs the entry, at one of its keys or (with ``""``) at itself."""
        self.wrong = True
        path = (*self.where, key) if key else self.where
        self.reading.problems.append(self.source.problem(path, cause, remedy, key=at_key))

    def warning(self, key: str, cause: str, remedy: str = "", *, at_key: bool = False) -> None:
        """Report what costs nothing."""
        path = (*self.where, key) if key else self.where
        self.reading.problems.append(self.source.problem(path, cause, remedy, key=at_key, severity="warning"))

    def known(self, keys: Iterable[str], ignored: Iterable[str] = ()) -> None:
        """Warn of keys that the format does not have; they are ignored, as AtomCode does."""
        keys = tuple(keys)
        for key in self.data:
            if key not in keys and key not in ignored:
                near = did_you_mean(key, keys)
                self.warning(
                    key, f"unknown key {key[:60]!r}{near}", f"Known are {', '.join(keys)}.", at_key=True
                )

    def text(self, key: str, remedy: str, default: str | None = None, *, empty: bool = False) -> str:
        """Return a text; without a default it is required."""
        value = self.data.get(key)
        if value is None and default is not None and key not in self.data:
            return default
        if value is None and key not in self.data:
            self.problem("", f"the entry has no {key!r}", remedy)
        elif not isinstance(value, str):
            self.problem(key, f"expected a string, got {self.kind_of(value)}", remedy)
        elif "\0" in value or not (empty or value.strip()):
            self.problem(key, "the text is empty or holds a NUL", remedy)
        else:
            return value
        return ""

    def flag(self, key: str, default: bool) -> bool:
        """Return a boolean."""
        value = self.data.get(key, default)
        if isinstance(value, bool):
            return value
        self.problem(
            key, f"expected true or false, got {self.kind_of(value)}", "Write true or false, without quotes."
        )
        return default

    def whole(self, key: str, default: int, what: str, least: int = 1, most: int = LONGEST) -> int:
        """Return a whole number in its bounds."""
        value = self.data.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            self.problem(
                key, f"expected {what} as a whole number, got {self.kind_of(value)}", f"Write {default}, say."
            )
        elif not least <= value <= most:
            self.problem(
                key, f"expected {what} from {least} to {most}, got {value}", f"Write {default}, say."
            )
        else:
            return value
        return default
