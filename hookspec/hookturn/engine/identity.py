"""The identity of a tool call: SHA-256 of its canonical JSON (RFC 8785, the JSON Canonicalization Scheme)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_SAFE = 2**53 - 1


def canonical(value: Any) -> str:
    """Return the canonical JSON text of a value (RFC 8785).

    Parameters:
        value: JSON data: None, bool, int, float, str, list or tuple, dict with str keys.

    Returns:
        the text; its UTF-8 bytes are what is hashed.

    Raises:
        ValueError: for NaN, infinity, integers beyond 2^53 - 1, lone surrogates, other types.
    """
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts)


def _write(value: Any, parts: list[str]) -> None:
    if value is None:
        parts.append("null")
    elif value is True:
        parts.append("true")
    elif value is False:
        parts.append("false")
    elif isinstance(value, str):
        parts.append(_string(value))
    elif isinstance(value, int):
        if abs(value) > _MAX_SAFE:
            raise ValueError(f"the integer {value} is beyond 2^53 - 1 and has no canonical form")
        parts.append(str(int(value)))
    elif isinstance(value, float):
        parts.append(_number(value))
    elif isinstance(value, (list, tuple)):
        parts.append("[")
        for index, item in enumerate(value):
            if index:
                parts.append(",")
            _write(item, parts)
        parts.append("]")
    elif isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("an object's keys must be strings")
        parts.append("{")
        # RFC 8785 section 3.2.3: keys are sorted by their UTF-16 code units.
        for index, key in enumerate(
            sorted(value, key=lambda text: text.encode("utf-16-be", "surrogatepass"))
        ):
            if index:
                parts.append(",")
            parts.append(_string(key))
            parts.append(":")
            _write(value[key], parts)
        parts.append("}")
    else:
        raise ValueError(f"{type(value).__name__} has no JSON form")


def _string(text: str) -> str:
    from json.encoder import encode_basestring

    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a lone surrogate has no canonical form") from None
    return encode_basestring(text)


def _number(value: float) -> str:
    """The number as ECMAScript writes it (RFC 8785 section 3.2.2.3)."""
    if value - value != 0:
        raise ValueError(f"{value} has no JSON form")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent_text = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    # value = 0.digits * 10^point
    point = len(whole) + int(exponent_text or "0") - leading
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    exponent = point - 1
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if exponent > 0 else '-'}{abs(exponent)}"


def identity(tool: str, args: Any) -> str:
    """Return the identity of a tool call, to which an approval is bound.

    Parameters:
        tool: the tool's name.
        args: its arguments.

    Returns:
        ``sha256:<hex>`` of the canonical form; arguments without one (huge
        integers, lone surrogates) are hashed in an escaped form under ``sha256-escaped:``.
    """
    import hashlib

    try:
        text = canonical({"tool": tool, "args": args}).encode()
        prefix = "sha256:"
    except ValueError:
        import json

        text = json.dumps([tool, _tagged(args)], sort_keys=True).encode()
        prefix = "sha256-escaped:"
    return prefix + hashlib.sha256(text).hexdigest()


def _tagged(value: Any) -> Any:
    """JSON for anything, texts with a letter in front, so that no two values have the same form."""
    from ..spec.record import jsonable, safe_text

    if isinstance(value, str):
        return f"s{value}"
    if isinstance(value, (bytes, bytearray)):
        return f"b{value.hex()}"
    if isinstance(value, dict):
        return {
            f"s{key}" if isinstance(key, str) else f"o{safe_text(key)}": _tagged(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_tagged(item) for item in value]
    form = jsonable(value)
    return f"o{form}" if isinstance(form, (str, dict, list)) else form
