"""From a decision to a token: every step can fail, and beginning again after any of them is safe.

Look whether the Node that the boot before left may be deleted, claim the Lease (with the token's id in it), delete the
Node, make the Secret, count it in the Lease, write it down, answer. What was counted was handed out; what was only
claimed was not, so no Node can be of it.
"""

import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from netboot.join.credential import Decision, Presented, decide_credential
from netboot.join.errors import ClusterUnavailableError, ConflictError, HeldError, RefusedError
from netboot.join.labels import registered
from netboot.join.messages import AttestAnswer
from netboot.join.ports import AlertKind, ClusterAccess, Credential, Enrolments
from netboot.join.taints import delete_old_node, old_node, taints_of, wanted
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.intents import Intent, Intents, marks_of
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.transitions import Mark
from netboot.machines.values import Machine
from tokens.bootstrap import BootstrapToken, mint, secret_manifest

log = logging.getLogger(__name__)

ATTEMPTS = 4
"""At a Lease that somebody else keeps writing, before the machine is told to come back."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """What issuing a token needs, whoever asks for it: a machine that proved itself, or an operator.

    `clusters`: a look-up may raise ClusterUnavailableError. `journal` returns when the record is durable; None: this
    process keeps no journal, and what it issues stands in the audit log and in the machine's history alone. `now_ms`:
    since 1970. `choice`: one character of these, that nobody can foresee.
    """

    clusters: Mapping[str, ClusterAccess]
    enrolments: Enrolments
    intents: Intents
    journal: Callable[[EventRecord], None] | None
    now_ms: Callable[[], int]
    choice: Callable[[str], str]

    def cluster_of(self, machine: Machine) -> ClusterAccess:
        """The cluster that a machine is declared for.

        Raises:
            RefusedError: the configuration does not have it. ClusterUnavailableError: it cannot be used now.
        """
        cluster = self.clusters.get(machine.cluster)
        if cluster is None:
            raise RefusedError(
                f"{machine.name} is of cluster {machine.cluster}, which this service does not know: add "
                f"`clusters.{machine.cluster}` to netboot.yaml"
            )
        return cluster


def issue(
    issuer: Issuer,
    machine: Machine,
    present: Callable[[Credential | None], Presented],
    token_seconds: int,
    peer: str,
    quote: str = "",
) -> AttestAnswer:
    """A token for what `present` returns, which is asked again whenever the Lease was found to say something else.

    `token_seconds`: how long the token lives. For the journal: `peer`, the address that asked; `quote`: hex SHA-256 of
    what its TPM signed.

    Raises:
        HeldError, RefusedError: another credential stands in the way, or quarantine does. CordonedError: somebody
        cordoned the Node, and the machine is not held for it yet. CannotTellError, NodeKeptError: try again.
    """
    cluster = issuer.cluster_of(machine)
    stands = wanted(issuer.intents, machine.name, issuer.now_ms())
    for _ in range(ATTEMPTS):
        existing = cluster.leases.read(machine.cluster, machine.name)
        presented = present(existing)
        decision = decide_credential(existing, presented, issuer.now_ms())
        credential = _allowed(issuer, cluster, decision, presented.asked)
        taints = taints_of(machine, presented.asked.assurance, held=Mark.HELD in marks_of(stands))
        attempt = _Attempt(
            issuer, cluster, machine, existing, presented.asked, stands, taints, token_seconds, peer, quote
        )
        try:
            return attempt.issued(credential)
        except ConflictError:
            continue
    raise ClusterUnavailableError(f"the Lease of {machine.name} is written by others all the time; try again")


def _allowed(issuer: Issuer, cluster: ClusterAccess, decision: Decision, asked: Credential) -> Credential:
    """The credential to claim.

    Raises:
        HeldError, RefusedError: with the decision's message.
    """
    if decision.credential is None:
        if decision.alert:
            _alert(issuer, asked, decision.alert, decision.message)
        raise HeldError(decision.message) if decision.alert else RefusedError(decision.message)
    if decision.credential.issued == 0:
        node = old_node(cluster, asked.node)
        if decision.kind == "new" and asked.assurance != "tpm" and node is not None and node.ready:
            raise RefusedError(f"{asked.node} is a Ready node: only a TPM can show that it is this machine that asks")
    return decision.credential


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One go at the steps in order, against a Lease as it was read (`existing`)."""

    issuer: Issuer
    cluster: ClusterAccess
    machine: Machine
    existing: Credential | None
    asked: Credential
    stands: Sequence[Intent]
    taints: tuple[str, ...]
    token_seconds: int
    peer: str
    quote: str

    def issued(self, credential: Credential) -> AttestAnswer:
        """The answer with the token.

        Raises:
            ConflictError: the Lease, or the token's id, is somebody else's by now.
        """
        issuer, cluster, asked = self.issuer, self.cluster, self.asked
        started = issuer.now_ms()
        token = mint(issuer.choice)
        if self.existing is not None and self.existing.token_id is not None:
            cluster.tokens.delete(self.existing.token_id)  # whoever asks again has lost it
        expires = started + self.token_seconds * 1000
        claim = {"token_id": token.id, "token_expires_ms": expires, "at_ms": started}
        claimed = cluster.leases.write(credential.model_copy(update={**claim, "taints": ",".join(self.taints)}))
        self._close_window(started)
        self._record(Phase.ATTESTED, started, _proof_words(self.machine, asked), self.quote)
        if claimed.issued == 0:
            delete_old_node(cluster, self.machine.name, claimed.node, self.stands)
        at, lifetime = datetime.fromtimestamp(started / 1000, UTC), timedelta(seconds=self.token_seconds)
        spki = base64.b64decode(claimed.holder_spki)
        cluster.tokens.create(secret_manifest(token, claimed.node, spki, at, lifetime))
        try:
            cluster.leases.write(claimed.model_copy(update={"issued": claimed.issued + 1}))
        except ConflictError:
            cluster.tokens.delete(token.id)  # the Lease names another's by now, and nobody would ever find this one
            raise
        now = issuer.now_ms()
        self._record(Phase.TOKEN_ISSUED, now, f"token {token.id}, {self.token_seconds} s")
        fields = {"machine": self.machine.name, "boot": asked.boot, "token": token.id}
        log.info("token issued", extra={"fields": fields})
        return _answer(self.machine, cluster, token, expires // 1000 * 1000, self.taints, now)

    def _close_window(self, now_ms: int) -> None:
        """The first success closes a boot window; whoever repeats it finds it closed by itself.

        Raises:
            HeldError: somebody else has closed it meanwhile.
        """
        asked, existing = self.asked, self.existing
        if asked.assurance != "nonce":
            return
        if self.issuer.enrolments.use_window(asked.machine, asked.window, now_ms):
            return
        if existing is None or (existing.window, existing.holder) != (asked.window, asked.holder):
            message = f"the boot window of {asked.machine} was used by another machine: open another"
            _alert(self.issuer, asked, "window-used", message)
            raise HeldError(message)

    def _record(self, phase: Phase, at_ms: int, detail: str, sha256: str = "") -> None:
        if self.issuer.journal is not None:
            named = {"boot": self.asked.boot, "machine": self.asked.machine, "peer": self.peer}
            fact = {"at_ms": at_ms, "phase": phase, "detail": detail, "sha256": sha256}
            self.issuer.journal(EventRecord.model_validate(named | fact))


def _alert(issuer: Issuer, asked: Credential, kind: AlertKind, message: str) -> None:
    """What may be an attack: into the log and the machine's alerts. Whoever asked is refused whether or not it can be
    written down."""
    fields = {
        "machine": asked.machine,
        "kind": kind,
        "boot": asked.boot,
        "assurance": asked.assurance,
        "holder": asked.holder[:12],
    }
    log.warning("alert: %s", message, extra={"fields": fields})
    entry = f"{message} (assurance {asked.assurance}, boot {asked.boot}, key {asked.holder[:12]})"
    try:
        issuer.enrolments.alert(asked.machine, kind, entry, issuer.now_ms())
    except CannotTellError as error:
        log.warning("alert: not written down: %s", error)


def _proof_words(machine: Machine, asked: Credential) -> str:
    if asked.assurance != "tpm":
        return f"by {asked.assurance}, without a TPM"
    indices = ", ".join(sorted(machine.pcrs, key=int))
    return f"by tpm, PCR policy: {indices or 'none'}"


def _answer(
    machine: Machine,
    cluster: ClusterAccess,
    token: BootstrapToken,
    expires_ms: int,
    taints: tuple[str, ...],
    now_ms: int,
) -> AttestAnswer:
    return AttestAnswer(
        token=token.reveal(),
        expires_ms=expires_ms,
        node_name=machine.node_name,
        cluster=machine.cluster,
        apiservers=cluster.endpoints,
        authorities=cluster.authorities,
        labels=registered(machine),
        taints=taints,
        now_ms=now_ms,
    )
