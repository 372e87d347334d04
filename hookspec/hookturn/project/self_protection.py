"""The builtin guard ``self-protection``: asks before a tool call changes what controls the hooks.

That is hookturn's own files (configuration, state, trust), the hook settings of
agents, and the commands that change trust or installed bridges. For file tools
the paths decide; a shell line is judged by the programs and redirections in it,
which catches what a model does by habit, and not what hides its meaning.
"""

from __future__ import annotations

from functools import cache

from ..spec.answers import Ask
from ..spec.markers import hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable
    from typing import Any

NAME = "self-protection"

# Agents' settings and hook files: compat facts of each agent's configuration page.
# (what a mention has in it in any case, the pattern)
_NAMES = (
    ("hookturn.y", r"hookturn\.ya?ml"),
    (".hookturn", r"\.hookturn(?:/\S*)?"),
    (".claude", r"\.claude(?:/settings[^/\s]*\.json|/hooks(?:/\S*)?)?"),
    (".codex", r"\.codex(?:/(?:hooks\.json|config\.toml))?"),
    (".gemini", r"\.gemini(?:/settings\.json)?"),
    (".qwen", r"\.qwen(?:/\S*)?"),
    (".copilot", r"\.copilot(?:/\S*)?"),
    (".github/hooks", r"\.github/hooks(?:/\S*)?"),
    (".opencode", r"\.opencode(?:/plugins?(?:/\S*)?)?"),
    ("opencode/plugin", r"opencode/plugins?(?:/\S*)?"),
    (".cursor/hooks.json", r"\.cursor/hooks\.json"),
    (".windsurf/hooks.json", r"\.windsurf/hooks\.json"),
    ("hooks.toml", r"hooks\.toml"),
    (".hooks.json", r"\.hooks\.json"),
    (".atomcode/hooks.json", r"\.atomcode/hooks\.json"),
    ("plugins/hook_trust.json", r"plugins/hook_trust\.json"),
    ("hooks/hooks.json", r"hooks/hooks\.json"),
    ("hooks/hookturn.mjs", r"hooks/hookturn\.mjs"),
    ("role.yaml", r"role\.yaml"),
)


# Compiled when they are asked for: most calls of an agent need none of them, and would wait for them.
@cache
def _path() -> re.Pattern[str]:
    return _compiled(rf"(?:^|.*/)(?:{_any_name()})/*", dotall=True)


@cache
def _mention() -> re.Pattern[str]:
    return _compiled(rf"(?:^|[^\w.-])(?:{_any_name()})(?:/\*?)?(?![\w./-])")


@cache
def _reading_tool() -> re.Pattern[str]:
    return _compiled(r"(?:^|[_.:-])(?:read|get|list|search|find|view|stat|show|head|cat|grep|glob)")


def _any_name() -> str:
    return "|".join(pattern for _, pattern in _NAMES)


def _compiled(pattern: str, *, dotall: bool = False) -> re.Pattern[str]:
    import re

    return re.compile(pattern, re.IGNORECASE | (re.DOTALL if dotall else 0))


def _may_mention(text: str) -> bool:
    """Whether a text may mention one of the names; False is certain."""
    if not text.isascii():  # other letters have other ideas of case
        return True
    small = text.lower()
    for part, _ in _NAMES:  # noqa: SIM110 - asked at each call: a generator takes twice as long
        if part in small:
            return True
    return False


_REDIRECT = r"(?:>>?|>\||&>>?|<>)\s*(\"[^\"]*\"|'[^']*'|[^\s;|&<>()]+)"


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READERS = _words_of(
    "cat head tail less more bat grep egrep fgrep rg ag ls ll tree stat file wc diff cmp md5sum sha256sum jq cut "
    "echo printf test [ [[ cd pwd basename dirname realpath readlink true false"
)
_GIT_READERS = _words_of("add commit diff log show status blame ls-files grep cat-file rev-parse")
_WRAPPERS = _words_of(
    "sudo doas env nohup command builtin exec time nice ionice setsid stdbuf timeout sh bash dash zsh ksh"
)
_COMMANDS = frozenset(("trust", "untrust", "install", "uninstall"))


