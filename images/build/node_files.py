"""The join agent and the health checks as an image has them: what is run is what the repository holds, file by file."""

from importlib.resources import files
from pathlib import Path

from images.formats.overlay import Entry, read_file, read_folder

NODE = Path(str(files("images") / "node"))
ROOT, CONTAINERS, MEMORY, LOGIN = (NODE / name for name in ("root", "containers", "memory", "login"))
"""What goes into every root; into those that bring container images; that join a cluster; whose console is root's."""
HOME = "/usr/lib/netboot"
"""Where units start `python3 -m node.agent` and the others of PACKAGES: the packages `node` and `tokens` lie there."""
PACKAGES = ("agent", "discovery", "health", "orders", "status")
SHARED = ("__init__.py", "errors.py", "wire.py")
"""Of `tokens`, what node and server share: standard library only."""


def node_files() -> tuple[Entry, ...]:
    """The package `node`, the part of `tokens` that it imports, the units that run it, and who adds one to a boot."""
    tokens = Path(str(files("tokens")))
    code = [NODE / "__init__.py", *(path for name in PACKAGES for path in (NODE / name).rglob("*.py"))]
    units = [path for name in PACKAGES for path in (NODE / name).glob("systemd/*")]
    generators = [path for name in PACKAGES for path in (NODE / name).glob("generators/*")]
    entries = [
        *(read_file(f"{HOME}/node/{path.relative_to(NODE).as_posix()}", path, 0o644) for path in code),
        *(read_file(f"{HOME}/tokens/{name}", tokens / name, 0o644) for name in SHARED),
        *(read_file(f"/usr/lib/systemd/system/{path.name}", path, 0o644) for path in units),
        *(read_file(f"/usr/lib/systemd/system-generators/{path.name}", path, 0o755) for path in generators),
    ]
    return tuple(sorted(entries, key=lambda entry: entry.path))


def entries_of(*, join: bool, containers: bool, login: bool = False) -> tuple[Entry, ...]:
    """All files of ours in a root: where machines join, where it brings container images, where consoles are root's."""
    return (
        *read_folder(ROOT),
        *((*node_files(), *read_folder(MEMORY)) if join else ()),
        *(read_folder(CONTAINERS) if containers else ()),
        *(read_folder(LOGIN) if login else ()),
    )


def installable(entries: tuple[Entry, ...]) -> tuple[str, ...]:
    """The units among files of ours that say what they are enabled for."""
    units = (entry for entry in entries if "/systemd/system/" in entry.path)
    return tuple(Path(entry.path).name for entry in units if b"\n[Install]\n" in entry.content)
