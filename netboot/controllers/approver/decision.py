"""Whether a node gets its certificate: a pure function of the request and of what is known of the machine.

The form of requests is `tokens.csr`'s; here it is whose they are, and whether that machine may have one now.
"""

import hashlib
import re
from contextlib import suppress
from typing import Literal, NamedTuple

from netboot.join.certificates import BootCertificates, descends, require_room
from netboot.join.identify import has_tpm
from netboot.join.ports import Credential, Csr, Enrolment
from netboot.join.preconditions import CLOCK_REFUSE_MS
from netboot.machines.values import AssuranceLevel, Machine, weaker
from tokens.binding import PREFIX
from tokens.csr import CLIENT_SIGNER, SERVING_SIGNER, Request, check_client, check_renewal, check_serving, node_of
from tokens.errors import BindingError, CsrError, ForeignNameError, NotAllowedError, OtherBootError, TooManyError
from tokens.pkcs10 import read

Purpose = Literal["client", "renewal", "serving"]
_TOKEN = "system:bootstrap:"  # noqa: S105 - the beginning of a user's name
_NODE = "system:node:"
MALFORMED, OTHER_BOOT, TOO_MANY = "NetbootMalformed", "NetbootOtherBoot", "NetbootTooMany"
REASONS: dict[type[CsrError], str] = {
    BindingError: "NetbootNotBound",
    ForeignNameError: "NetbootForeignName",
    NotAllowedError: "NetbootNotAllowed",
    OtherBootError: OTHER_BOOT,
    TooManyError: TOO_MANY,
}
APPROVED: dict[Purpose, str] = {
    "client": "NetbootAttested",
    "renewal": "NetbootInService",
    "serving": "NetbootOwnNames",
}


class Known(NamedTuple):
    """What is known of the machine that a request concerns; `node`: under which name it was looked for.

    `machine` None: the inventory has none of that node name in this cluster. `credential`: its Lease.
    `certificates`: which client certificates the approver has written down. `now_ms`: when all this was so.
    """

    cluster: str
    node: str
    machine: Machine | None = None
    enrolment: Enrolment | None = None
    credential: Credential | None = None
    certificates: BootCertificates | None = None
    now_ms: int = 0

    @property
    def ours(self) -> bool:
        """Whether it is, or was, a machine of ours."""
        return self.machine is not None or self.credential is not None


class Approve(NamedTuple):
    """`machine` and `boot`: what the Lease says; `reason` and `message` go into the request's condition."""

    purpose: Purpose
    machine: str
    boot: str
    reason: str
    message: str


class Deny(NamedTuple):
    """`message`: for the operator, and for the agent's console."""

    purpose: Purpose
    reason: str
    message: str


class LeaveAlone(NamedTuple):
    """Decided already, or not ours to answer: no kubelet's request, or not of a machine of ours."""

    why: str


Decision = Approve | Deny | LeaveAlone


def purpose_of(csr: Csr) -> Purpose | None:
    """What it is for; None: another signer's, or asked for by somebody who is neither a node nor a bootstrap token."""
    if csr.signer == CLIENT_SIGNER and csr.username.startswith(_TOKEN):
        return "client"
    if csr.username.startswith(_NODE) and csr.signer in (CLIENT_SIGNER, SERVING_SIGNER):
        return "renewal" if csr.signer == CLIENT_SIGNER else "serving"
    return None


def token_of(csr: Csr) -> str | None:
    """The id of the token of our making with which it was asked for."""
    match = re.fullmatch(_TOKEN + "([a-z0-9]{6})", csr.username)
    return match[1] if match and PREFIX in csr.groups else None


def is_of_boot(csr: Csr, known: Known) -> bool:
    """Whether the client certificate of this request is one of the boot that the machine's Lease names: it is for the
    key of the Lease and asked for since that was written, or asked for with a certificate of that boot."""
    credential = known.credential
    if credential is None or credential.node != known.node:
        return False
    try:
        asked = read(csr.pem)
    except CsrError:
        return False
    purpose = purpose_of(csr)
    if asked.node != known.node or purpose is None or purpose == "serving":
        return False
    if purpose == "client":
        return hashlib.sha256(asked.spki).hexdigest() == credential.holder and _since(csr, credential)
    return csr.username == _NODE + known.node and descends(known.certificates, credential, csr.credential)


def _since(csr: Csr, credential: Credential) -> bool:
    """Whether it was asked for under the Lease as it is: a machine may prove itself anew with the same key."""
    if credential.token_id is not None:
        return token_of(csr) == credential.token_id
    return csr.approved_ms is None or csr.approved_ms >= credential.at_ms - CLOCK_REFUSE_MS


def nodes_named(csr: Csr) -> tuple[str, ...]:
    """The nodes that it concerns: the one in its subject, where that can be read, and the one who asks."""
    names = []
    with suppress(CsrError):
        names.append(node_of(_request(csr)))
    if csr.username.startswith(_NODE):
        names.append(csr.username.removeprefix(_NODE))
    return tuple(dict.fromkeys(names))


