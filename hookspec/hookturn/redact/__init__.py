"""Finds secrets in texts and data and takes them out; public, and the only place that knows what a secret is.

    redact(text)         the text, with ``[REDACTED:<rule>:<tag>]`` where a secret was
    redact_value(data)   the same for everything in dicts and lists
    find(text)           where they are
    Secret(text)         text that hides itself
    workspace_key(dir)   the key that makes equal secrets have equal tags

Nothing of the rules is loaded before the first text is looked at.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .rules import Rule as Rule
    from .scan import Finding as Finding
    from .scan import Scanner
    from .secret import Secret as Secret
    from .secret import workspace_key as workspace_key

    RULES: tuple[Rule, ...]

__all__ = ["RULES", "Finding", "Rule", "Secret", "find", "redact", "redact_value", "workspace_key"]

_scanner: Scanner | None = None

_SHORTEST = 8
"""No rule matches less, literal and value together."""


def __getattr__(name: str) -> Any:
    if name in ("Secret", "workspace_key"):
        from . import secret

        return getattr(secret, name)
    if name == "Finding":
        from .scan import Finding

        return Finding
    if name == "Rule":
        from .rules import Rule

        return Rule
    if name == "RULES":
        return _ready().rules
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _ready() -> Scanner:
    global _scanner
    if _scanner is None:
        from .generic import generic_rules
        from .providers import provider_rules
        from .scan import Scanner

        _scanner = Scanner((*provider_rules(), *generic_rules()))
    return _scanner


def find(text: str) -> list[Finding]:
    """Return the secrets in ``text``: where they stand, by which rule; in order, none overlapping.

    Parameters:
        text: any text, however long; lone surrogates and NUL included.
    """
    if len(text) < _SHORTEST:
        return []
    return (_scanner or _ready()).find(text)


def redact(text: str, key: bytes | None = None) -> str:
    """Return ``text`` with ``[REDACTED:<rule>:<tag>]`` in place of every secret. Doing it twice changes nothing.

    Parameters:
        text: any text.
        key: equal secrets get equal tags under one key (see ``workspace_key``); default: a random key of
            this process.
    """
    found = find(text)
    if not found:
        return text
    from .scan import MAX_ROUNDS
    from .secret import marker, process_key

    key = key or process_key()
    for _ in range(MAX_ROUNDS):
        parts = []
        at = 0
        for finding in found:
            parts.append(text[at : finding.start])
            parts.append(marker(finding.rule, text[finding.start : finding.end], key))
            at = finding.end
        parts.append(text[at:])
        text = "".join(parts)
        found = find(text)
        if not found:
            break
    return text


# Names whose value is a secret whatever it looks like, compared without "-", "_" and blanks.
_SECRET_NAMES = (
    "password", "passwd", "pwd", "passphrase", "passcode", "secret", "secretkey", "apikey", "accesskey", "privatekey",
    "authkey", "signingkey", "encryptionkey", "accountkey", "sharedkey", "masterkey", "secretaccesskey", "authorization",
    "authtoken", "accesstoken", "refreshtoken", "idtoken", "sessiontoken", "bearertoken", "apitoken", "csrftoken",
    "clientsecret", "token", "credential", "credentials", "cookie", "setcookie", "connectionstring", "webhooksecret",
)  # fmt: skip
_names: dict[str, bool] = {}


def secret_name(name: str) -> bool:
    """Tell whether a key of this name holds a secret: ``password``, ``X-Api-Key``, ``dbPassword``, not ``max_tokens``."""
    known = _names.get(name)
    if known is None:
        plain = name.lower().replace("-", "").replace("_", "").replace(" ", "").replace(".", "")
        known = plain.endswith(_SECRET_NAMES)
        if len(_names) < 4096:  # names come from payloads
            _names[name] = known
    return known


def redact_value(value: Any, key: bytes | None = None) -> Any:
    """Return a copy of nested data with the secrets in its texts replaced, those in keys of dicts too.

    A text under a name that says "secret" (``password``, ``authorization``, ``api_key``) is replaced whole.

    Parameters:
        value: JSON-like data; dicts, lists and tuples are walked, other objects than texts kept.
        key: as for ``redact``.
    """
    if isinstance(value, str):
        return redact(value, key) if len(value) >= _SHORTEST else value
    if isinstance(value, dict):
        return {
            (name if name in _clean else _clean_name(name, key)): _hidden(item, key)
            if name.__class__ is str and secret_name(name)
            else redact_value(item, key)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [redact_value(item, key) for item in value]
    return value


_clean: set[Any] = set()  # names that hold no secret; nearly all data has the same few


def _clean_name(name: Any, key: bytes | None) -> Any:
    """Return the name of a value with the secrets in it replaced."""
    if name.__class__ is not str:
        return name
    clean = redact(name, key) if len(name) >= _SHORTEST else name
    if clean == name and len(name) <= 100 and len(_clean) < 4096:  # names come from payloads
        _clean.add(name)
    return clean


def _hidden(value: Any, key: bytes | None) -> Any:
    """Return a value that stands under a secret's name: its texts become marks, numbers and booleans stay."""
    if isinstance(value, str):
        from .scan import MARKER
        from .secret import marker, process_key

        if not value or MARKER.fullmatch(value):
            return value
        found = find(value)
        whole = len(found) == 1 and found[0].start == 0 and found[0].end == len(value)
        return marker(found[0].rule if whole else "generic", value, key or process_key())
    if isinstance(value, (list, tuple)):
        return [_hidden(item, key) for item in value]
    return redact_value(value, key)
