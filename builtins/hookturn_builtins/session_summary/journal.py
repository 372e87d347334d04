"""The journal of a running session: one JSON line an event, without secrets, appended at once.

Whatever kills the process, the lines that were written stay; ``collect`` reads them.
"""

from __future__ import annotations

import os
from errno import ENOSPC
from json import JSONEncoder

from hookturn import redact
from hookturn.paths import hookturn_dir, open_private, private_dir
from hookturn.spec.record import jsonable

from ..places import project_key, session_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hookturn.events import OutcomeEvent

    from . import Config

NAME = "journal.jsonl"

BRIEF = 400
"""Characters that are kept of a command, a path, an address, an argument or a hook's words."""

MAX_PATHS = 50
"""Paths of one call, and lines of one hook's words, that are kept."""

_MARGIN = 4096  # a cut moves on to the next blank within this, so that no secret is halved

_TAIL = 4096

_encode = JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class Journal:
    """The journal of one session; many processes may append to it.

    Parameters:
        folder: the session's own folder; it is made at the first line.
        base: a folder that is trusted as it is.
        session_id: the session's id, without secrets; the folder's name may not tell it.
        config: the plugin's settings.
        project: the project's folder, or "" in a dry run, which may write nowhere else.
        ignored: the journal lies in the project's ``.hookturn``, which git ignores.
    """

    def __init__(
        self,
        folder: str,
        base: str,
        session_id: str,
        config: Config,
        *,
        project: str = "",
        ignored: bool = False,
    ) -> None:
        self.folder = folder
        self.base = base
        self.session_id = session_id
        self.path = os.path.join(folder, NAME)
        self._config = config
        self._project = project
        self._ignored = ignored
        self._fd = -1
        self._size = 0
        self._full = False
        self._torn = False
        self._lost = 0
        self._micros = 0.0
        self._key = b""

    def note(self, event: OutcomeEvent) -> None:
        """Append what is worth telling of a decided timing. Not for two threads at once.

        Raises:
            OSError: when the line cannot be written; it is counted, and the next one tries again.
        """
        out = event.outcome
        self._micros += out.micros
        before = event.before
        timing = before.timing
        note = _NOTES.get(timing)
        said = out.hooks or out.decision is not None
        if note is None:
            if not said:
                return
            if timing == "on_message_received" and (out.denied or out.replied):
                note = Journal._message  # it comes no further
        if not self._key:
            self._key = project_key(self._project, dry_run=not self._project)
        line: dict[str, Any] = {"e": "said", "time": event.time, "turn": event.turn}
        if event.agent_id:
            line["agent_id"] = session_name(event.agent_id)
        if note is not None:
            # As it went on: what a hook took out of a text must not turn up here.
            note(self, line, event.after)
            if out.denied and timing in ("on_model_response", "on_turn_complete"):
                line["text"] = ""
        if said:
            line["said"] = self._said(before, out)
        self._append(line)

    def close(self) -> None:
        """Close the file; a later note opens it again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    # -- the file ---------------------------------------------------------------------------------

    def _append(self, line: dict[str, Any]) -> None:
        try:
            # The folder may be gone: agents clean up, too.
            if self._fd >= 0 and os.fstat(self._fd).st_nlink == 0:
                self.close()
            if self._fd < 0:
                self._open()
            frame = line["e"] in ("start", "end")
            if self._full and not frame:
                return
            if self._lost:
                line["lost"] = self._lost
            line["micros"] = round(self._micros)
            data = _encode(line).encode("ascii") + b"\n"
            if self._size + len(data) > self._config.max_bytes and not frame:
                self._full = True
                data = _encode({"e": "full", "time": line["time"]}).encode("ascii") + b"\n"
            self._write(data)
        except OSError:
            self._lost += 1
            raise
        self._lost = 0
        self._micros = 0.0

    def _write(self, data: bytes) -> None:
        """Write a line at once, on a line of its own whatever stands before it."""
        if self._torn:
            data = b"\n" + data
        self._torn = True
        written = os.write(self._fd, data)
        self._size += written
        if written < len(data):
            raise OSError(ENOSPC, "only a part of a line could be written", self.path)
        self._torn = False

    def _open(self) -> None:
        if self._ignored:
            hookturn_dir(self._project)
        elif not os.path.isdir(self.base):
            private_dir(self.base)
        private_dir(self.folder, base=self.base)
        self._fd = fd = open_private(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, base=self.base)
        self._size = size = os.fstat(fd).st_size
        if size:
            os.lseek(fd, max(0, size - _TAIL), os.SEEK_SET)
            tail = os.read(fd, _TAIL)
            self._torn = not tail.endswith(b"\n")  # whoever wrote it was killed
            self._full = b'\n{"e":"full"' in tail
        else:
            self._torn = self._full = False
            line = {"e": "session", "schema": 1, "session_id": self.session_id}
            self._write(_encode(line).encode("ascii") + b"\n")

    # -- what a line says ---------------------------------------------------------------------------

    def _text(self, text: str) -> str:
        """Return a payload's text as it is kept."""
        return self._cut(text, self._config.max_chars) if self._config.texts else ""

    def _cut(self, text: str, limit: int = BRIEF) -> str:
        """Return a text without secrets, and without what goes beyond the limit."""
        if len(text) <= limit:
            return redact.redact(text, self._key) if text else ""
        end = limit
        last = min(len(text), limit + _MARGIN)
        while end < last and not text[end].isspace():
            end += 1
        part = text[:end]
        clean = redact.redact(part, self._key)
        if clean is part:
            clean, end = part[:limit], limit
        return f"{clean}... [{len(text) - end:,} more characters]"

    def _start(self, line: dict[str, Any], event: Any) -> None:
        line["e"] = "start"
        for name in ("agent", "host", "cwd", "source", "model", "provider"):
            line[name] = self._cut(getattr(event, name))

    def _message(self, line: dict[str, Any], event: Any) -> None:
        line["e"] = "message"
        line["text"] = self._text(event.text)

    def _prompt(self, line: dict[str, Any], event: Any) -> None:
        line["e"] = "prompt"
        line["text"] = self._text(event.prompt)

    def _turn(self, line: dict[str, Any], event: Any) -> None:
        line["e"] = "turn"
        line["agent"] = self._cut(event.agent)
        if event.parent_agent:
            line["parent_agent"] = self._cut(event.parent_agent)

    def _model(self, line: dict[str, Any], event: Any) -> None:
        line["e"] = "model"
        line["text"] = self._text(event.text)
        line["usage"] = _usage(event.usage)
        if event.model:
            line["model"] = self._cut(event.model)

    def _tool(self, line: dict[str, Any], event: Any) -> None:
        line["e"] = "tool"
        status = event.status
        line["tool"] = self._cut(event.tool)
        line["kind"] = kind = event.kind
        line["status"] = status
        line["seconds"] = jsonable(event.duration)
        if kind in ("read", "write"):
            paths = event.paths
            line["paths"] = [self._cut(path) for path in paths[:MAX_PATHS]]
        if self._config.texts:
            if not line.get("paths"):
                line["what"] = self._what(event)
            if event.error or status in ("error", "timeout"):
                line["error"] = self._text(event.error or event.result_text)
        if event.by or event.reason:
            line["by"] = self._cut(event.by)
            line["reason"] = self._cut(event.reason)

    def _what(self, event: Any) -> str:
        """Return what a call does, in one text: its command, its addresses, or its arguments in short."""
        text = event.command or ", ".join(event.urls[:MAX_PATHS])
        if text:
            return self._cut(text)
        args: dict[str, Any] = {}
        for name, value in event.args.items():
            if len(args) == 8:
                args["..."] = f"{len(event.args) - 8} more"
                break
            if isinstance(value, str):
                short: Any = self._cut(value, BRIEF // 2)
            elif isinstance(value, (dict, list)):
                short = f"{len(value)} {'keys' if isinstance(value, dict) else 'items'}"
            else:
                short = jsonable(value)
            args[self._cut(str(name))] = short
        # Once more, for texts whose name alone says that they are secrets.
        named = redact.redact_value(args, self._key)
        return self._cut(", ".join(f"{name}: {value}" for name, value in named.items()))

    def _done(self, line: dict[str, Any], event: Any) -> None:
        line["e"] = "done"
        line["text"] = self._text(event.text)
        line["usage"] = _usage(event.usage)
        line["seconds"] = jsonable(event.duration)
        edited = [path for path in event.edited_files if isinstance(path, str)]
        line["paths"] = [self._cut(path) for path in edited[: 10 * MAX_PATHS]]

    def _error(self, line: dict[str, Any], event: Any) -> None:
        line["e"] = "error"
        line["type"] = self._cut(event.error_type)
        line["message"] = self._text(event.message)
        for name in ("phase", "hook", "tool"):
            line[name] = self._cut(getattr(event, name))

    def _end(self, line: dict[str, Any], event: Any) -> None:
        line["e"] = "end"
        line["reason"] = self._cut(event.reason)

    def _said(self, event: Any, out: Any) -> dict[str, Any]:
        """Return what hooks and rules said of an event."""
        said: dict[str, Any] = {"timing": event.timing}
        tool = getattr(event, "tool", None)
        if isinstance(tool, str) and tool:
            said["tool"] = self._cut(tool)
        if out.decision is not None:
            said["decision"] = out.decision
            said["by"] = self._cut(out.by)
            said["reason"] = self._cut(out.reason)
        said["hooks"] = [self._hook(item) for item in out.hooks if item.answers or item.error]
        if out.rewrites:
            said["rewrites"] = [[self._cut(item.by), item.field] for item in out.rewrites[:MAX_PATHS]]
        if out.replied:
            said["replied"] = True
        if out.injected:
            said["injected"] = len(out.injected)
        if out.warnings:
            said["warnings"] = [self._cut(text) for text in out.warnings[:MAX_PATHS]]
        if out.continue_reason:
            said["continue"] = self._cut(out.continue_reason)
        if out.overruled:
            said["overruled"] = [self._cut(f"{by}: {reason}") for by, _, reason in out.overruled[:MAX_PATHS]]
        return said

    def _hook(self, item: Any) -> dict[str, Any]:
        result: dict[str, Any] = {
            "name": self._cut(item.name),
            "answers": [type(answer).__name__ for answer in item.answers],
        }
        if item.error:
            result["error"] = self._cut(item.error)
        if item.would:
            result["would"] = True
        return result


def _usage(usage: Any) -> list[int]:
    """Return the tokens of a usage in the order of ``TOKENS``; what is no number counts nothing."""
    counts = [usage.get(name, 0) for name in TOKENS]
    return [
        int(n) if isinstance(n, (int, float)) and not isinstance(n, bool) and n - n == 0 else 0
        for n in counts
    ]


_NOTES: dict[str, Callable[[Journal, dict[str, Any], Any], None]] = {
    "on_session_start": Journal._start,
    "on_user_prompt_submit": Journal._prompt,
    "on_turn_start": Journal._turn,
    "on_model_response": Journal._model,
    "post_tool_execution": Journal._tool,
    "on_turn_complete": Journal._done,
    "on_error": Journal._error,
    "on_session_end": Journal._end,
}
"""What makes the line of a timing; of the others only what hooks said is noted."""
