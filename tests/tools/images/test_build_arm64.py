"""Images of another architecture, really built: Debian's here, Ubuntu's where its mirror answers."""

import json
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from images.artifact.manifest import Manifest
from images.build import architecture
from images.store.store import Store
from lab.elf import AARCH64, machines
from tests.arm64 import recipe
from tests.image_keys import image_keys
from tests.plugins.unbuilt import Unbuilt
from tests.tools.images.image_build import blob, image_build, run_image_build
from tests.tools.images.mounts import mounts

pytestmark = pytest.mark.tools

BPF = 247
"""Of what the kernel takes, and no processor (elf.h)."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys and recipes."""
    folder = tmp_path_factory.mktemp("arm64")
    shutil.copytree(image_keys(), folder / "keys")
    for base in ("debian-12-arm64", "ubuntu-24.04-dpu"):
        recipe(base, folder)
    return folder


@pytest.fixture(scope="module")
def manifest(folder: Path) -> Manifest:
    before = mounts()
    result = image_build(folder, folder / "debian-12-arm64.yaml")
    assert mounts() == before
    return Store(folder / "store").manifest(result["image"])


@pytest.fixture(scope="module")
def root(manifest: Manifest, folder: Path) -> Iterator[Path]:
    target = folder / "root"
    argv = ["unsquashfs", "-quiet", "-no-progress", "-d", str(target), str(blob(folder, manifest, "root"))]
    subprocess.run(argv, check=True)
    yield target
    subprocess.run(["rm", "-rf", str(target)], check=True)


def test_this_machine_runs_both_architectures_and_nothing_is_left_of_the_trial(tmp_path: Path) -> None:
    architecture.check("amd64", "linux-image-amd64", tmp_path)
    architecture.check("arm64", "linux-image-arm64", tmp_path)
    assert list(architecture.faults("arm64" if architecture.native() == "amd64" else "amd64")) == []
    assert list(tmp_path.iterdir()) == []


def test_manifest_and_packages_are_of_arm64(manifest: Manifest, folder: Path) -> None:
    assert (manifest.name, manifest.architecture) == ("debian-12-arm64", "arm64")
    assert manifest.kernel_version.endswith("-arm64")
    assert manifest.kernel_arguments == ("panic=10",)
    packages = json.loads(blob(folder, manifest, "packages").read_bytes())
    assert {of for _, _, of in packages} == {"arm64", "all"}
    assert {"systemd", "containerd", "runc", "kubelet", "python3-cryptography"} <= {name for name, _, _ in packages}


def test_the_kernel_is_what_uefi_of_arm64_starts(manifest: Manifest, folder: Path) -> None:
    """A PE file (EFI stub) that is an Image: Documentation/arch/arm64/booting.rst, "Call the kernel image"."""
    kernel = blob(folder, manifest, "kernel").read_bytes()
    assert (kernel[:2], kernel[0x38:0x3C]) == (b"MZ", b"ARM\x64")
    header = struct.unpack_from("<I", kernel, 0x3C)[0]
    assert (kernel[header : header + 4], struct.unpack_from("<H", kernel, header + 4)[0]) == (b"PE\0\0", 0xAA64)
    assert manifest.kernel_version.encode() in kernel


def test_every_program_library_and_module_is_of_aarch64(root: Path) -> None:
    found = machines(root)
    assert set(found) - {BPF} == {AARCH64}
    assert {"usr/bin/busybox", "usr/lib/systemd/systemd", "usr/bin/containerd"} <= set(found[AARCH64])
    assert any(path.endswith("/mlx5_core.ko") for path in found[AARCH64])
    assert not list(root.rglob("qemu-*")), "what ran them here is no part of the image"


def test_the_initrd_has_its_own_linker_libraries_and_modules(manifest: Manifest, folder: Path, tmp_path: Path) -> None:
    plain = subprocess.run(["zstd", "-dc", str(blob(folder, manifest, "initrd"))], check=True, capture_output=True)
    argv = ["cpio", "-i", "--quiet", "--nonmatching", "dev/*"]
    subprocess.run(argv, cwd=tmp_path, input=plain.stdout, check=True, capture_output=True)
    assert set(machines(tmp_path)) == {AARCH64}
    assert (tmp_path / "lib/ld-linux-aarch64.so.1").is_file()
    order = (tmp_path / "lib/netboot/modules.order").read_text().split()
    assert {"virtio_net.ko", "mlx5_core.ko", "hns3.ko", "overlay.ko"} <= set(order)
    assert sorted(order) == sorted(path.name for path in (tmp_path / "lib/netboot/modules").iterdir())
    run = ["chroot", str(tmp_path), "/bin/busybox", "sh", "-c", "signify-openbsd 2>&1 | busybox head -n 1; uname -m"]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    assert (said[0][:6], said[1]) == ("usage:", "aarch64")


def test_the_modules_that_are_there_are_those_that_depmod_knows(root: Path, manifest: Manifest) -> None:
    at = root / "usr/lib/modules" / manifest.kernel_version
    files = {path.relative_to(at).as_posix() for path in at.rglob("*.ko")}
    lines = [line.partition(":") for line in (at / "modules.dep").read_text().splitlines()]
    assert {name for name, _, _ in lines} == files
    assert {need for _, _, needs in lines for need in needs.split()} <= files
    names = {file.rpartition("/")[2] for file in files}
    assert {"mlx5_core.ko", "mlxfw.ko", "ixgbe.ko", "nvme.ko", "sbsa_gwdt.ko", "wireguard.ko"} <= names


def test_its_own_systemctl_and_python_ran(root: Path) -> None:
    wanted = {path.name for path in (root / "etc/systemd/system/multi-user.target.wants").iterdir()}
    assert {"containerd.service", "netboot-join.service", "systemd-networkd.service"} <= wanted
    code = "import node.agent.loop, node.agent.kubelet, node.agent.exchange, platform; print(platform.machine())"
    argv = ["chroot", str(root), "/usr/bin/env", "-C", "/usr/lib/netboot", "python3", "-Bs", "-c", code]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "aarch64\n"


def test_a_dpu_of_ubuntu_is_built_where_its_mirror_answers(folder: Path, unbuilt: Unbuilt) -> None:
    """Where it does not, the end of this run says so: tests/plugins/unbuilt.py."""
    recipe = folder / "ubuntu-24.04-dpu.yaml"
    made = unbuilt.unless_built("ubuntu-24.04-dpu", lambda: run_image_build(folder, recipe, seconds=5400))
    if made is None:
        assert not list((folder / "store").glob("images/*/ubuntu*"))
        return
    found = Store(folder / "store").manifest(made["image"])
    kernel = blob(folder, found, "kernel").read_bytes()
    assert (found.architecture, kernel[:2], kernel[0x38:0x3C]) == ("arm64", b"MZ", b"ARM\x64")
