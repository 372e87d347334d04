"""The form of a secret rule, and the tests that a match must pass: one table row in, one matcher out.

A rule has literals, of which one stands in every match. The scanner looks for
all literals of all rules in one pass and asks a rule only where one stands.
"""

from __future__ import annotations

import re

from .words import random_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Hit = tuple[int, int, str, bool]

    # (text, start of the secret, its end) -> is it one?
    Check = Callable[[str, int, int], bool]

ALNUM = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
HEX = frozenset("0123456789abcdefABCDEF")


class Lazy:
    """A pattern that is compiled at first use: most processes look at a few short texts and need none of them."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._source = (pattern, flags)

    if TYPE_CHECKING:

        @property
        def match(self) -> Any: ...
        @property
        def search(self) -> Any: ...
        @property
        def fullmatch(self) -> Any: ...
        @property
        def findall(self) -> Any: ...

    else:

        def __getattr__(self, name):
            compiled = re.compile(*self._source)
            self.match, self.search = compiled.match, compiled.search
            self.fullmatch, self.findall = compiled.fullmatch, compiled.findall
            return getattr(compiled, name)


# What stands in documentation where a secret would. Compared in lower case.
_DUMMY = Lazy(
    r"x{4}|\*{3}|\.{3}|0{8}|example|placeholder|your[_-]|changeme|redacted|dummy|insert[_-]|replace[_-]me|foobar"
)


class Rule:
    """One kind of secret.

    Parameters:
        name: the rule's name, as it stands in ``[REDACTED:<name>:...]``: lower case, digits and hyphens.
        literals: texts of which one stands in every match.
        pattern: matches from the literal's first character, or from ``back`` characters before it.
            A group named ``secret`` is what is replaced, else the whole match.
        check: a further test of a match, such as a checksum.
        specific: True for the documented format of a provider, False for a likely secret.
        back: how many characters before the literal a match begins: at least and at most.
        edge: the match begins a token, so it counts only where one may begin.
    """

    __slots__ = ("_compiled", "_group", "back", "check", "edge", "literals", "name", "pattern", "specific")

    def __init__(
        self,
        name: str,
        literals: tuple[str, ...],
        pattern: str,
        check: Check | None = None,
        *,
        specific: bool = True,
        back: tuple[int, int] = (0, 0),
        edge: bool = False,
    ) -> None:
        self.name = name
        self.literals = literals
        self.pattern = pattern
        self.check = check
        self.specific = specific
        self.back = back
        self.edge = edge
        self._compiled: re.Pattern[str] | None = None
        self._group: int | str = "secret" if "(?P<secret>" in pattern else 0

    def __repr__(self) -> str:
        return f"Rule({self.name!r})"

    def match(self, text: str, at: int, literal: str, free: int = -1) -> Hit | None:
        """Return the secret whose literal was found at ``at``, as (start, end, name, specific), or None.

        Parameters:
            text: the whole text.
            at: where the literal begins.
            literal: the literal that was found.
            free: where the last secret ended, so that the next may begin there.
        """
        if self.edge and self.back == (0, 0) and at != free and not token_starts(text, at, literal):
            return None
        compiled = self._compiled
        if compiled is None:
            # Most of the rules are never needed in a process: each is compiled at its first literal.
            compiled = self._compiled = re.compile(self.pattern)
        found = None
        least, most = self.back
        for start in range(max(0, at - most), at - least + 1):
            found = compiled.match(text, start)
            if found is not None and (not self.edge or start in (at, free) or token_starts(text, start, "")):
                break
            found = None
        if found is None:
            return None
        start, end = found.span(self._group)
        if start < 0:
            return None
        if self.check is not None and not self.check(text, start, end):
            return None
        return start, end, self.name, self.specific


def token_starts(text: str, at: int, literal: str) -> bool:
    r"""Tell whether a token may begin at ``at``: not inside a word, but after an escape such as ``\n`` or ``%3D``."""
    if at == 0:
        return True
    if text[at - 1] not in ALNUM:
        # A few letters alone also occur in base64.
        return text[at - 1] not in "+/" or text[at - 2 : at] == "//" or not literal.isalnum()
    if text[at - 1] in "nrtbf" and at >= 2 and text[at - 2] == "\\":
        return True
    return at >= 3 and text[at - 3] == "%" and HEX.issuperset(text[at - 2 : at])


def is_dummy(value: str) -> bool:
    """Tell whether a value is what documentation writes instead of a secret."""
    return _DUMMY.search(value.lower()) is not None


def varied(text: str, start: int, end: int) -> bool:
    """Accept what is not one character or a short pattern repeated."""
    return len(set(text[max(start, end - 32) : end])) >= 7


def token_like(text: str, start: int, end: int) -> bool:
    """Accept a provider's token unless it is a placeholder: ``xxxx``, ``EXAMPLE``, one character repeated."""
    return varied(text, start, end) and not is_dummy(text[start:end])


