"""Reads the documentation's fenced blocks and plays a page's examples in order, as a reader would.

    python              runs, all blocks of a page in one namespace; an ``output`` block says what it prints
    python title="x"    is written to the file x, as every other block with a title is
    py                  is a fragment, only compiled
    console             commands after ``$``, run by bash; the rest is what they print, ``...`` stands for anything,
                        alone on a line for any lines or none

A block after the line ``<!-- not run -->`` is left alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest

_FENCE = re.compile(
    r"^(?P<skip><!-- not run -->\n\n?)?(?P<indent> *)```(?P<lang>\w+)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.S | re.M,
)


class Block(NamedTuple):
    """One fenced block.

    Attributes:
        lang: its language.
        title: the file that it stands for, or "".
        text: its content.
        line: where its content begins in the page.
        skip: whether it is not to be run.
    """

    lang: str
    title: str
    text: str
    line: int
    skip: bool


def read_blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    content = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(content):
        title = re.search(r'title="([^"]+)"', match["info"])
        found.append(
            Block(
                match["lang"],
                title[1] if title else "",
                dedent(match["text"]),
                content[: match.start("text")].count("\n") + 1,
                match["skip"] is not None,
            )
        )
    return found


class Reader:
    """Somebody who follows a page: writes its files, runs its code and commands, and compares what they print."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.names: dict[str, Any] = {"__name__": "docs"}
        self.env = {
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
            "HOME": str(folder),
            "HOOKTURN_STATE_DIR": os.environ["HOOKTURN_STATE_DIR"],
            "HOOKTURN_CONFIG_DIR": os.environ["HOOKTURN_CONFIG_DIR"],
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",  # as on a terminal: messages stand between the lines that they belong to
        }

    def follow(self, page: Path) -> None:
        """Play all blocks of a page."""
        printed: str | None = None
        for block in read_blocks(page):
            where = f"{page}:{block.line}"
            if block.lang in ("py", "python"):
                # As many empty lines in front as the page has, so that tracebacks name the right one.
                code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
            if block.skip:
                continue
            if block.title:
                file = self.folder / block.title
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text, encoding="utf-8")
            elif block.lang == "python":
                with redirect_stdout(StringIO()) as stream:
                    exec(code, self.names)
                printed = stream.getvalue()
            elif block.lang == "output":
                assert printed is not None, f"{where}: nothing was run before it"
                agree(block.text, printed, where)
                printed = None
            elif block.lang == "console":
                self.run(block, where)

    def run(self, block: Block, where: str) -> None:
        """Run the commands of a console block."""
        for session in re.split(r"^(?=\$ )", block.text, flags=re.M):
            if not session.startswith("$ "):
                continue
            lines = session[2:].split("\n")
            command = [lines.pop(0)]
            while command[-1].endswith("\\"):
                command.append(lines.pop(0).removeprefix("> "))
            done = subprocess.run(
                ["bash", "-c", "\n".join(command)],
                cwd=self.folder,
                env={**self.env, **{k: v for k, v in os.environ.items() if k.startswith("COVERAGE")}},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=120,
                check=False,
            )
            agree("\n".join(lines), done.stdout.decode("utf-8", "replace"), f"{where}: {command[0]}")


def agree(expected: str, printed: str, where: str) -> None:
    """Compare what is printed with what a page says; ``...`` stands for anything."""
    expected, printed = _tidy(expected), _tidy(printed)
    pattern = r"(?:[^\n]*\n)*?".join(
        ".*?".join(re.escape(part) for part in piece.split("..."))
        for piece in re.split(r"^\.\.\.\n", expected, flags=re.M)
    )
    if not re.fullmatch(pattern, printed, re.S):
        pytest.fail(f"{where}\n--- the page says\n{expected}\n--- it prints\n{printed}", pytrace=False)


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Return a reader in an empty project."""
    made = Reader(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def blocks():
    """Return the function that reads a page's blocks."""
    return read_blocks
