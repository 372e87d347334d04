"""``run: {command: ...}``: a program as a hook, one process an event."""

from __future__ import annotations

import os
import sys

from ..engine.nesting import time_left
from ..platform import agent_environ
from ..spec.errors import AnswerError, EventError, RegistrationError
from ..spec.markers import hookimpl
from ..spec.timings import TIMINGS
from .entry import Configured, Wrong
from .outside import Outside
from .programs import SHELL, can_be_path, expanded, find_program, find_script, looks_like_path, shebang
from .threads import in_coroutine, on_thread
from .wire import Ended, FailedToStart, NoAnswer, Wire, last_words, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..spec.events import Event
    from ..spec.timings import Timing
    from .entry import HookEntry
    from .process import ProcessResult

TIMEOUT = 5.0
"""Seconds that a command has, unless its entry says otherwise."""

LONGEST_OUTER = 100_000
"""Bytes of any environment variable; the system starts no program with one over 128 kB (execve(2))."""


def problems(entry: HookEntry, project: str = "") -> list[Wrong]:
    """Return what is wrong with an entry's command: a missing program, script or interpreter.

    Parameters:
        entry: a configured hook of kind command.
        project: the folder where a shell line will run, if it is known.
    """
    if os.name != "posix":
        return [Wrong("commands run on Linux and macOS only", "Write the hook as a module.")]
    if isinstance(entry.run, str):
        return _line_problems(entry, project)
    return _argv_problems(entry, list(entry.run))


def _line_problems(entry: HookEntry, project: str) -> list[Wrong]:
    line = entry.run.strip()
    if not os.access(SHELL, os.X_OK):
        return [Wrong(f"there is no {SHELL}", "Give the command as a list of words.")]
    if line.startswith("#") and "\n" not in line:
        return [Wrong("the line is a comment: nothing would run", "Delete the '#'.")]
    words = line.split()
    if not words or any(c in line for c in "|&;<>()$`\\\"'*?[]#~={}!\n"):
        return []  # only a shell can tell what it runs
    if words[0] in _BUILTINS:
        return []
    # The shell starts in the project's folder; where that is not known, a path is left to the run.
    if os.sep in words[0] and not (os.path.isabs(words[0]) or project):
        return []
    env = agent_environ()
    _, why = find_program(words[0], env, project)
    if why:
        return [Wrong(why, _remedy(why, words[0]), certain=False)]
    at = find_script(words)
    if not at or not (project or os.path.isabs(words[at])):
        return []
    script = os.path.join(project, words[at])
    if os.path.isfile(script) or (os.sep not in words[at] and not find_program(words[at], env, project)[1]):
        return []  # some shells look for a script in PATH, too
    what = "is no file" if os.path.lexists(script) else "does not exist"
    return [
        Wrong(f"{script} {what}", "Correct the path; a line runs in the project's folder.", certain=False)
    ]


_BUILTINS = frozenset((
    "alias", "bg", "break", "cd", "command", "continue", "echo", "eval", "exec", "exit", "export", "false", "fg", "getopts",
    "hash", "jobs", "kill", "printf", "pwd", "read", "readonly", "return", "set", "shift", "test", "times", "trap", "true",
    "type", "ulimit", "umask", "unalias", "unset", "wait", ".", ":", "if", "for", "while", "until", "case",
))  # fmt: skip


def _remedy(why: str, program: str) -> str:
    if why.endswith("is not executable"):
        return "Run `chmod +x` on it, or name its interpreter first."
    return "Correct the path." if os.sep in program else "Correct the name, or install the program."


def _argv_problems(entry: HookEntry, argv: list[str]) -> list[Wrong]:
    found = []
    program, why = find_program(argv[0], agent_environ(), entry.base_dir)
    if why:
        found.append(Wrong(why, _remedy(why, argv[0]), certain=os.sep in argv[0]))
    elif os.sep in argv[0]:
        interpreter = shebang(program)
        if interpreter and not os.access(interpreter.rstrip("\r"), os.X_OK):
            found.append(
                Wrong(f"{program} needs the interpreter {interpreter.strip()}, which is not there", "Correct its first line.")
            )  # fmt: skip
        elif interpreter.endswith("\r"):
            found.append(Wrong(f"the first line of {program} ends in CRLF", "Save it with LF line ends."))
    at = find_script(argv)
    if at:
        script = _beside(entry, argv[at])
        if not os.path.isfile(script):
            what = "is no file" if os.path.lexists(script) else "does not exist"
            found.append(Wrong(f"{script} {what}", "Correct the path; it starts at the declaring file."))
    return found


