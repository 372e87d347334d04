"""Patterns and a JSON Schema against an answer, within a bound of time: a worker process does what can hang."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MAX_TEXT = 200_000
"""Characters of an answer that are looked at."""

START_SECONDS = 10.0
"""How long the worker may take to start, on the slowest machine."""

_SPECIAL = frozenset(r"\.^$*+?{}[]|()")


class Matching:
    """What came of the jobs of one answer.

    Attributes:
        found: pattern -> where it begins in the text, None where it does not match.
        slow: patterns that took too long, and ``schema`` for the schema.
        errors: (where, message) for each violation of the schema.
        wrong: why the schema itself cannot be used, or "".
        trouble: why nothing could be checked, or "".
    """

    __slots__ = ("errors", "found", "slow", "trouble", "wrong")

    def __init__(self) -> None:
        self.found: dict[str, int | None] = {}
        self.slow: list[str] = []
        self.errors: list[tuple[str, str]] = []
        self.wrong = ""
        self.trouble = ""


def match(
    text: str,
    patterns: Sequence[str],
    seconds: float,
    *,
    schema: Any = None,
    value: Any = None,
) -> Matching:
    """Match patterns, and validate a value.

    Parameters:
        text: the answer.
        patterns: regular expressions.
        seconds: processor time that each may take.
        schema: a JSON Schema; None for none.
        value: the data that it is about.
    """
    result = Matching()
    text = text[:MAX_TEXT]
    jobs: list[dict[str, Any]] = []
    for pattern in patterns:
        if _SPECIAL.isdisjoint(pattern):  # a plain text cannot take long, and needs no process
            at = text.find(pattern)
            result.found[pattern] = at if at >= 0 else None
        else:
            jobs.append({"pattern": pattern})
    if schema is not None:
        jobs.append({"schema": schema, "value": value, "path": sys.path})
    if jobs:
        _run(jobs, text, seconds, result)
    return result


def _run(jobs: list[dict[str, Any]], text: str, seconds: float, result: Matching) -> None:
    import json
    from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

    try:
        order = json.dumps({"jobs": jobs, "text": text, "seconds": seconds}).encode("ascii")
    except RecursionError:
        result.trouble = "the data is nested too deep"
        return
    worker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")
    try:
        process = Popen(  # noqa: S603 - our own file, by the running interpreter
            [sys.executable, "-I", "-S", worker], stdin=PIPE, stdout=PIPE, stderr=DEVNULL
        )
    except OSError as error:
        result.trouble = f"no process can be started ({error})"
        return
    with process:
        late = False
        try:
            output, _ = process.communicate(order, timeout=START_SECONDS + 4 * seconds * len(jobs))
        except TimeoutExpired:
            late = True
            process.kill()
            output, _ = process.communicate()  # the worker has no children that could hold the pipe
        except BaseException:
            process.kill()
            raise
    lines = output.split(b"\n")[:-1]
    for job, line in zip(jobs, lines, strict=False):
        _read(job, json.loads(line), result)
    if len(lines) < len(jobs):
        if late:
            _read(jobs[len(lines)], {"slow": True}, result)
        else:
            result.trouble = f"the worker ended with {process.returncode}"


def _read(job: dict[str, Any], done: dict[str, Any], result: Matching) -> None:
    if "slow" in done:
        result.slow.append(job.get("pattern", "schema"))
    elif "pattern" in job:
        result.found[job["pattern"]] = done["found"]
    else:
        result.wrong = done.get("wrong", "")
        result.errors = [(where, message) for where, message in done.get("errors", ())]


def structured(text: str) -> tuple[bool, Any]:
    """Return whether an answer is JSON, with or without a fence around it, and the data.

    Parameters:
        text: the answer.
    """
    import json

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    text = text[:MAX_TEXT].strip()
    for candidate in (text, _fenced(text)):
        try:
            return True, json.loads(candidate, parse_constant=refuse)
        except (ValueError, RecursionError):
            continue
    return False, None


def _fenced(text: str) -> str:
    """Return what stands in a text's only fence, or an empty text."""
    blocks: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
            if inside:
                blocks.append([])
        elif inside:
            blocks[-1].append(line)
    return "\n".join(blocks[0]) if len(blocks) == 1 and not inside else ""
