"""Compares release numbers of distributions, for ``version: ">=2"`` of a plugin: the part of PEP 440 that it needs."""

from __future__ import annotations

import re

from .problems import kind_of, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VERSION = re.compile(
    r"\s*v?(?:(\d+)!)?(\d+(?:\.\d+)*)"
    r"(?:[-_.]?(a|alpha|b|beta|c|rc|pre|preview)[-_.]?(\d*))?"
    r"(?:-(\d+)|[-_.]?(?:post|rev|r)[-_.]?(\d*))?"
    r"(?:[-_.]?(dev)[-_.]?(\d*))?"
    r"(?:\+[a-z0-9._-]+)?\s*",
    re.IGNORECASE,
)
_SPEC = re.compile(r"\s*(~=|==|!=|<=|>=|<|>)\s*([^\s,]+)\s*")
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_FINAL = 3


def parse(text: str) -> tuple[Any, ...] | None:
    """Return a version as a tuple that orders as PEP 440 says, or None when it is none."""
    match = _VERSION.fullmatch(text) if len(text) <= 100 else None
    if match is None:
        return None
    epoch, release, stage, number, post_dash, post, dev, dev_number = match.groups()
    parts = [int(part) for part in release.split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    has_post = post_dash is not None or post is not None
    pre = (_STAGES[stage.lower()], int(number or 0)) if stage else (_FINAL, 0)
    if dev and not stage and not has_post:
        pre = (-1, 0)  # 1.0.dev1 comes before 1.0a1
    return (
        int(epoch or 0),
        tuple(parts),
        pre,
        int(post_dash or post or 0) if has_post else -1,
        (0, int(dev_number or 0)) if dev else (1, 0),
    )


def check_spec(spec: object) -> str:
    """Return what is wrong with a specification such as ``>=2,<3``, or an empty string."""
    if not isinstance(spec, str):
        return f"expected versions such as '>=2', got {kind_of(spec)}"
    for part in spec.split(","):
        match = _SPEC.fullmatch(part)
        if match is None:
            return f"{show(part.strip())} is no comparison of versions"
        operator, version = match.groups()
        if operator in ("==", "!="):
            version = version.removesuffix(".*")
        if parse(version) is None:
            return f"{show(version)} is no version"
        if operator == "~=" and "." not in version:
            return f"'~=' needs at least two numbers, got {show(version)}"
    return ""


def satisfies(version: str, spec: str) -> bool:
    """Tell whether a version fulfils every comparison of a specification. A version that cannot be read does not."""
    have = parse(version)
    return have is not None and all(_holds(have, part) for part in spec.split(","))


def _holds(have: tuple[Any, ...], comparison: str) -> bool:
    match = _SPEC.fullmatch(comparison)
    if match is None:
        return False
    operator, text = match.groups()
    if text.endswith(".*"):
        return _starts_with(have, text[:-2]) is (operator == "==")
    want = parse(text)
    if want is None:
        return False
    if operator == "~=":
        return have >= want and _starts_with(have, text.rpartition(".")[0])
    if operator == "<":  # 2.0rc1 is not "before 2.0"
        return have < want and not (have[:2] == want[:2] and want[2][0] == _FINAL and have[2][0] != _FINAL)
    if operator == ">":  # 2.0.post1 is not "after 2.0"
        return have > want and not (have[:3] == want[:3] and want[3] == -1)
    return {"==": have == want, "!=": have != want, "<=": have <= want, ">=": have >= want}[operator]


def _starts_with(have: tuple[Any, ...], prefix: str) -> bool:
    numbers = [int(part) for part in re.findall(r"\d+", prefix)]
    release = [*have[1], *[0] * len(numbers)]
    return release[: len(numbers)] == numbers
