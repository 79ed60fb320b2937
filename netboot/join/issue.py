"""From a decision to a token: every step can fail, and beginning again after any of them is safe.

Claim the Lease (with the token's id in it), delete the Node that the boot before left, make the Secret, count it in the
Lease, write it down, answer. What was counted was handed out; what was only claimed was not, so no Node can be of it.
"""

import base64
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from netboot.join.credential import Decision, Presented, decide_credential
from netboot.join.errors import ClusterUnavailableError, ConflictError, HeldError, RefusedError
from netboot.join.messages import AttestAnswer
from netboot.join.parts import Parts, Target
from netboot.join.ports import AssuranceLevel, Credential
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.phases import Phase
from netboot.machines.values import Machine
from tokens.bootstrap import BootstrapToken, mint, secret_manifest

log = logging.getLogger(__name__)

ATTEMPTS = 4
"""At a Lease that somebody else keeps writing, before the machine is told to come back."""
UNCHECKED = "netboot.dev/unchecked:NoSchedule"
UNATTESTED = "netboot.dev/unattested:NoSchedule"


def issue(
    parts: Parts, machine: Machine, presented: Callable[[Credential | None], Presented], peer: str
) -> AttestAnswer:
    """A token for what was `presented`, which is asked for again whenever the Lease was found to say something else.

    Raises:
        HeldError, RefusedError: another credential stands in the way. CannotTellError: try again.
    """
    target = parts.target(machine.cluster, machine.name)
    for _ in range(ATTEMPTS):
        existing = target.leases.read(machine.cluster, machine.name)
        wanted = presented(existing)
        decision = decide_credential(existing, wanted, parts.now_ms())
        credential = _allowed(parts, target, decision, wanted)
        try:
            return _issued(parts, target, machine, existing, credential, wanted, peer)
        except ConflictError:
            continue
    raise ClusterUnavailableError(f"the Lease of {machine.name} is written by others all the time; try again")


def _allowed(parts: Parts, target: Target, decision: Decision, wanted: Presented) -> Credential:
    """The credential to claim.

    Raises:
        HeldError, RefusedError: with the decision's words.
    """
    if decision.credential is None:
        if decision.alert:
            _alert(parts, wanted, decision.words)
        raise HeldError(decision.words) if decision.alert else RefusedError(decision.words)
    if decision.kind == "new" and wanted.assurance != "tpm":
        node = target.nodes.node(wanted.node)
        if node is not None and node.ready:
            raise RefusedError(f"{wanted.node} is a Ready node: only a TPM can show that it is this machine that asks")
    return decision.credential


def _issued(
    parts: Parts,
    target: Target,
    machine: Machine,
    existing: Credential | None,
    credential: Credential,
    wanted: Presented,
    peer: str,
) -> AttestAnswer:
    """The steps in order. Raises ConflictError where the Lease, or the token's id, is somebody else's by now."""
    started = parts.now_ms()
    token = mint(parts.choice)
    if existing is not None and existing.token_id is not None:
        target.tokens.delete(existing.token_id)  # whoever asks again has lost it
    lifetime = timedelta(seconds=parts.token_seconds)
    expires = started + parts.token_seconds * 1000
    claimed = target.leases.write(
        credential.model_copy(update={"token_id": token.id, "token_expires_ms": expires, "at_ms": started})
    )
    _close_window(parts, existing, wanted, started)
    _record(parts, wanted, Phase.ATTESTED, started, _proof_words(machine, wanted), peer)
    if claimed.issued == 0:
        _delete_old_node(target, claimed.node)
    at = datetime.fromtimestamp(started / 1000, UTC)
    target.tokens.create(secret_manifest(token, claimed.node, base64.b64decode(claimed.holder_spki), at, lifetime))
    try:
        target.leases.write(claimed.model_copy(update={"issued": claimed.issued + 1}))
    except ConflictError:
        target.tokens.delete(token.id)  # the Lease names another's by now, and nobody would ever find this one
        raise
    now = parts.now_ms()
    _record(parts, wanted, Phase.TOKEN_ISSUED, now, f"token {token.id}, {parts.token_seconds} s", peer)
    log.info("token issued", extra={"fields": {"machine": machine.name, "boot": wanted.boot, "token": token.id}})
    return _answer(machine, target, token, expires // 1000 * 1000, wanted.assurance, now)


def _close_window(parts: Parts, existing: Credential | None, wanted: Presented, now_ms: int) -> None:
    """The first success closes a boot window; whoever repeats it finds it closed by itself.

    Raises:
        HeldError: somebody else has closed it meanwhile.
    """
    if wanted.assurance != "nonce" or parts.enrolments.use_window(wanted.machine, wanted.window, now_ms):
        return
    if existing is None or (existing.window, existing.holder) != (wanted.window, wanted.holder):
        words = f"the boot window of {wanted.machine} was used by another machine: open another"
        _alert(parts, wanted, words)
        raise HeldError(words)


def _alert(parts: Parts, wanted: Presented, words: str) -> None:
    """What may be an attack: into the log and the machine's history. Whoever asked is refused whether or not it can be
    written down."""
    fields = {
        "machine": wanted.machine,
        "boot": wanted.boot,
        "assurance": wanted.assurance,
        "holder": wanted.holder[:12],
    }
    log.warning("alert: %s", words, extra={"fields": fields})
    said = f"{words} (assurance {wanted.assurance}, boot {wanted.boot}, key {wanted.holder[:12]})"
    try:
        parts.enrolments.alert(wanted.machine, said, parts.now_ms())
    except CannotTellError as error:
        log.warning("alert: not in the history: %s", error)


def _delete_old_node(target: Target, name: str) -> None:
    """A kubelet adopts a Node that is there, and never shows its taints."""
    node = target.nodes.node(name)
    if node is not None:
        log.info("deleting the Node of an earlier boot", extra={"fields": {"node": name, "uid": node.uid}})
        target.nodes.delete(name, node.uid)


def _record(parts: Parts, wanted: Presented, phase: Phase, at_ms: int, detail: str, peer: str) -> None:
    parts.journal(
        EventRecord(at_ms=at_ms, boot=wanted.boot, machine=wanted.machine, phase=phase, detail=detail, peer=peer)
    )


def _proof_words(machine: Machine, wanted: Presented) -> str:
    if wanted.assurance != "tpm":
        return f"by {wanted.assurance}, without a TPM"
    indices = ", ".join(sorted(machine.pcrs, key=int))
    return f"by tpm, PCR policy: {indices or 'none'}"


def taints_of(machine: Machine, assurance: AssuranceLevel) -> tuple[str, ...]:
    """With which taints the node is to register: those that are declared, and ours."""
    taints = list(machine.node.taints)
    ours = [UNCHECKED] if assurance == "tpm" else [UNCHECKED, UNATTESTED]
    keys = {_key(taint) for taint in taints}
    return (*taints, *(taint for taint in ours if _key(taint) not in keys))


def _key(taint: str) -> str:
    return taint.partition(":")[0].partition("=")[0]


def _answer(
    machine: Machine, target: Target, token: BootstrapToken, expires_ms: int, assurance: AssuranceLevel, now_ms: int
) -> AttestAnswer:
    return AttestAnswer(
        token=token.reveal(),
        expires_ms=expires_ms,
        node_name=machine.node_name,
        cluster=machine.cluster,
        apiservers=target.endpoints,
        authorities=target.authorities,
        labels=dict(machine.node.labels),
        taints=taints_of(machine, assurance),
        now_ms=now_ms,
    )