def decide(csr: Csr, known: Known) -> Decision:
    """What becomes of the request. `known`: of the first of `nodes_named` that is ours, or of none.

    Whose it is not, it is left alone: another approver's, or nobody's, which is no certificate either.
    """
    purpose = purpose_of(csr)
    if csr.decided:
        return LeaveAlone("decided already")
    if purpose is None:
        return LeaveAlone("not a kubelet's request")
    if not known.ours and not (purpose == "client" and PREFIX in csr.groups):
        return LeaveAlone("not of a machine of ours")
    try:
        return _approve(csr, purpose, known)
    except CsrError as error:
        return Deny(purpose, REASONS.get(type(error), MALFORMED), str(error) + _remedy(error, known))


def _approve(csr: Csr, purpose: Purpose, known: Known) -> Approve:
    request, machine, because = _request(csr), known.machine, why_not(known)
    allowed = not because
    if purpose == "client":
        check_client(request, allowed=allowed, because=because)
        _check_token(csr, known)
    elif purpose == "renewal":
        check_renewal(request, allowed=allowed, because=because)
    else:
        addresses = machine.node.addresses if machine is not None else ()
        check_serving(request, names={known.node}, addresses=addresses, allowed=allowed, because=because)
    credential = known.credential
    assert credential is not None  # or it is not allowed
    if purpose != "client":
        _check_descent(csr, known.certificates, credential)
    if purpose == "renewal":
        require_room(known.certificates, credential, known.now_ms)
    message = f"machine {credential.machine}, proven by {credential.assurance} in boot {credential.boot}"
    return Approve(purpose, credential.machine, credential.boot, APPROVED[purpose], message)


def why_not(known: Known) -> str:
    """Why the machine may have no certificate now, with the remedy; "": it may."""
    machine, enrolment, credential = known.machine, known.enrolment, known.credential
    if machine is None:
        return f"the inventory has no machine of that node name in cluster {known.cluster}"
    name = machine.name
    enrolled = enrolment or Enrolment(machine=name)
    if not machine.enabled:
        return f"machine {name} is disabled; set `enabled: true` in the inventory"
    if enrolled.state == "retired":
        return f"machine {name} is retired; `netboot machine approve {name}` brings it back"
    if enrolled.state == "pending":
        return f"the TPM of machine {name} waits for approval: `netboot machine approve {name}`"
    if credential is None or credential.node != known.node:
        return f"machine {name} has not proven itself under that name; reboot it"
    if credential.generation < enrolled.generation:
        return f"machine {name} was released, or its TPM replaced, since it proved itself; reboot it"
    return _assurance(machine, enrolled, credential)


def _assurance(machine: Machine, enrolled: Enrolment, credential: Credential) -> str:
    """A machine with a TPM on record is never on a lower assurance level, whatever its policy."""
    name, on_record = machine.name, has_tpm(machine, enrolled)
    floor: AssuranceLevel = "tpm" if on_record else machine.identity
    if weaker(credential.assurance, floor):
        return f"machine {name} proved itself by {credential.assurance}, and {floor} is asked of it; reboot it"
    if credential.assurance == "tpm" and not on_record:
        return f"machine {name} has no TPM on record any more; `netboot machine enroll {name}`, then reboot it"
    if credential.assurance == "tpm" and credential.ek_sha256 != enrolled.approved_ek:
        return f"machine {name} proved itself by another TPM than is on record now; reboot it"
    return ""


def _check_descent(csr: Csr, certificates: BootCertificates | None, credential: Credential) -> None:
    """A name is no proof: whoever asks with a certificate of an earlier boot, or from before a release, is a thief."""
    node, boot = credential.node, credential.boot
    if not csr.credential:
        raise OtherBootError(
            f"the apiserver does not say with which certificate node {node} asks (Kubernetes 1.32 and newer do)"
        )
    if not descends(certificates, credential, csr.credential):
        raise OtherBootError(
            f"asked for with a certificate ({csr.credential[:12]}...) that is not on record as one of boot {boot}, in "
            f"which machine {credential.machine} proved itself last; if that is not a stolen one, reboot the machine"
        )


def _check_token(csr: Csr, known: Known) -> None:
    latest = known.credential.token_id if known.credential is not None else None
    if latest is None:
        raise BindingError(f"the token of node {known.node} has expired; the agent asks for a new one")
    if latest != token_of(csr):
        raise BindingError(f"another token was issued to node {known.node} since; the agent asks for a new one")


def _remedy(error: CsrError, known: Known) -> str:
    if not isinstance(error, ForeignNameError) or known.machine is None:
        return ""
    addresses = ", ".join(known.machine.node.addresses) or "no address"
    return (
        f"; the inventory gives machine {known.machine.name} the name {known.node} and {addresses}: "
        "declare what is right in its `node.addresses`"
    )


def _request(csr: Csr) -> Request:
    return Request(
        signer=csr.signer,
        username=csr.username,
        groups=frozenset(csr.groups),
        usages=csr.usages,
        expiration_seconds=csr.expiration_seconds,
        pem=csr.pem,
    )
