"""What looks wrong with a command, found by reading it: bash under sh, folders without quotes, variables that nobody sets,
seconds for milliseconds. Runs nothing.
"""

from __future__ import annotations

import os
import re

from ..spec.errors import did_you_mean
from .entry import Wrong
from .programs import SHELL, expanded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_BASHISMS = (
    (r"(?:^|[\s;&|({!])\[\[\s", "[[ ... ]]"),
    (r"<<<", "<<<"),
    (r"(?<![<>&])[<>]\(", "<( ... )"),
    (r"(?<!&)&>>?(?!&)", "&>"),
    (r"(?:^|[\s;&|({])source\s", "source"),
    (r"(?:^|[\s;&|({])function\s+\w+", "function"),
    (r"(?:^|[\s;&|({])(?:declare|typeset|shopt|mapfile|readarray)\s", "declare and its like"),
    (r"(?:^|[\s;])\w+=\(", "arrays"),
    (r"\$\{\w+(?:\^|,|//|/[^}]|:\d)", "${x//a/b} and its like"),
    (r"\$\{!?\w+\[|\$\{!\w", "${x[0]} and ${!x}"),
    (r"(?:^|\s)\[\s[^]]*\s==\s", "== in [ ... ]"),
    (r"=~", "=~"),
    (r"\bset\s+-\w*o\s+pipefail\b", "pipefail"),
)
_OWN_BASH = re.compile(r"\s*(?:\S*/)?(?:env\s+)?bash\s")
_VARIABLE = re.compile(r"\$(?:\{(\w+)|(\w+))")
_OF_AGENTS = re.compile(
    r"(?:CLAUDE|ATOMCODE)_(?:TOOL|FILE|HOOK|EVENT|SESSION|PROMPT|USER|NOTIFICATION|TRANSCRIPT|AGENT|CWD|WORKING"
    r"|PROJECT|PLUGIN)\w*|TOOL_(?:INPUT|NAME|ARGS|OUTPUT|RESULT|RESPONSE)\w*|HOOK_(?:INPUT|EVENT|TOOL)\w*|FILE_PATHS?"
)
"""Names that people expect an agent to set."""

LONG = 1_000.0
"""Seconds from which on a time limit is taken for one in milliseconds."""

SHORT = 0.1
"""Seconds below which a time limit is taken for one in seconds: no program is that fast."""


def of_wait(key: str, value: float, *, unit: str = "seconds") -> Iterator[tuple[str, str]]:
    """Yield cause and remedy where a time limit is hardly meant.

    Parameters:
        key: the field.
        value: what it holds.
        unit: seconds or milliseconds: what the field is in.
    """
    seconds = value / 1000 if unit == "milliseconds" else value
    if seconds >= LONG:
        shown = f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes"
        meant = f"Write {value / 1000:g} if milliseconds were meant." if unit == "seconds" else "Write less."
        yield f"{key} is in {unit}: {value:.12g} are {shown}", meant
    elif seconds < SHORT and unit == "milliseconds":
        cause = f"{key} is in milliseconds: no program is done in {value:g}"
        yield cause, f"Write {value * 1000:g} if seconds were meant."


def of_line(
    line: str, *, shell: str = "sh", folders: Collection[str] = (), known: Collection[str] = ()
) -> Iterator[Wrong]:
    """Yield what is odd about a shell line.

    Parameters:
        line: the command.
        shell: the shell that reads it: sh or bash.
        folders: variables that hold a folder, whose name may have blanks in it.
        known: all variables that the agent sets.
    """
    if shell == "sh" and not _OWN_BASH.match(line):
        severity = "warning" if _sh_is_bash() else "error"
        yield from of_words(line, "the line", "Write \"bash -c '...'\", or call a script.", severity)
    bare = without_quoted(line, keep_double=False)
    place = next((match for match in _VARIABLE.finditer(bare) if (match[1] or match[2]) in folders), None)
    if place is not None:
        name = place[1] or place[2]
        yield Wrong(
            f"${name} stands without quotes: a folder with a blank in its name breaks the command",
            f'Write "${name}" in double quotes.',
            certain=False,
            severity="warning",
        )
    yield from _unset(line, {*folders, *known})


