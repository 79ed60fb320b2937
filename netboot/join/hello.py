"""`hello`: who is this, and a challenge that only its TPM can open."""

import hashlib
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from netboot.join import fallback, identify
from netboot.join.enrolment import Details
from netboot.join.errors import RefusedError
from netboot.join.identify import Known
from netboot.join.messages import Hello, HelloAnswer, Named, TpmKeys, encoded, normalised
from netboot.join.parts import Parts
from netboot.join.state import State, policy_sha256, seal
from netboot.lifecycle.errors import BadClaimError
from tokens import wire
from tokens.credential import make_credential, spki_sha256
from tokens.errors import MalformedError, TpmError
from tokens.quote import check_attestation_key

FIRMWARE_PCRS = tuple(range(8))
"""What firmware measures: asked for of everybody, whatever the policy."""


def hello(parts: Parts, message: Hello, peer: str) -> HelloAnswer:
    """Answer a hello from `peer` (an address).

    Raises:
        BadClaimError, UnknownMachineError, RefusedError, StaleError, CannotTellError.
    """
    now = parts.now_ms()
    public_key(message.spki)
    hints = normalised(message.hints)
    if message.tpm is not None:
        return _with_tpm(parts, message, message.tpm, hints, peer, now)
    known = identify.by_hints(parts.view(), parts.enrolments, hints)
    assurance, window = fallback.assurance_of(parts, known, hints, message.nonce, peer, now)
    settle(parts, known, message.boot)
    state = _state(known, message).model_copy(update={"assurance": assurance, "window": window})
    sealed = seal(parts.keyset(), parts.site, state, now, parts.random)
    return HelloAnswer(assurance=assurance, state=encoded(sealed), now_ms=now)


def _with_tpm(parts: Parts, message: Hello, tpm: TpmKeys, hints: Named, peer: str, now: int) -> HelloAnswer:
    with tpm_words():
        ek, ak = wire.read_public(tpm.ek_public), wire.read_public(tpm.ak_public)
        ek_sha256 = spki_sha256(ek)
        check_attestation_key(ak)
    details = _details(tpm, hints, peer)
    known = identify.by_tpm(parts.view(), parts.enrolments, ek_sha256, hints, details, now)
    settle(parts, known, message.boot)
    secret = parts.random(32)
    with tpm_words():
        challenge = make_credential(ek, ak.name, secret, parts.random)
    state = _state(known, message).model_copy(
        update={
            "ek_sha256": ek_sha256,
            "ek_public": encoded(tpm.ek_public),
            "ak_public": encoded(tpm.ak_public),
            "ak_name": ak.name.hex(),
            "secret_sha256": hashlib.sha256(secret).hexdigest(),
            "pcrs": tuple(sorted({*FIRMWARE_PCRS, *map(int, known.machine.pcrs)})),
        }
    )
    return HelloAnswer(
        assurance="tpm",
        state=encoded(seal(parts.keyset(), parts.site, state, now, parts.random)),
        credential_blob=encoded(challenge.credential_blob),
        encrypted_secret=encoded(challenge.encrypted_secret),
        pcrs={"sha256": state.pcrs},
        now_ms=now,
    )


def _details(tpm: TpmKeys, hints: Named, peer: str) -> str:
    """For the operator who is to approve this TPM."""
    said = Details(
        ek_certificate=encoded(tpm.ek_certificate) if tpm.ek_certificate is not None else None,
        ek_public=encoded(tpm.ek_public),
        uuid=hints.uuid,
        serial=hints.serial,
        macs=hints.macs[:8],
        peer=peer,
    )
    return said.model_dump_json(exclude_defaults=True)


def _state(known: Known, message: Hello) -> State:
    return State(
        assurance="tpm",
        machine=known.machine.name,
        cluster=known.machine.cluster,
        node=known.machine.node_name,
        boot=message.boot,
        generation=known.enrolment.generation,
        spki=encoded(message.spki),
        policy_sha256=policy_sha256(known.machine),
    )


def settle(parts: Parts, known: Known, boot: str) -> None:
    """What must hold for every assurance level.

    Raises:
        RefusedError: not a boot of this machine, or a cluster that is not known. CannotTellError: not fit to be used.
    """
    name = known.machine.name
    if not parts.belongs(boot, name):
        raise RefusedError(f"{boot} is not a boot of {name}: it booted by another machine's script, or elsewhere")
    parts.target(known.machine.cluster, name).fit()


def public_key(spki: bytes) -> ec.EllipticCurvePublicKey:
    """The machine's key: ECDSA on P-256 or P-384, in the one form that DER allows, for its hash is an identity.

    Raises:
        BadClaimError: another key, or none.
    """
    try:
        key = load_der_public_key(spki)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadClaimError("not a hello: spki is not a public key in DER") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1):
        raise BadClaimError("not a hello: spki must be a key on P-256 or P-384")
    if key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) != spki:
        raise BadClaimError("not a hello: spki is not in its usual form")
    return key


@contextmanager
def tpm_words() -> Iterator[None]:
    """What `tokens` finds, as join's own errors with the same words."""
    try:
        yield
    except MalformedError as error:
        raise BadClaimError(f"the TPM's statement cannot be read: {error}") from None
    except TpmError as error:
        raise RefusedError(f"the TPM's statement is not accepted: {error}") from None
    except (struct.error, OverflowError):  # a structure that no reader foresaw is still not a TPM's
        raise BadClaimError("the TPM's statement cannot be read") from None
