"""What fetches iPXE for arm64 takes nothing that Debian has not signed. That it fetches what boots:
`tests/boot/test_dhcp.py`."""

import subprocess
from pathlib import Path

import pytest

from lab.ipxe import SCRIPT
from lab.kube.repository import signing_key
from lab.processes import run

RELEASE = "Origin: Debian\nSuite: stable\nCodename: trixie\nDate: Sat, 21 Nov 2026 09:15:44 UTC\nComponents: main\n"


@pytest.mark.parametrize("signed", [False, True], ids=["nobody", "somebody else"])
def test_a_mirror_whose_archive_is_not_signed_by_debian(tmp_path: Path, signed: bool) -> None:
    (suite := tmp_path / "mirror/dists/trixie").mkdir(parents=True)
    (suite / "Release").write_text(RELEASE)
    if signed:
        with signing_key(tmp_path / "key.asc") as gpg:
            run([*gpg, "--clearsign", "-o", str(suite / "InRelease"), str(suite / "Release")])
    (program := tmp_path / "ipxe-arm64.efi").write_text("of before")
    done = subprocess.run([SCRIPT, tmp_path, f"file:{tmp_path}/mirror"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (100, "")
    assert (
        f"E: The repository 'file:{tmp_path}/mirror trixie {'InRelease' if signed else 'Release'}' is not signed."
        in (done.stderr.splitlines())
    )
    assert program.read_text() == "of before"


@pytest.mark.parametrize(
    "argv", [(), ("--help",), ("", "http://mirror/debian"), ("a", "http://m [trusted=yes]"), "abc"]
)
def test_what_it_does_not_take(tmp_path: Path, argv: tuple[str, ...]) -> None:
    done = subprocess.run([SCRIPT, *argv], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "usage: ipxe-arm64.sh FOLDER [MIRROR]")
    assert list(tmp_path.iterdir()) == []
