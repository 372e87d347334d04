"""Any agent's tool call as Claude Code's hooks know one: its names, its input, and the way back."""

from __future__ import annotations

from ...spec import tools
from ...spec.errors import AnswerError
from ...spec.record import thaw
from ..dialect import plain_name
from .tools import TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...spec.events import ToolEvent

_BY_KIND = {
    "bash": ("Bash",),
    "read": ("Read",),
    "write": ("Edit", "Write"),
    "fetch": ("WebFetch",),
    "search": ("Grep",),
    "agent": ("Agent", "Task"),
}
_SAME = {"Agent": ("Agent", "Task"), "Task": ("Task", "Agent")}  # two names of one tool, over the versions

# Where a kind has several tools: other agents' names, in lower case without separators.
_BY_NAME = {
    "writefile": ("Write",), "write": ("Write",), "create": ("Write",), "createfile": ("Write",), "savefile": ("Write",),
    "edit": ("Edit",), "editfile": ("Edit",), "replace": ("Edit",), "strreplace": ("Edit",), "multiedit": ("MultiEdit", "Edit"),
    "strreplaceeditor": ("Edit",), "searchreplace": ("Edit",), "notebookedit": ("NotebookEdit",),
    "glob": ("Glob",), "find": ("Glob",), "filesearch": ("Glob",),
    "ls": ("LS",), "list": ("LS",), "listdirectory": ("LS",), "listdir": ("LS",),
    "websearch": ("WebSearch",), "googlewebsearch": ("WebSearch",), "notebookread": ("NotebookRead",),
}  # fmt: skip

# Other agents' names of an argument -> Claude Code's.
_ARGUMENTS = {
    "Write": {"file_text": "content", "contents": "content", "text": "content"},
    "Edit": {
        "old_str": "old_string", "new_str": "new_string", "oldString": "old_string", "newString": "new_string",
        "replaceAll": "replace_all", "old_text": "old_string", "new_text": "new_string",
    },
    "Agent": {"agent_type": "subagent_type", "message": "prompt", "agent": "subagent_type"},
    "Grep": {"query": "pattern", "dir_path": "path"},
    "Glob": {"dir_path": "path"},
    "LS": {"dir_path": "path"},
}  # fmt: skip
_PATH = {"Read": "file_path", "Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path"}


def names_of(event: ToolEvent) -> tuple[str, ...]:
    """Return the names that a matcher may know a tool by: its own one, and Claude Code's for what it does."""
    name = event.tool
    if name in _SAME:
        return _SAME[name]
    if name in TOOLS or name.startswith("mcp__"):
        return (name,)
    return (name, *_claudes(event))


def name_of(event: ToolEvent) -> str:
    """Return Claude Code's name of a tool; the own one where it has none for it."""
    if event.tool in TOOLS or event.tool.startswith("mcp__"):
        return event.tool
    found = _claudes(event)
    return found[0] if found else event.tool


def _claudes(event: ToolEvent) -> tuple[str, ...]:
    if event.mcp:
        server, tool = event.mcp
        return (f"mcp__{server}__{tool}",)
    plain = plain_name(event.tool)
    if event.kind in ("write", "search", "read") and plain in _BY_NAME:
        return _BY_NAME[plain]
    return _BY_KIND.get(event.kind, ())


class Input:
    """A tool's input in Claude Code's form.

    Attributes:
        value: what hooks read as ``tool_input``. What has no translation stands there as the agent has it.
    """

    def __init__(self, event: ToolEvent) -> None:
        self._event = event
        self._renamed: dict[str, str] = {}  # Claude Code's name -> the agent's
        self._added: dict[str, Any] = {}  # what is there for the hooks only
        args: dict[str, Any] = thaw(dict(event.args))
        name = name_of(event)
        if event.tool in TOOLS or event.tool.startswith("mcp__") or event.mcp:
            self.value = args
            return
        words = _ARGUMENTS.get("Agent" if name == "Task" else name, {})
        value: dict[str, Any] = {}
        for key, item in args.items():
            new = words.get(key, key)
            new = key if new in args and new != key else new
            if new != key:
                self._renamed[new] = key
            value[new] = item
        if name == "Bash":
            self._command(value)
        elif name in _PATH:
            self._path(value, _PATH[name])
        self.value = value

    def _command(self, value: dict[str, Any]) -> None:
        command = self._event.command
        if not command or value.get("command") == command:
            return
        key = next((key for key in self._event._row.command if key in value), "")
        if key and key != "command":
            del value[key]
            self._renamed["command"] = key
        value["command"] = command

    def _path(self, value: dict[str, Any], key: str) -> None:
        paths = self._event.paths
        if not paths:
            return
        row = self._event._row
        own = next((name for name in row.paths if isinstance(value.get(name), str) and value[name]), "")
        if own:
            if own != key:
                del value[own]
                self._renamed[key] = own
            value[key] = paths[0]
        else:  # a patch names its files inside its text
            value[key] = self._added[key] = paths[0]

    def back(self, changed: dict[str, Any]) -> dict[str, Any]:
        """Return the agent's arguments for an input that a hook wrote.

        Raises:
            AnswerError: when it changes something that the agent's tool has no argument for.
        """
        event = self._event
        args: dict[str, Any] = {}
        for key, item in changed.items():
            if key in self._added:
                if item != self._added[key]:
                    raise AnswerError(
                        f"updatedInput: {event.tool} has no argument {key!r} that could be changed"
                    )
                continue
            own = self._renamed.get(key, key)
            if item == self.value.get(key) and own in event.args:
                item = thaw(event.args[own])  # as it was: a relative path stays one
            elif key == "command" and isinstance(item, str) and not isinstance(event.args.get(own, ""), str):
                item = tools.with_command(event._row, event.args, item)[own]
            args[own] = item
        return args


def response_of(event: Any) -> Any:
    """Return a tool's result in Claude Code's form: a shell's as its object, others as the agent has them."""
    result = event.result
    if event.tool in TOOLS or event.mcp or name_of(event) != "Bash":
        return result
    return {
        "stdout": event.result_text, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False,
    }  # fmt: skip
