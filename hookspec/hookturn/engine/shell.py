"""Splits a shell command line into its simple commands with a real parser (tree-sitter's bash grammar).

A rule about ``rm`` must see the ``rm`` in ``cd x && rm``, in ``$(rm y)`` and in ``sudo bash -c 'rm z'``.
Where the parser gives up, a coarse cut is added, which shows deny rules too much rather than too little.
"""

from __future__ import annotations

import re
from threading import local
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MAX_LENGTH = 200_000
"""Characters; a longer line counts as one that cannot be split."""

_DEPTH = 5  # bash -c in bash -c ...: deeper counts as one that cannot be split
_SPELLINGS = 10  # wrappers in a row of which each gives a form of its own; the innermost always does
_KEPT_LINES = 64
_SECONDS = 2.0  # for one line: ordinary ones take milliseconds, hostile ones the square of their length

_COMMANDS = ("command", "declaration_command", "unset_command", "test_command", "variable_assignment")
_INNER = ("command_substitution", "process_substitution")
_OPERATORS = ("<", ">", ">>", ">|", "&>", "&>>", "<>", ">&", "<&", ">&-", "<&-")
_STDIN = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "-")

# Programs that run the rest of their arguments as a command, with the options that take a value.
_WRAPPERS: dict[str, tuple[str, ...]] = {
    "sudo": (
        "-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "-r", "-t",
        "--user", "--group", "--host", "--prompt", "--chdir", "--chroot", "--role", "--type", "--other-user",
    ),
    "doas": ("-u", "-C"),
    "env": ("-u", "-C", "--unset", "--chdir"),
    "nohup": (),
    "coproc": (),
    "command": (),
    "builtin": (),
    "exec": ("-a",),
    "time": ("-f", "-o", "--format", "--output"),
    "nice": ("-n", "--adjustment"),
    "ionice": ("-c", "-n", "-p", "--class", "--classdata"),
    "setsid": (),
    "stdbuf": ("-i", "-o", "-e", "--input", "--output", "--error"),
    "timeout": ("-k", "-s", "--signal", "--kill-after"),
    "flock": ("-w", "-E", "--timeout", "--conflict-exit-code"),
    "strace": ("-e", "-o", "-p", "-s", "-u", "-E", "-P"),
    "unshare": (),
    "busybox": (),
    "toybox": (),
    "chroot": ("--userspec", "--groups"),
}  # fmt: skip
_FIRST_IS_OTHER = ("timeout", "chroot", "flock")  # their first argument is no part of the command
# Programs that run a command for each thing that they read or find.
_RUNNERS: dict[str, tuple[str, ...]] = {
    "xargs": (
        "-n", "-I", "-P", "-L", "-d", "-a", "-s", "-E",
        "--max-args", "--max-procs", "--max-lines", "--max-chars", "--delimiter", "--arg-file", "--process-slot-var",
    ),
    "parallel": ("-j", "-I", "-a", "-n", "-N", "-S", "--jobs", "--arg-file", "--colsep", "--max-args"),
}  # fmt: skip
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish")
_SHELL_VALUES = ("--rcfile", "--init-file")

_ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_LETTERS = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_BACKTICKS = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_CUTS = re.compile(r"[;&|\n\r()`{}<>]|\$\(")

_parsers = local()  # parsing calls back into Python, so threads need a parser each
_kept: dict[str, Line] = {}


class Command:
    """One simple command.

    Attributes:
        exact: its text as written (redirections included), and with quotes and blanks normalised where it is bare.
        forms: the same and the texts behind wrappers and paths (``sudo /bin/rm x`` is also ``rm x``).
        writes: whether a redirection around it writes a file.
    """

    __slots__ = ("exact", "forms", "writes")

    def __init__(self, exact: list[str], forms: list[str], writes: bool) -> None:
        self.exact = exact
        self.forms = forms
        self.writes = writes


class Line:
    """A command line in its parts.

    Attributes:
        commands: its simple commands in order, as far as they could be told.
        complete: False when there may be others: a syntax error, too long, NUL,
            or a command that is only known when it runs.
        runs_output: whether something in it runs what another part prints (``echo x | sh``).
    """

    __slots__ = ("commands", "complete", "runs_output", "until")

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.complete = True
        self.runs_output = False
        self.until = monotonic() + _SECONDS  # when the search for more is given up


