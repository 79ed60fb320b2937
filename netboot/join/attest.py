"""`attest`: what the machine proved, and what it gets for it."""

import base64
import hashlib
import hmac
from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_der_public_key

from netboot.join import fallback, identify
from netboot.join.credential import Presented
from netboot.join.enrolment import Details
from netboot.join.errors import PendingError, RefusedError, StaleError, UnknownMachineError
from netboot.join.exchange import STATIC_PCRS, Exchange, public_key, settle, tpm_errors
from netboot.join.identify import Identified
from netboot.join.issue import issue
from netboot.join.messages import Attest, AttestAnswer, Identifiers, TpmStatement
from netboot.join.ports import Credential
from netboot.join.state import State, policy_sha256, unseal
from netboot.machines.values import Machine
from tokens import wire
from tokens.eventlog import check_log, read_event_log
from tokens.quote import check_policy, verify_quote
from tokens.wire import PROOF_TAG, Selection, quote_nonce

SHA256 = 0xB
_NO_HINTS = Identifiers()


def attest(exchange: Exchange, message: Attest, peer: str) -> AttestAnswer:
    """Answer an attest from `peer` (an address). A TPM that is not on record and has proven itself becomes pending.

    Raises:
        PendingError: the TPM waits for an operator (now).
        BadClaimError, UnknownMachineError, RefusedError, StaleError, CannotTellError: safe to begin again.
    """
    now = exchange.issuer.now_ms()
    state = unseal(exchange.keyset(), exchange.site, message.state, now)
    spki = base64.b64decode(state.spki)
    if not signed(public_key(spki), message.proof, message.state):
        raise RefusedError("the proof is not a signature of this state by the key of hello")
    known = _still(exchange, state, now)
    counters, quote = None, ""
    if state.assurance == "tpm":
        if message.tpm is None:
            raise RefusedError(f"{state.machine} said that it has a TPM, and gave no statement of it")
        counters = _proven(state, known, message.tpm, message.state, spki)
        quote = hashlib.sha256(message.tpm.quote).hexdigest()
    else:
        fallback.recheck(exchange, known, state.assurance, peer)
    settle(exchange, known, state.boot)
    if known.enrols:
        raise _enrolled(exchange, state, now)
    asked = _asked(state, hashlib.sha256(spki).hexdigest(), counters, now)
    is_open = state.assurance == "nonce" and fallback.window_open(known, state.window, now)

    def present(existing: Credential | None) -> Presented:
        return Presented(asked, _continued(existing, message), is_open)

    return issue(exchange.issuer, known.machine, present, exchange.token_seconds, peer, quote)


def _asked(state: State, holder: str, counters: tuple[int, int] | None, now_ms: int) -> Credential:
    resets, restarts = counters if counters is not None else (None, None)
    return Credential(
        machine=state.machine,
        cluster=state.cluster,
        node=state.node,
        assurance=state.assurance,
        boot=state.boot,
        holder=holder,
        holder_spki=state.spki,
        reset_count=resets,
        restart_count=restarts,
        generation=state.generation,
        window=state.window,
        ek_sha256=state.ek_sha256,
        at_ms=now_ms,
    )


def _enrolled(exchange: Exchange, state: State, now_ms: int) -> PendingError:
    """Propose the TPM that has just proven itself, in its machine's window.

    Raises:
        RefusedError: the window is used up by now, or its EK certificate is not what this site asks for.
    """
    details = (state.details or Details()).model_copy(update={"ek_public": state.ek_public})
    said = details.model_dump_json(exclude_defaults=True)
    exchange.issuer.enrolments.propose(state.machine, state.ek_sha256, said, now_ms)
    return identify.pending(state.machine, state.ek_sha256)


