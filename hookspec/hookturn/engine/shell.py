"""Splits a shell command line into its simple commands with a real parser (tree-sitter's bash grammar).

A rule about ``rm`` must see the ``rm`` in ``cd x && rm``, in ``$(rm y)`` and in ``sudo bash -c 'rm z'``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_LENGTH = 200_000
"""Characters; a longer line counts as one that cannot be split."""

_DEPTH = 5  # bash -c in bash -c ...: deeper counts as one that cannot be split

_STATEMENTS = {
    "command",
    "declaration_command",
    "unset_command",
    "test_command",
    "variable_assignment",
    "variable_assignments",
}
# Programs that run the rest of their arguments as a command, with the options that take a value.
_WRAPPERS: dict[str, tuple[str, ...]] = {
    "sudo": ("-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "--user", "--group"),
    "doas": ("-u", "-C"),
    "env": ("-u", "-C", "-S", "--unset", "--chdir"),
    "nohup": (),
    "command": (),
    "builtin": (),
    "exec": ("-a",),
    "time": ("-f", "-o"),
    "nice": ("-n",),
    "ionice": ("-c", "-n", "-p"),
    "setsid": (),
    "stdbuf": ("-i", "-o", "-e"),
    "timeout": ("-k", "-s", "--signal", "--kill-after"),
    "xargs": ("-n", "-I", "-P", "-L", "-d", "-a", "-s", "-E"),
    "busybox": (),
    "chroot": (),
}
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash")
_parser: Any = None


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
            or a command whose name is only known when it runs.
    """

    __slots__ = ("commands", "complete")

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.complete = True


def split(line: str) -> Line:
    """Return the simple commands of a bash command line, those in substitutions and in ``sh -c`` included."""
    result = Line()
    _split(line, 0, result)
    return result


def _split(line: str, depth: int, result: Line) -> None:
    global _parser
    if depth > _DEPTH or len(line) > MAX_LENGTH or "\0" in line:
        result.complete = False
        return
    if _parser is None:
        import tree_sitter
        import tree_sitter_bash

        _parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    data = line.encode("utf-8", "surrogatepass")
    root = _parser.parse(data).root_node
    if root.has_error:
        result.complete = False

    def text_of(node: Any) -> str:
        return data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    # Each entry: a node, and the outermost redirection around it (what it writes belongs to the command).
    stack: list[tuple[Any, Any]] = [(root, None)]
    while stack:
        node, around = stack.pop()
        if around is None and node.type == "redirected_statement":
            around = node
        inside = None if node.type in ("command_substitution", "process_substitution") else around
        stack.extend((child, inside) for child in reversed(node.children))
        if node.type not in _STATEMENTS or (node.parent is not None and node.parent.type in _STATEMENTS):
            continue
        words, opaque, bare = _words(node, text_of)
        if opaque:
            result.complete = False
        text, normal = text_of(node), " ".join(words)
        # What is allowed must be allowed as written; a variable or a redirection is part of that.
        exact = [text_of(around)] if around is not None else [text, normal] if bare else [text]
        forms = dict.fromkeys([text_of(around or node), text, normal])
        for form, script in _behind(words):
            if script is None:
                forms[" ".join(form)] = None
            else:
                _split(script, depth + 1, result)
        writes = around is not None and _writes(around, text_of)
        result.commands.append(Command(exact, [form for form in forms if form], writes))


def _writes(around: Any, text_of: Callable[[Any], str]) -> bool:
    """Whether a redirection in a statement writes a file (other than /dev/null, or another descriptor)."""
    stack = [around]
    while stack:
        node = stack.pop()
        if node.type == "file_redirect":
            target = text_of(node).lstrip("0123456789&")
            if target.startswith((">", "<>")):
                target = target.lstrip("<>|").strip()
                if target != "/dev/null" and not (
                    target[:1] == "&" and set(target[1:]) <= set("0123456789-")
                ):
                    return True
        elif node.type not in ("command_substitution", "process_substitution"):
            stack.extend(node.children)
    return False


def _words(node: Any, text_of: Callable[[Any], str]) -> tuple[list[str], bool, bool]:
    """The words of a command without quotes; whether its name is only known at run time; whether it is bare."""
    if node.type != "command":
        return text_of(node).split(), False, True
    words: list[str] = []
    opaque, bare = False, True
    for child in node.children:
        if child.type in ("variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect"):
            bare = False
            continue
        raw = text_of(child)
        if child.type == "command_name":
            opaque = "$" in raw or "`" in raw
        words.append(_unquote(raw))
    return words, opaque, bare


def _unquote(word: str) -> str:
    if not any(mark in word for mark in "'\"\\"):
        return word
    from shlex import split as shlex_split

    try:
        parts = shlex_split(word.removeprefix("$"))
    except ValueError:
        return word
    return " ".join(parts)


def _behind(words: list[str]) -> list[tuple[list[str], str | None]]:
    """What a command runs besides itself: ([words], None) for another spelling, (_, script) for shell text."""
    result: list[tuple[list[str], str | None]] = []
    rest = words
    for _ in range(10):
        if not rest:
            break
        name = rest[0].rpartition("/")[2]
        if name != rest[0]:
            rest = [name, *rest[1:]]
            result.append((rest, None))
        if name in _SHELLS:
            for position, word in enumerate(rest[1:], 1):
                if word.startswith("-") and not word.startswith("--") and "c" in word:
                    if position + 1 < len(rest):
                        result.append((rest, rest[position + 1]))
                    break
                if not word.startswith("-"):
                    break
            break
        if name == "eval":
            result.append((rest, " ".join(rest[1:])))
            break
        if name not in _WRAPPERS:
            break
        rest = _unwrap(name, rest[1:])
        if rest:
            result.append((rest, None))
    return result


def _unwrap(name: str, rest: list[str]) -> list[str]:
    """The command that a wrapper runs."""
    with_value = _WRAPPERS[name]
    while rest:
        word = rest[0]
        if word == "--":
            return rest[1:]
        if word.startswith("-") and len(word) > 1:
            rest = rest[2:] if word in with_value else rest[1:]
        elif (name in ("env", "sudo", "doas") and "=" in word) or (
            name in ("timeout", "chroot") and word == rest[0] and rest[1:]
        ):
            rest = rest[1:]
            if name in ("timeout", "chroot"):
                return rest
        else:
            break
    return rest