def split(line: str) -> Line:
    """Return the simple commands of a bash command line, those in substitutions and in ``sh -c`` included."""
    known = _kept.get(line)
    if known is not None:
        return known
    result = Line()
    _split(line, 0, result)
    if result.runs_output:
        result.complete = False
        for command in list(result.commands):
            form = command.forms[0] if command.forms else ""  # `bash -c ""` runs nothing
            name, _, said = form.partition(" ")
            if name in ("echo", "printf"):
                _split(_unquote(said), 1, result)
    if len(line) <= 10_000:  # many rules look at one line
        if len(_kept) >= _KEPT_LINES:
            _kept.clear()
        _kept[line] = result
    return result


def _split(line: str, depth: int, result: Line) -> None:
    if "\0" in line:
        result.complete = False
        line = line.replace("\0", "")
    if depth > _DEPTH or len(line) > MAX_LENGTH:
        _cut(line, result)
        return
    if not line.isascii() and _ODD_HEREDOC.search(line):
        _cut(line, result)  # and what the parser finds besides
    try:
        tree = _Tree(line, result.until)
    except TimeoutError:
        _cut(line, result)
        return
    if tree.root.has_error:
        _cut(line, result)
    for node, around in tree.statements():
        if monotonic() > result.until:
            _cut(line, result)
            return
        tree.command(node, around, depth, result)
    for script, ended in tree.backticks_in_heredocs():
        if not ended:
            result.complete = False
        _split(script, depth + 1, result)
    for script in tree.processes:
        _split(script, depth + 1, result)
    for text in tree.expansions:
        _cut(text, result)


def _cut(line: str, result: Line) -> None:
    """Add what may be commands in a line that cannot be split properly."""
    result.complete = False
    for part in _CUTS.split(line):
        words = [word.strip("'\"\\") for word in part.split()]
        if words:
            forms = [part.strip(), *(" ".join(words[start:]) for start in range(min(len(words), 12)))]
            if "," in part:  # may be a brace expansion
                forms.append(part.replace(",", " ").strip())
            result.commands.append(Command([part], list(dict.fromkeys(forms)), False))


class _Redirections:
    """What the redirections of a statement do."""

    def __init__(self, text: str) -> None:
        self.text = text  # the whole statement
        self.any = False
        self.writes = False
        self.harmless = True  # only to /dev/null or another descriptor
        self.scripts: list[str] = []  # what is written into the statement's standard input


_AS_DOTS = bytes(range(128)) + b"." * 128

_ODD_HEREDOC = re.compile(r"<<[^\n]*[^\x00-\x7f]")
"""A heredoc whose end may hold more than ASCII: the parser, which sees dots, would end it at any such word."""


