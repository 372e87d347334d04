"""Delivers what is in a project's spool, in the background: one thread a process, one process at a time.

A delivery is tried until its server takes it, says that it never will, or the
tries are used up; then it is dead, and is sent again only by
``hookturn webhook replay``. At least once, not exactly once: a receiver knows a
repeated delivery by its ``webhook-id``.
"""

from __future__ import annotations

import os
from threading import Condition, Lock, Thread
from time import monotonic, time

from .spool import Damaged, Delivery, Spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .webhook import Message, Webhook

FLUSH = 2.0
"""Seconds that deliveries which are due get when their engine closes; all webhooks of a project share them."""

ELSEWHERE = 0.25
"""Seconds between looks whether another process still delivers."""

_LONGEST_WAIT = 60.0

_couriers: dict[tuple[str, int], Courier] = {}
_couriers_lock = Lock()


def courier_of(state_dir: str) -> Courier:
    """Return the courier of a project's state folder in this process."""
    key = (os.path.realpath(state_dir), os.getpid())  # a child by fork has a courier of its own
    with _couriers_lock:
        if key not in _couriers:
            _couriers[key] = Courier(Spool(state_dir))
        return _couriers[key]


class Courier:
    """Sends the deliveries of those webhooks that this process knows.

    Parameters:
        spool: where they wait.
    """

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.pid = os.getpid()
        self._changed = Condition()
        self._webhooks: dict[str, list[Webhook]] = {}
        self._thread: Thread | None = None
        self._news = False  # something was stored since the thread last looked
        self._due = False  # something that can be sent now is not sent yet
        self._stop = False
        self._flush_end = 0.0
        self._pauses: dict[str, float] = {}  # by webhook: when its server may be asked again
        self._known: dict[str, tuple[str, float]] = {}  # by file: webhook and due time, as last read
        self._told: set[str] = set()

    def attach(self, webhook: Webhook) -> None:
        """Deliver for a webhook, what earlier processes left included."""
        with self._changed:
            self._webhooks.setdefault(webhook.key, []).append(webhook)
            self._flush_end = 0.0
        if self.spool.waiting():
            self._wake()

    def take(self, webhook: Webhook, message: Message) -> None:
        """Store a message, and send it in the background.

        Raises:
            OSError: when it cannot be stored.
        """
        self.spool.add(
            id=message.id,
            key=webhook.key,
            hook=webhook.entry.name,
            source=webhook.entry.source,
            origin=webhook.url.origin,
            fingerprint=webhook.fingerprint,
            headers=message.headers,
            body=message.body,
        )
        self._wake()

    def detach(self, webhook: Webhook) -> None:
        """Deliver for a webhook no longer, once what is due was sent or the time for it is over."""
        with self._changed:
            if not self._flush_end:  # the first of those that close together
                self._flush_end = monotonic() + FLUSH
            while self._thread is not None and (self._news or self._due):
                left = self._flush_end - monotonic()
                if left <= 0 or not self._thread.is_alive():
                    break
                self._changed.wait(left)
            known = self._webhooks.get(webhook.key, [])
            if webhook in known:
                known.remove(webhook)
            if not known:
                self._webhooks.pop(webhook.key, None)
            thread = self._thread if not self._webhooks else None
            if thread is not None:
                self._stop = True
                self._changed.notify_all()
                os.write(self._halt, b"x")
        if thread is not None:
            thread.join()

    def _wake(self) -> None:
        with self._changed:
            self._news = True
            self._flush_end = 0.0
            if self._thread is None or not self._thread.is_alive():
                self._stop = False
                try:
                    self._begin()
                except (OSError, RuntimeError):  # nothing to be had: the next message or process sends it
                    return
            self._changed.notify_all()

    def _begin(self) -> None:
        self._thread = None
        self._halted, self._halt = os.pipe()
        thread = Thread(target=self._run, name="hookturn-courier", daemon=True)
        try:
            thread.start()
        except BaseException:
            self._close_pipe()
            raise
        self._thread = thread

    def _close_pipe(self) -> None:
        os.close(self._halted)
        os.close(self._halt)

    def _run(self) -> None:
        try:
            self.spool.sweep()
            while True:
                with self._changed:
                    if self._stop:
                        return
                    self._news, self._due = False, True
                wait = self._round()
                with self._changed:
                    self._due = wait == ELSEWHERE
                    self._changed.notify_all()
                    if self._stop or (wait is None and not self._news):
                        return
                    if not self._news:
                        self._changed.wait(min(wait or 0.0, _LONGEST_WAIT))
        finally:
            with self._changed:
                late = self._news and bool(self._webhooks)  # somebody came when we were to stop already
                self._thread = None
                self._news = self._due = False
                self._close_pipe()
                if late:
                    self._wake()
                self._changed.notify_all()

    def _round(self) -> float | None:
        """Send what is due; return the seconds until something else is, or None when nothing waits for us."""
        try:
            if not self.spool.waiting():
                return None
            with self.spool.lock(0):
                return self._send_due()
        except TimeoutError:
            return ELSEWHERE
        except OSError as error:
            self._tell("", f"the spool of webhooks cannot be used: {error}")
            return _LONGEST_WAIT

    def _send_due(self) -> float | None:
        files = self.spool.waiting()
        here = set(files)
        self._known = {file: known for file, known in self._known.items() if file in here}
        nearest: float | None = None
        for file in files:
            if self._stop:
                break
            key, due = self._known.get(file) or self._look(file)
            webhook = self._webhook(key)
            if webhook is None or webhook.gone:
                continue
            due = _sensible(max(due, self._pauses.get(key, 0.0)))
            if due <= time():
                delivery = self._load(file)
                if delivery is None:
                    continue
                due = _sensible(max(delivery.due, self._pauses.get(key, 0.0)))
                if due <= time():
                    due = self._send(webhook, delivery)
                self._known[file] = (key, due)
            if due < float("inf"):
                nearest = due if nearest is None else min(nearest, due)
        return None if nearest is None else max(0.001, nearest - time())

    def _webhook(self, key: str) -> Webhook | None:
        with self._changed:
            known = self._webhooks.get(key)
            return known[-1] if known else None

    def _look(self, file: str) -> tuple[str, float]:
        delivery = self._load(file)
        self._known[file] = (delivery.key, delivery.due) if delivery is not None else ("", float("inf"))
        return self._known[file]

    def _load(self, file: str) -> Delivery | None:
        try:
            return self.spool.load(file)
        except Damaged as error:
            self._tell(file, str(error))
            self.spool.bury_damaged(file)
        except OSError as error:  # it costs only itself
            self._tell(file, f"a delivery cannot be read: {error}")
        return None

    def _send(self, webhook: Webhook, delivery: Delivery) -> float:
        """Send one delivery; return when it is due again, infinity for never."""
        from .http import Stopped
        from .webhook import Undelivered

        name = f"{delivery.id} of {delivery.hook}"
        if delivery.fingerprint != webhook.fingerprint:
            self.spool.bury(delivery.but(error="the hook has another URL now"))
            self._tell(
                webhook.key, f"{name} is dead: the hook has another URL now; see `hookturn webhook list`"
            )
            return float("inf")
        try:
            attempt(webhook, delivery, cancel=self._halted)
        except Stopped:  # it waits for the next engine or process
            return float(delivery.due)
        except Undelivered as error:
            tried = delivery.tried + 1
            pause = webhook.spool_pause(tried, error)
            failed = delivery.but(tried=tried, error=error.told)
            if pause is None:
                self.spool.bury(failed)
                self._tell(
                    f"{webhook.key} dead", f"{name} is dead: {error.told}; see `hookturn webhook list`"
                )
                return float("inf")
            self._tell(webhook.key, f"{name} was not delivered, and is tried again: {error.told}")
            due = time() + pause
            self._pauses[webhook.key] = due
            self.spool.update(failed.but(due=due))
            return due
        self._pauses.pop(webhook.key, None)
        self._told.discard(webhook.key)
        self.spool.done(delivery)
        return float("inf")

    def _tell(self, about: str, text: str) -> None:
        """Log what went wrong, once until it goes right again."""
        if about in self._told:
            return
        self._told.add(about)
        from ..engine.capabilities import logger

        logger("webhooks").warning("{}", text)


