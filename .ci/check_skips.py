"""Fails when a test was skipped for a reason that .ci/allowed_skips.txt does not list.

    python .ci/check_skips.py REPORT.xml ...

Reports are pytest's (--junitxml). The list holds one glob a line, matched against the reason; # begins a comment.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path
from xml.etree import ElementTree


def main(reports: list[str]) -> int:
    """Check the reports; returns the exit code."""
    text = (Path(__file__).parent / "allowed_skips.txt").read_text()
    allowed = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = 0
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - pytest wrote it a moment ago
            for skip in case.iter("skipped"):
                reason = " ".join((skip.get("message") or "").split())
                if not any(fnmatchcase(reason, pattern) for pattern in allowed):
                    found += 1
                    print(f"skipped without leave: {case.get('classname')}::{case.get('name')}: {reason}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
