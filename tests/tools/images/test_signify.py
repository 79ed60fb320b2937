"""Our signatures and OpenBSD's signify understand each other."""

import subprocess
from pathlib import Path

import pytest

from images.signing import SigningKey

pytestmark = pytest.mark.tools


def signify(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = ["signify-openbsd", *arguments]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


def test_signify_verifies_what_we_sign_and_nothing_else(tmp_path: Path) -> None:
    key = SigningKey.generate()
    (tmp_path / "site.pub").write_bytes(key.public.to_bytes())
    (tmp_path / "manifest.json").write_bytes(b'{"a":1}\n')
    (tmp_path / "manifest.sig").write_bytes(key.sign(b'{"a":1}\n'))
    arguments = ("-V", "-p", "site.pub", "-x", "manifest.sig", "-m", "manifest.json")
    done = signify(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (0, "Signature Verified\n")
    (tmp_path / "manifest.json").write_bytes(b'{"a":2}\n')
    assert signify(tmp_path, *arguments).returncode != 0
