"""Matches patterns and a JSON Schema in a process of its own, which can be stopped: both can take for ever.

It is run as a script and imports nothing of hookturn. Standard input holds one
JSON object; each finished job becomes a line of JSON on standard output.
"""

from __future__ import annotations

import json
import re
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_ERRORS = 5


class TooSlowError(Exception):
    """A job took longer than it may."""


def _stop(*_: object) -> None:
    raise TooSlowError


def _timer(seconds: float) -> None:
    # Processor time, so that a busy machine makes no pattern slow. Where there is no such timer, the caller's
    # own limit holds.
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _pattern(job: dict[str, Any], text: str) -> dict[str, Any]:
    found = re.search(job["pattern"], text)
    return {"found": None if found is None else found.start()}


def _schema(job: dict[str, Any]) -> dict[str, Any]:
    """Validate a value; no address in the schema is ever fetched."""
    sys.path[:] = job["path"]
    # Not by statements: type checkers need not have an extra's packages.
    from importlib import import_module

    jsonschema: Any = import_module("jsonschema")
    unresolvable: Any = import_module("referencing.exceptions").Unresolvable
    registry: Any = import_module("referencing.jsonschema").EMPTY_REGISTRY
    schema = job["schema"]
    cls = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        cls.check_schema(schema)
        validator = cls(schema, registry=registry)
        errors = []
        for error in validator.iter_errors(job["value"]):
            errors.append([error.json_path, error.message[:1000]])
            if len(errors) == MAX_ERRORS:
                break
    except jsonschema.SchemaError as error:
        return {"wrong": f"{error.json_path}: {error.message[:1000]}"}
    except unresolvable as error:
        return {"wrong": f"{type(error).__name__}: {error}"[:1000]}
    except RecursionError:
        return {"wrong": "it leads back to itself without end"}
    return {"errors": errors}


def main() -> None:
    """Do the jobs of standard input."""
    order = json.loads(sys.stdin.buffer.read())
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, _stop)
    for job in order["jobs"]:
        try:
            _timer(order["seconds"])
            done = _schema(job) if "schema" in job else _pattern(job, order["text"])
            _timer(0)
        except (TooSlowError, MemoryError):
            done = {"slow": True}
        finally:
            _timer(0)
        sys.stdout.write(json.dumps(done) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
