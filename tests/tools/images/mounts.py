"""What is mounted on this machine."""

import os
import tempfile
from pathlib import Path


def mounts() -> list[str]:
    """Lines of /proc/self/mounts. Where other workers run beside this one, without those of folders for what is
    temporary that are not this one's: their tests mount disks there, too, and so do the tools that they run."""
    worker, shared = os.environ.get("PYTEST_XDIST_WORKER"), f"{tempfile.gettempdir()}/"
    lines = Path("/proc/self/mounts").read_text().splitlines()
    if worker is None:
        return lines
    return [line for line in lines if not line.split()[1].startswith(shared) or f"/popen-{worker}/" in line]
