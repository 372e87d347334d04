"""``run: {webhook: ...}``: a request to somebody's server as a hook, signed as Standard Webhooks says.

Where its answer can count, a hook sends the event and waits. Where it cannot
(or with ``observe: true``) the event goes into a spool on the disk first
(``courier``, ``spool``), and nobody waits for the server.
"""

from __future__ import annotations

import os
from threading import Lock
from time import monotonic

from ..engine.nesting import time_left
from ..spec.answers import Warn
from ..spec.errors import AnswerError, EventError, RegistrationError
from ..spec.markers import hookimpl
from ..spec.record import jsonable, thaw
from ..spec.timings import TIMINGS
from .entry import Configured
from .threads import in_coroutine, on_thread
from .wire import Hidden, NoAnswer, Wire, read_answer, reveal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..spec.answers import Answer
    from ..spec.events import Event
    from ..spec.timings import Timing
    from .addresses import Network
    from .courier import Courier
    from .entry import HookEntry, Wrong
    from .http import Reply

TIMEOUT = 10.0
"""Seconds that a webhook has with all its tries, unless its entry says otherwise."""

RETRIES = 2
"""Further tries where its answer is waited for."""

DELIVERIES = 9
"""Further tries of an event from the spool."""

BACKOFF, LONGEST_BACKOFF = 0.2, 2.0
"""Seconds before the first further try, at most, where the answer is waited for; doubled each time up to the second."""

SPOOL_BACKOFF, LONGEST_SPOOL_BACKOFF = 5.0, 3600.0
"""The same for events from the spool."""

LONGEST_PAUSE = 86_400.0
"""Seconds that a server may ask for by Retry-After."""

RUN = ("url", "headers", "secret", "method", "retries", "timeout", "observe", "redact")
"""Keys of ``run: {webhook: {...}}`` in hookturn.yaml."""

METHODS = ("POST", "PUT", "PATCH")
"""Methods that hookturn.yaml takes."""

GONE = 410
"""The status by which a server says that nobody wants these requests any more (Standard Webhooks)."""


class WebhookWire(Wire):
    """How a webhook is spoken to and understood. A dialect overrides what its agent does otherwise."""

    def headers(
        self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, body: bytes
    ) -> dict[str, str]:
        """Return headers beside the usual ones (Content-Type, User-Agent, webhook-*) and the entry's own, which win.

        They are stored with an event that goes into the spool, so they must hold no secrets.

        Parameters:
            entry, timing, event, ctx: as for ``request``.
            body: what ``request`` returned, without secrets.
        """
        return {}

    def responded(
        self,
        entry: HookEntry,
        timing: Timing,
        event: Event,
        ctx: Any,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
    ) -> list[Answer]:
        """Return what a server's answer means. Asked for 2xx only, and never for events from the spool.

        Parameters:
            entry, timing, event, ctx: as for ``request``.
            status: 200 to 299.
            headers: names in lower case.
            body: at most ``http.LONGEST_BODY`` bytes.

        Raises:
            NoAnswer, AnswerError, EventError: it cannot be understood; the words go to people.
        """
        if not body.strip():
            return []
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind and kind != "application/json" and not kind.endswith("+json"):
            excerpt = shown(body[:60].decode("utf-8", "replace"))
            raise NoAnswer(
                f"status {status} with {kind!r} ({excerpt}); answer with one JSON object, or nothing"
            )
        return read_answer(body)


class WebhookPlugin(Configured):
    """The plugin object of a webhook. ``webhook`` is what it runs."""

    def __init__(self, name: str, hooks: dict[str, Any], webhook: Webhook) -> None:
        super().__init__(name, hooks)
        self.webhook = webhook


