"""The JSON wire of configured hooks: what a program reads, and how its words become answers. Runs nothing.

``Wire`` is hookturn's own; another agent's dialect has a class of the same shape.

A hook reads ``{"schema": 1, "timing": ..., "event": {...}}`` (and ``config``,
where it has settings) and prints nothing, or one JSON object such as
``{"deny": "why"}``. Anything else is no answer, told with its place.
"""

from __future__ import annotations

from ..spec.answers import Block, Deny, from_json
from ..spec.errors import AnswerError
from ..spec.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..spec.answers import Answer
    from ..spec.events import Event
    from ..spec.timings import Timing
    from .entry import HookEntry

SCHEMA = 1

LONGEST_REASON = 10_000
"""Characters of standard error that become a refusal's reason."""

SHORTEST_SECRET = 4
"""Characters; what is shorter stands in any text."""

_TRIES = 20  # places where a JSON document is looked for in other text, to tell where it is


class NoAnswer(AnswerError):
    """A configured hook ended without an answer: it failed, or could not be understood."""


class FailedToStart(NoAnswer):
    """A configured hook could not be started. This is never a refusal."""


def request(event: Event, config: Any = None) -> bytes:
    """Return what a hook reads: one JSON document, valid whatever the event's texts hold.

    Parameters:
        event: the event.
        config: the hook's settings, secrets revealed; left out where there are none.
    """
    import json

    body = {"schema": SCHEMA, "timing": event.timing, "event": event.to_json()}
    if config:
        body["config"] = config
    # As ASCII: lone surrogates and NUL stay valid as escapes.
    return json.dumps(body, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def read_answer(output: bytes | bytearray, *, truncated: bool = False) -> list[Answer]:
    """Return the answers in a hook's output; none for an empty one.

    Parameters:
        output: what it printed. One byte-order mark is fine.
        truncated: there was more.

    Raises:
        NoAnswer: for anything but one JSON object, telling what is wrong at which byte.
        AnswerError: for an object that is no answer.
    """
    skipped = 3 if output.startswith(b"\xef\xbb\xbf") else 0
    if truncated:
        raise NoAnswer(f"it printed more than the {len(output):,} bytes that an answer may have")
    try:
        text = output[skipped:].decode("utf-8")
    except UnicodeDecodeError as error:
        place = error.start + skipped
        raise NoAnswer(f"its output is not UTF-8: byte {place} is 0x{output[place]:02x}") from None
    begin = len(text) - len(text.lstrip())
    if begin == len(text):
        return []
    try:
        data, end = _parse(text, begin)
    except _BadJson as error:
        raise _noise(text, begin, skipped, error) from None
    rest = len(text) - len(text[end:].lstrip())
    if rest < len(text):
        place = _bytes(text, rest, skipped)
        what = "a second JSON document" if text[rest] == "{" else f"more text ({_excerpt(text[rest:])})"
        raise NoAnswer(
            f"{what} follows its answer after {place} bytes; print one JSON object and nothing else"
        )
    if isinstance(data, dict) and "timing" in data and "event" in data:
        raise NoAnswer("it printed its own input back; print an answer, or nothing")
    return from_json(data)


class _BadJson(Exception):
    """What is wrong with a JSON document, and where in the text."""

    def __init__(self, cause: str, place: int | None = None) -> None:
        super().__init__(cause)
        self.place = place


def _parse(text: str, begin: int) -> tuple[Any, int]:
    """Return the JSON document that begins at a place, and where it ends."""
    import json

    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number)
    try:
        return decoder.raw_decode(text, begin)
    except json.JSONDecodeError as error:
        raise _BadJson(error.msg, error.pos) from None
    except RecursionError:
        raise _BadJson("it is nested too deep") from None
    except ValueError as error:  # a number of thousands of digits
        raise _BadJson(str(error)) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        double = next(key for key in keys if keys.count(key) > 1)
        raise _BadJson(f"the key {double!r} stands twice in an object")
    return data


def _no_number(word: str) -> Any:
    raise _BadJson(f"{word} is no JSON")


def _noise(text: str, begin: int, skipped: int, error: _BadJson) -> NoAnswer:
    """Tell what an output is that does not begin with a JSON document."""
    at = begin if text[begin] == "{" else text.find("{", begin)
    first = at
    for _ in range(_TRIES):
        if at < 0:
            break
        if at > begin:
            try:
                _parse(text, at)
            except _BadJson:
                pass  # the next brace may begin one
            else:
                place = _bytes(text, at, skipped)
                return NoAnswer(
                    f"JSON found after {place} bytes of text ({_excerpt(text[begin:at])}); print the JSON alone"
                )
        at = text.find("{", at + 1)
    if first == begin:
        where = "" if error.place is None else f" at byte {_bytes(text, error.place, skipped)}"
        return NoAnswer(f"its answer is not valid JSON: {error}{where}")
    return NoAnswer(f"its output is no JSON ({_excerpt(text[begin:])}); print one JSON object, or nothing")


def _bytes(text: str, place: int, skipped: int) -> int:
    return len(text[:place].encode()) + skipped


def _excerpt(text: str) -> str:
    """Return the begin of a text for a message: one printable line, without secrets."""
    from ..redact import redact

    text = redact(text[:200])
    return ascii(text if len(text) <= 60 else f"{text[:57]}...")


