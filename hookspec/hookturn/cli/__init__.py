"""The command line: commands parse, call the rooms below and print; they decide nothing.

``hookturn --version`` must cost next to nothing, so everything else is imported by ``dispatch``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells give it (128 + SIGINT)."""

NOBODY_READS = 141
"""Exit code when the reader of our output went away, as in ``hookturn hooks | head`` (128 + SIGPIPE)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters:
        argv: the words after the program's name; default: the process's own.

    Returns:
        the exit code: 0 fine, 1 something is wrong with what was checked, 2 usage.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        if words in (["--version"], ["-V"]):
            from .. import __version__

            print(f"hookturn {__version__}")
            code = 0
        elif words[:1] == ["bridge"] and not {"--help", "-h"} & set(words):
            from .bridge import main as bridge

            code = bridge(words[1:])
        else:
            from .dispatch import dispatch

            code = dispatch(words)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_stdout()
        return NOBODY_READS
    except OSError as error:
        from .output import complain, os_error

        where = "" if error.filename else "standard output: "
        complain(f"{where}{os_error(error)}")
        _abandon_stdout()
        return 1
    return code


def _abandon_stdout() -> None:
    """Let the interpreter's last flush go nowhere: it would fail again, loudly."""
    import os

    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
