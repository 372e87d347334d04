"""Bars for terminals: block characters where the terminal takes them, else plain ASCII."""

from __future__ import annotations

import os
import sys

from ..console import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EIGHTHS = "▏▎▍▌▋▊▉█"
ASCII = "#"
LABEL = 28
LONGEST = 40


def unicode_terminal() -> bool:
    """Tell whether standard output takes block characters: its encoding does, and the locale is not C."""
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    if next((name for name in names if name), "") in ("C", "POSIX"):
        return False  # Python writes UTF-8 there, the terminal's font may be anything
    try:
        EIGHTHS.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def bar(share: float, width: int, *, blocks: bool) -> str:
    """Return a bar of at most ``width`` characters; something small is still seen.

    Parameters:
        share: 0 to 1.
        width: the length of a whole bar.
        blocks: use block characters, in steps of an eighth.
    """
    if share <= 0:
        return ""
    if not blocks:
        return ASCII * max(round(share * width), 1)
    whole, rest = divmod(max(round(share * width * 8), 1), 8)
    return EIGHTHS[-1] * whole + (EIGHTHS[rest - 1] if rest else "")


def bars(title: str, rows: Sequence[tuple[str, float, str]]) -> None:
    """Print one bar a row, as long as its value beside the largest; nothing when all are 0.

    Parameters:
        title: stands above them.
        rows: (label, value, the value in words).
    """
    largest = max((value for _, value, _ in rows), default=0)
    if largest <= 0:
        return
    from shutil import get_terminal_size

    labels = [printable(label, LABEL) for label, _, _ in rows]
    left, right = max(map(len, labels)), max(len(words) for _, _, words in rows)
    width = min(max(get_terminal_size().columns - left - right - 6, 8), LONGEST)
    blocks = unicode_terminal()
    print(f"\n{title}")
    for label, (_, value, words) in zip(labels, rows, strict=True):
        drawn = bar(value / largest, width, blocks=blocks)
        print(f"  {label.ljust(left)}  {drawn.ljust(width)}  {words.rjust(right)}")
