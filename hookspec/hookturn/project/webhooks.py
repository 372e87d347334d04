"""Checks what a configuration says of webhooks: ``run: {webhook: {...}}`` of a hook, and ``webhooks:`` of a user."""

from __future__ import annotations

from ..runners.webhook import METHODS, RUN
from ..spec.errors import did_you_mean
from .problems import kind_of, show
from .secrets import reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .model import Model
    from .problems import Path

NETWORK = ("allow", "proxy")
"""Keys of the top-level ``webhooks:``."""

MOST_RETRIES = 100

_EXAMPLE = "Write {url: https://example.com/hook}, say."


def check_run(model: Model, place: Path, value: object) -> bool:
    """Tell whether a hook's ``run: {webhook: ...}`` is right; what is wrong is reported.

    Parameters:
        model: the file.
        place: where it stands.
        value: the mapping; secrets are still references.
    """
    before = len(model.problems)
    if not isinstance(value, dict):
        model.problem(place, f"expected a mapping with a url, got {_got(value)}", _EXAMPLE)
        return False
    for key in value:
        if key not in RUN:
            near = did_you_mean(str(key), RUN)
            remedy = "Correct it." if near else f"Known are {', '.join(RUN)}."
            if key == "secrets":
                near, remedy = "", "Write 'secret: [...]'."
            model.problem((*place, key), f"unknown key {show(key)}{near}", remedy, key=True)
    if "url" not in value:
        model.problem(place, "the webhook has no url", _EXAMPLE)
    else:
        _url(model, (*place, "url"), value["url"])
    _headers(model, (*place, "headers"), value.get("headers"))
    _secrets(model, (*place, "secret"), value.get("secret"))
    method = value.get("method", METHODS[0])
    if method not in METHODS:
        near = f" (did you mean {method.upper()!r}?)" if str(method).upper() in METHODS else ""
        cause = f"expected {' or '.join(METHODS)}, got {_got(method)}{near}"
        model.problem((*place, "method"), cause, f"Write {METHODS[0]}.")
    retries = value.get("retries", 0)
    if not isinstance(retries, int) or isinstance(retries, bool) or not 0 <= retries <= MOST_RETRIES:
        cause = f"expected a whole number from 0 to {MOST_RETRIES}, got {_got(retries)}"
        model.problem((*place, "retries"), cause, "Write 2, say.")
    timeout = value.get("timeout", 1)
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool) or not 0 < timeout < 1e6:
        cause = f"expected the seconds of one try, got {_got(timeout)}"
        model.problem((*place, "timeout"), cause, "Write 3 or 0.5, say.")
    for key in ("observe", "redact"):
        if not isinstance(value.get(key, True), bool):
            cause = f"expected true or false, got {_got(value[key])}"
            model.problem((*place, key), cause, "Write true or false.")
    return all(problem.severity != "error" for problem in model.problems[before:])


def check_observer(model: Model, place: Path, options: dict[str, Any]) -> bool:
    """Tell whether a hook that nobody waits for may have these options; what is wrong is reported."""
    wrong = "a guard" if options.get("guard") is True else ""
    wrong = wrong or ("a hook with 'on_failure: deny'" if options.get("on_failure") == "deny" else "")
    if wrong:
        cause = f"nobody waits for a webhook with 'observe: true', so it cannot be {wrong}"
        model.problem((*place, "observe"), cause, "Drop one of them.")
    return not wrong


