"""Keys and signatures: only what a trusted key signed verifies; any bytes are refused with our own errors."""

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from images.artifact.keyring import KeyRing
from images.artifact.signing import MOST, SigningKey, add, examine, read_public_key, sign, signers_of, verify
from images.errors import BadSignatureError, InUseError, NotFoundError, SignatureError, UnknownSignerError

KEY, STRANGER = SigningKey.generate(), SigningKey.generate()


@given(st.binary(max_size=300))
def test_what_a_trusted_key_signed_verifies(message: bytes) -> None:
    signature = KEY.sign(message)
    assert verify(message, signature, [STRANGER.public, KEY.public]) == KEY.public
    assert signers_of(signature) == (KEY.public.id,)
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


KEYS = [SigningKey.generate() for _ in range(4)]


@given(st.lists(st.sampled_from(range(4)), min_size=1, max_size=6), st.sets(st.sampled_from(range(4))), st.data())
def test_one_good_signature_of_a_trusted_key_is_enough(by: list[int], known: set[int], data: st.DataObject) -> None:
    good = data.draw(st.lists(st.booleans(), min_size=len(by), max_size=len(by)))
    signatures = b"".join(KEYS[n].sign(b"m" if fits else b"other") for n, fits in zip(by, good, strict=True))
    trusted = [KEYS[n].public for n in known]
    verdicts = [("good" if fits else "bad") if n in known else "unknown" for n, fits in zip(by, good, strict=True)]
    signers = [KEYS[n].public.id for n in by]
    assert signers_of(signatures) == tuple(signers)
    assert examine(b"m", signatures, trusted) == tuple(zip(signers, verdicts, strict=True))
    if "good" in verdicts:
        assert verify(b"m", signatures, trusted).id == signers[verdicts.index("good")]
    elif "bad" in verdicts:
        bad = " and ".join(signer for signer, verdict in zip(signers, verdicts, strict=True) if verdict == "bad")
        with pytest.raises(BadSignatureError) as caught:
            verify(b"m", signatures, trusted)
        assert str(caught.value) == f"the signature of key {bad} does not fit: altered after it was signed"
    else:
        with pytest.raises(UnknownSignerError) as unknown:
            verify(b"m", signatures, trusted)
        assert str(unknown.value) == (
            f"signed by key {' and '.join(signers)}, which is not trusted here (see `netboot key list`)"
        )


def test_a_signature_is_added_at_the_end_and_takes_the_place_of_the_same_keys() -> None:
    one, two = KEYS[0].sign(b"m"), KEYS[1].sign(b"m")
    assert add(one, two) == one + two == sign(b"m", KEYS[:2])
    assert add(KEYS[0].sign(b"old") + two, one) == two + one
    full = sign(b"m", [SigningKey.generate() for _ in range(MOST)])
    with pytest.raises(BadSignatureError) as caught:
        add(full, one)
    assert str(caught.value) == "has 8 signatures already, and no file may have more: build the image again"
    with pytest.raises(BadSignatureError) as many:
        verify(b"m", full + one, [KEYS[0].public])
    assert str(many.value) == "has more than 8 signatures"


@given(st.data())
def test_a_file_that_is_not_all_signatures_is_none(data: st.DataObject) -> None:
    whole = sign(b"m", KEYS[:2])
    junk = data.draw(st.binary(min_size=1, max_size=60))
    at = data.draw(st.integers(0, len(whole)))
    altered = whole[:at] + junk + whole[at:]
    try:
        found = examine(b"m", altered, [key.public for key in KEYS])
    except BadSignatureError:
        return
    # a comment may hold other bytes, and a base64 digit another key number: what is said to be good is what was signed
    assert len(found) == 2
    assert {signer for signer, verdict in found if verdict == "good"} <= {key.public.id for key in KEYS[:2]}


@pytest.mark.parametrize("behind", [b"x", b"untrusted comment: more", b"\0"])
def test_bytes_behind_the_last_line_make_it_none(behind: bytes) -> None:
    with pytest.raises(BadSignatureError) as caught:
        verify(b"m", KEY.sign(b"m") + behind, [KEY.public])
    assert str(caught.value) == "not a file of signify's: its last line has no end"


def test_a_private_key_of_another_kind_signs_nothing() -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    pem = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(SignatureError) as caught:
        SigningKey.from_pem(pem)
    assert str(caught.value) == "not an Ed25519 private key"


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