def make(
    entry: HookEntry,
    config: Mapping[str, Any] | None = None,
    timings: Mapping[str, Timing] = TIMINGS,
    *,
    live: bool = False,
    wire: WebhookWire | None = None,
    state_dir: str | os.PathLike[str] | None = None,
) -> WebhookPlugin:
    """Return the plugin of an entry whose ``run`` is a webhook.

    ``entry.run`` is a mapping, its secrets resolved to ``Secret`` objects:

    - ``url``: text or Secret.
    - ``method``: default POST.
    - ``headers``: name -> text or Secret.
    - ``secret``: one or a list, each ``whsec_...``, text or Secret; the request gets one signature for each.
    - ``retries``: further tries; default RETRIES, or DELIVERIES for an event from the spool.
    - ``timeout``: seconds of one try; default: what is left of the hook's own time, or TIMEOUT from the spool.
    - ``observe``: nobody waits for its answer, which counts for nothing.
    - ``redact``: False sends texts with the secrets that they hold.
    - ``backoff``: (first, longest) seconds between tries where the answer is waited for.

    Parameters:
        entry: a configured hook of kind webhook. ``entry.network`` says where it may connect to beside public
            addresses.
        config: its settings. Those that are secrets are sent as their marks.
        timings: all timings that the engine knows.
        live: run for dry events, too.
        wire: how the server is spoken to; default: hookturn's own way.
        state_dir: the project's state folder, where the spool lies; default: the user's, by ``ctx.project_dir``.

    Raises:
        RegistrationError: when it certainly cannot run.
    """
    for wrong in problems(entry):
        if wrong.certain:
            raise RegistrationError(entry.name, wrong.cause, wrong.remedy)
    webhook = Webhook(entry, config or {}, live=live, wire=wire, state_dir=state_dir)
    hooks = {name: _hook(webhook, timings[name]) for name in entry.timings}
    if any(webhook.may_observe(timings[name]) for name in entry.timings):
        hooks["on_dispose"] = _dispose(webhook)
    return WebhookPlugin(entry.name, hooks, webhook)


def _hook(webhook: Webhook, timing: Timing) -> Any:
    @hookimpl(timeout=TIMEOUT)
    def run(event: Any, ctx: Any) -> Any:
        return webhook(timing, event, ctx)

    return run


def _dispose(webhook: Webhook) -> Any:
    @hookimpl
    def on_dispose() -> Any:
        return webhook.close()

    return on_dispose


def problems(entry: HookEntry) -> list[Wrong]:
    """Return what is wrong with an entry's webhook, found without connecting to anything."""
    from .addresses import NOTHING_ALLOWED, BadUrl, Forbidden, parse_url
    from .entry import Wrong
    from .http import header_problem
    from .signing import PREFIX, key_of

    run = entry.run
    found = []
    try:
        url = parse_url(reveal(run["url"]))
        if url.address is not None:
            (entry.network or NOTHING_ALLOWED).check(url, [url.address])
    except BadUrl as error:
        found.append(Wrong(str(error), "Write https://example.com/hook, say."))
    except Forbidden as error:
        found.append(Wrong(str(error), error.remedy))
    for name, value in (run.get("headers") or {}).items():
        wrong = header_problem(name, reveal(value))
        if wrong:
            found.append(Wrong(wrong, "Correct the header."))
        elif name.lower().startswith("webhook-"):
            found.append(Wrong(f"the header {name} belongs to the signature", "Take it out."))
    for secret in _secrets_of(run):
        try:
            key_of(reveal(secret))
        except ValueError as error:
            remedy = f"Write {PREFIX} and the base64 of 32 random bytes (`openssl rand -base64 32`)."
            found.append(Wrong(str(error), remedy))
    return found


def _secrets_of(run: Mapping[str, Any]) -> list[Any]:
    given = run.get("secret")
    if given is None:
        return []
    return list(given) if isinstance(given, (list, tuple)) else [given]


class Message:
    """One event on its way to a server: its id stays the same at each try.

    Attributes:
        id: the value of ``webhook-id``, by which a receiver knows it again.
        headers: those of the wire.
        body: the request's body.
    """

    __slots__ = ("body", "headers", "id")

    def __init__(self, body: bytes, headers: Mapping[str, str], id: str = "") -> None:
        self.id = id or new_id()
        self.headers = dict(headers)
        self.body = body


