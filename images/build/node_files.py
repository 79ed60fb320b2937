"""The join agent and the health checks as an image has them: what is run is what the repository holds, file by file."""

from importlib.resources import files
from pathlib import Path

from images.formats.overlay import Entry, read_file

HOME = "/usr/lib/netboot"
"""Where units start `python3 -m node.agent` and `-m node.health`: the packages `node` and `tokens` lie there."""
PACKAGES = ("agent", "health")
SHARED = ("__init__.py", "errors.py", "wire.py")
"""Of `tokens`, what node and server share: standard library only."""


def node_files() -> tuple[Entry, ...]:
    """The package `node`, the part of `tokens` that it imports, and the units that run it."""
    node, tokens = Path(str(files("images.node"))), Path(str(files("tokens")))
    code = [node / "__init__.py", *(path for name in PACKAGES for path in (node / name).rglob("*.py"))]
    units = [path for name in PACKAGES for path in (node / name).glob("systemd/*")]
    entries = [
        *(read_file(f"{HOME}/node/{path.relative_to(node).as_posix()}", path, 0o644) for path in code),
        *(read_file(f"{HOME}/tokens/{name}", tokens / name, 0o644) for name in SHARED),
        *(read_file(f"/usr/lib/systemd/system/{path.name}", path, 0o644) for path in units),
    ]
    return tuple(sorted(entries, key=lambda entry: entry.path))
