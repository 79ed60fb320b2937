"""A node's image from the shipped recipe, with a local signed repository in the place of the Kubernetes project's."""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from images.artifact.manifest import Manifest
from images.build.sources import Mirror
from images.build.steps import bootstrap
from images.errors import CommandError
from images.store.store import Store
from lab.kube.repository import KEY, Repository, repository
from lab.work import ROOT
from tests.image_keys import image_keys
from tests.tools.images.image_build import blob, image_build, packages
from tests.unit.images import archives

pytestmark = pytest.mark.tools

KUBELET = "#!/bin/sh\necho not the real one\n"
RECIPE = """\
base: debian-12-node-demo
sources:
  - {{name: kubernetes, url: 'file://{repository}', suites: [/], signed_by: kubernetes.asc}}
container_images: [web.tar, pause.tar]
"""


@pytest.fixture(scope="module")
def made_here(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A flat repository with a package `kubelet`, signed by a key of its own, in a folder that only root may enter."""
    folder = tmp_path_factory.mktemp("repository")
    (folder / "kubelet").write_text(KUBELET)
    return repository(folder, folder / "made")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory, made_here: Repository) -> Path:
    folder = tmp_path_factory.mktemp("recipe")
    (folder / "kubernetes.asc").write_bytes(made_here.key.read_bytes())
    archives.write(folder / "web.tar", archives.oci("localhost/web:1"))
    archives.write(folder / "pause.tar", archives.saved(["localhost/pause:1"]))
    (folder / "node.yaml").write_text(RECIPE.format(repository=made_here.folder))
    shutil.copytree(image_keys(), folder / "keys")
    return folder / "node.yaml"


@pytest.fixture(scope="module")
def manifest(recipe: Path) -> Manifest:
    return Store(recipe.parent / "store").manifest(str(image_build(recipe.parent, recipe)["image"]))


@pytest.fixture(scope="module")
def root(manifest: Manifest, recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("root") / "root"
    packed = blob(recipe.parent, manifest, "root")
    subprocess.run(["unsquashfs", "-quiet", "-no-progress", "-d", str(folder), str(packed)], check=True)
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_the_kubelet_is_that_of_the_source_with_the_bases_name(root: Path, manifest: Manifest, recipe: Path) -> None:
    assert (root / "usr/bin/kubelet").read_text() == KUBELET
    assert {"kubelet", "kubernetes-cni", "containerd", "runc", "python3-cryptography"} <= packages(
        recipe.parent, manifest
    ).keys()
    assert not list((root / "etc/apt").rglob("*.sources"))


def test_container_images_lie_in_the_root_and_are_counted(root: Path, manifest: Manifest, recipe: Path) -> None:
    assert [image.name for image in manifest.container_images] == ["localhost/web:1", "localhost/pause:1"]
    there = {path.read_bytes() for path in (root / "usr/lib/netboot/images").iterdir()}
    assert there == {(recipe.parent / name).read_bytes() for name in ("web.tar", "pause.tar")}
    wants = root / "etc/systemd/system/multi-user.target.wants/netboot-images.service"
    assert wants.readlink() == Path("/lib/systemd/system/netboot-images.service")


def test_what_is_started_and_what_waits_for_the_agent(root: Path) -> None:
    wanted: dict[str, set[str]] = {}
    for path in (root / "etc/systemd/system").glob("*.wants/*"):
        wanted.setdefault(path.parent.name, set()).add(path.name)
    assert {"var-lib-containerd.mount", "var-lib-kubelet.mount"} <= wanted["local-fs.target.wants"]
    assert {"containerd.service", "netboot-join.service"} <= wanted["multi-user.target.wants"]
    assert "kubelet.service" not in wanted["multi-user.target.wants"]
    assert (root / "usr/lib/netboot/node/agent/__main__.py").is_file()
    assert not (root / "usr/lib/netboot/tokens/quote.py").exists(), "only what node and server share"


def test_the_agent_starts_with_the_roots_own_python(root: Path) -> None:
    argv = [
        "chroot",
        str(root),
        "/usr/bin/env",
        "-C",
        "/usr/lib/netboot",
        "python3",
        "-Bs",
        "-c",
        "import node.agent.loop, node.agent.kubelet, node.agent.exchange",
    ]
    subprocess.run(argv, check=True)


def test_the_agent_and_the_checks_are_compiled(root: Path) -> None:
    """Flags 1: by the source's hash, which is not looked at (PEP 552)."""
    home = root / "usr/lib/netboot"
    sources, compiled = list(home.rglob("*.py")), list(home.rglob("*.pyc"))
    assert {f"{path.stem}.py" for path in sources} == {f"{path.name.split('.')[0]}.py" for path in compiled}
    assert len(sources) == len(compiled)
    assert {path.read_bytes()[4:8] for path in compiled} == {b"\1\0\0\0"}


def test_systemd_finds_no_fault_with_the_units(root: Path) -> None:
    units = ["kubelet.service", "containerd.service", "netboot-images.service", "netboot-join.service"]
    units += [
        "netboot-time.service",
        "netboot-time.path",
        "netboot-time.timer",
        "netboot-clock.service",
        "netboot-readahead.service",
    ]
    argv = ["systemd-analyze", "verify", f"--root={root}", "--man=no", *units]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "netboot" in line]) == (0, [])


