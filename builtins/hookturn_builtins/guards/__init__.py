"""Reminders before and after some tool calls; they refuse nothing. rolebox's guards of ``hooks.builtin``."""

from __future__ import annotations

import os
import re

from hookturn import Inject, hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hookturn import Answer, Context
    from hookturn.events import PostToolExecution, PreToolExecution

PRIORITY = 10

WHOLE_FILE = frozenset(("write", "writefile", "createfile", "filewrite"))
"""Tools that replace a whole file, without the marks between words."""

_READS = re.compile(r"\s*(?:cat|head|tail|less|more|dd)\s")
_FETCH = re.compile(
    r"redirect|\b30[1278]\b|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|network error|fetch failed|"
    r"timed out|getaddrinfo|certificate|\b(?:SSL|TLS)\b|"
    r"\b(?:HTTP|status|code|error)\b[^\n]{0,20}\b[45]\d\d\b|\b(?:403 Forbidden|404 Not Found|500 Internal)",
    re.I,
)
_LOOKED_AT = 1_000  # characters of a page: later ones are its content


class Config:
    """Settings of guards: which reminders are on.

    Attributes:
        write_existing_file_guard: before a whole file is written over one that exists: read it first.
        bash_file_read_guard: before a shell command that only reads a file: there is a tool for it.
        webfetch_redirect_guard: after a fetch that was redirected or failed: what to do about it.
    """

    write_existing_file_guard: bool = False
    bash_file_read_guard: bool = False
    webfetch_redirect_guard: bool = False


class Guards:
    """The plugin."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @hookimpl(tryfirst=True, priority=PRIORITY)
    def pre_tool_execution(self, event: PreToolExecution, ctx: Context) -> None:
        """Remind before a write over an existing file, and before a shell command that reads one."""
        if self.config.write_existing_file_guard and event.kind == "write":
            name = event.tool.lower().replace("_", "").replace("-", "")
            there = [path for path in event.paths if os.path.exists(os.path.join(event.cwd, path))]
            if name in WHOLE_FILE and there:
                ctx.inject(f"{there[0]} exists already. Read it before you write over it.")
        if self.config.bash_file_read_guard and event.kind == "bash" and _READS.match(event.command):
            ctx.inject("Read files with the tool for it rather than with a shell command.")

    @hookimpl(trylast=True, priority=PRIORITY)
    def post_tool_execution(self, event: PostToolExecution) -> Answer | None:
        """Remind after a fetch that did not bring the page."""
        if not self.config.webfetch_redirect_guard or event.kind != "fetch":
            return None
        if event.status in ("denied", "replied", "cancelled"):
            return None
        if _FETCH.search((event.error or event.result_text)[:_LOOKED_AT]):
            return Inject(
                "The page was redirected or could not be fetched. Follow the address that it names, or look "
                "for the content elsewhere; do not repeat the same request."
            )
        return None


def plugin(config: Config) -> Guards:
    """Return the plugin (the entry point)."""
    return Guards(config)
