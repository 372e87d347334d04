"""Signs webhooks as Standard Webhooks says, so that a receiver knows who sent what, when.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIX = "whsec_"
"""What a secret begins with; the rest is base64."""

SHORTEST, LONGEST = 24, 64
"""Bytes of a secret. Source: "Signature scheme" of the specification."""


def key_of(secret: str) -> bytes:
    """Return the key in a secret.

    Parameters:
        secret: ``whsec_`` and base64; the prefix may be missing.

    Raises:
        ValueError: telling what is wrong, without the secret.
    """
    from base64 import b64decode
    from binascii import Error

    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True)
    except (Error, ValueError):
        raise ValueError(f"the secret is not of the form {PREFIX}<base64>") from None
    if not SHORTEST <= len(key) <= LONGEST:
        raise ValueError(f"the secret holds {len(key)} bytes; it needs {SHORTEST} to {LONGEST}")
    return key


def signature(keys: Iterable[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of ``webhook-signature``: one signature for each key, so that keys can be changed in peace.

    Parameters:
        keys: from ``key_of``, the newest first.
        message_id: the value of ``webhook-id``.
        timestamp: seconds since the epoch, the value of ``webhook-timestamp``.
        body: the request's body.
    """
    from base64 import b64encode
    from hmac import digest

    signed = f"{message_id}.{timestamp}.".encode("ascii") + body
    return " ".join(f"v1,{b64encode(digest(key, signed, 'sha256')).decode('ascii')}" for key in keys)