def test_every_cni_plugin_is_the_projects_packages_and_there(root: Path) -> None:
    links = list((root / "opt/cni/bin").iterdir())
    owned = (root / "var/lib/dpkg/info/kubernetes-cni.list").read_text().splitlines()
    assert [link.name for link in links if f"/opt/cni/bin/{link.name}" not in owned] == []
    assert {"bridge", "host-local", "loopback", "portmap", "ptp"} <= {link.name for link in links}
    assert [link.name for link in links if not (root / str(link.readlink()).lstrip("/")).is_file()] == []


TIME = """\
set -e
ip link set lo up
mount -t tmpfs tmpfs "$1/run"
mount --bind /dev "$1/dev"
mkdir -p "$1/run/systemd/netif/leases"
printf 'ADDRESS=192.0.2.9\\nNTP=127.0.0.1\\n' >"$1/run/systemd/netif/leases/2"
"$2" -m lab.time_server 127.0.0.1 & served=$!
chroot "$1" sh /usr/lib/netboot/time.sh 2>/dev/null || true # no systemd runs here
install -d -m 0750 "$1/run/chrony"
chroot "$1" chronyd -d -x -u root & clock=$!
chroot "$1" sh /usr/lib/netboot/clock.sh
kill $clock $served
"""
"""In namespaces of its own; -x: the clock is this machine's, and is left alone."""


def test_chrony_takes_the_time_from_the_server_that_a_lease_names(root: Path) -> None:
    """The image's own chronyd with the image's configuration and scripts, and a server of ours."""
    argv = ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", TIME, "sh", str(root), sys.executable]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    said = [line for line in done.stdout.splitlines() if line.startswith("netboot-clock: ")]
    assert said == ["netboot-clock: the clock is right by the time server 127.0.0.1 (of DHCP)"], done.stderr


def test_containerd_reads_its_configuration(root: Path) -> None:
    argv = ["chroot", str(root), "containerd", "config", "dump"]
    shown = tomllib.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    cri = shown["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["sandbox_image"] == "localhost/pause:1"
    assert cri["containerd"]["snapshotter"] == "overlayfs"
    assert cri["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is True


def of(folder: Path, keyring: bytes) -> bootstrap.Inputs:
    source = Mirror(f"file://{folder}", ("/",), (), keyring, ".asc", ("0" * 64,), 1)
    return bootstrap.Inputs("x", "amd64", (source,), ("kubelet",), 1)


def said(inputs: bootstrap.Inputs, out: Path) -> str:
    with pytest.raises(CommandError) as caught:
        bootstrap.bootstrap(inputs, out, lambda line: None)
    return caught.value.output


def test_a_repository_signed_by_another_key_is_refused(made_here: Repository, recipe: Path, tmp_path: Path) -> None:
    other = (ROOT / "images/recipes/keys/kubernetes-2022.asc").read_bytes()
    assert "NO_PUBKEY" in said(of(made_here.folder, other), tmp_path)


def test_a_package_that_was_changed_after_signing_is_refused(made_here: Repository, tmp_path: Path) -> None:
    folder, out = tmp_path / "repository", tmp_path / "out"
    out.mkdir()
    subprocess.run(["cp", "-r", str(made_here.folder), str(folder)], check=True)
    with (folder / "Packages").open("a") as file:
        file.write("\n")
    assert "Hash Sum mismatch" in said(of(folder, made_here.key.read_bytes()), out)


def test_a_repository_that_nobody_signed_is_refused_though_it_lies_here(made_here: Repository, tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    subprocess.run(["cp", "-r", str(made_here.folder), str(folder)], check=True)
    signed = (folder / "InRelease").read_text()
    (folder / "Release").write_text(signed.partition("\n\n")[2].partition("-----BEGIN PGP SIGNATURE")[0])
    (folder / "InRelease").unlink()
    assert "is not signed" in said(of(folder, (folder / KEY).read_bytes()), tmp_path)
