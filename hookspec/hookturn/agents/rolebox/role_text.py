"""Edits role.yaml as text: one entry of ``hooks.custom`` goes in or out, and all else stays as it is, comments and
layout included. Each edit is checked by reading both texts; what cannot be edited safely is refused.
"""

from __future__ import annotations

from ..installing import CannotInstall
from .roles import is_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_STAYS = "so it stays as it is. Add the entry yourself (docs: bridges/rolebox)."


def entered(content: bytes, entry: Mapping[str, Any], label: str) -> bytes:
    """Return a role.yaml that has our entry, once.

    Parameters:
        content: the file.
        entry: the entry.
        label: the file, for messages.

    Raises:
        CannotInstall: when the file cannot be edited safely.
    """
    role = _Role(content, label)
    present = [item for item in role.custom() if is_ours(item)]
    if present == [dict(entry)]:
        return content
    if present:
        role = _Role(removed(content, label), label)
    return role.insert(entry)


def removed(content: bytes, label: str) -> bytes:
    """Return a role.yaml without our entries; lists and mappings that held nothing else go with them."""
    role = _Role(content, label)
    while any(is_ours(item) for item in role.custom()):
        content = role.cut()
        role = _Role(content, label)
    return content


class _Role:
    """A role.yaml with the places of its parts."""

    def __init__(self, content: bytes, label: str) -> None:
        import yaml

        self.label = label
        try:
            self.text = content.decode("utf-8")
            self.data = yaml.safe_load(self.text)
            root: Any = yaml.compose(self.text, yaml.SafeLoader)
        except UnicodeDecodeError:
            raise self._refused("is not UTF-8") from None
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f" (line {mark.line + 1})" if mark is not None else ""
            raise self._refused(f"is no YAML{where}") from None
        if not isinstance(self.data, dict) or root.flow_style:
            raise self._refused("is no list of keys, one a line")
        if root.start_mark.column:
            raise self._refused("is indented as a whole")
        self.root = root
        self.end = "\r\n" if "\r\n" in self.text else "\n"
        self.lines = self.text.splitlines(keepends=True)

    def _refused(self, why: str) -> CannotInstall:
        return CannotInstall(f"{self.label} {why}, {_STAYS}")

    def custom(self) -> list[Any]:
        hooks = self.data.get("hooks")
        found = hooks.get("custom") if isinstance(hooks, dict) else None
        return found if isinstance(found, list) else []

    def _pair(self, mapping: Any, key: str) -> tuple[Any, Any] | None:
        """Return a key's nodes in a mapping written in lines."""
        found = [pair for pair in mapping.value if pair[0].value == key]
        if len(found) > 1:
            raise self._refused(f"has the key {key!r} twice")
        if not found:
            return None
        name, value = found[0]
        if value.start_mark.index < name.end_mark.index:
            raise self._refused(f"has an alias under {key!r}")
        between = self.text[name.end_mark.index : value.start_mark.index]
        if "&" in between or "!" in between.split("#")[0]:
            raise self._refused(f"has an anchor or a tag under {key!r}")
        return name, value

    def insert(self, entry: Mapping[str, Any]) -> bytes:
        """Put the entry before the others, for the place of the first is certain."""
        hooks = self._pair(self.root, "hooks")
        if hooks is None:
            return self._checked(self._append(["hooks:", "  custom:", *_item(entry, 4)]), entry)
        name, value = hooks
        if self._empty(value):
            return self._checked(self._after(name, ["  custom:", *_item(entry, 4)]), entry)
        if value.id != "mapping" or value.flow_style:
            raise self._refused("has 'hooks' on one line")
        indent = value.start_mark.column
        custom = self._pair(value, "custom")
        if custom is None:
            lines = [" " * indent + "custom:", *_item(entry, indent + 2)]
            return self._checked(self._before(value.start_mark.line, lines), entry)
        name, value = custom
        if self._empty(value):
            return self._checked(self._after(name, _item(entry, indent + 2)), entry)
        if value.id != "sequence" or (value.flow_style and value.value):
            raise self._refused("has 'hooks.custom' on one line")
        if value.flow_style:  # []
            start, end = value.start_mark.index, value.end_mark.index
            rest = self.text[name.end_mark.index : start]
            head = self.text[: name.end_mark.index] + rest.rstrip(" ")
            item = self.end + self.end.join(_item(entry, indent + 2))
            return self._checked(head + item + self.text[end:], entry)
        return self._checked(
            self._before(value.start_mark.line, _item(entry, value.start_mark.column)), entry
        )

    def _empty(self, value: Any) -> bool:
        if value.id != "scalar" or value.tag != "tag:yaml.org,2002:null":
            return False
        if value.start_mark.index != value.end_mark.index:
            raise self._refused(f"has {value.value!r} where a list of keys is expected")
        return True

    def _append(self, lines: list[str]) -> str:
        if any(line.startswith(("...", "--- ")) or line.rstrip() == "---" for line in self.lines[1:]):
            raise self._refused("holds several documents")
        text = self.text if self.text.endswith("\n") or not self.text else self.text + self.end
        return text + self.end.join(lines) + self.end

    def _before(self, number: int, lines: list[str]) -> str:
        new = [line + self.end for line in lines]
        return "".join(self.lines[:number] + new + self.lines[number:])

    def _after(self, name: Any, lines: list[str]) -> str:
        number = name.end_mark.line + 1
        if number > len(self.lines) or not self.lines[number - 1].endswith("\n"):
            return self._append(lines)
        return self._before(number, lines)

    def cut(self) -> bytes:
        """Take the first of our entries out."""
        hooks = self._pair(self.root, "hooks")
        custom = self._pair(hooks[1], "custom") if hooks is not None else None
        if hooks is None or custom is None or hooks[1].flow_style or custom[1].flow_style:
            raise self._refused("has our entry on a line with others")
        items = self.custom()
        index = next(at for at, item in enumerate(items) if is_ours(item))
        first, last = custom[1].value[index].start_mark.line, _last_line(custom[1].value[index])
        if len(items) == 1:
            first = custom[0].start_mark.line
            if len(hooks[1].value) == 1:
                first = hooks[0].start_mark.line
        text = "".join(self.lines[:first] + self.lines[last + 1 :])
        return self._checked(text, None)

    def _checked(self, text: str, entry: Mapping[str, Any] | None) -> bytes:
        """Return an edited text that differs in nothing but our entry."""
        import yaml

        try:
            new = yaml.safe_load(text)
        except yaml.YAMLError:
            new = None
        ours = [] if entry is None else [dict(entry)]
        others = self.custom()
        if entry is None:
            index = next(at for at, item in enumerate(others) if is_ours(item))
            others = others[:index] + others[index + 1 :]
        if _plain(new) != _plain(
            {**self.data, "hooks": {**(self.data.get("hooks") or {}), "custom": ours + others}}
        ):
            raise self._refused("has a form that cannot be edited safely")
        return text.encode("utf-8")


def _plain(data: Any) -> Any:
    """Return a role without lists and mappings of hooks that hold nothing."""
    if not isinstance(data, dict):
        return data
    hooks = data.get("hooks")
    if isinstance(hooks, dict):
        hooks = {key: value for key, value in hooks.items() if key != "custom" or value}
    rest = {key: value for key, value in data.items() if key != "hooks"}
    return {**rest, "hooks": hooks} if hooks else rest


def _item(entry: Mapping[str, Any], indent: int) -> list[str]:
    """Return the lines of a list item."""
    import json

    lines: list[str] = []
    for key, value in entry.items():
        if isinstance(value, list):
            shown = f"[{', '.join(value)}]"
        elif isinstance(value, str) and not value.replace("-", "").isalpha():
            shown = json.dumps(value)
        else:
            shown = str(value)
        lines.append(f"{'  ' if lines else '- '}{key}: {shown}")
    return [" " * indent + line for line in lines]


def _last_line(node: Any) -> int:
    """Return the number of the last line that holds something of a node."""
    if node.id == "scalar" or node.flow_style:
        return int(node.end_mark.line)
    parts = [part for pair in node.value for part in pair] if node.id == "mapping" else node.value
    return max(_last_line(part) for part in parts)
