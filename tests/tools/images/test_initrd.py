"""The initrd as the kernel sees it: complete, the same bytes every time, and words for every root that will not do."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from images.artifact.signing import SigningKey
from images.build.initrd import STAGE, Gathered, compress, gather
from images.errors import RecipeError
from tests.unit.images.elf_samples import module, program

pytestmark = pytest.mark.tools

KEY = SigningKey.generate()
VERSION = "6.1.0-1-amd64"
LINKER = "/lib64/ld-linux-x86-64.so.2"
MODULES = ("squashfs", "loop", "overlay", "virtio_net", "failover")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A merged-/usr root with links as Debian's: relative, absolute, and onto other links."""
    root = tmp_path / "root"
    files = {
        "usr/bin/busybox": program(),
        "usr/bin/signify-openbsd": program(("libbsd.so.0", "libc.so.6"), LINKER),
        "usr/lib/x86_64-linux-gnu/libbsd.so.0.11.7": program(("libmd.so.0", "libc.so.6")),
        "usr/lib/x86_64-linux-gnu/libmd.so.0": program(("libc.so.6",)),
        "usr/lib/x86_64-linux-gnu/libc.so.6": program(("ld-linux-x86-64.so.2",)),
        "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": program(),
        "usr/lib/firmware/vendor/net.bin.zst": b"firmware",
        "etc/ld.so.conf.d/x86_64-linux-gnu.conf": b"# Multiarch support\n/lib/x86_64-linux-gnu\n",
        f"usr/lib/modules/{VERSION}/modules.builtin": b"kernel/net/packet/af_packet.ko\n",
        f"usr/lib/modules/{VERSION}/modules.dep": "".join(
            f"kernel/{name}.ko:{' kernel/failover.ko' if name == 'virtio_net' else ''}\n" for name in MODULES
        ).encode(),
    }
    for name in MODULES:
        files[f"usr/lib/modules/{VERSION}/kernel/{name}.ko"] = module(firmware=f"vendor/{name}.bin")
    files[f"usr/lib/modules/{VERSION}/kernel/failover.ko"] = module(firmware="vendor/net.bin")
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "lib").symlink_to("usr/lib")
    (root / "lib64").symlink_to("/usr/lib64")
    (root / "usr/lib64").mkdir()
    (root / "usr/lib64/ld-linux-x86-64.so.2").symlink_to("/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
    (root / "usr/lib/x86_64-linux-gnu/libbsd.so.0").symlink_to("libbsd.so.0.11.7")
    return root


@pytest.fixture
def keys(tmp_path: Path) -> list[Path]:
    path = tmp_path / f"{KEY.public.id}.pub"
    path.write_bytes(KEY.public.to_bytes())
    return [path]


def build(root: Path, version: str, modules: list[str], keys: list[Path], out: Path, **more: Any) -> Gathered:
    """Both halves: gathered, then packed as `out`."""
    made = gather(root, version, modules, keys, out.with_name(f"{out.name}.cpio"), **more)
    compress(out.with_name(f"{out.name}.cpio"), out)
    return made


def unpack(initrd: Path, folder: Path) -> dict[str, Path]:
    plain = subprocess.run(["zstd", "-dc", str(initrd)], check=True, capture_output=True).stdout
    folder.mkdir()
    argv = ["cpio", "-i", "--quiet", "--nonmatching", "dev/*"]
    subprocess.run(argv, cwd=folder, input=plain, check=True, capture_output=True)
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir()}


def test_everything_that_the_stage_needs_and_nothing_else(root: Path, keys: list[Path], tmp_path: Path) -> None:
    made = build(root, VERSION, ["virtio-net"], keys, tmp_path / "initrd.img")
    files = unpack(tmp_path / "initrd.img", tmp_path / "unpacked")
    assert made.modules == ("squashfs", "loop", "overlay", "failover", "virtio_net")
    assert made.firmware == ("vendor/net.bin.zst",)
    assert made.missing_firmware == tuple(
        f"vendor/{name}.bin" for name in ("loop", "overlay", "squashfs", "virtio_net")
    )
    assert made.size == (tmp_path / "initrd.img.cpio").stat().st_size
    assert set(files) == {
        *("init", "bin/busybox", "bin/sh", "bin/signify-openbsd", f"etc/netboot/keys/{KEY.public.id}.pub"),
        *(
            "lib/libbsd.so.0",
            "lib/libmd.so.0",
            "lib/libc.so.6",
            "lib64/ld-linux-x86-64.so.2",
            "lib/netboot/modules.order",
        ),
        *(f"lib/netboot/modules/{name}.ko" for name in MODULES),
        *(f"lib/netboot/{path.name}" for path in (*STAGE.glob("*.sh"), *STAGE.glob("*.awk"))),
        "lib/firmware/vendor/net.bin.zst",
    }
    assert files["lib/netboot/modules.order"].read_text().split() == [f"{name}.ko" for name in made.modules]
    assert files["lib/libbsd.so.0"].read_bytes() == program(("libmd.so.0", "libc.so.6"))
    assert files["init"].stat().st_mode & 0o777 == 0o755


