"""Tools have kinds, or "write once" is false: what a tool's arguments and results mean.

A table says for each tool of an agent which kind it is and where its command,
paths and URLs stand. Hooks read the views on the event; a rewrite of a view is
translated back here.
"""

from __future__ import annotations

from .errors import AnswerError
from .record import Record, freeze, safe_text, thaw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

KINDS = ("bash", "read", "write", "fetch", "search", "agent", "other")
"""All tool kinds. An edit is a ``write``; everything unknown is ``other``."""


class Tool(Record):
    """What one tool of a host does, and where its arguments carry what.

    Parameters:
        kind: one of KINDS.
        command: names of arguments that hold a shell command (the first present one counts).
        paths: names of arguments that hold a path or a list of paths.
        urls: names of arguments that hold a URL or a list of URLs.
        patch: names of arguments that hold a patch, whose headers name files.
    """

    kind: str
    command: list[str] = []
    paths: list[str] = []
    urls: list[str] = []
    patch: list[str] = []

    if TYPE_CHECKING:

        def __init__(
            self,
            kind: str,
            command: Iterable[str] = (),
            paths: Iterable[str] = (),
            urls: Iterable[str] = (),
            patch: Iterable[str] = (),
        ) -> None: ...

    else:

        def __init__(self, kind, command=(), paths=(), urls=(), patch=()):
            if kind not in KINDS:
                raise AnswerError(f"unknown tool kind {kind!r}; one of {', '.join(KINDS)}")
            super().__init__(
                kind=kind, command=list(command), paths=list(paths), urls=list(urls), patch=list(patch)
            )


_PATH_KEYS = (
    "file_path",
    "path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "filename",
    "file",
    "target_file",
)
_COMMAND_KEYS = ("command", "cmd", "script", "command_line")
_URL_KEYS = ("url", "urls", "uri", "prompt_url")

BASH = Tool("bash", command=_COMMAND_KEYS)
READ = Tool("read", paths=(*_PATH_KEYS, "paths"))
WRITE = Tool("write", paths=(*_PATH_KEYS, "paths"), patch=("patch", "diff", "input"))
PATCH = Tool("write", paths=_PATH_KEYS, patch=("command", "input", "patch", "diff", "patchText"))
FETCH = Tool("fetch", urls=_URL_KEYS)
SEARCH = Tool("search", paths=("path", "dir_path", "directory"))
AGENT = Tool("agent")
OTHER = Tool("other", command=("command",), paths=_PATH_KEYS, urls=("url",))

USUAL: dict[str, Tool] = {
    **dict.fromkeys(
        ("bash", "shell", "sh", "powershell", "terminal", "run_shell_command", "exec_command", "run_command",
         "execute_command", "run_terminal_cmd", "local_shell"),
        BASH,
    ),
    **dict.fromkeys(("read", "read_file", "view", "open", "open_file", "cat", "notebookread", "read_many_files"), READ),
    **dict.fromkeys(
        ("write", "write_file", "edit", "edit_file", "multiedit", "notebookedit", "create", "create_file", "replace",
         "str_replace", "str_replace_editor", "search_replace", "hashline_edit", "delete_file", "save_file"),
        WRITE,
    ),
    **dict.fromkeys(("apply_patch", "patch"), PATCH),
    **dict.fromkeys(("fetch", "webfetch", "web_fetch", "http_request", "download"), FETCH),
    **dict.fromkeys(
        ("search", "grep", "rg", "glob", "find", "ls", "list", "list_directory", "grep_search", "search_file_content",
         "websearch", "web_search", "google_web_search", "codesearch", "file_search"),
        SEARCH,
    ),
    **dict.fromkeys(("agent", "task", "spawn_agent", "subagent", "delegate"), AGENT),
}  # fmt: skip
"""Usual names (compared in lower case) for hosts that gave no table of their own."""


def lookup(table: Mapping[str, Tool] | None, name: str) -> Tool:
    """Return what is known of the tool ``name``: the host's table first, then the usual names."""
    if table is not None:
        tool = table.get(name)
        if tool is not None:
            return tool
    return USUAL.get(name) or USUAL.get(name.lower(), OTHER)


def mcp_of(name: str) -> tuple[str, str] | None:
    """Return (server, tool) of a name in the form ``mcp__server__tool``, else None.

    Source: the naming of MCP tools in Claude Code, Codex and Qwen Code.
    """
    if not name.startswith("mcp__"):
        return None
    server, separator, tool = name[5:].partition("__")
    return (server, tool) if separator and server and tool else None


_SHELLS = ("bash", "sh", "zsh", "dash")


def _command_key(tool: Tool, args: Mapping[str, Any]) -> str:
    """The first argument that holds a command: a text, or an argv list of texts."""
    for key in tool.command:
        value = args.get(key)
        if isinstance(value, str) or (
            isinstance(value, (list, tuple)) and value and all(isinstance(part, str) for part in value)
        ):
            return key
    return ""


def _is_script(argv: list[str]) -> bool:
    """Whether an argv is a shell with a script: ``["bash", "-lc", "text"]`` (Codex writes commands so)."""
    return len(argv) == 3 and argv[1] in ("-c", "-lc") and argv[0].rpartition("/")[2] in _SHELLS


