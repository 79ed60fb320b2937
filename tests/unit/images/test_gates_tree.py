"""What is read of a tree: small ones, written by hand, with what a real one has that misleads."""

import gzip
import hashlib
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.build.gates import content, early, gather, kmod, packages
from images.build.gates.checks import identity, sources
from images.build.gates.facts import Sources
from images.build.steps.configure import ARCHIVES
from images.errors import ImageError
from images.formats import cpio
from tests.unit.images import elf_samples
from tests.unit.images.gate_facts import KERNEL, facts, said


def put(root: Path, path: str, data: bytes | str = "") -> Path:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return file


KEY = b"-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49\n-----END PRIVATE KEY-----\n"
HASH = "ops:$6$saltsalt$" + "c" * 86


def test_files_are_looked_into_wherever_they_are(tmp_path: Path) -> None:
    foreign = bytearray(elf_samples.program())
    foreign[18] = 183
    put(tmp_path, "/opt/vendor/etc/key", b"x" * 100_000 + KEY)
    put(tmp_path, "/usr/share/doc/a/examples/users", HASH)
    put(tmp_path, "/etc/shadow", HASH)  # read field by field
    put(tmp_path, "/etc/nvme/config.json", '{"hostnqn": "nqn.2014-08.org.nvmexpress:uuid:1"}')
    put(tmp_path, "/usr/share/nvme", "nqn.2014-08.org.nvmexpress:uuid:")
    put(tmp_path, "/usr/bin/own", elf_samples.program())
    put(tmp_path, "/usr/lib/foreign.so", bytes(foreign))
    put(tmp_path, "/usr/lib/firmware/gsp.bin", bytes(foreign))
    put(tmp_path, "/usr/lib/modules/1/vdso/vdso32.so", bytes(foreign))
    put(tmp_path, "/usr/lib/tool-with-a-hash", elf_samples.program() + HASH.encode())
    put(tmp_path, f"{ARCHIVES}/0.tar", KEY)
    put(tmp_path, "/usr/lib/short", b"\x7fELF")
    (tmp_path / "etc/link").symlink_to("/opt/vendor/etc/key")
    found = content.read(tmp_path)
    assert found.private_keys == {"/opt/vendor/etc/key": "PEM"}
    assert found.password_hashes == ("/usr/share/doc/a/examples/users",)
    assert found.host_names == ("/etc/nvme/config.json",)
    assert found.machines == {"/usr/bin/own": 62, "/usr/lib/foreign.so": 183, "/usr/lib/tool-with-a-hash": 62}
    assert found.files == 11


def test_identity_and_apts_state(tmp_path: Path) -> None:
    there = ("/var/lib/apt/lists/m_InRelease", "/var/lib/apt/extended_states", "/var/cache/apt/pkgcache.bin")
    for path in (*there, "/etc/ssh/ssh_host_rsa_key", "/var/lib/apt/mirrors"):
        put(tmp_path, path, "x")
    (tmp_path / "var/lib/apt/lists/partial").mkdir()
    put(tmp_path, "/etc/machine-id", "")
    found = tuple(identity.files(tmp_path))
    assert found == ("/etc/ssh/ssh_host_rsa_key", *there)
    assert said(identity.GATE, facts(tmp_path, identity=found[:2])) == [
        "identity: /etc/ssh/ssh_host_rsa_key names one machine, and an image is for many\n  take it out of the recipe",
        "identity: /var/lib/apt/lists/m_InRelease is apt's state, of the day of the build\n  take it out of the recipe",
    ]


def test_modprobes_configuration_in_force(tmp_path: Path) -> None:
    put(tmp_path, "/usr/lib/modprobe.d/a.conf", "blacklist nouveau\n")
    put(tmp_path, "/usr/lib/modprobe.d/b.conf", "# blacklist x\n\n  blacklist y # why\n")
    put(tmp_path, "/usr/lib/modprobe.d/README", "blacklist z\n")
    (tmp_path / "lib").symlink_to("usr/lib")
    assert list(gather._modprobe(tmp_path)) == ["blacklist nouveau", "blacklist y"]
    put(tmp_path, "/etc/modprobe.d/a.conf", "options a b=1\n")  # in place of the other of that name
    assert list(gather._modprobe(tmp_path)) == ["options a b=1", "blacklist y"]
    (tmp_path / "etc/modprobe.d/b.conf").symlink_to("/dev/null")
    assert list(gather._modprobe(tmp_path)) == ["options a b=1"]


def test_firmware_and_libraries_by_name(tmp_path: Path) -> None:
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "lib").symlink_to("usr/lib")
    put(tmp_path, "/usr/lib/firmware/mellanox/a.mfa2.zst")
    put(tmp_path, "/usr/lib/firmware/b.bin.xz")
    (tmp_path / "usr/lib/firmware/linked.bin").symlink_to("/lib/firmware/b.bin.xz")
    (tmp_path / "usr/lib/firmware/nowhere.bin").symlink_to("gone.bin")
    assert sorted(gather._firmware(tmp_path)) == ["b.bin", "linked.bin", "mellanox/a.mfa2"]
    put(tmp_path, "/usr/lib/x/libcuda.so.535.261.03")
    put(tmp_path, "/usr/lib/x/libc.so.6")
    (tmp_path / "usr/lib/x/libcuda.so.1").symlink_to("libcuda.so.535.261.03")
    assert list(gather._libraries(tmp_path)) == ["/usr/lib/x/libcuda.so.535.261.03"]


