"""Writes figures in the text format that Prometheus scrapes.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/ (text format, version 0.0.4)
"""

from __future__ import annotations

from ..console import printable
from .reading import QUANTILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    Labels = Mapping[str, object]

TOKENS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
}

_TOTALS = {
    "denials": "Tool calls, prompts and results that were denied or blocked.",
    "rewrites": "Values that hooks rewrote.",
    "replies": "Replies in place of the model or a tool.",
    "injections": "Texts that hooks gave to the model.",
    "warnings": "Texts that hooks gave to the user.",
    "continued": "Times that a hook made a turn go on.",
}


def exposition(figures: dict[str, Any]) -> str:
    """Return the figures as ``reading.read`` gives them: UTF-8 text that ends with a newline."""
    totals = figures["totals"]
    text = _Text()
    text.family("hookturn_sessions", "gauge", "Sessions with figures.", [({}, totals["sessions"])])
    text.counter("turns", "Turns of main agents.", [({}, totals["turns"])])
    text.counter("sub_agent_turns", "Turns of sub-agents.", [({}, totals["sub_turns"])])
    text.counter(
        "tokens", "Tokens, by kind.", [({"kind": kind}, totals[name]) for kind, name in TOKENS.items()]
    )
    text.counter(
        "model_tokens",
        "Tokens of turns whose model is known, by the last model of the turn.",
        [
            ({"model": row["model"], "kind": kind}, row[name])
            for row in figures["models"]
            for kind, name in TOKENS.items()
        ],
    )
    for name, words in _TOTALS.items():
        text.counter(name, words, [({}, totals[name])])
    text.family("hookturn_edited_files", "gauge", "Different files edited.", [({}, totals["edited_files"])])
    text.counter(
        "tool_calls",
        "Tool calls, by how they ended.",
        [
            ({"tool": row["tool"], "kind": row["kind"], "status": status}, number)
            for row in figures["tools"]
            for status, number in sorted(row["by_status"].items())
        ],
    )
    _latencies(text, figures["tools"])
    for name, key in (("turn", "seconds"), ("model", "model_seconds")):
        known: list[tuple[Labels, float]] = [({}, totals[key])] if totals[key] is not None else []
        text.counter(f"{name}_seconds", f"Seconds in {name}s, where they are known.", known)
    text.counter(
        "fires",
        "Timings that were fired.",
        [({"timing": row["timing"]}, row["fires"]) for row in figures["timings"]],
    )
    text.counter(
        "fire_seconds",
        "Seconds in the hooks of a timing, all together.",
        [({"timing": row["timing"]}, row["seconds"]) for row in figures["timings"]],
    )
    for name in ("answers", "denials", "failures"):
        text.counter(f"hook_{name}", f"{name.capitalize()} of a hook.", _of_hooks(figures["hooks"], name))
    text.counter("hook_calls", "Calls of a hook.", _of_hooks(figures["hooks"], "calls"))
    text.counter(
        "hook_seconds",
        "Seconds in a hook's calls.",
        _of_hooks([row for row in figures["hooks"] if row["seconds"] is not None], "seconds"),
    )
    return str(text)


def _of_hooks(rows: Iterable[dict[str, Any]], name: str) -> list[tuple[Labels, float]]:
    return [({"hook": row["hook"]}, row[name]) for row in rows]


def _latencies(text: _Text, tools: list[dict[str, Any]]) -> None:
    samples: list[tuple[str, Labels, float]] = []
    for row in tools:
        labels = {"tool": row["tool"], "kind": row["kind"]}
        if row["ran"]:
            samples += [("", {**labels, "quantile": share}, row[name]) for name, share in QUANTILES.items()]
        samples += [("_sum", labels, row["seconds"]), ("_count", labels, row["ran"])]
    text.samples("hookturn_tool_duration_seconds", "summary", "Latency of tools that ran.", samples)


class _Text:
    def __init__(self) -> None:
        self._lines: list[str] = []

    def counter(self, name: str, words: str, samples: list[tuple[Labels, float]]) -> None:
        self.family(f"hookturn_{name}_total", "counter", words, samples)

    def family(self, name: str, kind: str, words: str, samples: list[tuple[Labels, float]]) -> None:
        self.samples(name, kind, words, [("", labels, value) for labels, value in samples])

    def samples(self, name: str, kind: str, words: str, samples: list[tuple[str, Labels, float]]) -> None:
        if not samples:
            return
        self._lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
        for ending, labels, value in samples:
            inner = ",".join(f'{key}="{_escaped(str(label))}"' for key, label in labels.items())
            self._lines.append(f"{name}{ending}{f'{{{inner}}}' if inner else ''} {value!r}")

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"


def _escaped(label: str) -> str:
    """Return a label's value between its quotes. Control characters are spelled out first: this may be a terminal."""
    return printable(label).replace("\\", "\\\\").replace('"', '\\"')
