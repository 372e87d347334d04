"""How the report shows texts that come from outside: nothing in them may act, hide or turn round."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .collect import Said

# Control characters but newline and tab, marks that turn or hide text, line separators, lone surrogates.
# Joiners stay: emoji and several scripts need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e0fff]"
)


def visible(text: object, limit: int = 0) -> str:
    """Return a text in which every character can be seen and printed: others become escapes such as ``\\u202e``.

    Parameters:
        text: any text.
        limit: characters after which it is cut; 0 for never.
    """
    shown = str(text)
    if limit and len(shown) > limit:
        shown = f"{shown[:limit]}..."
    if shown.isascii() and shown.isprintable():
        return shown
    return _HIDDEN.sub(_escape, shown.replace("\r\n", "\n"))


def _escape(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")


def line(text: object, limit: int = 0) -> str:
    """Return a text in one line: white space becomes one blank."""
    return visible(" ".join(str(text).split()), limit)


def seconds(value: float | None) -> str:
    """Return a duration as people say it: ``8 ms``, ``3.2 s``, ``4 min 5 s``, ``2 h 10 min``."""
    if value is None:
        return "–"
    if value < 0.01:
        return f"{value * 1000:.1f} ms" if value else "0 s"
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"


def changes(said: Said) -> list[str]:
    """Return what hooks and rules said of an event, each in a few words."""
    parts = []
    if said.decision:
        parts.append(
            f"{said.decision} by {said.by or 'nobody'}" + (f": {said.reason}" if said.reason else "")
        )
    parts += [f"{by} rewrote {changed}" for by, changed in said.rewrites]
    if said.replied:
        parts.append("a hook replied instead")
    if said.injected:
        by = ", ".join(name for name, answers, _, _ in said.hooks if "Inject" in answers) or "a hook"
        parts.append(f"{by} told the model something")
    parts += [f"warning: {text}" for text in said.warnings]
    if said.goes_on:
        parts.append(f"goes on: {said.goes_on}")
    parts += [f"overruled: {text}" for text in said.overruled]
    for name, answers, error, would in said.hooks:
        if error:
            parts.append(f"{name} failed: {error}")
        elif would:
            parts.append(f"{name} would have said {', '.join(answers)}")
    if not parts:
        parts = [f"{name}: {', '.join(answers)}" for name, answers, _, _ in said.hooks]
    return parts
