"""What is known of programs and how they say that they could not start: where they are, which argument is a script.

A hook that could not start must never count as one that refused: several
interpreters end with exit code 2 when their script is missing.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHELL = "/bin/sh"
"""What runs a shell line."""

# Interpreter (without its version) -> (options after which no script comes, options that take a value).
_INTERPRETERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "python": (("-c", "-m"), ("-W", "-X", "--check-hash-based-pycs")),
    "sh": (("-c",), ("-o", "+o")),
    "dash": (("-c",), ("-o", "+o")),
    "bash": (("-c",), ("-o", "+o", "-O", "+O", "--rcfile", "--init-file")),
    "zsh": (("-c",), ("-o", "+o")),
    "ksh": (("-c",), ("-o", "+o")),
    "node": (("-e", "--eval", "-p", "--print"), ("-r", "--require", "--import", "--loader", "-C", "--conditions")),
    "perl": (("-e", "-E"), ("-I",)),
    "ruby": (("-e",), ("-I", "-r", "-C")),
    "php": (("-r",), ("-d", "-c")),
}  # fmt: skip


def find_program(name: str, env: Mapping[str, str], base_dir: str) -> tuple[str, str]:
    """Return (path, "") of a program, or ("", why) when it cannot be run.

    Parameters:
        name: a path, relative ones from ``base_dir``; or a bare name, looked up in PATH. Relative folders in
            PATH do not count: a checkout must not bring programs.
        env: the environment that the program will have.
        base_dir: the folder of the declaring file.
    """
    if os.sep in name:
        path = os.path.join(base_dir, expanded(name))
        return (path, "") if not (why := _not_executable(path)) else ("", why)
    why = f"there is no program {name!r} in PATH"
    for folder in (env.get("PATH") or os.defpath).split(os.pathsep):
        if not os.path.isabs(folder):
            continue
        path = os.path.join(folder, name)
        problem = _not_executable(path)
        if not problem:
            return path, ""
        if os.path.isfile(path):
            why = problem
    return "", why


def _not_executable(path: str) -> str:
    try:
        if os.path.isdir(path):
            return f"{path} is a folder"
        if os.access(path, os.X_OK):
            return ""
        return f"{path} is not executable" if os.path.lexists(path) else f"{path} does not exist"
    except ValueError as error:
        return f"{path!r}: {error}"


def find_script(argv: Sequence[str]) -> int:
    """Return which argument is the script that an interpreter is to run, or 0 for none.

    Parameters:
        argv: a program with its arguments; ``env`` in front of the interpreter is seen through.
    """
    at = 0
    if os.path.basename(argv[0]) == "env":
        at = 1
        while at < len(argv) and (argv[at].startswith("-") or "=" in argv[at]):
            at += 1
    if at >= len(argv):
        return 0
    name = os.path.basename(argv[at])
    known = _INTERPRETERS.get(name) or _INTERPRETERS.get(name.rstrip("0123456789."))
    if known is None:
        return 0
    ends, takes_value = known
    at += 1
    while at < len(argv):
        word = argv[at]
        if word == "--":
            return at + 1 if at + 1 < len(argv) else 0
        if not word.startswith(("-", "+")) or word == "-":
            return 0 if word == "-" else at
        # Short options may stand together: `bash -ec`, `python3 -Sc`.
        if word in ends or (word[1:2].isalpha() and not word.startswith("--") and f"-{word[-1]}" in ends):
            return 0
        at += 2 if word in takes_value else 1
    return 0


def can_be_path(text: str) -> bool:
    """Tell whether any file may have this path: a NUL or half a surrogate pair, say, are in none."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def expanded(path: str) -> str:
    """Return a path with the ``~`` at its beginning filled in; one that no file may have stays as it is."""
    return os.path.expanduser(path) if can_be_path(path) else path


def looks_like_path(word: str) -> bool:
    """Tell whether an argument may be meant as a file: it has a slash or a dot in it and is no option."""
    return (os.sep in word or "." in word) and not word.startswith("-") and can_be_path(word)


def not_started(error: BaseException, program: str, cwd: str | None) -> str:
    """Return why the system did not start a program.

    Parameters:
        error: what starting it raised.
        program: its path.
        cwd: the folder that it was to run in.
    """
    if not isinstance(error, OSError):
        return f"{program} cannot be started: {error}"
    if cwd is not None and not os.path.isdir(cwd):
        return f"the folder {cwd} does not exist"
    reason = error.strerror or str(error)
    if isinstance(error, (FileNotFoundError, NotADirectoryError)) and os.path.isfile(program):
        interpreter = shebang(program)
        if interpreter:
            remark = " (its first line ends in CRLF)" if interpreter.endswith("\r") else ""
            return f"{program} needs the interpreter {interpreter.strip()}, which is not there{remark}"
        return f"{program} needs a loader that is not there"
    if error.errno == 8:  # ENOEXEC
        return f"{program} is no program: its first line should begin with '#!'"
    return f"{program} cannot be started: {reason}"