def _sensible(due: float) -> float:
    """Return when something is due: now, when that lies so far off that the clock must have been set back since."""
    from .webhook import LONGEST_PAUSE, LONGEST_SPOOL_BACKOFF

    now = time()
    return now if now + LONGEST_PAUSE + LONGEST_SPOOL_BACKOFF < due < float("inf") else due


def attempt(webhook: Webhook, delivery: Delivery, *, cancel: int | None = None) -> None:
    """Try a delivery once.

    Raises:
        Undelivered: when it did not arrive.
        Stopped: when ``cancel`` said so.
    """
    from .http import Late
    from .webhook import TIMEOUT, Message, Undelivered

    limit = webhook.one_try or TIMEOUT
    message = Message(delivery.body, delivery.headers, delivery.id)
    try:
        webhook.attempt(message, monotonic() + limit, cancel)
    except Late as late:
        raise Undelivered(
            f"{webhook.url.origin}: no answer within {limit:.3g} s ({late})", again=True
        ) from None


def replay(webhook: Webhook, spool: Spool, delivery: Delivery, *, dead: bool) -> str:
    """Send a delivery now, because somebody asks for it; return why it did not arrive, or an empty string.

    Call it while holding the spool's lock. A dead one that fails again stays dead.

    Parameters:
        webhook: whom it belongs to; it goes to that one's present URL.
        spool: where it lies.
        delivery: what to send.
        dead: it lies among the dead.

    Raises:
        OSError: when the spool cannot be changed.
    """
    from .webhook import Undelivered

    try:
        attempt(webhook, delivery)
    except Undelivered as error:
        tried = delivery.tried + 1
        failed = delivery.but(tried=tried, error=error.told, fingerprint=webhook.fingerprint)
        pause = None if dead else webhook.spool_pause(tried, error)
        if not dead and pause is None:
            spool.bury(failed)
        else:
            spool.update(failed.but(due=time() + (pause or 0.0)), dead=dead)
        return str(error)
    spool.done(delivery, dead=dead)
    return ""
