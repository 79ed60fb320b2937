"""Gate *identity*: nothing in the image names one machine; a thousand would answer to that name.

Paths are `steps.configure.IDENTITY`, which that step also removes; here the finished tree is looked at, whoever
wrote it. An NVMe host's name is also looked for in what configuration says, and apt's state is none of a machine's.
"""

import fnmatch
from collections.abc import Iterator
from pathlib import Path

from images.build.gates.facts import Facts
from images.build.gates.gate import Gate
from images.build.steps.configure import IDENTITY, identity_files
from images.formats import tree
from images.values.finding import Finding

APT_STATE = (
    "/var/lib/apt/lists/*",
    "/var/lib/apt/lists/partial/*",
    "/var/lib/apt/extended_states",
    "/var/lib/apt/periodic/*",
    "/var/cache/apt/*.bin",
    "/var/cache/apt/archives/*.deb",
)
"""What apt knows about mirrors at one time and what it fetched: old the day after, and large."""


def check(facts: Facts) -> list[Finding]:
    """One finding for each file."""
    return [
        *(_path(path) for path in facts.identity),
        *(
            Finding(
                "identity",
                f"{path} has an NVMe host's own name in it (nqn.2014-08.org.nvmexpress:uuid:...)",
                "leave hostnqn and hostid out: nvme makes them from the machine's own UUID",
            )
            for path in facts.content.host_names
        ),
    ]


def files(root: Path) -> Iterator[str]:
    """Paths in the image of files that name one machine, and of apt's state."""
    yield from identity_files(root)
    for pattern in APT_STATE:
        yield from (path for path in tree.glob(root, pattern) if not tree.inside(root, path).is_dir())


def names_one(path: str) -> bool:
    """Whether a file of an initrd that is at this path, and not empty, names one machine."""
    return path == "/etc/machine-id" or any(fnmatch.fnmatchcase(path, pattern) for pattern in IDENTITY)


def _path(path: str) -> Finding:
    if path.startswith(("/var/lib/apt/", "/var/cache/apt/")):
        return Finding("identity", f"{path} is apt's state, of the day of the build", "take it out of the recipe")
    return Finding("identity", f"{path} names one machine, and an image is for many", "take it out of the recipe")


def _scope(facts: Facts) -> str:
    return f"{len(IDENTITY) + len(APT_STATE) + 1} patterns, {facts.content.files} files"


GATE = Gate("identity", check, _scope)