def token_mixed(text: str, start: int, end: int) -> bool:
    """As ``token_like``, for formats whose body could also be words: most of it must belong to none."""
    value = text[start:end]
    return token_like(text, start, end) and random_part(value[:80]) >= min(12, len(value) * 0.4)


_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def base62_crc(body: str) -> str:
    """Return the six characters that GitHub and npm append: the CRC-32 of the random part in base 62.

    Source: https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/
    """
    from zlib import crc32

    number = crc32(body.encode("ascii"))
    digits = ""
    while number:
        number, rest = divmod(number, 62)
        digits = _BASE62[rest] + digits
    return digits.rjust(6, "0")


def checksum_or_token(text: str, start: int, end: int) -> bool:
    """Accept a token whose checksum is right whatever it looks like; a wrong one must pass ``token_like``.

    A wrong checksum rejects nothing by itself: a cut-off or a new kind of token must not be printed.
    """
    body = text[start:end].partition("_")[2]
    if len(body) == 36 and base62_crc(body[:30]) == body[30:]:
        return True
    return token_like(text, start, end)


def jwt(text: str, start: int, end: int) -> bool:
    """Accept a JSON Web Token whose header is a JSON object with an algorithm (RFC 7515, section 4.1.1)."""
    header = _decode(text[start:end].partition(".")[0])
    return header.lstrip()[:1] == b"{" and b'"alg"' in header


def basic_credentials(text: str, start: int, end: int) -> bool:
    """Accept base64 of ``user:password`` (RFC 7617) unless it is a placeholder's."""
    decoded = _decode(text[start:end])
    _user, colon, password = decoded.partition(b":")
    try:
        plain = decoded.decode()
    except UnicodeDecodeError:
        return False
    return bool(colon and password) and plain.isprintable() and not is_weak(password.decode())


def _decode(text: str) -> bytes:
    from base64 import b64decode
    from binascii import Error

    try:
        return b64decode(text.rstrip("=").replace("-", "+").replace("_", "/") + "===")
    except (Error, ValueError):
        return b""


_WEAK = frozenset(
    [
        "", "password", "passwd", "pass", "pwd", "secret", "token", "user", "username", "admin", "root", "test", "guest",
        "foo", "bar", "baz", "none", "null", "true", "false", "undefined", "string", "value", "key", "hidden",
        "passphrase", "credentials", "mypassword", "mysecret", "mytoken", "p", "pw", "userpass", "qwerty", "secret123",
        "pass123", "password123", "test123", "opensesame", "open sesame", "apikey", "api_key", "example", "default",
    ]
)  # fmt: skip


def is_weak(value: str) -> bool:
    """Tell whether a value is a placeholder, a reference to a variable, or a word that names what it stands for."""
    lower = value.strip().lower()
    return (
        lower in _WEAK
        or lower[:1] in ("$", "<", "%", "{", "@", "/", "~", "&")
        or lower.startswith(("[redacted", "os.", "env", "process.", "http:", "https:", "./", "../", "file:"))
        or "${" in lower
        or "{{" in lower
        or "%(" in lower
        or "{}" in lower
        or is_dummy(lower)
    )
