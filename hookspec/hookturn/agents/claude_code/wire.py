"""What Claude Code's hooks read on standard input, and what their exit codes and their JSON mean here.

Source: the hooks reference, and version 2.1.332 as run. Where that program runs a hook's event otherwise than it
is documented, ``docs/dialects/claude-code.md`` says what counts.
"""

from __future__ import annotations

import os

from ...runners.wire import Ended, NoAnswer, Wire, last_words, shown
from ...spec.answers import Allow, Ask, Block, Continue, Deny, Inject, Rewrite, SetEnv, Warn
from ...spec.record import jsonable, thaw
from .calls import Input, name_of, response_of
from .occasions import OCCASIONS, about_of, end_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...runners.entry import HookEntry
    from ...spec.answers import Answer
    from ...spec.events import Event
    from ...spec.timings import Timing
    from .occasions import Occasion

LONGEST_TEXT = 10_000
"""Characters of a text that the model or the user reads; the whole text goes to a file."""

_LONGEST_PATH = 4_096
_LONGEST_EXPORTS = 100_000
_FROM_RAW = ("transcript_path", "prompt_id", "permission_mode", "effort")
_DECISIONS = ("allow", "deny", "ask", "defer")


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
                _check_noise(text, refusals=True)
            return [*_context(occasion, capped(text, ctx), timing, event, ctx), *given]
        _check_noise(text)
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
        if data is not None and not _faults(occasion, data):
            own = data.get("hookSpecificOutput", {})
            if own.get("permissionDecision") == "deny":
                reason = own.get("permissionDecisionReason") or reason
            elif data.get("decision") == "block":
                reason = data.get("reason") or reason
        reason = capped(reason, ctx)
        if occasion.tells:
            return [Inject(reason)] if reason else []
        return _block(occasion, reason or "a hook ended with exit code 2", timing, event)


