"""JavaScript's regular expressions in Python's: translated, or refused as JavaScript would refuse them.

The two share most of their syntax and differ in what this file is about: ``(?i)`` and
``(?P<x>...)`` are Python's only, ``(?<x>...)``, ``[^]`` and ``\\cA`` JavaScript's only, ``$``, ``.``,
``\\d``, ``\\s``, ``\\A`` and unmatched backreferences mean something else. Source: ECMA-262, 22.2.1
and annex B.1.2 (no flags).
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


class BadPattern(ValueError):
    """JavaScript refuses the pattern."""


class NoTranslation(ValueError):
    """JavaScript takes the pattern, and Python cannot express it."""


_LAST = "\U0010ffff"
_DIGIT = "0-9"
_NO_DIGIT = rf"\x00-\x2f\x3a-{_LAST}"
_WORD = "0-9A-Z_a-z"
_NO_WORD = rf"\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-{_LAST}"
_SPACE = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NO_SPACE = (
    r"\x00-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    rf"\u3001-\ufefe\uff00-{_LAST}"
)
_SETS = {"d": _DIGIT, "D": _NO_DIGIT, "w": _WORD, "W": _NO_WORD, "s": _SPACE, "S": _NO_SPACE}
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_NO_LINE_END = r"[^\n\r\u2028\u2029]"
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??")
_NAME = re.compile(r"<([^<>\s]+)>")


def compile_javascript(pattern: str) -> re.Pattern[str]:
    """Return a compiled expression that finds what JavaScript's ``new RegExp(pattern).test(text)`` finds.

    Text is taken by characters; JavaScript takes those beyond U+FFFF as two.

    Parameters:
        pattern: the expression, without slashes and flags.

    Raises:
        BadPattern: where JavaScript says SyntaxError.
        NoTranslation: where Python cannot do it, a look-behind of no fixed length above all.
    """
    text = _Translation(pattern).run()
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise NoTranslation(f"cannot be expressed here: {error}") from None


class _Translation:
    """Goes through a pattern once, from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.out: list[str] = []
        self.open: list[
            tuple[int, bool]
        ] = []  # number of each open group (0: none), and if it may be repeated
        self.groups = 0
        self.closed: set[int] = set()
        self.total, self.names = _groups_of(pattern)
        self.repeatable = False

    def run(self) -> str:
        while self.at < len(self.pattern):
            self._next()
        if self.open:
            self._refuse("unterminated group")
        return "".join(self.out)

    def _refuse(self, why: str) -> NoReturn:
        raise BadPattern(f"{why}, at character {self.at + 1}")

    def _put(self, text: str, width: int, *, repeatable: bool = True) -> None:
        self.out.append(text)
        self.at += width
        self.repeatable = repeatable

    def _next(self) -> None:
        c = self.pattern[self.at]
        quantifier = _QUANTIFIER.match(self.pattern, self.at) if c in "*+?{" else None
        if quantifier is not None:
            self._quantifier(quantifier[0])
        elif c == "(":
            self._group()
        elif c == ")":
            if not self.open:
                self._refuse("unmatched ')'")
            number, repeatable = self.open.pop()
            self.closed.add(number)
            self._put(")", 1, repeatable=repeatable)
        elif c == "[":
            self._class()
        elif c == "\\":
            self._escape()
        elif c == "$":
            self._put(r"\Z", 1, repeatable=False)
        elif c in "^|":
            self._put(c, 1, repeatable=False)
        elif c == ".":
            self._put(_NO_LINE_END, 1)
        else:
            self._put(re.escape(c), 1)

    def _quantifier(self, text: str) -> None:
        if not self.repeatable:
            self._refuse("nothing to repeat")
        low, comma, high = text.rstrip("?").strip("{}").partition(",") if text[0] == "{" else ("", "", "")
        if comma and high and int(low) > int(high):
            self._refuse("numbers out of order in {} quantifier")
        self._put(text, len(text), repeatable=False)

    def _group(self) -> None:
        rest = self.pattern[self.at : self.at + 4]
        if not rest.startswith("(?"):
            self.groups += 1
            self.open.append((self.groups, True))
            self._put("(", 1, repeatable=False)
            return
        for start, repeatable in (
            ("(?:", True),
            ("(?=", True),
            ("(?!", True),
            ("(?<=", False),
            ("(?<!", False),
        ):
            if rest.startswith(start):
                self.open.append((0, repeatable))
                self._put(start, len(start), repeatable=False)
                return
        name = _NAME.match(self.pattern, self.at + 2)
        if name is None or not _is_name(name[1]):
            self._refuse("invalid group")
        self.groups += 1
        self.open.append((self.groups, True))
        self._put("(", 2 + len(name[0]), repeatable=False)

    def _escape(self) -> None:
        c = self.pattern[self.at + 1 : self.at + 2]
        if not c:
            self._refuse("\\ at end of pattern")
        if c in "bB":
            # Python's own \B does not match the empty text before 3.14.
            self._put(r"(?a:\b)" if c == "b" else r"(?!(?a:\b))", 2, repeatable=False)
        elif c in _SETS:
            self._put(f"[{_SETS[c]}]", 2)
        elif c == "k" and self.names:
            name = _NAME.match(self.pattern, self.at + 2)
            if name is None or name[1] not in self.names:
                self._refuse("invalid named reference")
            self._put(self._reference(self.names[name[1]]), 2 + len(name[0]))
        elif c in "123456789":
            digits = re.match("[0-9]+", self.pattern[self.at + 1 :])
            assert digits is not None
            if int(digits[0][:6]) <= self.total:
                self._put(self._reference(int(digits[0])), 1 + len(digits[0]))
            else:
                char, width = self._character()
                self._put(re.escape(char), width)
        else:
            char, width = self._character()
            self._put(re.escape(char), width)

    def _reference(self, number: int) -> str:
        # A group that took no part matches nothing in Python and the empty text in JavaScript.
        return rf"(?:(?({number})\{number}|))" if number in self.closed else "(?:)"

    def _character(self) -> tuple[str, int]:
        """Return the one character that an escape stands for, and the length of the escape."""
        rest = self.pattern[self.at + 1 :]
        c = rest[0]
        if c in _CONTROLS:
            return _CONTROLS[c], 2
        if c == "c":
            if re.match("c[A-Za-z]", rest):
                return chr(ord(rest[1]) % 32), 3
            return "\\", 1
        found = re.match("x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}", rest)
        if found is not None:
            return chr(int(found[0][1:], 16)), 1 + len(found[0])
        found = re.match("[0-3][0-7]{0,2}|[4-7][0-7]?", rest)
        if found is not None:
            return chr(int(found[0], 8)), 1 + len(found[0])
        return c, 2

    def _class(self) -> None:
        self.at += 1
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        items: list[tuple[str, bool]] = []  # each character or set, and whether it is a set
        while True:
            if self.at >= len(self.pattern):
                self._refuse("unterminated character class")
            c = self.pattern[self.at]
            if c == "]":
                break
            if c != "\\":
                items.append((c, False))
                self.at += 1
                continue
            following = self.pattern[self.at + 1 : self.at + 2]
            if not following:
                self._refuse("\\ at end of pattern")
            if following in _SETS:
                items.append((_SETS[following], True))
                self.at += 2
            elif following == "b":
                items.append(("\b", False))
                self.at += 2
            else:
                char, width = self._character()
                items.append((char, False))
                self.at += width
                if width > 1 and char == "-":  # an escaped hyphen makes no range
                    items[-1] = (r"\-", True)
        inner = self._ranges(items)
        if inner:
            self._put(f"[{'^' * negated}{inner}]", 1)
        else:
            self._put(rf"[\x00-{_LAST}]" if negated else "(?!)", 1)

    def _ranges(self, items: list[tuple[str, bool]]) -> str:
        text, index = "", 0
        while index < len(items):
            value, is_set = items[index]
            if index + 2 < len(items) and items[index + 1] == ("-", False):
                end, end_is_set = items[index + 2]
                if not is_set and not end_is_set:
                    if value > end:
                        self._refuse("range out of order in character class")
                    text += f"{_in_class(value)}-{_in_class(end)}"
                    index += 3
                    continue
            text += value if is_set else _in_class(value)
            index += 1
        return text


def _in_class(char: str) -> str:
    return char if char.isalnum() else f"\\{char}" if char.isprintable() and char.isascii() else _code(char)


def _code(char: str) -> str:
    return f"\\U{ord(char):08x}"


def _is_name(name: str) -> bool:
    return not name[0].isdigit() and name.replace("$", "_").isidentifier()


def _groups_of(pattern: str) -> tuple[int, dict[str, int]]:
    """Return how many groups a pattern has, and the numbers of those with a name.

    Raises:
        BadPattern: when two have the same name.
    """
    count, names, in_class, at = 0, dict[str, int](), False, 0
    while at < len(pattern):
        c = pattern[at]
        if c == "\\":
            at += 1
        elif c == "[":
            in_class = True
        elif c == "]":
            in_class = False
        elif c == "(" and not in_class:
            name = _NAME.match(pattern, at + 2) if pattern.startswith("(?<", at) else None
            if name is not None and name[1][0] not in "=!":
                count += 1
                if name[1] in names:
                    raise BadPattern(f"two groups are named {name[1]}")
                names[name[1]] = count
            elif not pattern.startswith("(?", at):
                count += 1
        at += 1
    return count, names
