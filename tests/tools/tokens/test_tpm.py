"""MakeCredential and quotes against a real TPM 2.0 (swtpm) driven by tpm2-tools."""

import hashlib
import struct
from collections.abc import Iterator

import pytest

from tests.tools.tokens.swtpm import Tpm, swtpm
from tokens import wire
from tokens.credential import make_credential, spki_sha256
from tokens.errors import PcrMismatchError, WrongNonceError, WrongPlaceError
from tokens.quote import verify_quote
from tokens.wire import Public, Selection

pytestmark = pytest.mark.tools
SHA256 = 0xB
NONCE = hashlib.sha256(b"an exchange").digest()
SELECTION = (Selection(SHA256, (0, 7)),)
KINDS = [("rsa", "rsa", "rsassa"), ("rsa", "ecc", "ecdsa"), ("ecc", "ecc", "ecdsa"), ("ecc", "rsa", "rsassa")]


@pytest.fixture(scope="module")
def tpm() -> Iterator[Tpm]:
    with swtpm() as running:
        running.tool("pcrextend", f"0:sha256={'11' * 32}", f"7:sha256={'22' * 32}")
        yield running


def keys(tpm: Tpm, ek: str, ak: str, scheme: str) -> tuple[Public, Public]:
    tpm.tool("createek", "-G", ek, "-c", "ek.ctx", "-u", "ek.pub")
    tpm.tool(*f"createak -C ek.ctx -c ak.ctx -G {ak} -g sha256 -s {scheme} -u ak.pub -n ak.name".split())
    return wire.read_public(tpm.file("ek.pub")), wire.read_public(tpm.file("ak.pub"))


def quoted(tpm: Tpm) -> tuple[bytes, bytes, dict[tuple[int, int], bytes]]:
    tpm.tool("quote", *f"-c ak.ctx -l sha256:0,7 -q {NONCE.hex()} -m quote.msg -s quote.sig -g sha256".split())
    tpm.tool("pcrread", "sha256:0,7", "-o", "pcrs")
    values = tpm.file("pcrs")
    return tpm.file("quote.msg"), tpm.file("quote.sig"), {(SHA256, 0): values[:32], (SHA256, 7): values[32:]}


@pytest.mark.parametrize(("ek", "ak", "scheme"), KINDS)
def test_only_this_tpm_opens_the_challenge_and_its_quote_verifies(tpm: Tpm, ek: str, ak: str, scheme: str) -> None:
    ek_public, ak_public = keys(tpm, ek, ak, scheme)
    assert ak_public.name == tpm.file("ak.name")

    challenge = make_credential(ek_public, ak_public.name, b"s" * 32)
    header = struct.pack(">II", 0xBADCC0DE, 1)  # tpm2-tools' own file header
    (tpm.folder / "challenge").write_bytes(header + challenge.credential_blob + challenge.encrypted_secret)
    tpm.tool("startauthsession", "--policy-session", "-S", "session.ctx")
    tpm.tool("policysecret", "-S", "session.ctx", "-c", "e")
    tpm.tool(
        *[
            "activatecredential",
            "-c",
            "ak.ctx",
            "-C",
            "ek.ctx",
            "-i",
            "challenge",
            "-o",
            "opened",
            "-P",
            "session:session.ctx",
        ]
    )
    tpm.tool("flushcontext", "session.ctx")
    assert tpm.file("opened") == b"s" * 32

    message, signature, pcrs = quoted(tpm)
    quote = verify_quote(message, signature, ak_public, ek_public, NONCE, SELECTION, pcrs)
    assert quote.reset_count == 1
    with pytest.raises(WrongNonceError):
        verify_quote(message, signature, ak_public, ek_public, bytes(32), SELECTION, pcrs)
    with pytest.raises(PcrMismatchError):
        verify_quote(message, signature, ak_public, ek_public, NONCE, SELECTION, {**pcrs, (SHA256, 7): bytes(32)})


def test_an_ek_is_pinned_by_its_der_spki(tpm: Tpm) -> None:
    tpm.tool("createek", "-G", "rsa", "-c", "ek.ctx", "-u", "ek.pub")
    tpm.tool("readpublic", "-c", "ek.ctx", "-f", "der", "-o", "ek.der")
    assert spki_sha256(wire.read_public(tpm.file("ek.pub"))) == hashlib.sha256(tpm.file("ek.der")).hexdigest()


def test_a_second_ak_under_the_owner_hierarchy_is_refused(tpm: Tpm) -> None:
    ek_public, _ = keys(tpm, "rsa", "ecc", "ecdsa")
    attributes = "restricted|sign|fixedtpm|fixedparent|sensitivedataorigin|userwithauth"
    tpm.tool("createprimary", "-C", "o", "-G", "ecc256:ecdsa-sha256:null", "-a", attributes, "-c", "ak.ctx")
    tpm.tool("readpublic", "-c", "ak.ctx", "-o", "ak.pub")
    ak_public = wire.read_public(tpm.file("ak.pub"))
    message, signature, pcrs = quoted(tpm)
    with pytest.raises(WrongPlaceError) as caught:
        verify_quote(message, signature, ak_public, ek_public, NONCE, SELECTION, pcrs)
    assert str(caught.value) == "the attestation key is not under the endorsement hierarchy of this TPM"


def test_a_primary_ak_of_the_endorsement_hierarchy_is_accepted(tpm: Tpm) -> None:
    ek_public, _ = keys(tpm, "rsa", "ecc", "ecdsa")
    attributes = "restricted|sign|fixedtpm|fixedparent|sensitivedataorigin|userwithauth"
    tpm.tool("createprimary", "-C", "e", "-G", "ecc256:ecdsa-sha256:null", "-a", attributes, "-c", "ak.ctx")
    tpm.tool("readpublic", "-c", "ak.ctx", "-o", "ak.pub")
    message, signature, pcrs = quoted(tpm)
    ak_public = wire.read_public(tpm.file("ak.pub"))
    assert verify_quote(message, signature, ak_public, ek_public, NONCE, SELECTION, pcrs).nonce == NONCE
