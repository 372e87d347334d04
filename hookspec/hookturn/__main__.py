"""``python -m hookturn``: the same as the ``hookturn`` command."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # ``-m`` puts the current folder in front of the path: a project's files must not pass for installed ones.
    try:
        here = os.getcwd()
    except OSError:  # the folder was removed
        here = ""
    sys.path[:1] = [entry for entry in sys.path[:1] if entry and os.path.realpath(entry) != here]

    from .cli import main

    sys.exit(main())
