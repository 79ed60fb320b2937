"""Keys and signatures: only what a trusted key signed verifies; any bytes are refused with our own errors."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.errors import BadSignatureError, InUseError, NotFoundError, SignatureError, UnknownSignerError
from images.keyring import KeyRing
from images.signing import SigningKey, read_public_key, signer_of, verify

KEY, STRANGER = SigningKey.generate(), SigningKey.generate()


@given(st.binary(max_size=300))
def test_what_a_trusted_key_signed_verifies(message: bytes) -> None:
    signature = KEY.sign(message)
    assert verify(message, signature, [STRANGER.public, KEY.public]) == KEY.public
    assert signer_of(signature) == KEY.public.id
    with pytest.raises(UnknownSignerError) as unknown:
        verify(message, signature, [STRANGER.public])
    assert str(unknown.value) == (f"signed by key {KEY.public.id}, which is not trusted here (see `netboot key list`)")
    with pytest.raises(BadSignatureError) as bad:
        verify(message + b"x", signature, [KEY.public])
    assert str(bad.value) == f"the signature of key {KEY.public.id} does not fit: altered after it was signed"


@given(st.binary(max_size=200) | st.integers(0, 150).map(lambda cut: KEY.sign(b"m")[:cut]))
def test_any_bytes_are_no_signature(data: bytes) -> None:
    with pytest.raises(SignatureError):
        verify(b"m", data, [KEY.public])


@given(st.binary(max_size=200))
def test_any_bytes_are_no_key(data: bytes) -> None:
    with pytest.raises(SignatureError):
        read_public_key(data)
    with pytest.raises(SignatureError):
        SigningKey.from_pem(data)


def test_files_read_back_and_private_keys_show_nowhere() -> None:
    assert read_public_key(KEY.public.to_bytes()) == KEY.public
    assert SigningKey.from_pem(KEY.to_pem()).public == KEY.public
    assert repr(KEY) == "SigningKey()"


def test_a_ring_rotates_and_retires(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys")
    with pytest.raises(NotFoundError, match="run `netboot key create` here"):
        ring.signing_key()
    first = ring.create()
    assert stat.S_IMODE((ring.folder / f"{first.id}.key").stat().st_mode) == 0o600
    with pytest.raises(InUseError, match="`netboot key rotate` makes a new one"):
        ring.create()
    second = ring.rotate()
    assert ring.signing_key().public.id == second.id
    assert {key.id for key in ring.trusted()} == {first.id, second.id}
    with pytest.raises(InUseError) as caught:
        ring.retire(second.id)
    assert str(caught.value) == f"key {second.id} signs; run `netboot key rotate` before you retire it"
    ring.retire(first.id)
    assert {key.id for key in ring.trusted()} == {second.id}
    assert {(info.id, info.active, info.trusted, info.private) for info in ring.infos()} == {
        (first.id, False, False, True),
        (second.id, True, True, True),
    }
    with pytest.raises(NotFoundError):
        ring.retire(first.id)


def test_a_key_that_others_can_read_does_not_sign(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    path = tmp_path / f"{ring.create().id}.key"
    path.chmod(0o640)
    with pytest.raises(SignatureError) as caught:
        ring.signing_key()
    assert str(caught.value) == f"{path} can be read by others (mode 0640): run `chmod 600 {path}`"