def shebang(path: str) -> str:
    """Return the interpreter that a script's first line names, or an empty string."""
    try:
        with open(path, "rb") as file:
            first = file.read(256).partition(b"\n")[0]
    except OSError:
        return ""
    if not first.startswith(b"#!"):
        return ""
    words = first[2:].strip(b" \t").split(None, 1)
    name = words[0].decode("utf-8", "replace") if words else ""
    return f"{name}\r" if first.endswith(b"\r") and len(words) == 1 else name


_DASH = (
    r"(?:cannot open |can't cd to |cannot create |Syntax error: |Bad substitution|Illegal (?:number|option)|"
    r"parameter not set|bad variable name|missing \]|unexpected operator|not found$|arithmetic expression|expected )"
)
_BASH = (
    r"(?:syntax error|unexpected EOF|.*(?:unary|binary) operator expected|too many arguments|"
    r".*integer expression expected|.*numeric argument required|.*invalid option|.*command not found|.*ambiguous redirect|"
    r".*No such file or directory|.*Permission denied|.*cannot execute)"
)
_ANYWHERE = (
    r"^\S*: can't open file '.*': \[Errno \d+\]",  # python
    r"^Can't open perl script ",
    r"^error: Failed to spawn: ",  # uv
)
# Errors of shells in their own words; a hook's own words may well begin with a file and a line.
_AT_THE_END = (
    rf"^\S+: \d+: (?:\S+: )?{_DASH}",
    rf"^\S+: (?:-c: )?line \d+: (?:\S+: )?{_BASH}",
    r"^(?:Unknown|unknown) option:? ?-|^Argument expected for the -|^Try `\S*python\S* -h' for more information",  # python
)
_WORDS = (
    r"cannot (?:open|create|execute)|can't (?:cd|open)|syntax error|bad substitution|illegal (?:number|option)|not set|"
    r"bad variable name|missing \]|unexpected|not found|arithmetic expression|expected |operator|too many arguments|required|"
    r"(?:invalid|unknown) option|ambiguous redirect|no such file|permission denied|failed to spawn|for more information|"
    r"error: |\\[0-7xu]"
)
"""What all of these have in them, wherever it stands; or escapes, of which ``echo`` may make them."""


def start_failure(exit_code: int | None, stderr: bytes | bytearray, given: bytes = b"") -> str:
    """Return why a program that ended could not really start, or an empty string.

    126 and 127 are what shells and ``env`` end with when a command cannot be run or
    found (POSIX, XCU 2.8.2). 2 is what several interpreters end with for a missing
    script, wrong usage or a syntax error, which must not be taken for a refusal.

    Parameters:
        exit_code: what it ended with.
        stderr: what it said.
        given: the JSON that it read. A guard repeats what it refuses: a call with such an error in it must not
            pass off the refusal as a failure to start, so its words count for nothing then.
    """
    if exit_code not in (2, 126, 127):
        return ""
    import re

    lines = [line for line in stderr[-8000:].decode("utf-8", "replace").splitlines() if line.strip()]
    last = lines[-1].strip() if lines else ""
    if exit_code != 2:
        what = "cannot be run" if exit_code == 126 else "was not found"
        return last or f"a command {what} (exit code {exit_code})"
    found = _own_error(lines, last)
    return "" if found and re.search(_WORDS, _texts(given), re.IGNORECASE) else found


def _own_error(lines: list[str], last: str) -> str:
    """Return the line in which an interpreter says that it ended by itself, or an empty string."""
    import re

    for pattern in _ANYWHERE:
        for line in lines:
            if re.search(pattern, line):
                return line.strip()
    if len(lines) > 1 and re.match(r"\S+: (?:-c: )?line \d+: `", last):
        last = lines[-2].strip()  # bash shows the line after a syntax error
    if any(re.search(pattern, last) for pattern in _AT_THE_END):
        return last
    if re.match(r"\S+: error: ", last) and any(line.startswith("usage: ") for line in lines):
        return last  # argparse
    return ""


def _texts(given: bytes) -> str:
    """Return all texts of a JSON document, each blank (also one that ``echo`` would make of ``\\n``) as one space."""
    import json
    import re

    try:
        left = [json.loads(given)]
    except (ValueError, RecursionError):
        left = [given.decode("utf-8", "replace")]
    texts = []
    while left:
        value = left.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value
    return re.sub(r"(?:\s|\\[abfnrtv0])+", " ", " ".join(texts))
