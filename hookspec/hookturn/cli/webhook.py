"""``hookturn webhook list`` and ``hookturn webhook replay``: events for webhooks that wait on the disk."""

from __future__ import annotations

from .output import CommandError, UsageError, clean, emit, paint, say, short, table
from .project import add_options, dry_project, note_problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping
    from typing import Any

    from ..project.assemble import Assembled
    from ..runners.spool import Delivery, Spool
    from ..runners.webhook import Webhook
    from .output import Style

LOCK = 15.0
"""Seconds to wait for another process that delivers."""

_STATES: Mapping[str, Style] = {"delivered": "green", "failed": "red", "dead": "red", "waiting": "yellow"}


def add_parser(subparsers: Any) -> None:
    """Add the parsers of the command."""
    parser = subparsers.add_parser(
        "webhook",
        help="list events that wait for a webhook's server, and send them again",
        description="Look after events for webhooks that wait on the disk: those that are still tried, and the dead, "
        "which were given up.",
    )
    words = parser.add_subparsers(title="commands", metavar="COMMAND", dest="action", required=True)
    listing = words.add_parser("list", help="list what waits, and the dead")
    add_options(listing)
    listing.set_defaults(func=run_list)
    again = words.add_parser(
        "replay",
        help="send events again, with the same webhook-id",
        description="Send events now, with the same webhook-id as before: those named, or all that wait.",
    )
    again.add_argument("ids", metavar="ID", nargs="*", help="a webhook-id, or the begin of one")
    again.add_argument("--dead", action="store_true", help="all that were given up")
    add_options(again)
    again.set_defaults(func=run_replay)


class _Item:
    """A delivery with its state, or a file that cannot be read."""

    def __init__(
        self, file: str, dead: bool, delivery: Delivery | None, webhook: Webhook | None, error: str
    ) -> None:
        self.file = file
        self.dead = dead
        self.delivery = delivery
        self.webhook = webhook
        self.error = error

    @property
    def id(self) -> str:
        return self.delivery.id if self.delivery is not None else self.file

    def to_json(self) -> dict[str, Any]:
        from ..spec.events import rfc3339

        found: dict[str, Any] = {"id": self.id, "state": "dead" if self.dead else "waiting"}
        item = self.delivery
        if item is not None:
            found.update(
                hook=item.hook, source=item.source, to=item.origin, in_force=self.webhook is not None
            )
            found.update(created=rfc3339(item.created), due=rfc3339(item.due), tried=item.tried)
        found["error"] = self.error
        return found


def run_list(args: Namespace) -> int:
    """List what waits."""
    with dry_project(args) as assembled:
        items = _items(_spool(assembled), _webhooks(assembled))
    note_problems(assembled)
    if args.json:
        emit({"schema": 1, "project": assembled.root, "deliveries": [item.to_json() for item in items]})
        return 0
    if not items:
        say("No event waits for a webhook.")
        return 0
    rows = [item.to_json() for item in items]
    table(
        ("state", "id", "hook", "to", "created", "tried", "error"),
        [
            [str(row.get(key, "")) for key in ("state", "id", "hook", "to", "created", "tried", "error")]
            for row in rows
        ],
        right=("tried",),
        styles=_STATES,
    )
    return 0


def run_replay(args: Namespace) -> int:
    """Send events again."""
    if args.ids and args.dead:
        raise UsageError("name events, or give --dead for all dead ones.")
    with dry_project(args) as assembled:
        spool = _spool(assembled)
        webhooks = _webhooks(assembled)
        try:
            with spool.lock(LOCK):
                results = [_again(spool, item) for item in _chosen(_items(spool, webhooks), args)]
        except TimeoutError:
            raise CommandError("another process delivers just now. Try again in a while.") from None
    note_problems(assembled)
    failed = [result for result in results if result["error"]]
    if args.json:
        emit({"schema": 1, "project": assembled.root, "deliveries": results})
    elif not results:
        say("Nothing is to be sent." if args.dead else "Nothing waits. --dead sends what was given up.")
    else:
        for result in results:
            why = f": {short(result['error'], 500)}" if result["error"] else ""
            say(f"{paint(result['state'], _STATES[result['state']])}: {clean(result['id'])}{why}")
    return 1 if failed else 0


def _spool(assembled: Assembled) -> Spool:
    from ..paths import project_state
    from ..runners.spool import Spool

    return Spool(project_state(assembled.root))


def _webhooks(assembled: Assembled) -> dict[str, Webhook]:
    """Return the webhooks in force by their keys."""
    found = [getattr(record.plugin, "webhook", None) for record in assembled.engine.plugins]
    return {webhook.key: webhook for webhook in found if webhook is not None}


def _items(spool: Spool, webhooks: dict[str, Webhook]) -> list[_Item]:
    from ..runners.spool import Damaged

    items = []
    for dead, files in ((False, spool.waiting()), (True, spool.dead())):
        for file in files:
            delivery, error = None, ""
            try:
                delivery = spool.load(file, dead=dead)
            except Damaged as problem:
                error = str(problem)
            except OSError as problem:  # it costs only itself
                error = f"it cannot be read: {problem.strerror or problem}"
            if delivery is not None:
                items.append(_Item(file, dead, delivery, webhooks.get(delivery.key), delivery.error))
            elif error:
                items.append(_Item(file, dead, None, None, error))
    return items


def _chosen(items: list[_Item], args: Namespace) -> list[_Item]:
    """Return the items that the command line names.

    Raises:
        CommandError: for a name that is none, or of several.
    """
    if not args.ids:
        return [item for item in items if item.dead == args.dead]
    chosen = []
    for word in args.ids:
        found = [item for item in items if item.id == word] or [
            item for item in items if item.id.startswith(word)
        ]
        if len({item.id for item in found}) != 1:
            why = "begins several ids" if found else "is the id of nothing that waits"
            raise CommandError(f"{word} {why}; see `hookturn webhook list`.")
        chosen.append(found[0])
    return chosen


def _again(spool: Spool, item: _Item) -> dict[str, Any]:
    """Send one item, and return what became of it."""
    from ..runners.courier import replay

    if item.delivery is None:
        error = item.error
    elif item.webhook is None:
        error = f"the hook {item.delivery.hook} is not in force here (see `hookturn plugins`)"
    else:
        error = replay(item.webhook, spool, item.delivery, dead=item.dead)
    return {**item.to_json(), "state": "failed" if error else "delivered", "error": error}
