"""Reads hooks.toml: scripts (``[[hooks]]``), webhooks and what is sent in batches. Runs nothing."""

from __future__ import annotations

import os

from ...platform import agent_environ
from ...runners.entry import HookEntry
from ...spec.errors import did_you_mean, json_kind
from ...spec.record import thaw
from .fields import LONGEST, Fields
from .matcher import SCRIPT_TRIGGERS, WEBHOOK_TRIGGERS, timings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..dialect import HookFile, Reading, Source

HOOKS = ("name", "trigger", "script", "script_type", "enabled", "timeout_secs", "description")
WEBHOOKS = (
    "name",
    "trigger",
    "url",
    "method",
    "timeout_secs",
    "retries",
    "enabled",
    "description",
    "headers",
)
BATCHES = (
    "name", "url", "trigger", "method", "batch_size", "flush_interval_ms", "timeout_secs", "retries", "enabled",
    "description", "headers",
)  # fmt: skip
TABLES = ("hooks", "webhooks", "async_webhooks")
"""Keys of the file."""

SCRIPT_TYPES = ("shell", "bash", "python")
METHODS = ("POST", "PUT", "PATCH", "DELETE", "GET")

_TRIGGER = "Write pre_tool, post_tool, post_turn or system_prompt."
_OTHER_TIMINGS = (
    "Scripts run at pre_tool, post_tool, post_turn and system_prompt; use .hooks.json or a webhook."
)


