"""The ``matcher`` of a hook group: names, or a JavaScript expression, by Claude Code's rules; and what is odd about one."""

from __future__ import annotations

from .javascript_regex import BadPattern, NoTranslation, compile_javascript
from .tools import TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_- ,|")

LONGEST = 1_000
"""Characters of a name that an expression looks at; no tool has such a name."""


class Matcher:
    """One matcher.

    Parameters:
        text: as it stands in the file; empty and ``*`` match everything.
        files: it names files (FileChanged): no expression, names are divided by ``|`` only.
        bars_only: names are divided by ``|`` only (StopFailure).

    Raises:
        BadPattern, NoTranslation: for an expression that cannot be used.
    """

    __slots__ = ("names", "regex", "text")

    def __init__(self, text: str, *, files: bool = False, bars_only: bool = False) -> None:
        self.text = text
        self.names: frozenset[str] | None = None
        self.regex = None
        if text in ("", "*"):
            return
        if files or _PLAIN.issuperset(text):
            parts = text if files or bars_only else text.replace(",", "|")
            self.names = frozenset(part.strip() for part in parts.split("|"))
        else:
            self.regex = compile_javascript(text)

    def fits(self, name: str) -> bool:
        """Tell whether a name matches. Case counts."""
        if self.names is not None:
            return name in self.names
        return self.regex is None or self.regex.search(name[:LONGEST]) is not None

    def fits_any(self, names: Iterable[str]) -> bool:
        """Tell whether one of several names for the same thing matches."""
        return any(self.fits(name) for name in names)


def wrong_pattern(text: str, error: BadPattern | NoTranslation) -> tuple[str, str]:
    """Return cause and remedy for a matcher that cannot be used."""
    if _is_rule(text):
        return _rule_words(text)
    if isinstance(error, NoTranslation):
        return (
            f"the matcher {text[:60]!r} {error}",
            "Write it without what Python lacks, or as a list of names.",
        )
    if text.startswith("(?i)"):
        return (
            f"the matcher {text[:60]!r} is no JavaScript expression ({error})",
            "Case always counts; write [Bb]ash, say.",
        )
    return f"the matcher {text[:60]!r} is no JavaScript expression ({error})", "Correct it."


def doubts(text: str, *, tools: bool) -> list[tuple[str, str, str]]:
    """Return what is odd about a matcher that can be used, each as (severity, cause, remedy).

    Parameters:
        text: the matcher.
        tools: whether it is compared with tool names.
    """
    matcher = Matcher(text)
    if not tools:
        return []
    if matcher.names is not None:
        return [item for name in sorted(matcher.names) for item in _of_name(name, text)]
    if matcher.regex is None:
        return []
    shown = repr(text[:60])
    if _is_rule(text):
        return [("error", *_rule_words(text))]
    if matcher.fits(""):
        return [
            (
                "warning",
                f"the matcher {shown} matches every tool",
                'Write "*" if it should; else a list of names.',
            )
        ]
    if text.startswith("mcp__") and text.endswith("__*"):
        return [
            (
                "warning",
                f"the matcher {shown} is an expression that also catches servers whose name goes on with _",
                f"Write {text[:-1] + '.*'!r}.",
            )
        ]
    if "mcp" not in text and not any(matcher.fits(name) for name in TOOLS):
        return [("warning", f"the matcher {shown} matches no tool that Claude Code has", "Correct it.")]
    return []


def _is_rule(text: str) -> bool:
    name, bracket, _ = text.partition("(")
    return bool(bracket) and text.endswith(")") and (name in TOOLS or name.startswith("mcp__"))


def _rule_words(text: str) -> tuple[str, str]:
    name, _, inside = text.partition("(")
    return (
        f"the matcher {text[:60]!r} is a permission rule, which no tool's name matches",
        f'Write "matcher": "{name}", and "if": "{name}({inside[:40]}" in the hook.',
    )


def _of_name(name: str, text: str) -> list[tuple[str, str, str]]:
    shown = repr(text[:60])
    if name.startswith("mcp__") and (name.count("__") < 2 or name.endswith("__")):
        server = name.strip("_").removeprefix("mcp").strip("_") or "server"
        return [
            (
                "error",
                f"the matcher {shown} names {name!r}, which is no tool's whole name",
                f'Write "mcp__{server}__.*" for all tools of a server.',
            )
        ]
    if not name and len(text.strip(" |,")) < len(text.strip()):
        return []  # a bar too many: harmless
    if not name or name in TOOLS or name.startswith("mcp__"):
        return []
    from ...spec.errors import did_you_mean

    same = [known for known in TOOLS if known.lower() == name.lower()]
    near = f" (did you mean {same[0]!r}? case counts)" if same else did_you_mean(name, TOOLS)
    return [
        (
            "warning",
            f"the matcher {shown} names {name!r}, a tool that Claude Code does not have{near}",
            "Correct it.",
        )
    ]
