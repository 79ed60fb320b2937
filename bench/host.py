"""The machine that measures, in words, and the limits that a bench needs."""

import os
import platform
import re
import resource
from dataclasses import dataclass
from pathlib import Path

FILES = 8192
"""File descriptors that the bench's own processes need; the servers inherit the limit."""


@dataclass(frozen=True)
class Host:
    """What it ran on."""

    cpu: str
    cores: int
    memory_gib: float
    kernel: str
    python: str
    busy: float
    """Load average of the last minute when the bench began: other work on the machine makes figures smaller."""

    def __str__(self) -> str:
        return (
            f"{self.cores} cores of {self.cpu}, {self.memory_gib:.0f} GiB, Linux {self.kernel}, Python {self.python}; "
            f"load at the start {self.busy:.1f}"
        )


def describe() -> Host:
    """This machine and how busy it is, so that figures can be compared with those of another."""
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return Host(
        cpu=model[1] if model else platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        kernel=platform.release(),
        python=platform.python_version(),
        busy=os.getloadavg()[0],
    )


def raise_file_limit() -> None:
    """Raise the soft limit of open files to what is needed, as far as the hard one allows.

    Raises:
        ValueError: the hard limit is too low.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES:
        raise ValueError(f"the bench needs {FILES} open files and the hard limit is {hard}: raise it (ulimit -Hn)")
    if soft < FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