def refusal(timing: Timing, event: Event, reason: str) -> Answer:
    """Return the answer of a hook that refuses without JSON: Deny, or Block where only that is allowed.

    Parameters:
        timing: where.
        event: what about.
        reason: its words.

    Raises:
        NoAnswer: where nothing can be refused.
    """
    if len(reason) > LONGEST_REASON:
        reason = f"{reason[:LONGEST_REASON]}..."
    if timing.name == "on_event":
        names = tuple(event.accepts)
    else:
        names = tuple(kind.__name__ for kind in timing.answers)
    if "Deny" in names:
        return Deny(reason)
    if "Block" in names:
        return Block(reason)
    raise NoAnswer(f"it refused ({_excerpt(reason)}), and nothing can be refused at {timing.name}")


class Ended(Record):
    """How a program came to its own end (one that was stopped or never started gives no answer).

    Parameters:
        exit_code: its exit code, or None when a signal ended it.
        stdout, stderr: what it printed, cut at the runner's bound.
        truncated: there was more of standard output.
        ended: in words: ``ended with exit code 3``.
    """

    exit_code: Any = None
    stdout: bytes = b""
    stderr: bytes = b""
    truncated: bool = False
    ended: str = ""

    @property
    def said(self) -> str:
        """Its standard error as text."""
        return bytes(self.stderr).decode("utf-8", "replace").replace("\0", "").strip()


class Wire:
    """How a configured hook is spoken to and understood. A dialect overrides what its agent does otherwise."""

    longest_value = 1_000
    """Bytes of a variable from ``environment``; a longer one is left out."""

    def request(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, config: Any) -> bytes:
        """Return what the hook reads on standard input (a webhook: in the body).

        Parameters:
            entry: the configured hook.
            timing, event, ctx: where, what about, and the hook's capabilities.
            config: its settings as plain JSON, secrets revealed.
        """
        return request(event, config)

    def environment(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any) -> dict[str, str]:
        """Return the variables that a program gets beside the agent's own; one that is too long is left out."""
        return {
            "HOOKTURN_TIMING": timing.name,
            "HOOKTURN_SESSION_ID": event.session_id,
            "HOOKTURN_TOOL": getattr(event, "tool", ""),
            "HOOKTURN_PROJECT_DIR": ctx.project_dir,
            "HOOKTURN_HOOK": entry.name,
            "HOOKTURN_HOOK_DIR": entry.base_dir,
        }

    def folder(self, entry: HookEntry, event: Event, ctx: Any) -> str:
        """Return the folder where a program runs."""
        folder: str = ctx.project_dir
        return folder

    def over(self, environment: Mapping[str, str]) -> None:
        """Called once the program has ended, however it did: what ``environment`` made for it can go."""

    def answers(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, ended: Ended) -> list[Answer]:
        """Return what a program's end means.

        Raises:
            NoAnswer, AnswerError, EventError: it failed, or cannot be understood; the words go to people
                (the runner puts the hook's place before them and hides secrets).
        """
        if ended.exit_code == 0:
            return read_answer(ended.stdout, truncated=ended.truncated)
        if ended.exit_code == 2 and ended.said:
            return [refusal(timing, event, ended.said)]
        if ended.exit_code == 2:
            raise NoAnswer("exit code 2 without a reason on standard error, so it is no refusal")
        hint = ""
        if ended.exit_code is not None:
            then = "" if entry.fails_closed else ", and the agent goes on"
            hint = f" (exit code 2 with words on standard error denies; any other is a failure{then})"
        raise NoAnswer(f"the command {ended.ended}" + last_words(ended.stderr) + hint)


def last_words(output: bytes | bytearray) -> str:
    """Return the last line that holds something, for a message: ``: permission denied``, or an empty string."""
    lines = bytes(output[-4_000:]).decode("utf-8", "replace").split("\n")
    line = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {shown(line)}" if line else ""


def shown(words: str) -> str:
    """Return a program's words for a message: without secrets, one line, not too long."""
    from ..redact import redact

    text = redact(words.strip())[:300]
    return text if text.isprintable() else ascii(text)[1:-1]


class Hidden:
    """The secrets in a hook's settings: revealed to the hook, and taken out of whatever it says.

    Parameters:
        config: the settings, with ``Secret`` objects in them.
    """

    def __init__(self, config: Any) -> None:
        found = {pair for pair in _secrets(config) if len(pair[0]) >= SHORTEST_SECRET}
        self._secrets = sorted(found, key=lambda pair: -len(pair[0]))

    def hide(self, text: str) -> str:
        """Return a text with each secret's mark in its place."""
        for value, mark in self._secrets:
            text = text.replace(value, mark)
        return text

    def hide_bytes(self, output: bytes) -> bytes:
        """Return a program's output without the secrets, before anything is cut off it."""
        if not self._secrets:
            return output
        return self.hide(output.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def in_words(self, answers: list[Answer]) -> list[Answer]:
        """Return answers without secrets in the words that people and models read; other data is kept."""
        if not self._secrets:
            return answers
        return [self._answer(answer) for answer in answers]

    def _answer(self, answer: Answer) -> Answer:
        words = {
            name: self.hide(value)
            for name in ("reason", "advice", "text")
            if isinstance(value := getattr(answer, name, None), str)
        }
        if all(getattr(answer, name) == value for name, value in words.items()):
            return answer
        fields = {name: getattr(answer, name) for name in answer._fields}
        return type(answer)(**{**fields, **words})


def _secrets(value: Any) -> Iterable[tuple[str, str]]:
    from ..redact import Secret

    if isinstance(value, Secret):
        yield value.reveal(), str.__str__(value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _secrets(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _secrets(item)


def reveal(value: Any) -> Any:
    """Return settings with their secrets as plain texts, for the hook's own eyes."""
    from ..redact import Secret

    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, dict):
        return {key: reveal(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [reveal(item) for item in value]
    return value
