"""The lab's apt repository, as apt itself sees it."""

import subprocess
from pathlib import Path

import pytest

from lab.kube.repository import CNI_VERSION, PACKAGE_VERSION, Repository, repository

pytestmark = pytest.mark.tools


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    """A folder of programs as `lab.kube.binaries` leaves it: the kubelet is a link."""
    folder = tmp_path / "binaries"
    folder.mkdir()
    (folder / "kube").write_text("#!/bin/sh\necho a kubelet\n")
    (folder / "kubelet").symlink_to("kube")
    return folder


def apt(root: Path, made: Repository, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`apt-get` with a root of its own, which knows this repository and nothing else."""
    for folder in ("etc/apt/preferences.d", "var/lib/dpkg", "var/lib/apt/lists/partial", "var/cache/apt"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "var/lib/dpkg/status").touch()
    (root / "etc/apt/sources.list").write_text(f"deb [signed-by={made.key}] {made.url} /\n")
    options = [f"Dir={root}", f"Dir::State::status={root}/var/lib/dpkg/status", "APT::Sandbox::User=root"]
    argv = ["apt-get", *[word for option in options for word in ("-o", option)], *arguments]
    return subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=60, check=False)


def test_apt_believes_the_signature_and_gets_the_kubelet(tmp_path: Path, binaries: Path) -> None:
    made = repository(binaries, tmp_path / "cache")
    asked = apt(tmp_path / "root", made, "update")
    assert (asked.returncode, asked.stderr) == (0, "")
    got = apt(tmp_path / "root", made, "download", "kubelet")
    assert got.returncode == 0, got.stderr
    package = tmp_path / "root" / f"kubelet_{PACKAGE_VERSION}_amd64.deb"
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path / "unpacked"], check=True)
    assert (tmp_path / "unpacked/usr/bin/kubelet").read_text() == "#!/bin/sh\necho a kubelet\n"
    assert (tmp_path / "unpacked/usr/lib/systemd/system/kubelet.service").exists()


def test_apt_refuses_a_package_list_that_was_changed(tmp_path: Path, binaries: Path) -> None:
    made = repository(binaries, tmp_path / "cache")
    packages = made.folder / "Packages"
    packages.write_text(packages.read_text().replace("iptables", "backdoor"))
    assert apt(tmp_path / "root", made, "update").returncode != 0


def test_it_is_made_once_for_each_kubelet_and_the_same_up_to_its_signature(tmp_path: Path, binaries: Path) -> None:
    made = repository(binaries, tmp_path / "cache")
    release = (made.folder / "InRelease").read_bytes()
    assert repository(binaries, tmp_path / "cache") == made
    assert (made.folder / "InRelease").read_bytes() == release

    again = repository(binaries, tmp_path / "another cache")
    assert (again.folder / "Packages").read_bytes() == (made.folder / "Packages").read_bytes()
    assert again.key.read_bytes() != made.key.read_bytes()

    (binaries / "kube").write_text("#!/bin/sh\necho another\n")
    assert repository(binaries, tmp_path / "cache").folder != made.folder


def test_no_private_key_is_left(tmp_path: Path, binaries: Path) -> None:
    made = repository(binaries, tmp_path / "cache")
    assert sorted(path.name for path in made.folder.iterdir()) == [
        "InRelease",
        "Packages",
        f"kubelet_{PACKAGE_VERSION}_amd64.deb",
        f"kubernetes-cni_{CNI_VERSION}_amd64.deb",
        "kubernetes.asc",
    ]
    assert made.key.read_text().startswith("-----BEGIN PGP PUBLIC KEY BLOCK-----")
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.is_dir()] == [made.folder.name]
