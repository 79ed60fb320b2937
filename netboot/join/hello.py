"""`hello`: who is this, and a challenge that only its TPM can open."""

import hashlib

from netboot.join import fallback, identify
from netboot.join.enrolment import Details
from netboot.join.errors import RefusedError
from netboot.join.exchange import FIRMWARE_PCRS, Exchange, public_key, settle, tpm_errors
from netboot.join.identify import Identified
from netboot.join.messages import LONGEST_STATE, Hello, HelloAnswer, Identifiers, TpmKeys, encoded, normalised
from netboot.join.state import State, policy_sha256, seal
from netboot.lifecycle.errors import BadClaimError
from tokens import wire
from tokens.credential import make_credential, spki_sha256
from tokens.quote import check_attestation_key


def hello(exchange: Exchange, message: Hello, peer: str) -> HelloAnswer:
    """Answer a hello from `peer` (an address).

    Raises:
        BadClaimError, UnknownMachineError, RefusedError, StaleError, CannotTellError.
    """
    now = exchange.issuer.now_ms()
    try:
        public_key(message.spki)
    except BadClaimError as error:
        raise BadClaimError(f"not a hello: {error}") from None
    hints = normalised(message.hints)
    if message.tpm is not None:
        return _with_tpm(exchange, message, message.tpm, hints, peer, now)
    known = identify.by_hints(exchange.view(), exchange.issuer.enrolments, hints)
    assurance, window = fallback.assurance_of(exchange, known, hints, message.nonce, peer, now)
    settle(exchange, known, message.boot)
    state = _state(known, message).model_copy(update={"assurance": assurance, "window": window})
    sealed = seal(exchange.keyset(), exchange.site, state, now, exchange.random)
    return HelloAnswer(assurance=assurance, state=encoded(sealed), now_ms=now)


def _with_tpm(exchange: Exchange, message: Hello, tpm: TpmKeys, hints: Identifiers, peer: str, now: int) -> HelloAnswer:
    with tpm_errors():
        ek, ak = wire.read_public(tpm.ek_public), wire.read_public(tpm.ak_public)
        ek_sha256 = spki_sha256(ek)
        check_attestation_key(ak)
    known = identify.by_tpm(exchange.view(), exchange.issuer.enrolments, ek_sha256, hints, now)
    settle(exchange, known, message.boot)
    secret = exchange.random(32)
    with tpm_errors():
        challenge = make_credential(ek, ak.name, secret, exchange.random)
    state = _state(known, message).model_copy(
        update={
            "ek_sha256": ek_sha256,
            "ek_public": encoded(tpm.ek_public),
            "ak_public": encoded(tpm.ak_public),
            "ak_name": ak.name.hex(),
            "secret_sha256": hashlib.sha256(secret).hexdigest(),
            "pcrs": tuple(sorted({*FIRMWARE_PCRS, *map(int, known.machine.pcrs)})),
            "enrols": known.enrols,
            "details": _details(tpm, hints, peer) if known.enrols else None,
        }
    )
    sealed = seal(exchange.keyset(), exchange.site, state, now, exchange.random)
    if len(sealed) > LONGEST_STATE:
        raise RefusedError(f"{_TOO_LONG}; `netboot machine enroll --csv` takes its TPM from a list")
    return HelloAnswer(
        assurance="tpm",
        state=encoded(sealed),
        credential_blob=encoded(challenge.credential_blob),
        encrypted_secret=encoded(challenge.encrypted_secret),
        pcrs={"sha256": state.pcrs},
        now_ms=now,
    )


_TOO_LONG = "what this machine says of its TPM is longer than it can carry to attest (its EK certificate, most of all)"


def _details(tpm: TpmKeys, hints: Identifiers, peer: str) -> Details:
    """For the operator who is to approve this TPM."""
    return Details(
        ek_certificate=encoded(tpm.ek_certificate) if tpm.ek_certificate is not None else None,
        uuid=hints.uuid,
        serial=hints.serial,
        macs=hints.macs[:8],
        peer=peer,
    )


def _state(known: Identified, message: Hello) -> State:
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
