"""What a hook may answer. A hook returns None, one answer, or a list of answers.

Which timing takes which answer stands in each hookspec (``hookturn.spec.timings``).
A list holds at most one of Allow, Ask, Deny and Block.
"""

from __future__ import annotations

from .errors import AnswerError, wrong_type
from .record import Record, freeze, jsonable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Literal

    Strategy = Literal[
        "retry", "compact", "truncate", "summarize", "fallback_model", "remind_and_retry", "abort"
    ]

STRATEGIES = ("retry", "compact", "truncate", "summarize", "fallback_model", "remind_and_retry", "abort")


class Answer(Record):
    """Base of all answers. Derive from it for an answer of your own framework's timing.

    ``merge`` says what ``Outcome.of(YourAnswer)`` returns when several hooks
    gave one: ``"all"`` (a list, in order), ``"first"`` or ``"last"`` (one or None).
    """

    merge: ClassVar[str] = "all"
    _wrong = AnswerError

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.merge not in ("all", "first", "last"):
            raise AnswerError(f"{cls.__name__}.merge must be 'all', 'first' or 'last', got {cls.merge!r}")

    def to_json(self) -> dict[str, Any]:
        """Return the answer as it travels over the wire, such as ``{"deny": "reason", "advice": ""}``."""
        name = type(self).__name__
        key = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
        values = {field: jsonable(getattr(self, field)) for field in self._fields}
        if len(values) == 1:
            return {key: next(iter(values.values()))}
        if name in ("Deny", "Recover"):
            first, *rest = self._fields
            extra = {field: values[field] for field in rest if values[field]}
            return {key: values[first], **extra}
        return {key: values}


def _text(owner: str, field: str, value: object, *, empty: bool = False) -> None:
    if not isinstance(value, str):
        raise wrong_type(AnswerError, f"{owner}: {field}", str, value)
    if not empty and not value.strip():
        raise AnswerError(f"{owner} needs a {field} with words in it: the model or the user reads it")


class Allow(Answer):
    """The call needs no prompt. It never lifts a Deny; a later Rewrite makes it void.

    Parameters:
        reason: why, for the record.
    """

    reason: str = ""


class Ask(Answer):
    """A person must say yes before the tool runs. With nobody to ask, the call is refused.

    Parameters:
        reason: what the person should know.
    """

    reason: str

    if not TYPE_CHECKING:

        def __init__(self, reason):
            _text("Ask", "reason", reason)
            super().__init__(reason=reason)


class Deny(Answer):
    """This call (or this result) is refused; the turn goes on and the model reads why.

    Parameters:
        reason: why, for the model.
        advice: what the model could do instead.
        code: a short machine-readable code for the record.
    """

    reason: str
    advice: str = ""
    code: str = ""

    if not TYPE_CHECKING:

        def __init__(self, reason, advice="", code=""):
            _text("Deny", "reason", reason)
            _text("Deny", "advice", advice, empty=True)
            _text("Deny", "code", code, empty=True)
            super().__init__(reason=reason, advice=advice, code=code)


class Block(Answer):
    """The turn ends: no further model request, no further tool.

    Parameters:
        reason: why, for the user and the model.
    """

    reason: str

    if not TYPE_CHECKING:

        def __init__(self, reason):
            _text("Block", "reason", reason)
            super().__init__(reason=reason)


class Reply(Answer):
    """Use this value instead of asking the model or running the tool.

    Parameters:
        value: the answer text, or the tool's result.
    """

    value: Any

    if not TYPE_CHECKING:

        def __init__(self, value):
            super().__init__(value=freeze(value))


class Rewrite(Answer):
    """Replace a field of the event for the hooks after this one, the tool and the record.

    ``Rewrite(value)`` replaces the timing's main field (the bold one in the
    table of timings), ``Rewrite(field=value)`` another writable field or, on a
    tool event, one of the views ``command``, ``path`` and ``result_text``.
    """

    value: Any = None
    fields: dict[str, Any] = {}

    if TYPE_CHECKING:

        def __init__(self, *value: Any, **fields: Any) -> None: ...

    else:

        def __init__(self, /, *value, **fields):
            if len(value) > 1:
                raise AnswerError("Rewrite takes one value, and other fields by name")
            if not value and not fields:
                raise AnswerError("Rewrite needs a value or a field=value")
            self.__dict__["value"] = freeze(value[0]) if value else None
            self.__dict__["fields"] = freeze(fields)
            self.__dict__["has_value"] = bool(value)

    has_value: ClassVar[bool] = False

    def worked_out(self, event: Any) -> dict[str, Any]:
        """Return fields and values that depend on the event as rewritten so far; for derived classes.

        Parameters:
            event: the event to change.

        Raises:
            AnswerError: when the change cannot be made.
        """
        return {}

    def __repr__(self) -> str:
        parts = [repr(self.value)] if self.has_value else []
        parts += [f"{name}={value!r}" for name, value in self.fields.items()]
        return f"Rewrite({', '.join(parts)})"

    def to_json(self) -> dict[str, Any]:
        """Return ``{"rewrite": {field: value}}``; the main field's value stands under the key ``value``."""
        fields = {"value": jsonable(self.value)} if self.has_value else {}
        return {"rewrite": {**fields, **jsonable(self.fields)}}


