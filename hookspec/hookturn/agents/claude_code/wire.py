"""How a command of Claude Code's is spoken to, and what its end means here.

Source: the hooks reference, and version 2.1.332 as run. Where that program runs a hook's event otherwise than it
is documented, ``docs/dialects/claude-code.md`` says what counts.
"""

from __future__ import annotations

import os

from ...runners.wire import Ended, NoAnswer, Wire, last_words, shown
from ...spec.answers import Inject, SetEnv
from .decisions import block, capped, check_noise, context, faults, parsed, said
from .occasions import OCCASIONS
from .payload import body_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...runners.entry import HookEntry
    from ...spec.answers import Answer
    from ...spec.events import Event
    from ...spec.timings import Timing
    from .occasions import Occasion

_LONGEST_PATH = 4_096
_LONGEST_EXPORTS = 100_000


class ClaudeWire(Wire):
    """Claude Code's protocol for command hooks."""

    longest_value = _LONGEST_PATH

    def __init__(self) -> None:
        self._files: dict[str, str] = {}  # file for exports -> its session
        self._exports: dict[str, str] = {}  # session -> what a hook wrote there

    def request(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, config: Any) -> bytes:
        """Return the payload."""
        return body_of(OCCASIONS[entry.extra["event"]], event, ctx)

    def environment(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any) -> dict[str, str]:
        """Return the project's folder, and a plugin's own variables; at a session's start a file for exports."""
        found = {
            **super().environment(entry, timing, event, ctx),
            "CLAUDE_PROJECT_DIR": ctx.project_dir,
            "CLAUDE_CODE_SESSION_ID": event.session_id,
            "CLAUDE_PLUGIN_ROOT": entry.extra.get("plugin_root", ""),
            "CLAUDE_PLUGIN_DATA": entry.extra.get("plugin_data", ""),
        }
        if timing.name == "on_session_start":
            from tempfile import mkstemp

            handle, found["CLAUDE_ENV_FILE"] = mkstemp(prefix="hookturn-env-", suffix=".sh")
            os.close(handle)
            self._files[found["CLAUDE_ENV_FILE"]] = event.session_id
        return found

    def over(self, environment: Mapping[str, str]) -> None:
        """Read the exports of a session's start, and remove their file."""
        path = environment.get("CLAUDE_ENV_FILE", "")
        session = self._files.pop(path, None)
        if session is None:
            return
        from contextlib import suppress

        from ...paths import open_private

        # The hook may have removed it, or put something else there.
        with suppress(OSError), open(open_private(path), "rb") as file:
            self._exports[session] = file.read(_LONGEST_EXPORTS).decode("utf-8", "replace")
        with suppress(OSError):
            os.unlink(path)

    def answers(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, ended: Ended) -> list[Answer]:
        """Return what a command's end means.

        Raises:
            NoAnswer: for everything that Claude Code shows as a hook error, and what cannot be done here.
        """
        occasion = OCCASIONS[entry.extra["event"]]
        given = _exported(self._exports.pop(event.session_id, ""), ctx)
        text = _text(ended)
        if ended.exit_code == 2:
            return self._refused(occasion, timing, event, ctx, ended, text)
        data, wrong = parsed(text)
        if data is not None:
            return [*said(occasion, data, timing, event, ctx), *given]
        if ended.exit_code != 0:
            raise NoAnswer(
                f"the command {ended.ended}{last_words(ended.stderr)} (exit code 2 blocks; any other is an error)"
            )
        if wrong:
            raise NoAnswer(wrong)
        if text and occasion.plain:
            if occasion.blocks:
                check_noise(text, refusals=True)
            return [*context(occasion, capped(text, ctx), timing, event, ctx), *given]
        check_noise(text)
        return given

    def _refused(
        self, occasion: Occasion, timing: Timing, event: Event, ctx: Any, ended: Ended, text: str
    ) -> list[Answer]:
        """Return what exit code 2 means, whatever the JSON says; its reason counts if it blocks."""
        if not occasion.blocks and not occasion.tells:
            if ended.said:
                ctx.log.warning("exit code 2 has no effect on {}: {}", occasion.name, shown(ended.said))
            return []
        reason = ended.said
        data, _ = parsed(text)
        if data is not None and not faults(occasion, data):
            own = data.get("hookSpecificOutput", {})
            if own.get("permissionDecision") == "deny":
                reason = own.get("permissionDecisionReason") or reason
            elif data.get("decision") == "block":
                reason = data.get("reason") or reason
        reason = capped(reason, ctx)
        if occasion.tells:
            return [Inject(reason)] if reason else []
        return block(occasion, reason or "a hook ended with exit code 2", timing, event)


def _text(ended: Ended) -> str:
    """Return a command's output as text, without a byte-order mark and the blanks around it.

    Raises:
        NoAnswer: when there was too much of it to be an answer.
    """
    if ended.truncated and ended.exit_code != 2:
        raise NoAnswer(f"it printed more than the {len(ended.stdout):,} bytes that an answer may have")
    return bytes(ended.stdout).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").strip()


def _exported(text: str, ctx: Any) -> list[Answer]:
    """Return the variables that a hook wrote to CLAUDE_ENV_FILE: lines such as ``export NAME=value``."""
    import re
    import shlex

    found: dict[str, str] = {}
    for line in text.splitlines():
        match = re.fullmatch(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)", line)
        words: list[str] = []
        try:
            words = shlex.split(match[2]) if match is not None else []
        except ValueError:  # an open quote
            match = None
        if match is not None and len(words) <= 1 and not set("$`\0") & set(match[2]):
            found[match[1]] = words[0] if words else ""
        elif line.strip() and not line.lstrip().startswith("#"):
            ctx.log.warning("CLAUDE_ENV_FILE: only a shell could read {!r}; it is left out", shown(line[:80]))
    return [SetEnv(found)] if found else []