def _beside(entry: HookEntry, word: str) -> str:
    return os.path.abspath(os.path.join(entry.base_dir, expanded(word)))


def words_of(entry: HookEntry) -> str:
    """Return an entry's command as text, for people: a list as a shell would need it quoted."""
    if isinstance(entry.run, str):
        return f"the shell line `{entry.run}`"
    from shlex import join

    return join(entry.run)


def files(entry: HookEntry, project: str) -> list[str]:
    """Return the files that make out what a command does: trust covers their content.

    Those are the interpreter's script, arguments that are files beside the declaring
    one, and programs in the project; of a shell line, all words that are such files, also behind ``cd``, behind a
    folder in a variable, and in lines that are words (``sh -c '...'``).

    Parameters:
        entry: a configured hook of kind command.
        project: the project's folder.
    """
    root = os.path.realpath(project)
    found: list[str] = []
    looked_at: list[str] = []

    def add(path: str, *, anyway: bool = False) -> None:
        path = os.path.abspath(path)
        if path not in found and (anyway or (can_be_path(path) and _lies_in(path, root))):
            found.append(path)

    def too_many(folders: list[str]) -> bool:
        looked_at.extend(folders)
        if len(looked_at) <= _MOST_LOOKED_AT:
            return False
        add(os.path.join(project, "*"), anyway=True)  # no file: what nobody knows is never run
        return True

    def add_unnamed(words: list[str], folders: list[str]) -> None:
        for before, word in zip(["", *words], words, strict=False):
            names = [*_UNNAMED.get(os.path.basename(word), ()), *_modules(before, word)]
            if too_many(folders):
                return
            for path in (os.path.join(folder, name) for folder in folders for name in names):
                if os.path.isfile(path):
                    add(path)

    def add_line(line: str, bases: list[str], outer: Mapping[str, list[str]], depth: int = 0) -> None:
        words = _shell_words(line)
        values = {**outer, **_values(words)}
        folders = [*bases, *_line_folders(words, bases, values)]
        add_unnamed(words, folders)
        for before, word in zip(["", *words], words, strict=False):
            if before in _WRITES_TO or "\0" in word:  # what the line only writes changes each time
                continue
            filled = _filled(word, values)
            for name in (name for text in filled for name in _names_in(text, before)):
                if too_many(folders):
                    return
                for folder in folders:
                    for path in _meant(folder, expanded(name), root):
                        add(path, anyway=not os.path.isabs(name))
            if depth < _DEEPEST and any(c.isspace() for c in word):  # sh -c '...'
                add_line(word, folders, values, depth + 1)

    bases = [entry.base_dir, project]
    if isinstance(entry.run, str):
        add_line(entry.run, bases, {})
        return found
    argv = list(entry.run)
    add_unnamed(argv, [*bases, *_line_folders(argv, bases, {})])
    if os.sep in argv[0]:
        add(_beside(entry, argv[0]))
    at = find_script(argv)
    if at:
        add(_beside(entry, argv[at]), anyway=not os.path.isabs(argv[at]))
    for word in argv[1:]:
        option = _option(word)
        for name in (word, *([option] if option else [])):
            path = _beside(entry, name) if looks_like_path(name) else ""
            if path and os.path.isfile(path):
                add(path, anyway=not os.path.isabs(name))
            elif any(c.isspace() for c in name):
                add_line(name, bases, {})
    return found


def _option(word: str) -> str:
    """Return the value that is one word with its option: ``--rc=x.sh``, ``-fx.awk``; "" for none, and for an output."""
    import re

    if word.partition("=")[0] in _OUTPUTS:
        return ""
    match = re.fullmatch(r"(?s)--?[A-Za-z][\w-]*=(.+)|-[A-Za-z](.+)", word)
    return (match[1] or match[2]) if match is not None else ""


def _values(words: list[str]) -> dict[str, list[str]]:
    """Return what variables of a line hold: ``X=value``, and each word of ``for x in a b``."""
    import re

    found: dict[str, list[str]] = {}
    for index, word in enumerate(words):
        match = re.fullmatch(_ASSIGNMENT, word)
        if match is not None:
            found.setdefault(match[1], []).append(match[2])
        elif word == "for" and words[index + 2 : index + 3] == ["in"]:
            for value in words[index + 3 :]:
                if value in (";", "do"):
                    break
                found.setdefault(words[index + 1], []).append(value)
    return found


