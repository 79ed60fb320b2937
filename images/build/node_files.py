"""The join agent and the health checks as an image has them: what is run is what the repository holds, file by file."""

from importlib.resources import files
from pathlib import Path

from images.formats.overlay import Entry, read_file

HOME = "/usr/lib/netboot"
HEALTH = f"{HOME}/health"
"""Not beside the agent: `images` there are container images."""
SHARED = ("__init__.py", "errors.py", "wire.py")
"""Of `tokens`, what node and server share: standard library only."""


def agent_files() -> tuple[Entry, ...]:
    """The agent's package, the part of `tokens` beside it, its unit, and the folders that the unit writes to."""
    agent, tokens = (Path(str(files("images.node") / "agent")), Path(str(files("tokens"))))
    units = (read_file(f"/usr/lib/systemd/system/{path.name}", path, 0o644) for path in agent.glob("systemd/*"))
    entries = [
        *(read_file(f"{HOME}/agent/{path.name}", path, 0o644) for path in agent.glob("*.py")),
        *(read_file(f"{HOME}/tokens/{name}", tokens / name, 0o644) for name in SHARED),
        *units,
    ]
    return tuple(sorted(entries, key=lambda entry: entry.path))


def health_files() -> tuple[Entry, ...]:
    """The health checks' package and units. In the image, too, they are `images.node.health`, beside the agent."""
    health = Path(str(files("images.node") / "health"))
    top = health.parent.parent
    code = [*health.rglob("*.py"), top / "__init__.py", top / "node/__init__.py"]
    units = (read_file(f"/usr/lib/systemd/system/{path.name}", path, 0o644) for path in health.glob("systemd/*"))
    entries = [
        Entry(f"{HEALTH}/images/node/agent", link="../../../agent"),
        *(read_file(f"{HEALTH}/images/{path.relative_to(top).as_posix()}", path, 0o644) for path in code),
        *units,
    ]
    return tuple(sorted(entries, key=lambda entry: entry.path))
