"""A unified kernel image: put together, signed, and believed by the tools that firmware's rules are tested with."""

import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from images.build.secureboot import read_key
from images.build.step import Product
from images.build.steps import uki
from images.errors import RecipeError
from tests.unit.images.pe_samples import program, sections
from tests.unit.images.test_secureboot import write_pair

pytestmark = pytest.mark.tools

CREATED = 1_700_000_000


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture
def inputs(tmp_path: Path) -> uki.Inputs:
    """A tree with a stub, a kernel and an initrd."""
    tree = tmp_path / "tree/root"
    (tree / "usr/lib/systemd/boot/efi").mkdir(parents=True)
    (tree / "usr/lib/systemd/boot/efi/linuxx64.efi.stub").write_bytes(program((".text", b"stub" * 100)))
    (tree / "usr/lib/os-release").write_text("ID=debian\n")
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel/version").write_text("6.1.0-1-amd64\n")
    (tmp_path / "kernel/vmlinuz").write_bytes(b"kernel" * 1000)
    (tmp_path / "initrd").mkdir()
    (tmp_path / "initrd/initrd.img").write_bytes(b"initrd" * 1000)
    system, kernel, initrd = (Product(name, tmp_path / name) for name in ("tree", "kernel", "initrd"))
    return uki.Inputs(system, kernel, initrd, "amd64", ("console=ttyS0", "panic=30"), CREATED)


def made(inputs: uki.Inputs, out: Path) -> Path:
    out.mkdir()
    uki.uki(inputs, out, lambda _: None)
    assert [path.name for path in out.iterdir()] == ["uki.efi"]
    return out / "uki.efi"


def test_all_that_boots_is_in_one_file(tmp_path: Path, inputs: uki.Inputs) -> None:
    found = dict(sections(made(inputs, tmp_path / "1").read_bytes()))
    assert found == {
        ".text": b"stub" * 100,
        ".osrel": b"ID=debian\n",
        ".cmdline": b"console=ttyS0 panic=30\0",
        ".uname": b"6.1.0-1-amd64\0",
        ".initrd": b"initrd" * 1000,
        ".linux": b"kernel" * 1000,
    }


def believed(program: Path, certificate: Path) -> bool:
    """Whether firmware that has this certificate would start it."""
    argv = ["sbverify", "--cert", str(certificate), str(program)]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def test_it_is_signed_and_the_same_every_time(tmp_path: Path, inputs: uki.Inputs, key: rsa.RSAPrivateKey) -> None:
    pair = write_pair(tmp_path / "key", key)
    _, other = write_pair(tmp_path / "other", rsa.generate_private_key(65537, 2048))
    signed = uki.Inputs(inputs.tree, inputs.kernel, inputs.initrd, "amd64", inputs.arguments, CREATED, read_key(*pair))
    first, second = made(signed, tmp_path / "1"), made(signed, tmp_path / "2")
    assert first.read_bytes() == second.read_bytes()
    assert believed(first, pair[1])
    assert not believed(first, other)
    shown = subprocess.run(["osslsigncode", "verify", "-in", first], capture_output=True, text=True, check=False).stdout
    assert "Nov 14 22:13:20 2023" in shown, "the image's time, not the day's"
    changed = bytearray(first.read_bytes())
    changed[changed.index(b"panic=30")] ^= 1
    (tmp_path / "changed").write_bytes(changed)
    assert not believed(tmp_path / "changed", pair[1])


def test_without_a_stub_there_is_none(tmp_path: Path, inputs: uki.Inputs) -> None:
    (inputs.tree / "root/usr/lib/systemd/boot/efi/linuxx64.efi.stub").unlink()
    (tmp_path / "out").mkdir()
    with pytest.raises(RecipeError) as caught:
        uki.uki(inputs, tmp_path / "out", lambda _: None)
    assert str(caught.value) == (
        "uki: the image has no /usr/lib/systemd/boot/efi/linuxx64.efi.stub; "
        "the package systemd-boot-efi of its suite must bring it"
    )