class TomlFile:
    """One hooks.toml.

    Parameters:
        file: where it lies.
        source: what it holds.
        settings: of the dialect.
        reading: where entries and problems go.
        name: the dialect's name.
    """

    def __init__(
        self, file: HookFile, source: Source, settings: Mapping[str, Any], reading: Reading, name: str
    ) -> None:
        self.file = file
        self.source = source
        self.settings = settings
        self.reading = reading
        self.dialect = name
        self._names: dict[tuple[str, str], tuple[int, int]] = {}  # (table, name) -> (line, index)

    def read(self) -> None:
        """Read the whole file."""
        for key in self.source.data:
            if key not in TABLES:
                self.reading.problems.append(
                    self.source.problem(
                        (key,),
                        f"unknown table {key[:60]!r}{did_you_mean(key, TABLES)}",
                        "Known are [[hooks]], [[webhooks]] and [[async_webhooks]].",
                        key=True,
                        severity="warning",
                    )
                )
        for fields in self._tables("hooks"):
            self._script(fields)
        batches = {fields.data.get("name"): fields for fields in self._tables("async_webhooks")}
        for fields in self._tables("webhooks"):
            self._webhook(fields, batches.pop(fields.data.get("name"), None))
        for fields in batches.values():
            self._batch_alone(fields)

    def _tables(self, table: str) -> list[Fields]:
        """Return the entries of an array of tables whose names are good and no other's."""
        given = self.source.data.get(table, [])
        if not isinstance(given, list):
            cause = f"expected an array of tables, got {_kind_of(given)}"
            self.reading.problems.append(self.source.problem((table,), cause, f"Write [[{table}]]."))
            return []
        found = []
        for index, data in enumerate(given):
            where = (table, index)
            if not isinstance(data, dict):
                cause = f"expected a table, got {_kind_of(data)}"
                self.reading.problems.append(self.source.problem(where, cause, f"Write [[{table}]]."))
                continue
            fields = Fields(self.source, where, data, self.reading, _kind_of)
            name = fields.text("name", "Give it a short name.")
            if not name:
                continue
            line, first = self._names.setdefault((table, name), (self.source.at(where)[0], index))
            if first != index:
                fields.problem(
                    "name",
                    f"an entry named {name[:60]!r} stands in line {line} already",
                    "Give one of them another name; this one is ignored.",
                )
                continue
            found.append(fields)
        return found

    def _entry(
        self, fields: Fields, kind: str, timings: list[str], run: Any, extra: dict[str, Any], **more: Any
    ) -> None:
        table, index = fields.where
        line, column = self.source.at(fields.where)
        name = fields.data["name"]
        if table != "hooks" and ("hooks", name) in self._names:
            name = f"{name} ({'webhook' if table == 'webhooks' else 'async webhook'})"
        self.reading.entries.append(
            HookEntry(
                name=name,
                kind=kind,
                run=run,
                timings=timings,
                file=self.file.label,
                line=line,
                column=column,
                index=int(index),
                layer=self.file.layer,
                base_dir=self.file.base_dir,
                dialect=self.dialect,
                declared=thaw(more.pop("declared", fields.data)),
                where=fields.where,
                extra={"merge": self.settings.get("merge", "name"), "name": fields.data["name"], **extra},
                **more,
            )
        )

    # -- scripts --------------------------------------------------------------------------------

    def _script(self, fields: Fields) -> None:
        fields.known(HOOKS)
        enabled = fields.flag("enabled", True)
        if not enabled and not fields.wrong and "script" not in fields.data:
            self._entry(fields, "", [], None, {"group": "hooks"}, enabled=False)
            return
        trigger = fields.text("trigger", _TRIGGER)
        timing = SCRIPT_TRIGGERS.get(trigger, "")
        if trigger and not timing:
            near = did_you_mean(trigger, SCRIPT_TRIGGERS)
            remedy = _OTHER_TIMINGS if trigger in WEBHOOK_TRIGGERS and not near else _TRIGGER
            fields.problem("trigger", f"unknown trigger {trigger[:60]!r}{near}", remedy)
        script = fields.text("script", "Write the path of a script; it starts at the folder of this file.")
        kind = fields.text("script_type", f"Write one of {', '.join(SCRIPT_TYPES)}.", "shell")
        if kind and kind not in SCRIPT_TYPES:
            near = did_you_mean(kind, SCRIPT_TYPES)
            fields.problem(
                "script_type",
                f"unknown script_type {kind[:60]!r}{near}",
                f"Write one of {', '.join(SCRIPT_TYPES)}.",
            )
        seconds = fields.whole("timeout_secs", 2, "seconds")
        if fields.wrong:
            return
        path = os.path.expandvars(os.path.expanduser(script))
        path = os.path.abspath(os.path.join(self.file.base_dir, path))
        self._entry(
            fields,
            "command",
            [timing],
            [interpreter(kind), path],
            {"group": "hooks", "script_type": kind},
            enabled=enabled,
            options={"timeout": seconds},
        )

    # -- webhooks -------------------------------------------------------------------------------

    def _webhook(self, fields: Fields, batch: Fields | None) -> None:
        fields.known(WEBHOOKS)
        if not fields.flag("enabled", True):
            self._entry(fields, "", [], None, {"group": "webhooks"}, enabled=False)
            return
        timings = self._timings(fields, required=True)
        run, options = self._request(fields)
        collected = self._batch(batch) if batch is not None else None
        if fields.wrong or run is None:
            return
        declared: Any = fields.data
        extra = {"group": "webhooks", "trigger": fields.data["trigger"]}
        if batch is not None and collected is not None:
            if "trigger" in batch.data:
                more = self._timings(batch, required=False)
                timings = [*timings, *(timing for timing in more if timing not in timings)]
            run = collected.pop("run")
            options = {}
            extra["batch"] = collected
            declared = {"webhook": fields.data, "async_webhook": batch.data}
            if "pre_tool_execution" in timings:
                fields.warning(
                    "trigger",
                    "it is sent in batches, so nobody waits for it: it cannot refuse anything",
                    f"Take the [[async_webhooks]] named {fields.data['name'][:60]!r} out where it must.",
                )
        self._entry(fields, "webhook", timings, run, extra, options=options, declared=declared)

    def _batch_alone(self, fields: Fields) -> None:
        """Read an async webhook without a webhook of its name: it needs a trigger of its own, as the documents show."""
        if not fields.flag("enabled", True):
            self._entry(fields, "", [], None, {"group": "webhooks"}, enabled=False)
            return
        if "trigger" not in fields.data:
            fields.problem(
                "",
                f"there is no [[webhooks]] named {fields.data['name'][:60]!r}, and the entry has no trigger",
                "Give it a trigger, or the name of a webhook.",
            )
        timings = self._timings(fields, required=True) if not fields.wrong else []
        collected = self._batch(fields)
        if collected is None:
            return
        run = collected.pop("run")
        extra = {"group": "webhooks", "trigger": fields.data["trigger"], "batch": collected}
        self._entry(fields, "webhook", timings, run, extra)

    def _batch(self, fields: Fields) -> dict[str, Any] | None:
        """Return size, seconds and request of an async webhook, or None when it is off or wrong."""
        if not fields.flag("enabled", True):
            return None
        fields.known(BATCHES)
        size = fields.whole("batch_size", 10, "events", most=10_000)
        interval = fields.whole("flush_interval_ms", 1000, "milliseconds", most=LONGEST * 1000)
        run, _ = self._request(fields)
        if fields.wrong or run is None:
            return None
        return {"size": size, "seconds": interval / 1000, "run": {**run, "observe": True}}

    def _timings(self, fields: Fields, *, required: bool) -> list[str]:
        """Return the timings of an entry's trigger."""
        trigger = fields.text("trigger", "Write pre_tool, say.", None if required else "")
        substring = self.settings.get("triggers") == "substring"
        timings, unknown = timings_of(trigger, substring=substring)
        for word in unknown:
            near = did_you_mean(word, WEBHOOK_TRIGGERS)
            remedy = f"Known are {', '.join(word for word in WEBHOOK_TRIGGERS if word not in WEBHOOK_TRIGGERS.values())}."
            if word in ("user_prompt_submit", "on_user_prompt_submit"):
                remedy = (
                    "AtomCode has no webhook there; use .hooks.json, or `message` for the user's message."
                )
            fields.problem("trigger", f"unknown trigger {word[:60]!r}{near}", remedy)
        if trigger and not timings and not unknown:
            fields.problem("trigger", f"the trigger {trigger[:60]!r} names nothing", "Write pre_tool, say.")
        return timings

    def _request(self, fields: Fields) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """Return ``run`` and options of a webhook."""
        url = fields.text("url", "Write https://example.com/hook, say.")
        method = fields.text("method", f"Write one of {', '.join(METHODS)}.", "POST").upper()
        if method and method not in METHODS:
            near = did_you_mean(method, METHODS)
            fields.problem(
                "method", f"unknown method {method[:60]!r}{near}", f"Write one of {', '.join(METHODS)}."
            )
        seconds = fields.whole("timeout_secs", 10, "seconds")
        retries = fields.whole("retries", 2, "further tries", least=0, most=20)
        headers = fields.data.get("headers", {})
        if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
            fields.problem("headers", "expected names with texts", 'Write Authorization = "Bearer x", say.')
        if fields.wrong:
            return None, {}
        run = {"url": url, "method": method, "headers": headers, "retries": retries, "timeout": seconds}
        # The limit is one try's in AtomCode, and all tries have their time.
        return run, {"timeout": seconds * (retries + 1) + retries}


def _kind_of(value: object) -> str:
    """Return what a value is, in TOML's words."""
    return "a table" if isinstance(value, dict) else json_kind(value)


def interpreter(kind: str) -> str:
    """Return the program of a script type: ``python`` is python3 where there is no python."""
    if kind != "python":
        return "bash" if kind == "bash" else "sh"
    from ...runners.programs import find_program

    return "python3" if find_program("python", agent_environ(), os.sep)[1] else "python"