class SelfProtection:
    """The guard.

    Parameters:
        project_dir: the project's folder; relative paths start there.
        files: other files and folders to protect, absolute.
    """

    hookturn_name = NAME

    def __init__(self, project_dir: str, files: Iterable[str] = ()) -> None:
        from os.path import realpath

        self._project = project_dir
        self._files = tuple(dict.fromkeys(form for file in files for form in (file, realpath(file))))
        home = _home()
        below_home = [file.replace(home, "~", 1) for file in self._files] if home else []
        self._spellings = tuple(dict.fromkeys([*self._files, *below_home]))

    @hookimpl(guard=True)
    def pre_tool_execution(self, event: Any) -> Ask | None:
        """Ask before a call that would change one of the protected files."""
        if event.kind == "bash" or (event.kind == "other" and event.command):
            found = self._in_command(event.command)
            if found:
                return Ask(f"this command may change what controls the hooks: {found}")
        if event.kind == "write" or (event.kind == "other" and not _reading_tool().search(event.tool)):
            for path in event.paths:
                if self._protected(path):
                    return Ask(f"this would change what controls the hooks: {path}")
        return None

    def _protected(self, path: str) -> bool:
        import os

        full = os.path.normpath(os.path.join(self._project, path))
        try:
            real = os.path.realpath(full)
        except (OSError, ValueError):  # a NUL in the path
            real = full
        for form in (full, real):
            below = form.replace("\\", "/")
            if _may_mention(below) and _path().fullmatch(below):
                return True
            if any(below == file or below.startswith(f"{file}/") for file in self._files):
                return True
        return False

    def _mentions(self, text: str) -> bool:
        if _may_mention(text) and _mention().search(text):
            return True
        return any(spelling in text for spelling in self._spellings)

    def _in_command(self, command: str) -> str:
        """Return the part of a command line that may change a protected file, or an empty string."""
        if not self._mentions(command) and "hookturn" not in command:
            return ""
        import re

        from ..engine.shell import split

        for match in re.finditer(_REDIRECT, command):
            if self._mentions(match[1].strip("\"'")):
                return match[0]
        line = split(command)
        if not line.complete and self._mentions(command):
            return command[:200]
        for part in line.commands:
            for form in part.forms:
                if self._changes(form):
                    return form[:200]
        return ""

    def _changes(self, form: str) -> bool:
        words = _words(form)
        program = words[0].rpartition("/")[2]
        if _controls(program, words[1:]):
            return True
        if program in _WRAPPERS or program in _READERS or not self._mentions(form):
            return False
        if program == "git":
            verb = next((word for word in words[1:] if not word.startswith("-")), "")
            return verb not in _GIT_READERS
        if program == "sed":
            import re

            return any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in words[1:]) or any(
                " " in word and self._mentions(word) for word in words[1:]
            )
        if program == "find":
            return any(
                word in ("-delete", "-exec", "-execdir", "-ok", "-fprint", "-fprintf", "-fls")
                for word in words
            )
        return not (program == "hookturn" or _is_module(program, words[1:]))


def _words(form: str) -> list[str]:
    from shlex import split as shlex_split

    try:
        return shlex_split(form) or [""]
    except ValueError:
        return form.split() or [""]


def _is_module(program: str, words: list[str]) -> bool:
    return program.startswith("python") and words[:2] == ["-m", "hookturn"]


def _controls(program: str, words: list[str]) -> bool:
    """Whether a command is one of hookturn's that change trust or an agent's settings, through any launcher.

    ``uv run hookturn trust``, ``python3 -I -m hookturn trust`` and the like end in the same words; options of
    every command may stand between them.
    """
    if program in _READERS:
        return False
    names = [word.rpartition("/")[2].partition("@")[0].partition("=")[0] for word in (program, *words)]
    if "hookturn" not in names:
        return False
    return any(word in _COMMANDS for word in words[names.index("hookturn") :])


def _home() -> str:
    from os.path import expanduser

    home = expanduser("~")
    return home if len(home) > 1 and home != "~" else ""
