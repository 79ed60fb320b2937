"""Network namespaces of a test's own."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from lab.processes import child


@contextlib.contextmanager
def namespace(folder: Path, name: str) -> Iterator[int]:
    """One, until the block ends; the process that holds it."""
    holder = ["unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"]
    with child(name, holder, folder / f"{name}.log", grace=0) as inside:
        inside.output.wait_for("^ready$", 180)
        yield inside.pid