class _Tree:
    """A parsed line.

    Raises:
        TimeoutError: when it is not parsed by then.
    """

    def __init__(self, line: str, until: float) -> None:
        parser = getattr(_parsers, "bash", None)
        if parser is None:
            import tree_sitter
            import tree_sitter_bash

            parser = _parsers.bash = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
        self.data = line.encode("utf-8", "surrogatepass")
        # The grammar's scanner asks isdigit(3) and its like about any character, which reads beyond their
        # table for those above 255 and may crash. To bash they are letters of a word and no names' letters,
        # as dots are.
        data = self.data if line.isascii() else self.data.translate(_AS_DOTS)
        try:
            tree = parser.parse(
                lambda offset, point: data[offset:],
                progress_callback=lambda offset, error: monotonic() > until,
            )
        except ValueError:  # "Parsing failed": the callback said stop
            parser.reset()
            raise TimeoutError("the line takes too long to parse") from None
        self.root = tree.root_node
        self._heredocs: list[Any] = []
        self.processes: list[str] = []  # scripts of <(...) and >(...), in which the grammar loses arguments
        self.expansions: list[str] = []  # ${...} with something in it that the grammar does not read
        self._redirections: dict[int, _Redirections] = {}

    def text(self, node: Any) -> str:
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def statements(self) -> Iterator[tuple[Any, Any]]:
        """Yield each simple command with the outermost redirected statement around it, or None."""
        stack: list[tuple[Any, Any, bool]] = [(self.root, None, False)]
        while stack:
            node, around, within = stack.pop()
            kind = node.type
            if kind == "heredoc_redirect":
                self._heredocs.append(node)
            elif kind in ("redirected_statement", "function_definition") and around is None:
                around = node
            elif kind == "process_substitution":
                self.processes.append(self.text(node)[2:].removesuffix(")"))
                continue
            elif kind in _INNER:
                around, within = None, False
            elif kind == "expansion" and self._odd(node):
                self.expansions.append(self.text(node))
            statement = kind in _COMMANDS
            if statement and not within:
                yield node, around
            # An assignment in a command is part of it.
            within = statement or (within and kind not in _INNER)
            stack.extend((child, around, within) for child in reversed(node.children))

    def _odd(self, node: Any) -> bool:
        """Whether an expansion holds commands that the grammar does not read, or makes one of its value (``@P``)."""
        inside = self.text(node)
        if any(child.type == "@" for child in node.children):
            return True
        if "`" not in inside and "$(" not in inside:
            return False
        stack = list(node.children)
        while stack:
            child = stack.pop()
            if child.type in _INNER:
                return False
            stack.extend(child.children)
        return True

    def backticks_in_heredocs(self) -> Iterator[tuple[str, bool]]:
        """Yield the scripts that stand between backticks in here-documents, which the grammar does not read."""
        for node in self._heredocs:
            start = next((child for child in node.children if child.type == "heredoc_start"), None)
            if start is None or any(mark in self.text(start) for mark in "'\"\\"):
                continue
            for body in (self.text(child) for child in node.children if child.type == "heredoc_body"):
                if "`" in body:
                    unescaped = body.replace("\\\\", "")
                    ended = unescaped.count("`") - unescaped.count("\\`") == 2 * len(_BACKTICKS.findall(body))
                    for script in _BACKTICKS.findall(body):
                        yield re.sub(r"\\([\\`$])", r"\1", script), ended

    def command(self, node: Any, around: Any, depth: int, result: Line) -> None:
        """Add a simple command and what it runs."""
        words, opaque, assigns = self._words(node)
        if around is not None and any(child == node for child in around.children):
            words += self._behind_redirections(around)
        if opaque:
            result.complete = False
        outer = around if around is not None else node
        redirections = self._redirections_of(outer)
        # What is allowed must be allowed as written; a variable or a redirection is part of that.
        text, normal = self.text(node), " ".join(words)
        exact = [redirections.text] if redirections.any else [text]
        if not assigns and redirections.harmless:
            exact.append(normal)
        forms = [text, normal]
        if redirections.any and (around is None or any(child == node for child in around.children)):
            forms.append(redirections.text)
        _add(words, exact, forms, redirections, depth, result)
        if node.type == "variable_assignment":
            # "${name[@]}" runs the elements of an array.
            for array in (child for child in node.children if child.type == "array"):
                elements = [_unquote(self.text(child)) for child in array.children if child.is_named]
                if elements:
                    _add(elements, [text], [" ".join(elements)], None, depth + 1, result)

    def _behind_redirections(self, node: Any) -> list[str]:
        """The words behind a redirection's target, which the grammar counts as targets: ``rm >x -rf /``."""
        words = []
        for child in node.children:
            if child.type == "file_redirect":
                targets = [
                    item
                    for item in child.children
                    if item.type not in _OPERATORS and item.type != "file_descriptor"
                ]
                words += [_unquote(self.text(item)) for item in targets[1:]]
        return words

    def _words(self, node: Any) -> tuple[list[str], bool, bool]:
        """The words without quotes; whether the name is only known when it runs; whether it sets variables."""
        if node.type != "command":
            return self.text(node).split(), False, False
        words: list[str] = []
        opaque = assigns = False
        for child in node.children:
            if child.type == "variable_assignment":
                assigns = True
            elif child.type == "$":  # of $"...", a text to be translated
                continue
            elif not child.type.endswith("_redirect"):
                raw = self.text(child)
                if child.type == "command_name":
                    opaque = any(mark in raw for mark in "$`*?{") or ("[" in raw and raw not in ("[", "[["))
                words += _braces(raw) if "{" in raw and "," in raw else [_unquote(raw)]
        words += self._behind_redirections(node)
        return words, opaque, assigns

    def _redirections_of(self, outer: Any) -> _Redirections:
        found = self._redirections.get(outer.id)
        if found is None:
            found = self._redirections[outer.id] = _Redirections(self.text(outer))
            stack = [outer]
            while stack:
                node = stack.pop()
                if node.type.endswith("_redirect"):
                    self._redirection(node, found)
                    # More redirections may stand behind the name of a here-document's end.
                    stack.extend(child for child in node.children if child.type.endswith("_redirect"))
                elif node.type not in _INNER:
                    stack.extend(node.children)
        return found

    def _redirection(self, node: Any, found: _Redirections) -> None:
        found.any = True
        if node.type == "file_redirect":
            operator, target = "", ""
            for child in node.children:
                if child.type in _OPERATORS:
                    operator = child.type
                elif child.type != "file_descriptor" and not target:
                    target = self.text(child)
            duplicate = operator.endswith("&-") or (
                operator in (">&", "<&") and target.rstrip("-").isdigit() | (target == "-")
            )
            if not duplicate and target != "/dev/null":
                found.harmless = False
                found.writes = found.writes or operator != "<"
            return
        found.harmless = False
        for child in node.children:
            if child.type == "heredoc_body":
                found.scripts.append(self.text(child))
            elif node.type == "herestring_redirect" and child.type != "<<<":
                found.scripts.append(_unquote(self.text(child)))


