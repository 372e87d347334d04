"""What failed: one record an error, counted, without secrets and without local variables.

It is written when the error happens, so a killed process loses nothing.
``hookturn errors`` reads it. On request Sentry gets the same record.
"""

from __future__ import annotations

from threading import Lock

from hookturn import Warn, hookimpl

from ..places import place, project_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hookturn import Answer, Context
    from hookturn.events import Error
    from hookturn.redact import Secret

    from ..places import Place
    from .sentry import Reporter
    from .store import Store

MAX_WAITING = 200
"""Errors that wait in memory while the file cannot be written; older ones are dropped."""


class Config:
    """Settings of error-report.

    Attributes:
        path: the SQLite file, relative to the project's folder.
        max_errors: different errors that are kept; those not seen for longest are dropped.
        max_chars: characters of a message that are kept.
        sentry: the DSN of a Sentry project that gets each error too; None for none. Needs the extra ``sentry``.
    """

    path: str = ".hookturn/errors.sqlite"
    max_errors: int = 500
    max_chars: int = 4000
    sentry: str | Secret | None = None

    def validate(self) -> None:
        """Refuse values that cannot work.

        Raises:
            ValueError: naming the setting.
        """
        if not self.path or "\0" in self.path:
            raise ValueError("path must name a file")
        if self.max_errors < 1:
            raise ValueError("max_errors must be at least 1")
        if self.max_chars < 100:
            raise ValueError("max_chars must be at least 100")
        if self.sentry is not None:
            from .sentry import check

            check(self.sentry)


class ErrorReport:
    """The plugin.

    Parameters:
        config: its settings.
    """

    hookturn_name = "error-report"

    def __init__(self, config: Config) -> None:
        self.config = config
        self._lock = Lock()  # of all below
        self._waiting: dict[Place, list[dict[str, Any]]] = {}
        self._stores: dict[Place, Store] = {}
        self._keys: dict[tuple[str, bool], bytes] = {}
        self._sentry: Reporter | None = None
        self._warned = self._unsent = False

    @hookimpl(trylast=True)
    def on_error(self, event: Error, ctx: Context) -> Answer | None:
        """Record an error."""
        from .record import make

        where = place(self.config.path, event, ctx)
        with self._lock:
            record = make(event, self._key(event, ctx), self.config.max_chars)
            waiting = self._waiting.setdefault(where, [])
            waiting.append(record)
            del waiting[:-MAX_WAITING]
            notice = self._write()
            if self.config.sentry is not None and not event.dry_run:
                self._send(record, ctx)
        if not notice:
            return None
        ctx.log.warning("{}", notice)
        return Warn(notice)

    @hookimpl
    def on_dispose(self, ctx: Context) -> None:
        """Write what is left, and close the files."""
        with self._lock:
            notice = self._write()
            for store in self._stores.values():
                store.close()
            self._stores.clear()
            sentry, self._sentry = self._sentry, None
        if notice:
            ctx.log.warning("{}", notice)
        if sentry is not None:
            sentry.close()

    def _key(self, event: Error, ctx: Context) -> bytes:
        about = (ctx.project_dir, event.dry_run)
        if about not in self._keys:
            self._keys[about] = project_key(ctx.project_dir, dry_run=event.dry_run)
        return self._keys[about]

    def _write(self) -> str:
        """Write what waits; returns what the user must know, once."""
        notice = ""
        for where, records in list(self._waiting.items()):
            try:
                store = self._stores.get(where)
                if store is None:
                    from .store import Store

                    store = self._stores[where] = Store(*where, max_errors=self.config.max_errors)
                store.add(records)
            except Exception as error:
                if not self._warned:
                    self._warned = True
                    cause = f"{type(error).__name__}: {error}"
                    notice = f"The error report {where[0]} cannot be written ({cause}); errors are kept in memory until it can."
                continue
            del self._waiting[where]
            if store.kept:
                notice = (
                    f"The error report {where[0]} was damaged; it is kept as {store.kept}, and begun anew."
                )
                store.kept = ""
        return notice

    def _send(self, record: dict[str, Any], ctx: Context) -> None:
        try:
            if self._sentry is None:
                from .sentry import Reporter

                assert self.config.sentry is not None
                self._sentry = Reporter(self.config.sentry)
            self._sentry.send(record)
        except Exception as error:  # the SDK's own troubles must not become errors to report
            if not self._unsent:
                ctx.log.warning("Sentry got no report: {}: {}", type(error).__name__, error)
            self._unsent = True


def plugin(config: Config | None = None) -> Any:
    """Return the plugin; the entry point ``error-report``.

    Parameters:
        config: its settings; default: all defaults.
    """
    return ErrorReport(config or Config())


plugin.Config = Config  # type: ignore[attr-defined]
