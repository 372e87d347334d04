"""How much memory this process has ever held: for the programs that tests and benchmarks start.

``ru_maxrss`` will not do: across fork and exec it keeps the size of the process that started this one.
"""

from __future__ import annotations


def peak() -> int:
    """Return the greatest resident size in kB since this program began."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