def new_id() -> str:
    """Return a fresh message id."""
    from secrets import token_hex

    return f"msg_{token_hex(16)}"


class Undelivered(NoAnswer):
    """A message that did not arrive.

    Parameters:
        cause: in words, without secrets.
        again: another try may help.
        pause: seconds that the server asked to wait first, or 0.
        remedy: what a person may do about it, or "".
    """

    def __init__(self, cause: str, *, again: bool, pause: float = 0.0, remedy: str = "") -> None:
        super().__init__(cause)
        self.again = again
        self.pause = pause
        self.remedy = remedy

    @property
    def told(self) -> str:
        """Cause and remedy, for people."""
        return f"{self}. {self.remedy}" if self.remedy else str(self)


class Webhook:
    """Sends one entry's events to its server.

    Parameters: as for ``make``.

    Attributes:
        entry: the configured hook.
        url: where it sends to.
        key: a name for it, the same in each process, that holds no secret.
        gone: why it sends nothing any more in this process, or "".
    """

    def __init__(
        self,
        entry: HookEntry,
        config: Mapping[str, Any],
        *,
        live: bool = False,
        wire: WebhookWire | None = None,
        state_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        from hashlib import sha256

        from .addresses import NOTHING_ALLOWED, parse_url
        from .signing import key_of

        run = entry.run
        self.entry = entry
        self.wire = wire if wire is not None else WebhookWire()
        self.live = live
        self.config = jsonable(dict(config))  # secrets as their marks: they stay here
        self.url = parse_url(reveal(run["url"]))
        self.network: Network = entry.network or NOTHING_ALLOWED
        self.method = str(run.get("method") or "POST")
        self.hidden = Hidden({"run": thaw(run), "config": dict(config)})
        self.timeout = float(entry.options.get("timeout", TIMEOUT))
        self.one_try = float(run.get("timeout") or 0)
        self.observe = run.get("observe") is True
        self.gone = ""
        self._own_headers = {name: reveal(value) for name, value in (run.get("headers") or {}).items()}
        self._keys = [key_of(reveal(secret)) for secret in _secrets_of(run)]
        self._redact = run.get("redact", True) is not False
        self._retries = run.get("retries")
        self._backoff = tuple(run.get("backoff") or (BACKOFF, LONGEST_BACKOFF))
        where = f"{entry.base_dir}\0{entry.file}\0{entry.name}"
        self.key = sha256(where.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        self._state_dir = os.fspath(state_dir) if state_dir is not None else ""
        self._courier: Courier | None = None
        self._lock = Lock()

    @property
    def fingerprint(self) -> str:
        """What tells this URL from another without showing it."""
        from hashlib import sha256

        return sha256(f"{self.url.origin}{self.url.target}".encode()).hexdigest()

    def may_observe(self, timing: Timing) -> bool:
        """Tell whether some event of a timing goes into the spool."""
        return self.observe or timing.name == "on_event" or not set(timing.answers) - {Warn}

    def __call__(self, timing: Timing, event: Event, ctx: Any) -> Any:
        """Send an event and return the server's answers. In a coroutine's thread: return what gives them when awaited.

        Raises:
            NoAnswer, AnswerError, TimeoutError: as it went.
        """
        if event.dry_run and not self.live:
            return None
        if self.gone:
            if self.entry.fails_closed:
                raise NoAnswer(f"{self.entry.source}: {self.gone}")
            return None
        message = self.message(timing, event, ctx)
        observed = self.observe or not (
            event.accepts if timing.name == "on_event" else set(timing.answers) - {Warn}
        )
        if observed:
            self.store(message, ctx)
            return None
        limit = min(self.timeout, time_left())
        if in_coroutine():
            return self._awaited(message, limit, timing, event, ctx)
        return self._answers(self.exchange(message, limit), timing, event, ctx)

    async def _awaited(self, message: Message, limit: float, timing: Timing, event: Event, ctx: Any) -> Any:
        reply = await on_thread(lambda cancel: self.exchange(message, limit, cancel))
        return self._answers(reply, timing, event, ctx)

    # -- messages -------------------------------------------------------------------------------

    def message(self, timing: Timing, event: Event, ctx: Any) -> Message:
        """Return the message of an event, without secrets."""
        body = self.clean(self.wire.request(self.entry, timing, event, ctx, self.config))
        return Message(body, self.wire.headers(self.entry, timing, event, ctx, body))

    def clean(self, body: bytes) -> bytes:
        """Return a JSON body with the secrets in its texts replaced, unless the entry says ``redact: false``."""
        if not self._redact:
            return body
        import json

        from ..redact import redact_value

        return json.dumps(redact_value(json.loads(body)), ensure_ascii=True, separators=(",", ":")).encode(
            "ascii"
        )

    def store(self, message: Message, ctx: Any) -> None:
        """Put a message into the spool, from where it is sent in the background, by this process or a later one.

        Raises:
            NoAnswer: when it cannot be stored.
        """
        try:
            self.courier(self.state_dir(ctx)).take(self, message)
        except OSError as error:
            why = f"the event could not be stored, and was not sent: {error.strerror or error}"
            raise NoAnswer(f"{self.entry.source}: {why}") from None

    def state_dir(self, ctx: Any) -> str:
        """Return the project's state folder."""
        from ..paths import project_state

        return self._state_dir or project_state(ctx.project_dir)

    def courier(self, state_dir: str) -> Courier:
        """Return who delivers for this webhook."""
        with self._lock:
            if self._courier is None or self._courier.pid != os.getpid():  # no thread survives a fork
                from .courier import courier_of

                self._courier = courier_of(state_dir)
                self._courier.attach(self)
            return self._courier

    def close(self) -> Any:
        """Give what is in the spool a last chance, within ``courier.FLUSH`` seconds for all webhooks of a project."""
        with self._lock:
            courier, self._courier = self._courier, None
        if courier is None:
            return None
        if in_coroutine():
            return on_thread(lambda cancel: courier.detach(self))
        return courier.detach(self)

    # -- sending --------------------------------------------------------------------------------

    def exchange(self, message: Message, limit: float, cancel: int | None = None) -> Reply:
        """Send a message, again if that may help, and return the answer with a status of 2xx.

        Parameters:
            message: what to send.
            limit: seconds for all tries.
            cancel: a descriptor that becomes readable when it is to stop.

        Raises:
            TimeoutError: when the time was over.
            NoAnswer: when all tries failed.
        """
        from random import uniform

        from .http import Late, Stopped

        source = self.entry.source
        end = monotonic() + limit
        most = RETRIES if self._retries is None else int(self._retries)
        pause, longest = self._backoff
        tried = 0
        while True:
            tried += 1
            try:
                own_end = min(end, monotonic() + self.one_try) if self.one_try else end
                return self.attempt(message, own_end, cancel)
            except Stopped:
                raise NoAnswer(f"{source}: stopped") from None
            except Late as late:
                if monotonic() >= end:
                    raise TimeoutError(f"{source}: no answer within {limit:.3g} s ({late})") from None
                failed = Undelivered(f"no answer within {self.one_try:.3g} s ({late})", again=True)
            except Undelivered as error:
                failed = error
            tries = f" ({tried} tries)" if tried > 1 else ""
            if not failed.again or tried > most:
                raise Undelivered(f"{source}: {failed}{tries}", again=False, remedy=failed.remedy)
            # Full jitter. Source: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
            wait = max(failed.pause, uniform(0, min(longest, pause * 2 ** (tried - 1))))  # noqa: S311 - jitter, no secret
            if monotonic() + wait >= end:
                raise NoAnswer(f"{source}: {failed}{tries}; no time is left for another try")
            if _sleep(wait, cancel):
                raise NoAnswer(f"{source}: stopped")

    def attempt(self, message: Message, end: float, cancel: int | None = None) -> Reply:
        """Send a message once and return the answer with a status of 2xx.

        Parameters:
            message: what to send.
            end: when it must be over, by the monotonic clock.
            cancel: a descriptor that becomes readable when it is to stop.

        Raises:
            Undelivered: for everything else, without secrets in its words.
            Late, Stopped: see ``http``.
        """
        from time import time

        from .. import __version__
        from .addresses import Forbidden
        from .http import Failed, send
        from .signing import signature

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        headers["User-Agent"] = f"hookturn/{__version__}"
        timestamp = int(time())
        for name, value in (*message.headers.items(), *self._own_headers.items()):
            for known in [known for known in headers if known.lower() == name.lower()]:
                del headers[known]
            headers[name] = value
        headers["webhook-id"] = message.id
        headers["webhook-timestamp"] = str(timestamp)
        if self._keys:
            headers["webhook-signature"] = signature(self._keys, message.id, timestamp, message.body)
        try:
            reply = send(
                self.url, self.method, headers, message.body, network=self.network, end=end, cancel=cancel
            )
        except Forbidden as error:
            raise Undelivered(str(error), again=False, remedy=error.remedy) from None
        except Failed as error:
            raise Undelivered(
                f"{self.url.origin}: {self.hidden.hide(str(error))}", again=error.again
            ) from None
        if 200 <= reply.status < 300:
            return reply
        raise self._refused(reply)

    def _refused(self, reply: Reply) -> Undelivered:
        """Return what a status other than 2xx means."""
        status, origin = reply.status, self.url.origin
        if status == GONE:
            with self._lock:
                first, self.gone = (
                    not self.gone,
                    f"{origin} answered 410: nobody wants these requests any more",
                )
            if first:
                from ..engine.capabilities import logger

                logger(self.entry.name).warning(
                    "{}: {}; it is off for this process", self.entry.source, self.gone
                )
            return Undelivered(self.gone, again=False)
        if 300 <= status < 400:
            return Undelivered(f"{origin} answered {status}, a redirect, and none is followed", again=False)
        words = shown(self.hidden.hide(reply.body[:10_000].decode("utf-8", "replace")))
        again = status == 429 or status >= 500
        pause = retry_after(reply.headers.get("retry-after", "")) if again else 0.0
        return Undelivered(
            f"{origin} answered {status}{f': {words}' if words else ''}", again=again, pause=pause
        )

    def _answers(self, reply: Reply, timing: Timing, event: Event, ctx: Any) -> Any:
        """Return what an answer means."""
        try:
            answers = self.wire.responded(
                self.entry, timing, event, ctx, reply.status, reply.headers, reply.body
            )
        except (AnswerError, EventError) as error:
            raise NoAnswer(f"{self.entry.source}: {self.hidden.hide(str(error))}") from None
        return self.hidden.in_words(answers) or None

    def spool_pause(self, tried: int, failed: Undelivered) -> float | None:
        """Return the seconds until an event from the spool is tried again, or None for never.

        Parameters:
            tried: how often it was tried.
            failed: how the last try went.
        """
        from random import uniform

        most = DELIVERIES if self._retries is None else int(self._retries)
        if not failed.again or tried > most:
            return None
        backoff = min(LONGEST_SPOOL_BACKOFF, SPOOL_BACKOFF * 2 ** min(tried - 1, 20))
        return max(failed.pause, uniform(0, backoff))  # noqa: S311 - jitter, no secret


def retry_after(value: str) -> float:
    """Return the seconds that a Retry-After header asks to wait: a number or a date; 0 for anything else."""
    from email.utils import parsedate_to_datetime
    from time import time

    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), LONGEST_PAUSE)
    try:
        seconds = parsedate_to_datetime(value).timestamp() - time()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return max(0.0, min(seconds, LONGEST_PAUSE))


def _sleep(seconds: float, cancel: int | None) -> bool:
    """Wait; return whether somebody wanted it to stop."""
    from select import POLLIN, poll

    waiting = poll()
    if cancel is not None:
        waiting.register(cancel, POLLIN)
    return bool(waiting.poll(seconds * 1000))
