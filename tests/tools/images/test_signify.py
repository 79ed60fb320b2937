"""Our signatures and OpenBSD's signify understand each other, both ways."""

import base64
import hashlib
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from images.artifact.keyring import KeyRing
from images.artifact.signing import SigningKey, read_public_key, sign, verify
from images.errors import BadSignatureError
from images.store.store import Store
from tests.unit.images.samples import KEY, add

pytestmark = pytest.mark.tools
SEED = b"a seed of exactly 32 bytes, here"


def signify(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = ["signify-openbsd", *arguments]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


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
    (tmp_path / "manifest.json").write_bytes(b'{"a":1}\n')
    (tmp_path / "site.pub").write_bytes(SigningKey.generate().public.to_bytes())
    assert signify(tmp_path, *arguments).returncode != 0


def test_signify_reads_the_first_of_several_signatures(tmp_path: Path) -> None:
    """The file's form: whoever checks by hand needs no tool but signify."""
    first, second = SigningKey.generate(), SigningKey.generate()
    (tmp_path / "m").write_bytes(b"m")
    (tmp_path / "m.sig").write_bytes(sign(b"m", [first, second]))
    for key, status in ((first, 0), (second, 1)):
        (tmp_path / "site.pub").write_bytes(key.public.to_bytes())
        assert signify(tmp_path, "-V", "-q", "-p", "site.pub", "-x", "m.sig", "-m", "m").returncode == status


def test_signify_verifies_an_image_as_it_lies_in_the_store(tmp_path: Path) -> None:
    """By the very command of docs/store.md."""
    store = Store(tmp_path / "store")
    digest = add(store, tmp_path, "one")
    (tmp_path / "site.pub").write_bytes(KEY.public.to_bytes())
    files = f"store/images/{digest}/manifest"
    done = signify(tmp_path, "-V", "-p", "site.pub", "-x", f"{files}.sig", "-m", f"{files}.json")
    assert (done.returncode, done.stdout) == (0, "Signature Verified\n")


def test_we_verify_what_signify_signs(tmp_path: Path) -> None:
    """Its secret key file: "EdBK", 0 rounds of its KDF (no passphrase), salt, checksum, number, seed ‖ public."""
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(SEED))
    secret = SEED + key.public.raw
    checksum = hashlib.sha512(secret).digest()[:8]
    body = b"EdBK" + bytes(4) + bytes(16) + checksum + key.public.number + secret
    (tmp_path / "site.sec").write_bytes(b"untrusted comment: by hand\n" + base64.b64encode(body) + b"\n")
    (tmp_path / "message").write_bytes(b"hello\n")
    assert signify(tmp_path, "-S", "-s", "site.sec", "-m", "message", "-x", "message.sig").returncode == 0
    signature = (tmp_path / "message.sig").read_bytes()
    assert verify(b"hello\n", signature, [key.public]) == key.public
    assert signature.split(b"\n")[1] == key.sign(b"hello\n").split(b"\n")[1]
    with pytest.raises(BadSignatureError):
        verify(b"hallo\n", signature, [key.public])


def test_keys_that_signify_made_are_refused_with_the_reason(tmp_path: Path) -> None:
    """Its key numbers are random; ours say which key it is, so that a key cannot be put in another's place."""
    assert signify(tmp_path, "-G", "-n", "-p", "a.pub", "-s", "a.sec").returncode == 0
    with pytest.raises(Exception, match="is not this key's, which is"):
        read_public_key((tmp_path / "a.pub").read_bytes())


def test_an_exported_key_is_one_for_signify(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys")
    info = ring.create()
    (tmp_path / "m").write_bytes(b"m")
    (tmp_path / "m.sig").write_bytes(ring.signing_key().sign(b"m"))
    (tmp_path / "out.pub").write_bytes(ring.public_bytes(info.id))
    assert signify(tmp_path, "-V", "-q", "-p", "out.pub", "-x", "m.sig", "-m", "m").returncode == 0