def body_of(occasion: Occasion, event: Event, ctx: Any) -> bytes:
    """Return a payload as bytes: one JSON document in ASCII, so that any text is valid in it."""
    import json

    payload = jsonable(payload_of(occasion, event, ctx))
    return json.dumps(payload, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def payload_of(occasion: Occasion, event: Event, ctx: Any) -> dict[str, Any]:
    """Return an event as Claude Code's hooks read it.

    What the agent's own payload has beside (prompt id, permission mode, effort) is kept where it is Claude Code's.

    Parameters:
        occasion: Claude Code's name for it.
        event: the event.
        ctx: the hook's capabilities.
    """
    raw: Any = event.raw if isinstance(event.raw, dict) else {}
    if raw.get("hook_event_name") != occasion.name:
        raw = {}
    kept = {key: thaw(raw[key]) for key in _FROM_RAW if key in raw}
    data: dict[str, Any] = {
        "session_id": event.session_id,
        "transcript_path": kept.pop("transcript_path", ctx.session.transcript_path),
        "cwd": event.cwd or ctx.project_dir,
    }
    if "prompt_id" in kept:
        data["prompt_id"] = kept["prompt_id"]
    if occasion.mode:
        data["permission_mode"] = kept.get("permission_mode", "default")
    if event.agent_id:
        data.update(agent_id=event.agent_id, agent_type=event.agent)
    if "effort" in kept:
        data["effort"] = kept["effort"]
    data["hook_event_name"] = occasion.name
    data.update(_own(occasion, event))
    return data


def _own(occasion: Occasion, event: Any) -> dict[str, Any]:
    """Return the fields that an event has for itself."""
    name = occasion.name
    if name == "SessionStart":
        return {"source": event.source, **({"model": event.model} if event.model else {})}
    if name == "SessionEnd":
        return {"reason": end_reason(event.reason)}
    if name == "UserPromptSubmit":
        return {"prompt": event.prompt}
    if name in ("Stop", "SubagentStop"):
        fields = {"stop_hook_active": event.continued > 0, "last_assistant_message": event.text}
        return {**fields, "background_tasks": [], "session_crons": []}
    if name == "StopFailure":
        return {"error": event.error_type, "error_details": event.message}
    if name == "MessageDisplay":
        where = {"turn_id": f"{event.session_id}-{event.turn}", "message_id": "", "index": 0, "final": True}
        return {**where, "delta": event.text}
    if occasion.timing == "on_event":
        return _of_host_event(name, event)
    fields = {"tool_name": name_of(event), "tool_input": Input(event).value}
    if name == "PostToolUse":
        fields["tool_response"] = response_of(event)
    if name != "PermissionRequest":
        fields["tool_use_id"] = event.call_id
    if name == "PostToolUseFailure":
        fields["error"] = event.error or event.result_text or event.status
        fields["is_interrupt"] = event.status == "cancelled"
    if occasion.timing == "post_tool_execution":
        fields["duration_ms"] = round(event.duration * 1000)
    return fields


def _of_host_event(name: str, event: Any) -> dict[str, Any]:
    about = about_of(event)
    fields = {key: thaw(value) for key, value in about.items() if key not in _COMMON}
    if name == "SubagentStart":
        fields.pop("agent", None)
        fields.setdefault("agent_id", event.agent_id)
        fields["agent_type"] = about.get("agent_type") or about.get("agent") or event.agent
    elif name in ("PreCompact", "PostCompact"):
        fields.setdefault("trigger", "auto")
        if name == "PreCompact":
            fields.setdefault("custom_instructions", "")
    elif name == "Notification":
        fields.setdefault("message", "")
        fields.setdefault("notification_type", "")
    return fields


_COMMON = ("session_id", "transcript_path", "cwd", "hook_event_name", *_FROM_RAW)


def _text(ended: Ended) -> str:
    """Return a command's output as text, without a byte-order mark and the blanks around it.

    Raises:
        NoAnswer: when there was too much of it to be an answer.
    """
    if ended.truncated and ended.exit_code != 2:
        raise NoAnswer(f"it printed more than the {len(ended.stdout):,} bytes that an answer may have")
    return bytes(ended.stdout).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").strip()


def parsed(text: str) -> tuple[dict[str, Any] | None, str]:
    """Return the JSON object that an output is, or None; and what is wrong with one that begins like it."""
    import json

    if not text.startswith("{"):
        return None, ""
    try:
        data, end = json.JSONDecoder(parse_constant=_no_number).raw_decode(text)
    except (ValueError, RecursionError) as error:
        return None, f"its JSON is not valid: {error}"
    if data.get("async") is True:  # a hook that goes on in the background decides nothing
        return {}, ""
    if text[end:].strip():
        size = len(text[:end].encode("utf-8", "replace"))
        return None, f"more text follows its JSON after {size} bytes; print one JSON object and nothing else"
    return data, ""


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _check_noise(text: str, *, refusals: bool = False) -> None:
    """Refuse text with a hook's JSON behind it: a banner of a shell makes a guard silent.

    Parameters:
        text: a command's output, which does not begin with JSON.
        refusals: only JSON that refuses; other is text like any.

    Raises:
        NoAnswer: telling where the JSON is.
    """
    import json

    at = text.find("{")
    for _ in range(20):
        if at < 0:
            return
        try:
            data, _end = json.JSONDecoder().raw_decode(text, at)
        except (ValueError, RecursionError):
            data = {}
        meant = isinstance(data, dict) and data.keys() & _KNOWN.keys()
        if meant and (not refusals or data.get("decision") == "block" or data.get("continue") is False):
            size = len(text[:at].encode("utf-8", "replace"))
            raise NoAnswer(
                f"JSON found after {size} bytes of text ({shown(text[:40])!r}); print the JSON alone"
            )
        at = text.find("{", at + 1)


_KNOWN: dict[str, tuple[type, ...]] = {
    "continue": (bool,),
    "stopReason": (str,),
    "systemMessage": (str,),
    "suppressOutput": (bool,),
    "decision": (str,),
    "reason": (str,),
    "hookSpecificOutput": (dict,),
}
_KNOWN_INSIDE: dict[str, tuple[type, ...]] = {
    "hookEventName": (str,),
    "permissionDecision": (str,),
    "permissionDecisionReason": (str,),
    "updatedInput": (dict,),
    "additionalContext": (str,),
    "displayContent": (str,),
    "initialUserMessage": (str,),
    "sessionTitle": (str,),
    "watchPaths": (list,),
    "retry": (bool,),
    "action": (str,),
    "content": (dict,),
}


def _faults(occasion: Occasion, data: Mapping[str, Any]) -> str:
    """Return what voids an object, or an empty string. Unknown fields do not."""
    wrong = _wrong_type(data, _KNOWN, "")
    if wrong:
        return wrong
    if data.get("decision", "block") not in ("block", "approve"):
        return f"decision must be 'block' (or the old 'approve'), not {shown(repr(data['decision']))}"
    own = data.get("hookSpecificOutput")
    if own is None:
        return ""
    if own.get("hookEventName") != occasion.name:
        return f"hookSpecificOutput.hookEventName must be {occasion.name!r}, not {shown(repr(own.get('hookEventName')))}"
    wrong = _wrong_type(own, _KNOWN_INSIDE, "hookSpecificOutput.")
    if wrong:
        return wrong
    if own.get("permissionDecision", "allow") not in _DECISIONS:
        return f"permissionDecision must be allow, deny, ask or defer, not {shown(repr(own['permissionDecision']))}"
    if occasion.name == "PermissionRequest" and "decision" in own:
        return _faults_of_request(own["decision"])
    return ""


def _faults_of_request(decision: Any) -> str:
    place = "hookSpecificOutput.decision"
    if not isinstance(decision, dict) or decision.get("behavior") not in ("allow", "deny"):
        return f'{place} must be {{"behavior": "allow" or "deny"}}'
    return _wrong_type(
        decision, {"message": (str,), "interrupt": (bool,), "updatedInput": (dict,)}, f"{place}."
    )


def _wrong_type(data: Mapping[str, Any], known: Mapping[str, tuple[type, ...]], place: str) -> str:
    names = {bool: "true or false", str: "a text", dict: "an object", list: "a list"}
    for key, kinds in known.items():
        if key in data and not isinstance(data[key], kinds):
            return f"{place}{key} must be {names[kinds[0]]}, not {shown(repr(data[key])[:60])}"
    return ""


def said(occasion: Occasion, data: dict[str, Any], timing: Timing, event: Event, ctx: Any) -> list[Answer]:
    """Return what a hook's JSON means.

    Parameters:
        occasion: Claude Code's event.
        data: the object that a command printed or a server answered.
        timing, event, ctx: where, what about, and the hook's capabilities.

    Raises:
        NoAnswer: when a wrong type or another event's name voids it, or it asks for what cannot be done here.
        AnswerError: when a rewrite cannot be translated.
    """
    wrong = _faults(occasion, data)
    if wrong:
        raise NoAnswer(f"its answer is void: {wrong}")
    own = data.get("hookSpecificOutput", {})
    answers: list[Answer] = []
    if data.get("systemMessage"):
        answers.append(Warn(capped(data["systemMessage"], ctx)))
    if data.get("continue") is False:
        return [*answers, *_stopped(occasion, data, own, timing, event, ctx)]
    if occasion.name == "PreToolUse":
        answers += _before_tool(data, own, event)
    elif occasion.name == "PermissionRequest":
        answers += _permission(own, ctx)
    elif data.get("decision") == "block":
        reason = capped(data.get("reason", ""), ctx) or "a hook blocked it without a reason"
        answers += [Inject(reason)] if occasion.tells else _block(occasion, reason, timing, event)
    elif own.get("permissionDecision") in ("deny", "ask"):  # PreModelSwitch and the like
        answers += _block(occasion, own.get("permissionDecisionReason") or "denied by a hook", timing, event)
    answers += _results(occasion, own, event)
    if own.get("additionalContext"):
        answers += _context(occasion, capped(own["additionalContext"], ctx), timing, event, ctx)
    return answers


def _before_tool(data: Mapping[str, Any], own: Mapping[str, Any], event: Any) -> list[Answer]:
    word = own.get("permissionDecision")
    reason = own.get("permissionDecisionReason", "")
    if word is None and "decision" in data:  # the older form
        word = {"block": "deny", "approve": "allow"}[data["decision"]]
        reason = data.get("reason", "")
    reason = reason[:LONGEST_TEXT]
    if word == "deny":
        return [Deny(reason or "a hook denied it without a reason")]
    answers: list[Answer] = []
    if "updatedInput" in own:
        answers.append(Rewrite(args=Input(event).back(own["updatedInput"])))
    if word == "allow":
        answers.append(Allow(reason))
    elif word in ("ask", "defer"):  # nothing here can put a call off; somebody is asked
        answers.append(Ask(reason or ("a hook wants to be asked" if word == "ask" else "a hook put it off")))
    return answers


def _permission(own: Mapping[str, Any], ctx: Any) -> list[Answer]:
    decision = own.get("decision")
    if decision is None:
        return []
    if decision["behavior"] == "deny":
        return [Deny(capped(decision.get("message", ""), ctx) or "a hook denied it without a reason")]
    if "updatedInput" in decision:
        raise NoAnswer(
            "it allows other arguments (updatedInput), which cannot be changed once somebody is asked"
        )
    return [Allow()]


def _results(occasion: Occasion, own: Mapping[str, Any], event: Any) -> list[Answer]:
    """Return the rewrites of what has happened already."""
    if occasion.name == "MessageDisplay" and "displayContent" in own:
        return [Rewrite(text=own["displayContent"])]
    if occasion.name != "PostToolUse":
        return []
    if "updatedMCPToolOutput" in own and event.mcp:
        return [Rewrite(result=own["updatedMCPToolOutput"])]
    if "updatedToolOutput" not in own:
        return []
    new = own["updatedToolOutput"]
    if response_of(event) is event.result:
        return [Rewrite(result=new)]
    from ...spec.tools import result_text_of

    return [Rewrite(result_text=result_text_of(new))]


def _takes(timing: Timing, event: Event) -> tuple[str, ...]:
    """Return the names of the answers that an event takes."""
    if timing.name == "on_event":
        return tuple(event.accepts)
    return tuple(kind.__name__ for kind in timing.answers)


def _block(occasion: Occasion, reason: str, timing: Timing, event: Event) -> list[Answer]:
    """Return a refusal: of a call, of a prompt, or of the end of a turn.

    Raises:
        NoAnswer: where nothing can be refused.
    """
    if not occasion.blocks and not occasion.tells and timing.name != "on_event":
        return []
    takes = _takes(timing, event)
    if occasion.name in ("Stop", "SubagentStop") and "Continue" in takes:
        return [Continue(reason)]
    if "Deny" in takes:
        return [Deny(reason)]
    if "Block" in takes:
        return [Block(reason)]
    raise NoAnswer(f"it blocks ({shown(reason[:60])!r}), and {occasion.name} cannot be blocked here")


def _stopped(
    occasion: Occasion,
    data: Mapping[str, Any],
    own: Mapping[str, Any],
    timing: Timing,
    event: Event,
    ctx: Any,
) -> list[Answer]:
    """Return what ``continue: false`` means, which beats all other decisions: the turn ends."""
    reason = data.get("stopReason") or data.get("reason") or own.get("permissionDecisionReason") or ""
    reason = capped(reason, ctx) or "a hook ended the turn"
    takes = _takes(timing, event)
    if occasion.name in ("Stop", "SubagentStop"):
        return [Warn(reason)]  # it ends anyway, so that no other words count
    if "Block" in takes:
        return [Block(reason)]
    if "Deny" in takes and occasion.name != "PostToolUse" and occasion.name != "PostToolUseFailure":
        return [Deny(reason)]
    if occasion.timing == "post_tool_execution":
        ctx.state.set("stop", {"turn": event.turn, "agent": event.agent_id, "reason": reason})
        return [Inject(f"A hook ended the turn: {reason}"), Warn(reason)]
    return [Warn(reason)]


def _context(occasion: Occasion, text: str, timing: Timing, event: Event, ctx: Any) -> list[Answer]:
    """Return how the model gets a text: beside the event, else in its next system prompt."""
    takes = _takes(timing, event)
    if occasion.name in ("Stop", "SubagentStop") and "Continue" in takes:
        return [Continue(text)]
    if "Inject" in takes:
        return [Inject(text)]
    if timing.name != "on_session_end":  # no request follows there
        ctx.inject(text)
    return []


def capped(text: str, ctx: Any) -> str:
    """Return a text of at most 10,000 characters; a longer one is kept whole in a file that the text names."""
    if len(text) <= LONGEST_TEXT:
        return text
    from hashlib import sha256

    from ...paths import private_dir, write_private

    data = text.encode("utf-8", "backslashreplace")
    folder = os.path.join(ctx.output_dir, "claude-code")
    path = os.path.join(folder, f"{sha256(data).hexdigest()[:16]}.txt")
    note = f"\n[cut; the whole text of {len(text):,} characters is in {path}]"
    try:
        private_dir(folder, base=os.path.dirname(ctx.output_dir))
        write_private(path, data)
    except (OSError, ValueError) as error:
        note = f"\n[cut; the rest of {len(text):,} characters is lost: {shown(str(error))}]"
    return text[: LONGEST_TEXT - len(note)] + note


def _exported(text: str, ctx: Any) -> list[Answer]:
    """Return the variables that a hook wrote to CLAUDE_ENV_FILE: lines such as ``export NAME=value``."""
    import re
    import shlex

    found: dict[str, str] = {}
    for line in text.splitlines():
        match = re.fullmatch(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)", line)
        try:
            words = shlex.split(match[2]) if match is not None else []
        except ValueError:  # an open quote
            match = None
        if match is not None and len(words) <= 1 and not set("$`\0") & set(match[2]):
            found[match[1]] = words[0] if words else ""
        elif line.strip() and not line.lstrip().startswith("#"):
            ctx.log.warning("CLAUDE_ENV_FILE: only a shell could read {!r}; it is left out", shown(line[:80]))
    return [SetEnv(found)] if found else []
