"""What it costs to take secrets out of texts: a short one as each record of the audit trail has, and source code."""

from __future__ import annotations

import os
from pathlib import Path
from time import process_time

from harness import Row, side_by_side

from hookturn.redact import redact

CALL = (
    '{"command": "cd src && python -m pytest -q tests/test_parser.py", "path": "/home/dev/app/config.yaml"}\n'
)
SECRETS = f"{CALL}DB_PASSWORD=k3Jx9QpL2mVz\nAuthorization: Bearer abcDEF123456ghiJKL789\n"


def rows() -> list[Row]:
    """Measure and return the rows."""
    plain, secret = (CALL * 40)[:2048], (SECRETS * 40)[:2048]
    taken = side_by_side({"plain": lambda: redact(plain), "secret": lambda: redact(secret)})
    texts = [path.read_text("utf-8", "replace") for path in sorted(Path(os.__file__).parent.glob("*.py"))]
    size = sum(map(len, texts))
    best = 0.0
    for _ in range(3):
        # Nothing waits here, so processor time tells more on a busy machine.
        begun = process_time()
        for text in texts:
            redact(text)
        best = max(best, size / 1e6 / (process_time() - begun))
    return [
        Row("redacting 2 KB of calls without secrets", taken["plain"] / 1e6, "ms", "", 1.0),
        Row("redacting 2 KB that are mostly secrets", taken["secret"] / 1e6, "ms"),
        Row(f"redacting {size / 1e6:.1f} MB of Python source", best, "MB/s", "", 4.0, less=False),
    ]


if __name__ == "__main__":
    for row in rows():
        print(*row.cells(), sep=" | ")