def command_of(tool: Tool, args: Mapping[str, Any]) -> str:
    """Return the shell command in ``args``, or an empty string. An argv list is joined with shell quoting."""
    key = _command_key(tool, args)
    if not key:
        return ""
    if isinstance(args[key], str):
        return str(args[key])
    argv: list[str] = list(args[key])
    if _is_script(argv):
        return argv[2]
    from shlex import join

    return join(argv)


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, (list, tuple)):
        return [item for item in value if isinstance(item, str) and item]
    return []


_PATCH_HEADERS = (
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
    "+++ ",
    "--- ",
    "rename from ",
    "rename to ",
)


def patch_paths(text: str) -> list[str]:
    """Return the files that a patch names in its headers (Codex's ``*** Update File:`` form or a unified diff)."""
    found: dict[str, None] = {}
    for line in text.splitlines():
        for header in _PATCH_HEADERS:
            if line.startswith(header):
                path = line[len(header) :].split("\t")[0].strip()
                if header in ("+++ ", "--- "):
                    if path == "/dev/null":
                        break
                    if path[:2] in ("a/", "b/"):
                        path = path[2:]
                if path:
                    found[path] = None
                break
    return list(found)


def paths_of(tool: Tool, args: Mapping[str, Any], cwd: str) -> list[str]:
    """Return the absolute, normalised paths that ``args`` name, each once, in order.

    Parameters:
        tool: the tool's row.
        args: the call's arguments.
        cwd: the session's folder; relative paths stay relative without it.
    """
    from os.path import join, normpath

    found: dict[str, None] = {}
    names = [text for key in tool.paths for text in _strings(args.get(key))]
    names += [path for key in tool.patch for text in _strings(args.get(key)) for path in patch_paths(text)]
    for name in names:
        path = name.removeprefix("file://")
        if path.startswith("~"):
            path = _at_home(path)
        found[normpath(join(cwd, path))] = None
    return list(found)


def _at_home(path: str) -> str:
    from os.path import expanduser

    try:
        return expanduser(path)
    except ValueError:  # a NUL or a lone surrogate in the user's name
        return path


def urls_of(tool: Tool, args: Mapping[str, Any]) -> list[str]:
    """Return the URLs that ``args`` name, each once, in order."""
    found = dict.fromkeys(text for key in tool.urls for text in _strings(args.get(key)))
    if not found and tool.kind == "fetch":
        # Some agents fetch by a prompt that holds the address (Gemini's web_fetch).
        import re

        for text in _strings(args.get("prompt")):
            found.update(dict.fromkeys(re.findall(r"https?://[^\s<>\"')\]]+", text)))
    return list(found)


# Where agents put the text of a result, in the order in which it is looked for.
_RESULT_KEYS = (
    "stdout", "output", "llmContent", "textResultForLlm", "text_result_for_llm", "aggregated_output", "content",
    "text", "result", "error", "file", "filenames",
)  # fmt: skip


def result_text_of(result: Any) -> str:
    """Return the text that the model reads of a tool's result, whatever shape the agent gives it."""
    if isinstance(result, str):
        return result
    if result is None:
        return ""
    if isinstance(result, (list, tuple)):
        parts = [result_text_of(item) for item in result if isinstance(item, (str, dict))]
        return "\n".join(part for part in parts if part)
    if isinstance(result, dict):
        if isinstance(result.get("stdout"), str):
            streams = [result["stdout"], result.get("stderr")]
            return "\n".join(text for text in streams if isinstance(text, str) and text)
        for key in _RESULT_KEYS:
            if key in result:
                text = result_text_of(result[key])
                if text:
                    return text
        return ""
    return safe_text(result)


def with_result_text(result: Any, text: str) -> Any:
    """Return a copy of ``result`` whose text is ``text``, in the result's own shape."""
    if isinstance(result, dict):
        changed = thaw(result)
        if isinstance(result.get("stdout"), str):
            changed["stdout"] = text
            if isinstance(result.get("stderr"), str):
                changed["stderr"] = ""
            return freeze(changed)
        for key in _RESULT_KEYS:
            if key in result and result_text_of(result[key]):
                changed[key] = with_result_text(result[key], text)
                return freeze(changed)
        return text
    if isinstance(result, (list, tuple)) and result:
        first = next((item for item in result if isinstance(item, dict) and item.get("type") == "text"), None)
        if first is not None:
            return freeze([{**thaw(first), "text": text}])
        return freeze([text])
    return text


def with_command(tool: Tool, args: Mapping[str, Any], command: str) -> dict[str, Any]:
    """Return the arguments with another shell command.

    Raises:
        AnswerError: when the call has no command.
    """
    key = _command_key(tool, args)
    if not key:
        raise AnswerError("Rewrite(command=...): this call has no command")
    changed: dict[str, Any] = thaw(dict(args))
    old = args[key]
    if isinstance(old, str):
        changed[key] = command
    else:
        # Keep the agent's own shell, else use a plain one.
        shell = list(old[:2]) if _is_script(list(old)) else ["/bin/sh", "-c"]
        changed[key] = [*shell, command]
    return changed


def with_path(tool: Tool, args: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the arguments with another path in place of the first one.

    Raises:
        AnswerError: when the call has no path argument (a patch names its files inside its text).
    """
    for key in tool.paths:
        if _strings(args.get(key)):
            changed: dict[str, Any] = thaw(dict(args))
            if isinstance(args[key], str):
                changed[key] = path
            else:
                changed[key] = items = list(args[key])
                items[next(i for i, item in enumerate(items) if _strings(item))] = path
            return changed
    raise AnswerError("Rewrite(path=...): this call has no path argument")