def of_script(path: str, text: str) -> Iterator[Wrong]:
    """Yield what is odd about a script that sh reads.

    Parameters:
        path: the script, for the message.
        text: what it holds.
    """
    lines = (line for line in text.split("\n") if not line.lstrip().startswith("#"))
    yield from of_words("\n".join(lines), path, "Begin it with #!/bin/bash, or let bash run it.", "warning")


def of_words(text: str, what: str, remedy: str, severity: str) -> Iterator[Wrong]:
    """Yield one row for all that bash knows and sh does not.

    Parameters:
        text: a line or a script.
        what: how the message calls it.
        remedy: what to do.
        severity: error or warning.
    """
    bare = without_quoted(text, keep_double=False)
    words = [word for pattern, word in _BASHISMS if re.search(pattern, bare)]
    if words:
        cause = f"{what} is read by sh, which does not know {', '.join(words)}: it may fail, or never say no"
        yield Wrong(cause, remedy, certain=False, severity=severity)


def _sh_is_bash() -> bool:
    """Tell whether sh is bash on this machine, where the line works."""
    return os.path.basename(os.path.realpath(SHELL)).startswith("bash")


def _unset(line: str, known: Collection[str]) -> Iterator[Wrong]:
    for match in _VARIABLE.finditer(without_quoted(line, keep_double=True)):
        name = match[1] or match[2]
        if name in known or name in os.environ or not _OF_AGENTS.fullmatch(name):
            continue
        if re.search(rf"(?:^|[\s;&(]){name}=|\b(?:read|for)\b[^;|&]*\b{name}\b", line):
            continue
        yield Wrong(
            f"nobody sets the variable {name}{did_you_mean(name, known)}: it is empty",
            "Read the JSON on standard input: jq -r .tool_input.command, say.",
            certain=False,
        )


def missing(line: str, folders: Mapping[str, str], project: str) -> Iterator[Wrong]:
    """Yield the program or script of a simple line that is not there: a shell would end with 127, unseen.

    Parameters:
        line: the command.
        folders: variable -> the folder that it will hold.
        project: the folder where the line will run.
    """
    import shlex

    from .programs import find_program, find_script

    names = "|".join(map(re.escape, folders)) or r"\0"
    place = re.compile(rf"\$(?:\{{({names})(?::?-[^}}]*)?\}}|({names})\b)")
    marks = {name: f"@hookturn-{index}@" for index, name in enumerate(folders)}
    if not place.search(line) and set("|&;<>()`\\*?[]#{!\n") & set(without_quoted(line, keep_double=True)):
        return
    try:
        # The folders are put in behind the splitting: they may have blanks.
        words = shlex.split(place.sub(lambda match: marks[match[1] or match[2]], line))
    except ValueError:  # an open quote
        return
    for name, mark in marks.items():
        words = [word.replace(mark, folders[name]) for word in words]
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        words = words[1:]
    if not words or any(set(word) & set("|&;<>$`*?") for word in words[:3]):
        return
    if os.sep in words[0]:
        _, why = find_program(words[0], os.environ, project)
        if why:
            yield Wrong(why, "Correct the path, or run `chmod +x` on it.", certain=False)
        return
    at = find_script(words)
    if at and os.sep in words[at]:
        script = os.path.join(project, expanded(words[at]))
        if not os.path.isfile(script):
            yield Wrong(f"{script} does not exist", "Correct the path.", certain=False)


def without_quoted(line: str, *, keep_double: bool) -> str:
    """Return a shell line with a blank in place of each quoted text.

    Parameters:
        line: the line.
        keep_double: keep what stands in double quotes, where variables count.
    """
    out, quote, at = [], "", 0
    while at < len(line):
        c = line[at]
        if c == "\\" and quote != "'":
            at += 2
            out.append(" ")
            continue
        if quote:
            if c == quote:
                quote = ""
            elif quote == '"' and keep_double:
                out.append(c)
        elif c in "'\"":
            quote = c
            out.append("_")
        else:
            out.append(c)
        at += 1
    return "".join(out)