def _add(
    words: list[str],
    exact: list[str],
    forms: list[str],
    redirections: _Redirections | None,
    depth: int,
    result: Line,
) -> None:
    """Add a command, and the commands and scripts that it runs."""
    spelled, runs, scripts, reads = _behind(words)
    writes = redirections is not None and redirections.writes
    kept = [form for form in dict.fromkeys([*forms, *spelled]) if form]
    result.commands.append(Command(list(dict.fromkeys(exact)), kept, writes))
    if reads:  # a shell that runs what it reads
        given = redirections.scripts if redirections is not None else []
        if not given:
            result.complete = False
            result.runs_output = True
        scripts = [*scripts, *given]
    if words and words[0] == "eval" and any("$(" in script or "`" in script for script in scripts):
        result.runs_output = True
    for script in scripts:
        _split(script, depth + 1, result)
    for run in runs:
        if depth >= _DEPTH:
            _cut(" ".join(run), result)
        else:
            text = " ".join(run)
            _add(run, [text], [text, text.removesuffix(" ...")], None, depth + 1, result)


def _braces(word: str) -> list[str]:
    """The words of a brace expansion, ``{rm,-rf}`` or ``a{b,c}``; others as they are."""
    if any(mark in word for mark in "'\"\\$`") or len(word) > 1000:
        return [_unquote(word)]
    words = [word]
    for _ in range(5):
        expanded = []
        for item in words:
            match = _BRACES.search(item)
            if match is None:
                expanded.append(item)
            else:
                expanded += [
                    item[: match.start()] + part + item[match.end() :] for part in match[1].split(",")
                ]
        if expanded == words or len(expanded) > 100:
            break
        words = expanded
    return [item for item in words if item] or [word]


def _unquote(word: str) -> str:
    """The word as the command gets it, as far as that can be told without running anything."""
    if not any(mark in word for mark in "'\"\\"):
        return word
    from shlex import quote
    from shlex import split as shlex_split

    plain = _ANSI_C.sub(lambda match: quote(_ESCAPE.sub(_escaped, match[1])), word).replace('$"', '"')
    try:
        parts = shlex_split(plain)
    except ValueError:
        return word
    return " ".join(parts)


def _escaped(match: re.Match[str]) -> str:
    number = match[1] or match[2] or match[3]
    if number:
        return chr(min(int(number, 16), 0x10FFFF))
    if match[4]:
        return chr(int(match[4], 8) & 0xFF)
    if match[5]:
        return chr(ord(match[5]) & 0x1F)
    return _LETTERS.get(match[6], match[6])


