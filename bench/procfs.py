"""What processes cost: CPU time and memory of a process and all its descendants, from /proc (proc(5))."""

import os
import time
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
"""The grain of the kernel's clock of CPU time."""


def _fields(pid: int) -> list[str]:
    """Fields of /proc/<pid>/stat after the name, which may contain anything; empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def tree(root: int) -> list[int]:
    """`root` and all its living descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (fields := _fields(int(entry.name))):
            children[int(fields[1])].append(int(entry.name))
    pids = [root]
    for pid in pids:
        pids += children[pid]
    return pids


def cpu_seconds(root: int, *, named: str = "") -> float:
    """User and system time of the whole tree, with that of its children that have ended.

    `named`: of those processes only whose last argument begins with it.
    """
    return sum(sum(map(int, fields[11:15])) for pid in named_so(root, named) if (fields := _fields(pid))) * TICK_SECONDS


def named_so(root: int, name: str) -> list[int]:
    """Those of the tree whose last argument begins with `name`; all where it is empty."""
    return [pid for pid in tree(root) if not name or _last_argument(pid).startswith(name)]


def pin(pids: Iterable[int], cores: Collection[int]) -> None:
    """Have all threads of these processes run on these cores only; those they start inherit it."""
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), cores)


def _last_argument(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").rstrip("\0").rpartition("\0")[2]
    except OSError:
        return ""


def rss_mib(root: int) -> float:
    """Resident memory of the tree; pages that several processes share are counted in proportion (PSS)."""
    total = 0
    for pid in tree(root):
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next((int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")), 0)
    return total / 1024


def settle(root: int, *, deadline: float = 60.0) -> float:
    """Wait until the tree has finished what it does behind its answers; seconds that it took.

    Idle means less than 5 % of a core over a quarter of a second. The CPU time of that work belongs to the tree's own
    figures, and it must not run while another server has its turn.
    """
    start = time.monotonic()
    before = cpu_seconds(root)
    while (spent := time.monotonic() - start) < deadline:
        time.sleep(0.25)
        now = cpu_seconds(root)
        if now - before < 0.0125:
            return spent
        before = now
    return spent
