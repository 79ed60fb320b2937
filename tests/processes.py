"""Processes in tests: waiting for what they do with deadlines, and whether they are still there."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from lab.errors import DeadlineError
from lab.polling import pause_after

T = TypeVar("T")


def wait_for(what: Callable[[], T | None], seconds: float = 180.0, pause: float = 0.02) -> T:
    """The first answer that is true; fails after `seconds`, which are there against hanging alone: loops of the service
    work at the lowest priority, and get little of a busy machine. `what` may raise OSError while it cannot tell yet.
    `pause` between two questions at least; more after one that took long (`lab.polling`)."""
    deadline, last = time.monotonic() + seconds, None
    while (asked := time.monotonic()) < deadline:
        try:
            found = what()
            if found:
                return found
        except OSError as error:
            last = error
        time.sleep(pause_after(time.monotonic() - asked, pause))
    raise DeadlineError(f"did not happen within {seconds} s: {what} {last or ''}")


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return _state(Path(f"/proc/{pid}/stat")) not in ("Z", "X")
    except OSError:
        return False


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that does nothing for as long as the block lasts: `kill` returns while its threads still run, and what
    one of them is asked in that moment it answers."""

    def halted() -> bool:
        assert runs(pid), f"process {pid} has ended"
        return all(_state(task / "stat") == "T" for task in Path(f"/proc/{pid}/task").iterdir())

    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(halted)
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _state(stat: Path) -> str:
    return stat.read_text().rpartition(")")[2].split()[0]


def descendants(pid: int) -> set[int]:
    """All processes below this one."""
    children: dict[int, set[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, set()).add(int(entry.name))
    found: set[int] = set()
    new = {pid}
    while new:
        new = {child for one in new for child in children.get(one, set())} - found
        found |= new
    return found


def environment(packages: Path = Path(__file__).parent.parent) -> dict[str, str]:
    """Ours, with this tree's packages first, or those of another version, wherever the process is started."""
    return {**os.environ, "PYTHONPATH": str(packages)}