def _filled(word: str, values: Mapping[str, list[str]]) -> list[str]:
    """Return a word, and with its variables filled in: by each of their values, a bounded number in all."""
    import re

    texts = [word]
    for text in texts:
        match = next((m for m in re.finditer(_VARIABLE, text) if m[2] or (m[1] or m[3]) in values), None)
        if match is not None:
            for value in [*values.get(match[1] or match[3], ()), *([match[2]] if match[2] else [])]:
                new = text[: match.start()] + value + text[match.end() :]
                if len(texts) < _MOST_FILLED and len(new) < _LONGEST and new not in texts:
                    texts.append(new)
    return texts


_OUTPUTS = ("--output", "--output-file", "--out", "--log", "--log-file", "--report")
_WRITES_TO = (">", ">>", ">|", "&>", "&>>", ">&", *_OUTPUTS)


_UNNAMED = {
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), ("package.json",)),
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "deno": ("deno.json", "deno.jsonc"),
}
"""Program -> files of the folder it runs in that say what it runs."""

_OF_PACKAGE = ("__init__.py", "__main__.py")

_GOES_TO = ("cd", "pushd", "-C", "--directory", "--prefix", "--cwd", "--chdir", "--dir")
"""Words before the folder in which a line, or one of its programs, goes on."""

_MOST_FOLDERS = 100
"""Folders that a line may go to."""

_DEEPEST = 5
"""How deep lines may stand in words of lines."""

_MOST_MATCHES = 1000
"""Files that one pattern may mean; a hook with a pattern that means more is never run."""

_MOST_LOOKED_AT = 20_000
"""Names of files that are compared with one pattern, and places where files of one line are looked for."""

_BEHIND_FOLDER = r"(?:[)}`]|\$\w+)/+([^`$]+)$"
_ASSIGNMENT = r"(?s)([A-Za-z_]\w*)=(.+)"
_VARIABLE = r"\$(?:\{([A-Za-z_]\w*)(?::?[-=+]([^{}]*))?\}|([A-Za-z_]\w*))"
_BRACES = r"\{[^{}]*\}"

_MOST_FILLED = 100
"""Texts that a word with variables may be."""

_LONGEST = 4096
"""Characters of such a text; no path is longer."""


def _names_in(word: str, before: str) -> list[str]:
    """Return the names of files that a word of a line may be.

    A folder that only the shell can tell, as in ``$(git rev-parse --show-toplevel)/hooks/x.sh``, is taken for one
    of those that the line starts from.
    """
    import re

    value = re.fullmatch(_ASSIGNMENT, word)
    names = [word, word.strip("`"), value[2].strip("`") if value is not None else _option(word)]
    behind = re.search(_BEHIND_FOLDER, word)
    if behind is not None:
        names.append(behind[1])
    elif before == ")" and word.startswith("/"):
        names.append(word.lstrip("/"))
    return [text for name in names if name for text in _without_braces(name)]


def _without_braces(name: str) -> list[str]:
    """Return what ``a{1,2}.sh`` means: ``a1.sh`` and ``a2.sh``; a pattern for ``{1..3}`` and what are too many."""
    import re

    names = [name]
    for text in names:
        match = None if "${" in text else re.search(_BRACES, text)
        if match is not None:
            parts = match[0][1:-1].split(",")
            if len(parts) == 1 or len(names) + len(parts) > _MOST_FILLED:
                parts = ["*"]
            names += [text[: match.start()] + part + text[match.end() :] for part in parts]
    return names


def _line_folders(words: list[str], bases: list[str], values: Mapping[str, list[str]]) -> list[str]:
    """Return the folders that a line goes to, or keeps in a variable: from the bases, and from one another."""
    import re

    found: list[str] = []
    goes = ""
    for word in words:
        value = re.fullmatch(_ASSIGNMENT, word)
        option, _, behind = word.partition("=")
        if value is not None:
            names = value[2].split(":")  # PATH=hooks:$PATH
        elif option in _GOES_TO and behind:
            names = [behind]
        elif word.startswith("-C") and len(word) > 2:
            names = [word[2:]]
        else:
            names = [word] if goes else []
        if not (goes in ("cd", "pushd") and word.startswith("-")):  # cd -P hooks
            goes = word if word in _GOES_TO else ""
        for name in (
            part for text in names for full in _filled(text, values) for part in _names_in(full, "")
        ):
            for base in [*bases, *found]:
                folder = os.path.normpath(os.path.join(base, expanded(name)))
                known = folder in found or folder in bases or len(found) >= _MOST_FOLDERS
                if not known and os.path.isdir(folder):
                    found.append(folder)
    return found


