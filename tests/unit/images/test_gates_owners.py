"""Gate *owners*, and what it reads of dpkg's lists: small trees with what a real one has that misleads."""

from dataclasses import replace
from pathlib import Path

from images.build.gates import owners
from images.build.gates.checks.owners import GATE
from tests.unit.images.gate_facts import CONTENT, facts, said


def installed(root: Path, package: str, *paths: str) -> None:
    """What dpkg keeps of a package, and its files."""
    listing = root / f"var/lib/dpkg/info/{package}.list"
    listing.parent.mkdir(parents=True, exist_ok=True)
    folders = {str(parent) for path in paths for parent in Path(path).parents if str(parent) != "/"}
    listing.write_text("".join(f"{path}\n" for path in ("/.", *sorted(folders), *paths)))
    for path in paths:
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_symlink():
            file.touch()


def test_a_file_of_two_packages_is_found_under_both_its_names(tmp_path: Path) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "bin").symlink_to("usr/bin")
    installed(tmp_path, "coreutils", "/bin/true", "/usr/share/doc/coreutils/copyright")
    installed(tmp_path, "busybox:amd64", "/usr/bin/true", "/usr/share/doc/busybox/copyright")
    assert owners.several(tmp_path, {"busybox", "coreutils"}) == {"/usr/bin/true": ("busybox", "coreutils")}


def test_folders_links_diversions_what_is_gone_and_other_architectures_are_nobodys_quarrel(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/link").symlink_to("/dev/null")
    for package in ("one", "two"):
        installed(tmp_path, package, "/usr/share/common/a", "/etc/link", "/usr/bin/sh", "/etc/gone")
    installed(tmp_path, "libc6:i386", "/usr/share/libc")
    installed(tmp_path, "libc6:amd64", "/usr/share/libc")
    (tmp_path / "etc/gone").unlink()
    (tmp_path / "var/lib/dpkg/diversions").write_text("/usr/bin/sh\n/usr/bin/sh.distrib\ndash\n")
    assert owners.several(tmp_path, {"one", "two", "libc6"}) == {"/usr/share/common/a": ("one", "two")}


def test_a_package_that_was_removed_owns_nothing(tmp_path: Path) -> None:
    """Its configuration may be another's by now, as when a program goes from one package to the next."""
    installed(tmp_path, "before", "/etc/tool.conf")
    installed(tmp_path, "after", "/etc/tool.conf")
    assert owners.several(tmp_path, {"after"}) == {}


def test_what_the_gate_says(tmp_path: Path) -> None:
    both = {f"{folder}/{name}": 62 for folder in ("/opt/cni/bin", "/usr/lib/cni") for name in ("bridge", "portmap")}
    alone = {"/opt/cni/bin/calico": 62, "/usr/lib/cni/host-local": 62, "/usr/bin/bridge": 62}
    found = facts(
        tmp_path,
        owners={"/usr/bin/a": ("one", "two")},
        content=replace(CONTENT, machines=both | alone),
    )
    two = "leave all but one of them out, or report it to whose packages they are: one has overwritten the other's"
    sets = (
        "leave one of the packages that bring them out: the Kubernetes project's kubelet depends on kubernetes-cni, "
        "which has them in /opt/cni/bin"
    )
    assert said(GATE, found) == [
        f"owners: /usr/bin/a is of several packages: one, two\n  {two}",
        f"owners: CNI plugins are in /opt/cni/bin and /usr/lib/cni: bridge, portmap\n  {sets}",
    ]
    assert said(GATE, facts(tmp_path, content=replace(CONTENT, machines=alone))) == []
    assert GATE.scope(found) == "1 packages, 4 CNI plugins"
