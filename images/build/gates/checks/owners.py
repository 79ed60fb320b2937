"""Gate *owners*: each file is one package's, and CNI plugins are in one place.

Two packages with one file are told apart by nothing but the order in which they were unpacked. CNI plugins in two
folders are two versions, of which a cluster's CNI calls one and security updates may be of the other.
"""

from pathlib import PurePosixPath

from images.build.gates.facts import Facts
from images.build.gates.gate import Gate
from images.values.finding import Finding

PLUGIN_FOLDERS = ("/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni")
"""Of the Kubernetes project's package and of clusters' CNIs; of Debian and Ubuntu; of others."""


def places(facts: Facts) -> dict[str, list[str]]:
    """CNI plugin → the folders that have it as a program, not as a link."""
    found: dict[str, list[str]] = {}
    for path in map(PurePosixPath, sorted(facts.content.machines)):
        if str(path.parent) in PLUGIN_FOLDERS:
            found.setdefault(path.name, []).append(str(path.parent))
    return found


def check(facts: Facts) -> list[Finding]:
    """One finding for each file of several packages, and one for each pair of folders with the same plugins."""
    findings = [
        Finding(
            "owners",
            f"{path} is of several packages: {', '.join(packages)}",
            "leave all but one of them out, or report it to whose packages they are: one has overwritten the other's",
        )
        for path, packages in sorted(facts.owners.items())
    ]
    doubled: dict[tuple[str, ...], list[str]] = {}
    for plugin, folders in places(facts).items():
        if len(folders) > 1:
            doubled.setdefault(tuple(folders), []).append(plugin)
    return findings + [
        Finding(
            "owners",
            f"CNI plugins are in {' and '.join(folders)}: {', '.join(plugins)}",
            "leave one of the packages that bring them out: the Kubernetes project's kubelet depends on "
            "kubernetes-cni, which has them in /opt/cni/bin",
        )
        for folders, plugins in doubled.items()
    ]


def _scope(facts: Facts) -> str:
    return f"{len(facts.packages)} packages, {len(places(facts))} CNI plugins"


GATE = Gate("owners", check, _scope)