def _modules(before: str, word: str) -> list[str]:
    """Return the files that a word of a line is to Python: a module behind ``-m``, or a folder to be run."""
    import re

    behind = re.fullmatch(r"-[A-Za-z]*m([A-Za-z_][\w.]*)", word)
    if re.fullmatch(r"-[A-Za-z]*m", before) is not None or behind is not None:
        parts = (behind[1] if behind is not None else word).split(".")
        packages = [os.path.join(*parts[:end], _OF_PACKAGE[0]) for end in range(1, len(parts))]
        module = os.path.join(*parts)
        return [*packages, f"{module}.py", *(os.path.join(module, part) for part in _OF_PACKAGE)]
    return [os.path.join(word, _OF_PACKAGE[1])]


def _meant(folder: str, name: str, root: str) -> list[str]:
    """Return the files that a name means, as it stands or as a pattern.

    Parameters:
        folder: where it is looked for.
        name: the name.
        root: the project, where patterns of absolute paths are looked at.

    Returns:
        files; the pattern itself, which is none, where it means too many: what nobody knows is never run.
    """
    import re
    from fnmatch import fnmatchcase

    path = os.path.join(folder, name)
    if not can_be_path(path):
        return []
    meant = [path] if os.path.isfile(path) else []
    parts = name.split(os.sep)
    fixed = next((at for at, part in enumerate(parts) if any(c in part for c in "*?[")), len(parts))
    start = os.path.join(folder, os.sep.join([*parts[:fixed], ""]))
    if fixed == len(parts) or (os.path.isabs(name) and not _lies_in(os.path.join(start, "x"), root)):
        return meant
    found = [start]
    looked_at = 0
    for part in parts[fixed:]:
        part = re.sub(r"\[.*\]", "*", part)  # what shells take for a class differs
        matching = []
        for before in found:
            try:
                names = os.listdir(before) if any(c in part for c in "*?[") else [part]
            except OSError:
                continue
            looked_at += len(names)
            matching += [
                os.path.join(before, text) for text in names if text == part or fnmatchcase(text, part)
            ]
            if len(matching) > _MOST_MATCHES or looked_at > _MOST_LOOKED_AT:
                return [path]
        found = sorted(matching)
    return meant + [text for text in found if os.path.isfile(text)]


def _lies_in(path: str, root: str) -> bool:
    return os.path.realpath(path).startswith(os.path.join(root, ""))


def _shell_words(line: str) -> list[str]:
    line = line.replace("\\\n", "").replace("$'", "'").replace('$"', '"')
    try:
        return _lexed(line)
    except ValueError:  # an open quote, as in `# don't`: the words without any
        return _lexed(line.translate(dict.fromkeys(map(ord, "'\"\\"), " ")))


def _lexed(line: str) -> list[str]:
    from shlex import shlex

    lexer = shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def make(
    entry: HookEntry,
    config: Mapping[str, Any] | None = None,
    timings: Mapping[str, Timing] = TIMINGS,
    *,
    live: bool = False,
    wire: Wire | None = None,
) -> Configured:
    """Return the plugin of an entry whose ``run`` is a command.

    Parameters:
        entry: a configured hook of kind command; ``entry.files`` are checked before each run.
        config: its settings, secrets resolved.
        timings: all timings that the engine knows.
        live: run for dry events, too.
        wire: how the program is spoken to; default: hookturn's own way.

    Raises:
        RegistrationError: when the program or its script is certainly not there.
    """
    for wrong in problems(entry):
        if wrong.certain:
            raise RegistrationError(entry.name, wrong.cause, wrong.remedy)
    command = Command(entry, config or {}, live=live, wire=wire)
    return Configured(entry.name, {name: _hook(command, timings[name]) for name in entry.timings})


def _hook(command: Command, timing: Timing) -> Any:
    @hookimpl(timeout=TIMEOUT)
    def run(event: Any, ctx: Any) -> Any:
        return command(timing, event, ctx)

    return run