class Inject(Answer):
    """Text for the model: beside what the event is about, else in the next system prompt.

    Parameters:
        text: what the model reads.
    """

    text: str

    if not TYPE_CHECKING:

        def __init__(self, text):
            _text("Inject", "text", text, empty=True)
            super().__init__(text=text)


class Warn(Answer):
    """Text for the user only. Every timing takes it.

    Parameters:
        text: what the user reads.
    """

    text: str

    if not TYPE_CHECKING:

        def __init__(self, text):
            _text("Warn", "text", text, empty=True)
            super().__init__(text=text)


class Continue(Answer):
    """The turn goes on with these words; at most ``max_continue`` (8) times in a row.

    Parameters:
        reason: what the model is told to do next.
    """

    reason: str

    if not TYPE_CHECKING:

        def __init__(self, reason):
            _text("Continue", "reason", reason)
            super().__init__(reason=reason)


class SetEnv(Answer):
    """Environment variables for the agent's later commands, where the host can set them.

    Parameters:
        variables: names and values; an empty name, ``=`` in a name and NUL anywhere are refused.
    """

    variables: dict[str, str]

    if not TYPE_CHECKING:

        def __init__(self, variables):
            if not isinstance(variables, dict):
                raise wrong_type(AnswerError, "SetEnv: variables", dict, variables)
            for name, value in variables.items():
                if not isinstance(name, str) or not name or "=" in name or "\0" in name:
                    raise AnswerError(f"SetEnv: {name!r} is no name of an environment variable")
                if not isinstance(value, str) or "\0" in value:
                    raise AnswerError(f"SetEnv: the value of {name!r} must be a string without NUL")
            super().__init__(variables=variables)


class Recover(Answer):
    """What the host should do about an error, if it can; else the model gets a reminder.

    Parameters:
        strategy: one of STRATEGIES.
        config: settings of the strategy.
    """

    strategy: str
    config: dict[str, Any] = {}

    if TYPE_CHECKING:

        def __init__(self, strategy: Strategy, **config: Any) -> None: ...

    else:

        def __init__(self, strategy, **config):
            if strategy not in STRATEGIES:
                raise AnswerError(f"Recover: unknown strategy {strategy!r}; one of {', '.join(STRATEGIES)}")
            super().__init__(strategy=strategy, config=config)


DECISIONS = (Allow, Ask, Deny, Block)
"""The answers of which a hook may give at most one."""

WIRE: dict[str, Any] = {
    "allow": Allow,
    "ask": Ask,
    "deny": Deny,
    "block": Block,
    "reply": Reply,
    "rewrite": Rewrite,
    "inject": Inject,
    "warn": Warn,
    "continue": Continue,
    "set_env": SetEnv,
    "recover": Recover,
}
"""Key in a configured hook's JSON answer -> answer."""


def from_json(data: object) -> list[Answer]:
    """Read the JSON answer of a configured hook (a command, a webhook, ``run: {answer: ...}``).

    Parameters:
        data: an object such as ``{"deny": "text", "advice": "..."}``, ``{"rewrite": {...}, "warn": "..."}``,
            or None for no opinion.

    Returns:
        the answers in the order of the keys.

    Raises:
        AnswerError: for anything else, naming the key, in JSON's words.
    """
    try:
        return [] if data is None else _read(data)
    except AnswerError as error:
        from .errors import in_json

        raise in_json(error) from None


def _read(data: object) -> list[Answer]:
    from .errors import did_you_mean, json_kind

    if not isinstance(data, dict):
        raise AnswerError(f"an answer is one JSON object, got {json_kind(data)}")
    known = {*WIRE, "advice", "code", "config"}
    for key in data:
        if key not in known:
            raise AnswerError(f"unknown key {key!r} in the answer{did_you_mean(str(key), known)}")
    given: dict[str, Any] = {key: value for key, value in data.items() if value is not None or key == "reply"}
    if ("advice" in given or "code" in given) and "deny" not in given:
        raise AnswerError("'advice' and 'code' belong to 'deny', which is missing")
    if "config" in given and "recover" not in given:
        raise AnswerError("'config' belongs to 'recover', which is missing")
    answers: list[Answer] = []
    for key, value in given.items():
        if key in ("advice", "code", "config"):
            continue
        if key == "deny":
            answers.append(Deny(value, given.get("advice", ""), given.get("code", "")))
        elif key == "allow":
            if value is not True and value is not False and not isinstance(value, str):
                raise AnswerError(f"Allow: reason must be a string, or true, got {json_kind(value)}")
            if value is not False:
                answers.append(Allow(value if isinstance(value, str) else ""))
        elif key == "rewrite":
            if not isinstance(value, dict) or not value:
                raise AnswerError("'rewrite' takes an object with the new fields")
            fields = {name: item for name, item in value.items() if name != "value"}
            answers.append(Rewrite(*([value["value"]] if "value" in value else []), **fields))
        elif key == "recover":
            config = given.get("config", {})
            if not isinstance(config, dict):
                raise AnswerError("'config' takes an object")
            if "strategy" in config or "self" in config:
                raise AnswerError("'config' holds the strategy's settings, not 'strategy' or 'self'")
            answers.append(Recover(value, **config))
        elif key in ("inject", "warn") and isinstance(value, list):
            answers.extend(WIRE[key](text) for text in value)
        else:
            answers.append(WIRE[key](value))
    return answers