def test_modules_of_a_root_however_they_are_packed(tmp_path: Path) -> None:
    folder = f"/usr/lib/modules/{KERNEL}"
    plain = elf_samples.module(name="a", vermagic=f"{KERNEL} SMP") + kmod.SIGNED
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "lib").symlink_to("usr/lib")
    put(tmp_path, f"{folder}/kernel/a.ko", plain)
    put(tmp_path, f"{folder}/updates/b-b.ko.xz", lzma.compress(plain))
    put(tmp_path, f"{folder}/updates/c.ko.gz", gzip.compress(plain))
    put(tmp_path, f"{folder}/updates/d.ko.xz", b"damaged")
    put(tmp_path, "/usr/lib/modules/5.10/kernel/e.ko", plain)
    (tmp_path / "usr/lib/modules/6.9/kernel").mkdir(parents=True)
    found = kmod.in_root(tmp_path, KERNEL)
    assert {name: (module.signed, module.vermagic, bool(module.fault)) for name, module in found.items()} == {
        "a": (True, KERNEL, False),
        "b_b": (True, KERNEL, False),
        "c": (True, KERNEL, False),
        "d": (False, "", True),
    }
    assert kmod.strange_kernels(tmp_path, KERNEL) == ("5.10",)
    assert kmod.in_root(tmp_path / "empty", KERNEL) == {} and kmod.strange_kernels(tmp_path / "empty", KERNEL) == ()


NAMES = st.text("abcdefgh/._-é", min_size=1, max_size=30).filter(
    lambda name: all(part not in ("", ".", "..") for part in name.split("/"))
)


@given(st.dictionaries(NAMES, st.binary(max_size=50), max_size=5))
def test_an_archive_is_read_as_it_was_written(files: dict[str, bytes]) -> None:
    try:
        written = cpio.archive([*(cpio.file(name, data) for name, data in files.items()), cpio.symlink("0", "b")])
    except ValueError:  # one inside of another
        return
    assert dict(early.members(written)) == files


def test_half_an_archive() -> None:
    whole = cpio.archive([cpio.file("a", b"x" * 600)])
    with pytest.raises(ImageError, match="the initrd is not a whole cpio archive"):
        list(early.members(whole[:400]))


STATUS = b"""\
Package: b
Status: install ok installed
Architecture: amd64
Version: 1:2.0-1
Description: text
 Version: of nothing

Package: half
Status: install ok half-configured
Architecture: all
Version: 3

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1
"""


def test_installed_packages_are_those_whose_files_are_there() -> None:
    assert packages.installed(STATUS) == (("b", "1:2.0-1", "amd64"), ("half", "3", "all"))
    assert packages.installed(b"") == ()


LISTED = b"Package: b\nArchitecture: amd64\nVersion: 1:2.0-1\n\nPackage: other\nArchitecture: all\nVersion: 1\n"


def release(*lines: str) -> bytes:
    return ("-----BEGIN PGP SIGNED MESSAGE-----\n\nSHA256:\n" + "".join(f" {line}\n" for line in lines)).encode()


def lists(folder: Path, prefix: str, signed: bytes, listed: bytes, name: str) -> str:
    put(folder, f"{prefix}_InRelease", signed)
    put(folder, f"{prefix}_{name}", listed)
    return hashlib.sha256(signed).hexdigest()


def test_packages_of_signed_lists(tmp_path: Path) -> None:
    digest = hashlib.sha256(LISTED).hexdigest()
    suite, name = "m_debian_dists_bookworm", "main_binary-amd64_Packages"
    trusted = lists(tmp_path, suite, release(f"{digest}  99 main/binary-amd64/Packages"), LISTED, name)
    flat = lists(
        tmp_path,
        "srv_flat",
        release(f"{'0' * 64} 10 ./Packages.gz"),
        b"Package: half\nVersion: 3\nArchitecture: all",
        "Packages",
    )
    found = packages.read_lists(tmp_path, [trusted, flat], {"b", "half"})
    assert found == Sources(frozenset({("b", "1:2.0-1", "amd64"), ("half", "3", "all")}), ())
    assert packages.read_lists(tmp_path, [trusted], {"b", "half"}) == Sources(
        frozenset({("b", "1:2.0-1", "amd64")}), ("srv_flat_Packages",)
    )


@pytest.mark.parametrize(
    "signed",
    [
        release(f"{'0' * 64} 99 main/binary-amd64/Packages"),
        release(f"{hashlib.sha256(LISTED).hexdigest()} 99 main/binary-arm64/Packages"),
        release(),
    ],
)
def test_a_list_that_its_release_does_not_name(tmp_path: Path, signed: bytes) -> None:
    trusted = lists(tmp_path, "m_dists_x", signed, LISTED, "main_binary-amd64_Packages")
    found = packages.read_lists(tmp_path, [trusted], {"b"})
    assert found == Sources(frozenset(), ("x_main_binary-amd64_Packages",))
    assert said(sources.GATE, facts(tmp_path, packages=packages.installed(STATUS)[:1], sources=found)) == [
        (
            "sources: the package list x_main_binary-amd64_Packages is in no signed release of the recipe's sources\n"
            "  build again from clean: something has written into the package lists"
        ),
        (
            "sources: the package b 1:2.0-1 (amd64) is in none of the recipe's signed sources\n"
            "  add a signed repository that has it to 'sources', or leave the package out"
        ),
    ]


def test_another_version_is_another_package(tmp_path: Path) -> None:
    digest = hashlib.sha256(LISTED).hexdigest()
    trusted = lists(tmp_path, "m_dists_x", release(f"{digest} 99 main/Packages"), LISTED, "main_Packages")
    found = packages.read_lists(tmp_path, [trusted], {"b"})
    own = (("b", "1:2.0-2", "amd64"), ("b", "1:2.0-1", "arm64"))
    assert len(said(sources.GATE, facts(tmp_path, packages=own, sources=found))) == 2