class Command(Outside):
    """Runs one entry's program for events.

    Parameters:
        entry: the configured hook.
        config: its settings, secrets resolved.
        live: run for dry events, too.
        wire: how the program is spoken to; default: hookturn's own way.
    """

    def __init__(
        self, entry: HookEntry, config: Mapping[str, Any], *, live: bool = False, wire: Wire | None = None
    ) -> None:
        super().__init__(entry, config, TIMEOUT)
        self.wire = wire if wire is not None else Wire()
        self.live = live

    def __call__(self, timing: Timing, event: Event, ctx: Any) -> Any:
        """Run the program and return its answers. In a coroutine's thread: return what gives them when awaited.

        Raises:
            FailedToStart, NoAnswer, AnswerError, TimeoutError: as the program went.
        """
        if event.dry_run and not self.live:
            return None
        outer = dict(ctx.env)
        if self.starts_itself(outer, ctx):
            return None
        self.check_files()
        command = self._resolved(outer)
        stdin = self.wire.request(self.entry, timing, event, ctx, self.config)
        cwd = self.wire.folder(self.entry, event, ctx)
        limit = min(self.timeout, time_left())
        context = self.wire.environment(self.entry, timing, event, ctx)

        def work(cancel: int | None = None) -> ProcessResult:
            from .process import run_process

            try:
                env = self._environment(outer, context)
                return run_process(
                    command, stdin, cwd=cwd, env=env, timeout=limit, label=self.label, cancel=cancel
                )
            finally:
                self.wire.over(context)

        if in_coroutine():
            return self._awaited(work, timing, event, ctx, limit)
        return self._answers(work(), timing, event, ctx, limit)

    async def _awaited(
        self, work: Callable[[int], ProcessResult], timing: Timing, event: Event, ctx: Any, limit: float
    ) -> Any:
        result = await on_thread(work)
        return self._answers(result, timing, event, ctx, limit)

    def _environment(self, outer: Mapping[str, str], context: Mapping[str, str]) -> dict[str, str]:
        """Return the program's environment: the agent's, a UTF-8 locale, and what is small of the event."""
        env = {name: value for name, value in outer.items() if _fits(name, value, LONGEST_OUTER)}
        for name, value in context.items():
            # One that does not fit is left out, and so is an outer hook's.
            env.pop(name, None)
            if value and _fits(name, value, self.wire.longest_value):
                env[name] = value
        env.update(_utf8(env))
        return env

    def _resolved(self, env: Mapping[str, str]) -> list[str] | str:
        """Return the command with its program found and paths that start at the declaring file made absolute."""
        entry = self.entry
        if isinstance(entry.run, str):
            return str(entry.run)
        argv = list(entry.run)
        at = find_script(argv)
        program, why = find_program(argv[0], env, entry.base_dir)
        if why:
            raise FailedToStart(f"{entry.source}: {why}")
        for index, word in enumerate(argv[1:], 1):
            path = _beside(entry, word) if index == at or looks_like_path(word) else ""
            if path and os.path.isfile(path):
                argv[index] = path
            elif index == at and not os.path.lexists(path):
                raise FailedToStart(f"{entry.source}: {path} does not exist")
        return [program, *argv[1:]]

    def _answers(self, result: ProcessResult, timing: Timing, event: Event, ctx: Any, limit: float) -> Any:
        """Return what a program's end means."""
        source = self.entry.source
        if result.held:
            ctx.log.warning(
                "{}: a child of the command still held its output after it had ended, and was killed", source
            )
        if result.failed_to_start:
            raise FailedToStart(
                f"{source}: could not start: {shown(self.hidden.hide(result.failed_to_start))}"
            )
        if result.timed_out:
            raise TimeoutError(f"{source}: no answer within {limit:.3g} s; the command was stopped")
        stderr = self.hidden.hide_bytes(bytes(result.stderr))
        if result.exit_code == 0 and stderr:
            ctx.log.debug("{}{}", source, last_words(stderr))
        ended = Ended(
            exit_code=result.exit_code,
            stdout=bytes(result.stdout),
            stderr=stderr,
            truncated=result.truncated,
            ended=result.ended,
        )
        try:
            answers = self.wire.answers(self.entry, timing, event, ctx, ended)
        except (AnswerError, EventError) as error:
            raise NoAnswer(f"{source}: {self.hidden.hide(str(error))}") from None
        return self.hidden.in_words(answers) or None


def _fits(name: str, value: str, limit: int) -> bool:
    """Tell whether an environment can hold this: no NUL, no lone surrogate, not too long."""
    if not name or "=" in name or "\0" in name or "\0" in value:
        return False
    try:
        return len(os.fsencode(name)) + len(os.fsencode(value)) <= limit
    except UnicodeEncodeError:
        return False


def _utf8(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make programs read and write UTF-8, whatever the host's locale."""
    changed = {"PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8"}
    name = next((name for name in ("LC_ALL", "LC_CTYPE", "LANG") if env.get(name)), "")
    if "utf8" not in env.get(name, "").lower().replace("-", ""):
        changed["LC_ALL" if name == "LC_ALL" else "LC_CTYPE"] = (
            "UTF-8" if sys.platform == "darwin" and name != "LC_ALL" else "C.UTF-8"
        )
    return changed
