"""What Claude Code's hooks answer, in JSON: found in their output, checked, and as our answers.

Source: the hooks reference, and version 2.1.332 as run. Where that program takes an answer otherwise than it is
documented, ``docs/dialects/claude-code.md`` says what counts.
"""

from __future__ import annotations

import os

from ...runners.wire import NoAnswer, shown
from ...spec.answers import Allow, Ask, Block, Continue, Deny, Inject, Rewrite, Warn
from .calls import Input, response_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...spec.answers import Answer
    from ...spec.events import Event
    from ...spec.timings import Timing
    from .occasions import Occasion

LONGEST_TEXT = 10_000
"""Characters of a text that the model or the user reads; the whole text goes to a file."""

_DECISIONS = ("allow", "deny", "ask", "defer")


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


def check_noise(text: str, *, refusals: bool = False) -> None:
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


def faults(occasion: Occasion, data: Mapping[str, Any]) -> str:
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
        return _wrong_request(own["decision"])
    return ""


def _wrong_request(decision: Any) -> str:
    place = "hookSpecificOutput.decision"
    if not isinstance(decision, dict) or decision.get("behavior") not in ("allow", "deny"):
        return f'{place} must be {{"behavior": "allow" or "deny"}}'
    return _wrong_type(
        decision, {"message": (str,), "interrupt": (bool,), "updatedInput": (dict,)}, f"{place}."
    )


def _wrong_type(data: Mapping[str, Any], known: Mapping[str, tuple[type, ...]], place: str) -> str:
    names = {bool: "true or false", str: "a string", dict: "an object", list: "an array"}
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
    wrong = faults(occasion, data)
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
        answers += [Inject(reason)] if occasion.tells else block(occasion, reason, timing, event)
    elif own.get("permissionDecision") in ("deny", "ask"):  # PreModelSwitch and the like
        answers += block(occasion, own.get("permissionDecisionReason") or "denied by a hook", timing, event)
    answers += _results(occasion, own, event)
    if own.get("additionalContext"):
        answers += context(occasion, capped(own["additionalContext"], ctx), timing, event, ctx)
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


def block(occasion: Occasion, reason: str, timing: Timing, event: Event) -> list[Answer]:
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


def context(occasion: Occasion, text: str, timing: Timing, event: Event, ctx: Any) -> list[Answer]:
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
