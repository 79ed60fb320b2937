"""Closures over depmod's tables: hard and soft dependencies, aliases, built-ins, names in both spellings."""

import gzip
import lzma
from pathlib import Path

import pytest

from images.errors import RecipeError
from images.formats.modules import Module, Tree, module_name
from tests.unit.images.elf_samples import module

DEP = """\
kernel/fs/squashfs/squashfs.ko:
kernel/net/mlx5_core.ko.xz: kernel/lib/mlxfw.ko kernel/net/psample.ko
kernel/lib/mlxfw.ko:
kernel/net/psample.ko:
kernel/net/virtio_net.ko.gz: kernel/net/net_failover.ko kernel/net/failover.ko
kernel/net/net_failover.ko: kernel/net/failover.ko
kernel/net/failover.ko:
kernel/char/virtio-rng.ko:
kernel/lib/libcrc32c.ko:
kernel/crypto/crc32c_generic.ko:
kernel/crypto/crc32c-intel.ko:
kernel/post/post_one.ko:
kernel/circle/a.ko:
kernel/circle/b.ko:
"""
SOFTDEP = """\
# Soft dependencies extracted from modules themselves.
softdep libcrc32c pre: crc32c nowhere-to-be-found
softdep mlx5-core pre: overlay post: post-one
softdep squashfs crc32c
softdep a pre: b
softdep b pre: a
"""
ALIAS = "alias crypto-crc32c crc32c_generic\nalias crc32c crc32c_generic\nalias crc32* crc32c_intel\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "lib/modules/6.1.0"
    root.mkdir(parents=True)
    (root / "modules.dep").write_text(DEP)
    (root / "modules.softdep").write_text(SOFTDEP)
    (root / "modules.alias").write_text(ALIAS)
    (root / "modules.builtin").write_text("kernel/fs/overlayfs/overlay.ko\nkernel/net/packet/af_packet.ko\n")
    return root


@pytest.mark.parametrize(
    ("wanted", "order"),
    [
        (["squashfs"], ["squashfs"]),
        (["virtio_net"], ["failover", "net_failover", "virtio_net"]),
        (["virtio-rng"], ["virtio_rng"]),
        (["virtio_rng", "virtio-rng"], ["virtio_rng"]),
        (["mlx5-core"], ["psample", "mlxfw", "mlx5_core", "post_one"]),
        (["libcrc32c"], ["crc32c_generic", "crc32c_intel", "libcrc32c"]),
        (["overlay", "af-packet"], []),
        (["a"], ["b", "a"]),
        (["failover", "squashfs", "virtio_net"], ["failover", "squashfs", "net_failover", "virtio_net"]),
    ],
)
def test_load_order(folder: Path, wanted: list[str], order: list[str]) -> None:
    assert Tree(folder).order(wanted) == order


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("virtio_nte", "kernel 6.1.0 has no module virtio_nte; did you mean virtio_net or virtio_rng?"),
        ("zzz", "kernel 6.1.0 has no module zzz; is the package that brings it in the recipe?"),
        ("overlai", "kernel 6.1.0 has no module overlai; did you mean overlay?"),
    ],
)
def test_a_module_that_is_not_there(folder: Path, wanted: str, message: str) -> None:
    with pytest.raises(RecipeError) as error:
        Tree(folder).order([wanted])
    assert str(error.value) == message


def test_a_kernel_that_is_not_there(folder: Path) -> None:
    with pytest.raises(RecipeError) as error:
        Tree(folder.parent / "6.2.0")
    assert (
        str(error.value)
        == "the root has no modules of kernel 6.2.0 (it has: 6.1.0); add a kernel package to the recipe"
    )


@pytest.mark.parametrize(
    ("name", "file", "pack"),
    [
        ("squashfs", "kernel/fs/squashfs/squashfs.ko", bytes),
        ("mlx5_core", "kernel/net/mlx5_core.ko.xz", lzma.compress),
        ("virtio_net", "kernel/net/virtio_net.ko.gz", gzip.compress),
    ],
)
def test_modules_are_unpacked_and_name_their_firmware(folder: Path, name: str, file: str, pack: object) -> None:
    data = module(firmware="vendor/x.bin", license="GPL")
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pack(data))  # type: ignore[operator]
    assert Tree(folder).read(name) == Module(name, file, data, ("vendor/x.bin",))


def test_a_damaged_module_is_named(folder: Path) -> None:
    path = folder / "kernel/net/mlx5_core.ko.xz"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not xz")
    with pytest.raises(RecipeError) as error:
        Tree(folder).read("mlx5_core")
    assert str(error.value) == (
        "kernel 6.1.0: module kernel/net/mlx5_core.ko.xz cannot be read: Input format not supported by decoder"
    )


def test_names_from_paths() -> None:
    assert [module_name(path) for path in ("kernel/a-b.ko.zst", "c-d", "x/e.ko", "f.ko.xz")] == ["a_b", "c_d", "e", "f"]