def signed(key: ec.EllipticCurvePublicKey, signature: bytes, state: bytes) -> bool:
    """Whether `key` has signed for this state."""
    try:
        key.verify(signature, PROOF_TAG + state, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _continued(existing: Credential | None, message: Attest) -> bool:
    if existing is None or message.previous_proof is None:
        return False
    try:
        holder = load_der_public_key(base64.b64decode(existing.holder_spki))
    except (ValueError, UnsupportedAlgorithm):
        return False
    return isinstance(holder, ec.EllipticCurvePublicKey) and signed(holder, message.previous_proof, message.state)


def _still(exchange: Exchange, state: State, now_ms: int) -> Identified:
    """The machine, if everything is as it was at hello: identity, name, cluster, policy, generation.

    Raises:
        StaleError: something was changed since; hello says what is so now. UnknownMachineError, RefusedError.
    """
    view, enrolments = exchange.view(), exchange.issuer.enrolments
    declared = view.index.named(state.machine)
    hints = identify.hints_of(declared) if declared is not None else _NO_HINTS
    if state.assurance == "tpm":
        try:
            shown = hints if state.enrols else _NO_HINTS
            known = identify.by_tpm(view, enrolments, state.ek_sha256, shown, now_ms)
        except (UnknownMachineError, PendingError):
            raise StaleError(f"the TPM of {state.machine} is not enrolled (any more): begin again with hello") from None
    elif declared is None:
        raise UnknownMachineError(f"the inventory has no machine {state.machine} (any more)")
    else:
        known = identify.by_hints(view, enrolments, hints)
    if known.enrols not in ("", state.enrols):
        raise StaleError(f"the window of {state.machine} is another one than at hello: begin again")
    machine = known.machine
    was = (state.machine, state.cluster, state.node, state.generation, state.policy_sha256)
    now = (machine.name, machine.cluster, machine.node_name, known.enrolment.generation, policy_sha256(machine))
    if was != now:
        raise StaleError(f"what is declared of {state.machine} was changed since hello: begin again")
    return known


def _proven(state: State, known: Identified, tpm: TpmStatement, sealed: bytes, spki: bytes) -> tuple[int, int]:
    """The TPM's counters, once its statement holds in every part."""
    if not hmac.compare_digest(hashlib.sha256(tpm.secret).hexdigest(), state.secret_sha256):
        raise RefusedError("the secret is not the one that only this TPM could open")
    pcrs = {
        (bank, int(index)): bytes.fromhex(value)
        for name, values in tpm.pcrs.items()
        for index, value in values.items()
        for bank in (_BANKS[name],)
    }
    with tpm_errors():
        ek, ak = (wire.read_public(base64.b64decode(public)) for public in (state.ek_public, state.ak_public))
        quote = verify_quote(
            tpm.quote,
            tpm.signature,
            ak,
            ek,
            quote_nonce(sealed, tpm.secret, spki),
            (Selection(SHA256, state.pcrs),),
            pcrs,
        )
        policy = {
            (SHA256, int(index)): frozenset(map(bytes.fromhex, allowed))
            for index, allowed in known.machine.pcrs.items()
        }
        check_policy(pcrs, policy)
        _check_event_log(known.machine, tpm.eventlog, pcrs)
    return quote.reset_count, quote.restart_count


def _check_event_log(machine: Machine, log: bytes | None, pcrs: Mapping[tuple[int, int], bytes]) -> None:
    """The firmware's log leads to each quoted value of the static PCRs: with a PCR policy, to what the policy allows.

    Raises:
        RefusedError: a machine with a PCR policy sent none. TpmError, MalformedError: it leads elsewhere, or is none.
    """
    if log is not None:
        check_log(read_event_log(log), {key: value for key, value in pcrs.items() if key[1] in STATIC_PCRS})
    elif machine.pcrs:
        raise RefusedError(
            f"{machine.name} has a PCR policy, and sent no event log that leads to its PCRs: does its kernel have "
            "/sys/kernel/security/tpm0/binary_bios_measurements, of 160 KiB at most?"
        )


_BANKS = {name: algorithm for algorithm, name in wire.HASHES.items()}
