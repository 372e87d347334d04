"""The checks of an answer: what each finds, in words for the user and in words for the model."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from hookturn.events import TurnComplete

    from . import Config

MAX_TEXT = 1_000_000
"""Characters of an answer that are searched for secrets and texts."""

MAX_NAMED = 5
MAX_SCHEMA = 1_000_000


class Finding:
    """What is wrong with an answer.

    Parameters:
        action: what the settings say is to be done.
        user: what the user reads.
        model: what the model reads as a correction.
        slow: a pattern that took too long, when it is that.
    """

    __slots__ = ("action", "model", "slow", "user")

    def __init__(self, action: str, user: str, model: str = "", *, slow: str = "") -> None:
        self.action = action
        self.user = user
        self.model = model
        self.slow = slow


def every_answer(text: str, config: Config, slow: Sequence[str]) -> list[Finding]:
    """Return what is wrong with any answer: secrets, forbidden patterns and texts.

    Parameters:
        text: the answer.
        config: the settings.
        slow: patterns that are set aside.
    """
    found = _secrets(text[:MAX_TEXT], config)
    if config.substrings and config.on_substrings != "off":
        lower = text[:MAX_TEXT].lower()
        hit = next((part for part in config.substrings if part.lower() in lower), None)
        if hit is not None:
            found.append(
                Finding(
                    config.on_substrings,
                    f"the answer holds {hit!r}",
                    f"Your last answer held {hit!r}, which answers must not hold here.",
                )
            )
    patterns = [pattern for pattern in config.forbidden if pattern not in slow]
    if patterns and config.on_forbidden != "off":
        from .matching import match

        result = match(text, patterns, config.seconds)
        found += _troubles(result)
        found += [
            Finding(
                config.on_forbidden,
                f"the answer matches the forbidden pattern {pattern!r} in line {_line(text, at)}",
                f"Line {_line(text, at)} of your last answer matched the pattern {pattern!r}, which answers must not match here.",
            )
            for pattern, at in result.found.items()
            if at is not None
        ]
    return found


def final_answer(text: str, data: Any, config: Config, slow: Sequence[str], project: str) -> list[Finding]:
    """Return what is wrong with a turn's final answer: required patterns, the schema.

    Parameters:
        text: the answer.
        data: the host's own result object; a dict or list of it is the structured answer.
        config: the settings.
        slow: patterns that are set aside.
        project: the project's folder.
    """
    from .matching import match, structured

    found: list[Finding] = []
    required = [p for p in config.required if p not in slow] if config.on_required != "off" else []
    schema: Any = None
    value: Any = None
    if config.schema is not None and config.on_schema != "off" and "schema" not in slow:
        schema, wrong = _schema(config.schema, project)
        if wrong:
            found.append(Finding("warn", wrong))
        else:
            from hookturn.spec.record import thaw

            is_json, value = (True, thaw(data)) if isinstance(data, (dict, list)) else structured(text)
            if not is_json:
                if config.schema_when == "always":
                    found.append(
                        Finding(
                            config.on_schema,
                            "the answer is no JSON, which its schema asks for",
                            "Your last answer must be one JSON document, as its schema says, and nothing else.",
                        )
                    )
                schema = None
    if not required and schema is None:
        return found
    result = match(text, required, config.seconds, schema=schema, value=value)
    found += _troubles(result)
    for pattern, at in result.found.items():
        if at is None:
            found.append(
                Finding(
                    config.on_required,
                    f"the answer does not match the required pattern {pattern!r}",
                    f"Your last answer did not match the pattern {pattern!r}, which answers must match here.",
                )
            )
    if result.wrong:
        found.append(Finding("warn", f"the schema cannot be used: {result.wrong}"))
    if result.errors:
        from hookturn.redact import redact

        told = "; ".join(f"{where}: {_short(redact(message))}" for where, message in result.errors)
        found.append(
            Finding(
                config.on_schema,
                f"the answer is not as its schema says: {told}",
                f"Your last answer was not as its schema says: {told}. Give the whole answer again, corrected.",
            )
        )
    return found


def claims(event: TurnComplete, config: Config, project: str, known: Callable[[str], Any]) -> list[Finding]:
    """Return what an answer only says it did: files that are not there, commands that were not run.

    Parameters:
        event: the end of the turn.
        config: the settings.
        project: the project's folder.
        known: gives what is remembered of the session: ``words``, ``blind``, ``whole``.
    """
    from .claims import commands, files, key_words

    found: list[Finding] = []
    if config.files != "off":
        named = files(event.text)
        if named:
            found += _files(named, event, config.files, project, known)
    if config.commands != "off" and known("whole") and not known("blind"):
        named = commands(event.text)
        if named:
            words = set(known("words") or ())
            absent = [command for command in named if not words.issuperset(key_words(command))]
            if absent:
                listed = _named(absent)
                found.append(
                    Finding(
                        config.commands,
                        f"the answer says that {listed} ran, and no such command ran in this session",
                        f"You said that you ran {listed}, but no such command ran in this session. "
                        "Run it now, or say that you did not.",
                    )
                )
    return found


def _files(
    named: list[str], event: TurnComplete, action: str, project: str, known: Callable[[str], Any]
) -> list[Finding]:
    from .workspace import missing, roots

    folders = roots(event.cwd, project)
    if not folders:
        return []
    edited = {str(path).replace("\\", "/").rpartition("/")[2] for path in event.edited_files}
    # What a command named may have been moved or removed by it.
    excused = edited.union(known("words") or ())
    absent = missing([name for name in named if name.rpartition("/")[2] not in excused], folders)
    if not absent:
        return []
    listed = _named(absent)
    return [
        Finding(
            action,
            f"the answer names {listed} as written or read, and no such file is in the workspace",
            f"You named {listed} as written or read, but no such file is in the workspace. "
            "Look again, and correct what you said or did.",
        )
    ]


def _secrets(text: str, config: Config) -> list[Finding]:
    if config.secrets == "off" and config.likely_secrets == "off":
        return []
    from hookturn.redact import find

    hits = find(text)
    found = []
    for specific, action in ((True, config.secrets), (False, config.likely_secrets)):
        places = [f"{hit.rule} in line {_line(text, hit.start)}" for hit in hits if hit.specific is specific]
        if not places or action == "off":
            continue
        kind = "a secret" if specific else "what looks like a secret"
        listed = _joined(list(dict.fromkeys(places)))
        found.append(
            Finding(
                action,
                f"the answer holds {kind} ({listed})",
                f"Your last answer held {kind} ({listed}). Do not write secrets: name the variable or the file that holds them.",
            )
        )
    return found


def _schema(schema: str | dict[str, Any], project: str) -> tuple[Any, str]:
    """Return the schema, and what is wrong with its file."""
    if not isinstance(schema, str):
        return schema, ""
    import json

    from hookturn.paths import inside

    try:
        with open(inside(project, schema), "rb") as file:
            content = file.read(MAX_SCHEMA + 1)
        if len(content) > MAX_SCHEMA:
            raise ValueError(f"it has more than {MAX_SCHEMA:,} bytes")
        return json.loads(content), ""
    except (OSError, ValueError, RecursionError) as error:
        return None, f"the schema {schema} cannot be read ({type(error).__name__}: {error})"


def _troubles(result: Any) -> list[Finding]:
    found = []
    for pattern in result.slow:
        what = "the schema" if pattern == "schema" else f"the pattern {pattern!r}"
        found.append(
            Finding("warn", f"{what} takes too long; it is set aside for this session", slow=pattern)
        )
    if result.trouble:
        found.append(Finding("warn", f"the answer was not checked: {result.trouble}"))
    return found


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:197]}..."


def _named(names: list[str]) -> str:
    from hookturn.redact import redact

    return _joined([f"`{_short(redact(name))}`" for name in names])


def _joined(names: list[str]) -> str:
    rest = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")
