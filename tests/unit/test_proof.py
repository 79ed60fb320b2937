"""Proof of boot: what it says, and that nobody alters it, has it pass for another boot's, or signs with another key."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.artifact.signing import SigningKey
from images.values.digests import canonical
from netboot.lifecycle.events import CertificateRecord, TraceRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.proof import BadProofError, ProofOfBoot, SignedProof, proof_of, read, signed, verified
from netboot.lifecycle.trace import Trace, apply
from tests.records import START, boot_id, checked, event, script

KEY, OTHER = SigningKey.generate(), SigningKey.generate()
BOOT = boot_id("gpu-001", 0)
QUOTE, CERTIFICATE = "1" * 64, "2" * 64


def certificate(after_ms: int, sha256: str) -> CertificateRecord:
    at_ms = START + after_ms
    return CertificateRecord(at_ms=at_ms, boot=BOOT, machine="gpu-001", sha256=sha256, until_ms=at_ms + 3_600_000)


def booted() -> Trace:
    served = script("gpu-001", 0).model_copy(update={"decision": "d" * 16, "script": "5" * 16})
    facts: list[TraceRecord] = [
        event("gpu-001", 0, Phase.BOOTED, 9_000),
        event("gpu-001", 0, Phase.ATTESTED, 10_000, "by tpm, PCR policy: 0, 7").model_copy(update={"sha256": QUOTE}),
        event("gpu-001", 0, Phase.CSR_APPROVED, 11_000),
        certificate(12_000, CERTIFICATE),
        certificate(3_000_000, "3" * 64),
        event("gpu-001", 0, Phase.READY, 20_000),
    ]
    trace = apply(None, served)
    for fact in facts:
        trace = apply(trace, fact)
    return trace


def proof() -> ProofOfBoot:
    made = proof_of(booted(), checked("gpu-001", 0, "warn"), START + 21_000, "test", START + 22_000)
    assert made is not None
    return made


GOOD = signed(proof(), KEY)


def test_it_says_what_was_seen_served_and_reported_each_under_its_own_name() -> None:
    assert json.loads(GOOD.proof) == {
        "kind": "netboot.dev/proof-of-boot/v1",
        "site": "test",
        "boot": BOOT,
        "machine": "gpu-001",
        "attested": "by tpm, PCR policy: 0, 7",
        "quote_sha256": QUOTE,
        "image": {"sha256": "a" * 64, "known_by": "reported", "decision": "d" * 16, "script": "5" * 16},
        "checks": {"at_ms": START + 600, "status": "warn", "checks": {"cpus": "warn"}},
        "certificate_sha256": CERTIFICATE,
        "moments": {
            "ScriptServed": START,
            "Booted": START + 9_000,
            "Attested": START + 10_000,
            "CSRApproved": START + 11_000,
            "Ready": START + 20_000,
            "InService": START + 21_000,
        },
        "made_ms": START + 22_000,
    }
    assert verified(GOOD, [OTHER.public, KEY.public], BOOT) == (proof(), KEY.public)


def test_a_boot_that_did_not_attest_has_none_and_what_is_not_known_is_left_empty() -> None:
    trace = apply(None, script("gpu-001", 0))
    assert proof_of(trace, None, None, "test", START) is None
    bare = apply(None, event("gpu-001", 0, Phase.ATTESTED, 1_000, "by key, without a TPM"))
    made = proof_of(bare, None, None, "test", START)
    assert made is not None
    assert (made.quote_sha256, made.certificate_sha256, made.image, made.checks) == ("", "", None, None)


def said(given: SignedProof, *keys: SigningKey, boot: str | None = BOOT) -> str:
    with pytest.raises(BadProofError) as refused:
        verified(given, [key.public for key in keys], boot)
    return str(refused.value)


def test_each_way_in_which_it_does_not_hold_has_words_of_its_own() -> None:
    altered = GOOD.model_copy(update={"proof": GOOD.proof.replace("by tpm", "by TPM")})
    number = KEY.public.id
    assert (
        said(altered, KEY)
        == f"it does not hold: the signature of key {number} does not fit: altered after it was signed"
    )
    assert said(GOOD, OTHER) == "it is signed by a key that is not among those given: is it a proof of this site?"
    assert said(GOOD) == "it is signed by a key that is not among those given: is it a proof of this site?"
    assert said(GOOD, KEY, boot=boot_id("gpu-001", 1)) == f"it is a proof of boot {BOOT}"
    document = canonical({"site": "test"})
    other = SignedProof(proof=document.decode(), signature=KEY.sign(document).decode())
    assert said(other, KEY) == "what is signed is no proof of a boot that this version knows"
    half = read(GOOD.model_dump_json().replace("by tpm", "\\ud800").encode(), "it")
    assert said(half, KEY).endswith("does not fit: altered after it was signed")
    cut = GOOD.model_copy(update={"signature": GOOD.signature[:-2]})
    assert said(cut, KEY).startswith("it does not hold: not a file of signify's")
    for text in (b"", b"[]", b"{}", b'{"proof": 1, "signature": 2}', b"\xff", b"[" * 100_000):
        with pytest.raises(BadProofError, match=r"^it is not what `netboot boot proof --output json` writes"):
            read(text, "it")
    assert read(GOOD.model_dump_json().encode(), "it") == GOOD


@given(st.data())
def test_whatever_character_is_altered_it_does_not_hold(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(GOOD.proof) - 1))
    character = data.draw(st.characters(exclude_categories=()).filter(lambda c: c != GOOD.proof[place]))
    altered = GOOD.proof[:place] + character + GOOD.proof[place + 1 :]
    with pytest.raises(BadProofError):
        verified(GOOD.model_copy(update={"proof": altered}), [KEY.public], BOOT)


def test_signify_itself_verifies_it(tmp_path: Path) -> None:
    files: dict[str, Any] = {
        "proof": GOOD.proof,
        "signature": GOOD.signature,
        "site.pub": KEY.public.to_bytes().decode(),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    command = ["signify-openbsd", "-V", "-p", "site.pub", "-x", "signature", "-m", "proof"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout == b"Signature Verified\n"
    (tmp_path / "proof").write_text(GOOD.proof + " ")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode != 0


@pytest.mark.parametrize("of", ["attested", "checks", "moments"])
def test_a_stranger_s_text_that_would_act_on_a_terminal_is_no_proof(of: str) -> None:
    document = proof().model_dump(mode="json")
    clear = "\x1b[2Jit holds"
    altered: dict[str, Any] = {
        "attested": clear,
        "checks": {"at_ms": 1, "status": "pass", "checks": {clear: "pass"}},
        "moments": {clear: 1},
    }
    document[of] = altered[of]
    text = canonical(document)
    given = SignedProof(proof=text.decode(), signature=KEY.sign(text).decode())
    assert said(given, KEY) == "what is signed is no proof of a boot that this version knows"