def test_every_part_that_init_reads_is_there() -> None:
    line = next(line for line in (STAGE / "init").read_text().splitlines() if line.startswith("for part in "))
    parts = line.removeprefix("for part in ").partition(";")[0].split()
    assert parts
    assert {f"{part}.sh" for part in parts} <= {path.name for path in STAGE.glob("*.sh")}


def test_the_same_bytes_whatever_the_times_and_the_order_on_disk(root: Path, keys: list[Path], tmp_path: Path) -> None:
    build(root, VERSION, ["virtio_net"], keys, tmp_path / "one")
    subprocess.run(["cp", "-r", "--no-dereference", str(root), str(tmp_path / "copy")], check=True)
    build(tmp_path / "copy", VERSION, ["virtio_net"], keys, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_shell_only_where_one_was_built_in(root: Path, keys: list[Path], tmp_path: Path) -> None:
    build(root, VERSION, [], keys, tmp_path / "initrd", debug=True)
    assert "etc/netboot/debug" in unpack(tmp_path / "initrd", tmp_path / "unpacked")


def test_a_module_packed_by_ubuntu_is_unpacked(root: Path, keys: list[Path], tmp_path: Path) -> None:
    folder = root / f"usr/lib/modules/{VERSION}"
    subprocess.run(["zstd", "-q", "--rm", str(folder / "kernel/loop.ko")], check=True)
    table = (folder / "modules.dep").read_text()
    (folder / "modules.dep").write_text(table.replace("loop.ko", "loop.ko.zst"))
    build(root, VERSION, [], keys, tmp_path / "initrd")
    files = unpack(tmp_path / "initrd", tmp_path / "unpacked")
    assert files["lib/netboot/modules/loop.ko"].read_bytes() == module(firmware="vendor/loop.bin")


def dynamic_busybox(root: Path) -> None:
    (root / "usr/bin/busybox").write_bytes(program(("libc.so.6",), LINKER))


def without(name: str) -> Callable[[Path], None]:
    return lambda root: (root / name).unlink()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            without("usr/bin/busybox"),
            "the root has no /usr/bin/busybox; put the package busybox-static into the recipe",
        ),
        (
            dynamic_busybox,
            "the root's busybox needs shared libraries; put busybox-static, not busybox, into the recipe",
        ),
        (
            without("usr/bin/signify-openbsd"),
            "the root has no /usr/bin/signify-openbsd; put the package signify-openbsd into the recipe",
        ),
        (
            without("usr/lib/x86_64-linux-gnu/libmd.so.0"),
            "the root lacks the library libmd.so.0, which signify-openbsd needs",
        ),
        (
            without(f"usr/lib/modules/{VERSION}/kernel/loop.ko"),
            f"kernel {VERSION}: module kernel/loop.ko cannot be read: ",
        ),
    ],
)
def test_a_root_that_will_not_do(
    root: Path, keys: list[Path], tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    spoil(root)
    with pytest.raises(RecipeError) as error:
        build(root, VERSION, ["virtio_net"], keys, tmp_path / "initrd")
    assert str(error.value).startswith(message)
    assert not (tmp_path / "initrd").exists()


def test_an_initrd_needs_a_key_and_a_whole_one(root: Path, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as none:
        build(root, VERSION, [], [], tmp_path / "initrd")
    assert str(none.value) == "an initrd without a trusted key boots nothing; name at least one public key"
    (tmp_path / "bad.pub").write_bytes(KEY.public.to_bytes()[:-9])
    with pytest.raises(RecipeError) as bad:
        build(root, VERSION, [], [tmp_path / "bad.pub"], tmp_path / "initrd")
    assert str(bad.value).startswith(f"{tmp_path}/bad.pub cannot be trusted by an initrd: ")


def test_a_root_of_another_format_brings_its_own_module(root: Path, keys: list[Path], tmp_path: Path) -> None:
    folder = root / f"usr/lib/modules/{VERSION}"
    (folder / "kernel/erofs.ko").write_bytes(module())
    with (folder / "modules.dep").open("a") as table:
        table.write("kernel/erofs.ko:\n")
    made = build(root, VERSION, [], keys, tmp_path / "initrd", root_format="erofs")
    assert made.modules == ("erofs", "loop", "overlay")


def test_a_kernel_that_cannot_mount_the_format_is_refused(root: Path, keys: list[Path], tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        build(root, VERSION, [], keys, tmp_path / "initrd", root_format="erofs")
    assert str(caught.value) == (
        f"kernel {VERSION} cannot mount root_format: erofs: it has no such module; "
        "take another root_format, or the package of a kernel that has it"
    )
