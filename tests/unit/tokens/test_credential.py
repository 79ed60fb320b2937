"""Challenges are made for restricted storage keys that are strong enough, and for nothing else."""

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.unit.tokens.soft import ECC_EK, EK_ATTRIBUTES, RSA_EK, public
from tokens import wire
from tokens.credential import DECRYPT, RESTRICTED, SIGN, make_credential
from tokens.errors import UnsupportedKeyError
from tokens.wire import Public

NOT_STORAGE = "an endorsement key is a restricted storage key, this is not"
SHA1 = 0x4


def ek(attributes: int = EK_ATTRIBUTES, *, storage: bool = True, key: rsa.RSAPrivateKey = RSA_EK) -> Public:
    return public(key, attributes, storage=storage)


def refusal(key: Public) -> str:
    with pytest.raises(UnsupportedKeyError) as caught:
        make_credential(key, b"name", b"s" * 32)
    return str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        ek(EK_ATTRIBUTES & ~RESTRICTED),
        ek(EK_ATTRIBUTES & ~DECRYPT),
        ek(EK_ATTRIBUTES | SIGN),
        ek(storage=False),
    ],
    ids=["not restricted", "does not decrypt", "may sign", "no symmetric algorithm"],
)
def test_what_is_no_restricted_storage_key_gets_no_challenge(key: Public) -> None:
    assert refusal(key) == NOT_STORAGE


def test_a_key_named_by_sha_1_gets_no_challenge() -> None:
    assert refusal(replace(ek(), name_algorithm=SHA1)) == "an endorsement key named by SHA-1 is too weak"


def test_an_rsa_key_below_2048_bits_gets_no_challenge() -> None:
    short = rsa.generate_private_key(65537, 1024)
    assert refusal(ek(key=short)) == "an RSA endorsement key of 1024 bits is too short"


def test_a_secret_longer_than_the_name_s_digest_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="at most 32 bytes"):
        make_credential(ek(), b"name", b"s" * 33)


def test_each_challenge_has_a_seed_of_its_own() -> None:
    for key in (ek(), public(ECC_EK, EK_ATTRIBUTES, storage=True, scheme=wire.ALG_NULL)):
        assert make_credential(key, b"name", b"s" * 32) != make_credential(key, b"name", b"s" * 32)