def _behind(words: list[str]) -> tuple[list[str], list[list[str]], list[str], bool]:
    """What a command runs besides itself.

    Returns:
        other spellings of it (without wrappers and path), commands that it runs, scripts that it runs,
        and whether it is a shell that runs what it reads.
    """
    spelled: list[str] = []
    runs: list[list[str]] = []
    scripts: list[str] = []
    at, levels, end = 0, 0, len(words)
    while at < end:
        name = words[at].rpartition("/")[2]
        levels += 1
        inner = _unwrap(name, words, at + 1) if name in _WRAPPERS else end
        if (at or name != words[at]) and (levels <= _SPELLINGS or inner >= end):
            spelled.append(" ".join([name, *words[at + 1 :]]))
        rest = at + 1
        if name in _SHELLS:
            script, reads = _shell(words, rest)
            return spelled, runs, [*scripts, *script], reads
        if name == "eval":
            scripts.append(" ".join(words[rest:]).removeprefix("-- "))
        elif name == "alias":
            scripts += [word.partition("=")[2] for word in words[rest:] if "=" in word]
        elif name in ("source", "."):
            file = words[rest] if rest < end else ""
            return spelled, runs, scripts, file in _STDIN or file.startswith(("<(", "/dev/fd/", "/proc/"))
        elif name == "trap":
            scripts += [word for word in words[rest:] if not word.startswith("-")][:1]
        elif name in ("su", "runuser", "script"):
            scripts += _option(words, rest, ("-c", "--command"))
        elif name == "watch":
            scripts.append(" ".join(words[_options_end(words, rest, ("-n", "--interval")) :]))
        elif name == "find":
            runs += _find(words, rest)
        elif name in _RUNNERS:
            command = words[_options_end(words, rest, _RUNNERS[name]) :]
            if command:
                runs.append([*command, "..."])
        elif name == "env":
            scripts += _option(words, rest, ("-S", "--split-string"))
        elif name == "command" and any(word in ("-v", "-V") for word in words[rest : rest + 2]):
            break
        at = inner
    return spelled, runs, scripts, False


def _options_end(words: list[str], at: int, with_value: tuple[str, ...]) -> int:
    """The index of the first word that is no option and no option's value."""
    while at < len(words):
        word = words[at]
        if word == "--":
            return at + 1
        if not word.startswith("-") or word == "-":
            break
        at += 2 if word in with_value else 1
    return at


def _unwrap(name: str, words: list[str], at: int) -> int:
    """The index of the command that a wrapper runs."""
    at = _options_end(words, at, _WRAPPERS[name])
    if name in ("env", "sudo", "doas"):
        while at < len(words) and "=" in words[at]:
            at += 1
    elif name in _FIRST_IS_OTHER:
        at = _options_end(words, at + 1, ())
    return at


def _option(words: list[str], at: int, names: tuple[str, ...]) -> list[str]:
    """The values of an option: behind it, glued to a short one, or after ``=``."""
    found = []
    for index in range(at, len(words)):
        word = words[index]
        if word in names:
            found += words[index + 1 : index + 2]
        else:
            found += [word.partition("=")[2] for name in names if word.startswith(f"{name}=")]
            if word.startswith(names[0]) and word != names[0] and not word.startswith("--"):
                found.append(word[len(names[0]) :])
    return found


def _find(words: list[str], at: int) -> list[list[str]]:
    """The commands that find runs."""
    runs: list[list[str]] = []
    while at < len(words):
        if words[at] in ("-exec", "-execdir", "-ok", "-okdir"):
            end = at + 1
            while end < len(words) and words[end] not in (";", "+"):
                end += 1
            if end > at + 1:
                runs.append(words[at + 1 : end])
            at = end
        at += 1
    return runs


def _shell(words: list[str], at: int) -> tuple[list[str], bool]:
    """The script of a shell's ``-c``, and whether the shell runs what it reads."""
    commands = reads = False
    if words[at:] and all(word in ("--version", "--help") for word in words[at:]):
        return [], False
    while at < len(words):
        word = words[at]
        if word in ("--", "-"):
            at += 1
            break
        if word.startswith("--"):
            at += 2 if word in _SHELL_VALUES else 1
        elif word[:1] in ("-", "+") and len(word) > 1:
            commands = commands or (word[0] == "-" and "c" in word)
            reads = reads or (word[0] == "-" and "s" in word)
            at += 2 if word[-1] in "oO" else 1
        else:
            break
    if commands:
        return words[at : at + 1], False
    return [], reads or at >= len(words)