def read_network(model: Model, table: object) -> dict[str, Any]:
    """Return what ``webhooks:`` of a user's or managed file says; what is wrong is reported and left out."""
    from ..runners.addresses import Allowed, own_file, parse_proxy

    place: Path = ("webhooks",)
    if table is None:
        return {}
    if model.layer == "project":
        model.problem(
            place,
            "ignored: only your own and the managed configuration say where webhooks may connect to",
            f"Write it into {own_file()}, which is yours.",
            key=True,
        )
        return {}
    if not isinstance(table, dict):
        model.problem(place, f"expected a mapping, got {_got(table)}", 'Write {allow: ["127.0.0.1:8080"]}.')
        return {}
    found: dict[str, Any] = {}
    for key in table:
        if key not in NETWORK:
            near = did_you_mean(str(key), NETWORK)
            model.problem(
                (*place, key), f"unknown key {show(key)}{near}", "Known are allow, proxy.", key=True
            )
    allow = table.get("allow", [])
    if isinstance(allow, str):
        allow = [allow]
    if not isinstance(allow, list):
        cause = f"expected a list of addresses, got {_got(allow)}"
        model.problem((*place, "allow"), cause, 'Write ["127.0.0.1:8080", "10.0.0.0/8"].')
        allow = []
    good = []
    for index, text in enumerate(allow):
        where = (*place, "allow", index)
        if not isinstance(text, str):
            model.problem(where, f"expected a text, got {_got(text)}", 'Write "127.0.0.1:8080" in quotes.')
            continue
        try:
            Allowed(text)
        except ValueError as error:
            model.problem(where, f"{show(text)}: {error}", "Write 127.0.0.1:8080 or 10.0.0.0/8, say.")
        else:
            good.append(text)
    if good:
        found["allow"] = good
    proxy = table.get("proxy")
    if proxy is not None:
        try:
            if not isinstance(proxy, str):
                raise ValueError(f"expected a text, got {_got(proxy)}")
            parse_proxy(proxy)
        except ValueError as error:
            model.problem((*place, "proxy"), str(error), "Write http://proxy.example.com:3128, say.")
        else:
            found["proxy"] = proxy
    return found


def _url(model: Model, place: Path, value: object) -> None:
    from ..runners.addresses import BadUrl, parse_url

    if reference(value):
        return
    if not isinstance(value, str):
        model.problem(place, f"expected a URL, got {_got(value)}", "Write https://example.com/hook, say.")
        return
    try:
        parse_url(value)
    except BadUrl as error:
        model.problem(place, str(error), "Write https://example.com/hook, say.")


def _headers(model: Model, place: Path, value: object) -> None:
    from ..redact import secret_name
    from ..runners.http import header_problem

    if value is None:
        return
    if not isinstance(value, dict):
        model.problem(place, f"expected a mapping, got {_got(value)}", "Write {X-Team: tools}, say.")
        return
    seen: set[str] = set()
    for name, item in value.items():
        where = (*place, name)
        if reference(item):
            wrong = header_problem(name, "")
        elif isinstance(item, str):
            wrong = header_problem(name, item)
            if not wrong and secret_name(name):
                model.problem(
                    where,
                    "a secret is written out here",
                    "Write {env: NAME} or {file: path}.",
                    severity="warning",
                )
        else:
            wrong = f"expected a text, got {_got(item)}"
        if not wrong and name.lower() in seen:
            wrong = f"the header {show(name)} is given twice"
        elif not wrong and name.lower().startswith("webhook-"):
            wrong = f"the header {show(name)} belongs to the signature"
        seen.add(name.lower())
        if wrong:
            remedy = (
                "Put it into quotes." if isinstance(item, (int, float)) else "Correct it, or take it out."
            )
            model.problem(where, wrong, remedy, key=isinstance(item, str))


def _secrets(model: Model, place: Path, value: object) -> None:
    from ..runners.signing import PREFIX, key_of

    remedy = f"Write {{env: NAME}} of a variable that holds {PREFIX} and the base64 of 32 random bytes."
    if value is None or reference(value):
        return
    if isinstance(value, str):
        value, single = [value], True
    else:
        single = False
    if not isinstance(value, list) or not value:
        model.problem(place, f"expected a secret or a list of them, got {_got(value)}", remedy)
        return
    for index, item in enumerate(value):
        where = place if single else (*place, index)
        if reference(item):
            continue
        if not isinstance(item, str):
            model.problem(where, f"expected a secret, got {_got(item)}", remedy)
            continue
        try:
            key_of(item)
        except ValueError as error:
            model.problem(where, str(error), remedy)
        else:
            model.problem(
                where,
                "a secret is written out here",
                "Write {env: NAME} or {file: path}.",
                severity="warning",
            )


def _got(value: object) -> str:
    return kind_of(value) if isinstance(value, (list, dict)) or value is None else show(value)
