"""Finds and replaces secrets: one pass looks for the literals of all rules, a rule judges only where one stands."""

from __future__ import annotations

import re

from .trie import trie

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .rules import Rule

MARKER = re.compile(r"\[REDACTED:[a-z0-9-]{1,40}:[0-9a-f]{8}\]")
"""What stands where a secret was: the rule's name, and what equal secrets have in common."""

MAX_ROUNDS = 8
"""Taking a secret out can lay open another beside it; after so many rounds a text is left as it is."""


MANY = 20_000
"""Characters after which one compiled pattern for all literals is worth its cost."""


class Finding:
    """A secret in a text.

    Parameters:
        rule: the rule's name.
        start: index of its first character.
        end: index after its last one.
        specific: True for a provider's documented format, False for a likely secret.
    """

    __slots__ = ("end", "rule", "specific", "start")

    def __init__(self, rule: str, start: int, end: int, specific: bool) -> None:
        self.rule = rule
        self.start = start
        self.end = end
        self.specific = specific

    def __repr__(self) -> str:
        return f"Finding({self.rule!r}, {self.start}, {self.end}, specific={self.specific})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Finding):
            return NotImplemented
        return (self.rule, self.start, self.end, self.specific) == (
            other.rule,
            other.start,
            other.end,
            other.specific,
        )

    __hash__ = None  # type: ignore[assignment]


class Scanner:
    """The rules, made ready for one pass over a text.

    Parameters:
        rules: in the order in which they are asked where several have the same literal.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        own: dict[str, list[Rule]] = {}
        for rule in rules:
            for literal in rule.literals:
                own.setdefault(literal, []).append(rule)
        # A literal that begins with another one hides it from the search: ask the rules of both.
        self._by_literal = {
            literal: tuple(
                (rule, literal[:length])
                for length in range(len(literal), 0, -1)
                for rule in own.get(literal[:length], ())
            )
            for literal in own
        }
        self._literals = tuple(own)
        self._search: Callable[..., re.Match[str] | None] | None = None
        self._seen = 0  # characters looked at before the pattern was compiled

    def find(self, text: str) -> list[Finding]:
        """Return the secrets in ``text``, in order, none overlapping. What is redacted already is not looked at."""
        if "[REDACTED:" not in text:
            return self._find(text, 0, len(text))
        found: list[Finding] = []
        at = 0
        for marker in MARKER.finditer(text):
            found += self._find(text[at : marker.start()], at, marker.start() - at)
            at = marker.end()
        found += self._find(text[at:], at, len(text) - at)
        return found

    def _find(self, text: str, offset: int, length: int) -> list[Finding]:
        search = self._search
        if search is None:
            # Compiling takes as long as looking for every literal in a hundred short texts, and a process
            # that an agent starts for one event sees only a few.
            self._seen += length + 200
            if self._seen < MANY and not any(literal in text for literal in self._literals):
                return []
            search = self._search = re.compile(trie(self._literals)).search
        by_literal = self._by_literal
        found: list[Finding] = []
        at = 0
        free = -1
        taken = 0  # end of the last likely secret: its characters can only belong to a specific one
        while at < length:
            hit = search(text, at)
            if hit is None:
                break
            start = hit.start()
            at = start + 1
            for rule, literal in by_literal[hit.group()]:
                if start < taken and not rule.specific:
                    continue
                matched = rule.match(text, start, literal, free)
                if matched is None:
                    continue
                low, high, name, specific = matched
                found.append(Finding(name, low + offset, high + offset, specific))
                if rule.specific:
                    at = max(at, high)
                    free = high
                else:
                    taken = high
                break
        return _apart(found) if len(found) > 1 else found


def _apart(found: list[Finding]) -> list[Finding]:
    """Join findings that overlap into one; it has the name of the specific one."""
    found.sort(key=lambda finding: (finding.start, -finding.end))
    result = [found[0]]
    for finding in found[1:]:
        last = result[-1]
        if finding.start >= last.end:
            result.append(finding)
            continue
        named = finding if finding.specific and not last.specific else last
        result[-1] = Finding(named.rule, last.start, max(last.end, finding.end), named.specific)
    return result
