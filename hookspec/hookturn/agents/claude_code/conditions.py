"""The ``if`` of a handler: one permission rule, such as ``Bash(git *)``, that a tool call must fit.

Source: the hooks and permissions pages of Claude Code's documentation: each simple command of a line is looked at,
and a line that cannot be told apart always fits, so that a guard is asked rather than not.
"""

from __future__ import annotations

import re

from ..dialect import star_match
from .calls import Input, names_of
from .tools import TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...spec.events import ToolEvent

_RULE = re.compile(r"\s*([^\s()]+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_ASSIGNMENT = re.compile(r"\s*[A-Za-z_][A-Za-z0-9_]*=(?:'[^']*'|\"[^\"]*\"|[^\s'\"])*\s+")


class BadRule(ValueError):
    """The text is no permission rule."""


class Condition:
    """One permission rule.

    Parameters:
        text: the rule as written: a tool's name, or a name with a pattern in brackets.
        project: the folder that ``/path`` starts from.

    Raises:
        BadRule: for anything else.
    """

    __slots__ = ("pattern", "project", "text", "tool")

    def __init__(self, text: str, project: str = "") -> None:
        found = _RULE.fullmatch(text)
        if found is None:
            raise BadRule(f"{text[:60]!r} is no permission rule")
        self.text = text
        self.project = project
        self.tool: str = found[1]
        self.pattern: str | None = found[2] if found[2] not in (None, "", "*") else None

    @property
    def known(self) -> bool:
        """Whether Claude Code has a tool of this name, or it may be one of an MCP server."""
        return self.tool in TOOLS or self.tool.startswith("mcp__")

    def fits(self, event: ToolEvent) -> bool:
        """Tell whether a call fits the rule."""
        if not self._concerns(event):
            return False
        if self.pattern is None:
            return True
        if event.kind == "bash":
            return self._fits_command(event.command)
        if self.pattern.startswith("domain:") and event.urls:
            return any(self._fits_host(url) for url in event.urls)
        if event.paths and event.kind in ("read", "write", "search"):
            return any(self._fits_path(path, event.cwd) for path in event.paths)
        from ...engine.match import strings

        return any(star_match(self.pattern, text) for text in strings(Input(event).value))

    def _concerns(self, event: ToolEvent) -> bool:
        names = names_of(event)
        if self.tool in names:
            return True
        if self.tool.startswith("mcp__"):  # a server alone, or a glob, covers its tools
            server = self.tool if "__" in self.tool[5:] else f"{self.tool}__*"
            return any(star_match(server, name) for name in names)
        return False

    def _fits_command(self, line: str) -> bool:
        from ...engine.shell import split

        assert self.pattern is not None
        pattern = self.pattern
        if pattern.endswith(":*"):  # the older way to write a prefix
            pattern = f"{pattern[:-2]} *"
        parts = split(line)
        if not parts.complete:
            return True
        texts = [line, *(text for command in parts.commands for text in command.forms)]
        return any(_fits_text(pattern, text) for text in texts)

    def _fits_host(self, url: str) -> bool:
        from urllib.parse import urlsplit

        assert self.pattern is not None
        wanted = self.pattern.removeprefix("domain:").strip().lower()
        try:
            host = (urlsplit(url).hostname or "").lower()
        except ValueError:
            return True  # an address that cannot be read: better asked than not
        return star_match(wanted, host)

    def _fits_path(self, path: str, cwd: str) -> bool:
        from os.path import expanduser

        assert self.pattern is not None
        pattern = self.pattern
        if pattern.startswith("//"):
            return star_match(pattern[1:], path)
        if pattern.startswith("~"):
            return star_match(expanduser(pattern), path)
        if pattern.startswith("/") and self.project and star_match(self.project + pattern, path):
            return True
        if star_match(pattern, path):
            return True
        pattern = pattern.removeprefix("./")
        inside = path.removeprefix(cwd.rstrip("/") + "/") if cwd else path
        if "/" not in pattern:  # a name alone counts in every folder
            return star_match(pattern, path.rpartition("/")[2])
        return star_match(pattern, inside)


def _fits_text(pattern: str, text: str) -> bool:
    """A blank before the last star: the words must end there, or go on after a blank."""
    while True:
        if star_match(pattern, text) or (pattern.endswith(" *") and star_match(pattern[:-2], text.rstrip())):
            return True
        assignment = _ASSIGNMENT.match(text)
        if assignment is None:
            return False
        text = text[assignment.end() :]
