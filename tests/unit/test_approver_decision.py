"""The approver's decision: whose the request is, and whether that machine may have a certificate now; every word."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.controllers.approver.decision import (
    REASONS,
    Approve,
    Decision,
    Deny,
    Known,
    LeaveAlone,
    decide,
    nodes_named,
    token_of,
)
from netboot.join.ports import Credential, Csr, Enrolment
from netboot.machines.values import Machine, Match, Node
from tests.kubelets import THIEF, client, pem, renewal, serving
from tests.records import boot_id
from tokens.binding import PREFIX
from tokens.csr import SERVING_SIGNER

BOOT = boot_id("gpu-001", 1)
EK = "e" * 64
MACHINE = Machine(
    name="gpu-001", match=Match(macs=("52:54:00:00:00:01",)), profile="compute", node=Node(addresses=("192.0.2.7",))
)
ENROLLED = Enrolment(machine="gpu-001", ek_sha256=EK, state="approved")
HELD = Credential(
    machine="gpu-001",
    cluster="default",
    node="gpu-001",
    assurance="tpm",
    boot=BOOT,
    holder="f" * 64,
    holder_spki="",
    token_id="abc123",
    token_expires_ms=1_000_000,
    at_ms=1_000,
)
KNOWN = Known("default", "gpu-001", MACHINE, ENROLLED, HELD)
STRANGER = Known("default", "gpu-001")
ASKED = {"client": client, "renewal": renewal, "serving": serving}
SERVED = (
    "; the inventory gives machine gpu-001 the name gpu-001 and 192.0.2.7: declare what is right in its "
    "`node.addresses`"
)
MAY_NOT = {"client": "may not join now", "renewal": "may not renew", "serving": "may not have a serving certificate"}


def machine(**changes: Any) -> Known:
    return KNOWN._replace(machine=MACHINE.model_copy(update=changes))


def enrolled(**changes: Any) -> Known:
    return KNOWN._replace(enrolment=ENROLLED.model_copy(update=changes))


def held(**changes: Any) -> Known:
    return KNOWN._replace(credential=HELD.model_copy(update=changes))


@pytest.mark.parametrize(
    ("purpose", "reason"),
    [("client", "NetbootAttested"), ("renewal", "NetbootInService"), ("serving", "NetbootOwnNames")],
)
def test_a_machine_in_service_gets_what_it_asks_for(purpose: str, reason: str) -> None:
    message = f"machine gpu-001, proven by tpm in boot {BOOT}"
    assert decide(ASKED[purpose](), KNOWN) == Approve(purpose, "gpu-001", BOOT, reason, message)  # type: ignore[arg-type]


@pytest.mark.parametrize("purpose", ASKED)
@pytest.mark.parametrize(
    ("known", "because"),
    [
        (
            KNOWN._replace(machine=None, enrolment=None),
            "the inventory has no machine of that node name in cluster default",
        ),
        (machine(enabled=False), "machine gpu-001 is disabled; set `enabled: true` in the inventory"),
        (enrolled(state="retired"), "machine gpu-001 is retired; `netboot machine approve gpu-001` brings it back"),
        (
            enrolled(state="pending"),
            "the TPM of machine gpu-001 waits for approval: `netboot machine approve gpu-001`",
        ),
        (KNOWN._replace(credential=None), "machine gpu-001 has not proven itself under that name; reboot it"),
        (held(node="gpu-009"), "machine gpu-001 has not proven itself under that name; reboot it"),
        (
            enrolled(generation=1),
            "machine gpu-001 was released, or its TPM replaced, since it proved itself; reboot it",
        ),
        (held(assurance="nonce"), "machine gpu-001 proved itself by nonce, and tpm is asked of it; reboot it"),
        (
            enrolled(state="none", ek_sha256=None),
            "machine gpu-001 has no TPM on record any more; `netboot machine enroll gpu-001`, then reboot it",
        ),
    ],
)
def test_a_machine_that_may_not_is_told_why(purpose: str, known: Known, because: str) -> None:
    message = f"node gpu-001 {MAY_NOT[purpose]}: {because}"
    assert decide(ASKED[purpose](), known) == Deny(purpose, "NetbootNotAllowed", message)  # type: ignore[arg-type]


def test_the_assurance_that_the_inventory_allows() -> None:
    nobody = Enrolment(machine="gpu-001")
    lab = MACHINE.model_copy(update={"identity": "nonce"})
    by_nonce = HELD.model_copy(update={"assurance": "nonce"})
    assert isinstance(decide(client(), KNOWN._replace(machine=lab, enrolment=nobody, credential=by_nonce)), Approve)
    by_address = HELD.model_copy(update={"assurance": "address"})
    refused = decide(client(), KNOWN._replace(machine=lab, enrolment=nobody, credential=by_address))
    assert isinstance(refused, Deny)
    assert refused.message.endswith("proved itself by address, and nonce is asked of it; reboot it")
    with_tpm = decide(client(), KNOWN._replace(machine=lab, credential=by_nonce))
    assert isinstance(with_tpm, Deny)
    assert with_tpm.message.endswith("proved itself by nonce, and tpm is asked of it; reboot it")
    pinned = MACHINE.model_copy(update={"match": Match(macs=("52:54:00:00:00:01",), ek_sha256=EK)})
    assert isinstance(decide(client(), KNOWN._replace(machine=pinned, enrolment=nobody)), Approve)


@pytest.mark.parametrize(
    ("csr", "reason", "message"),
    [
        (
            client(pem=pem("gpu-001", THIEF)),
            "NetbootNotBound",
            "the token was not issued for node gpu-001 with this key",
        ),
        (
            client("gpu-009", pem=pem("gpu-001")),
            "NetbootNotBound",
            "the token was not issued for node gpu-001 with this key",
        ),
        (
            client(token="zzz999"),
            "NetbootNotBound",
            "another token was issued to node gpu-001 since; the agent asks for a new one",
        ),
        (
            client(groups=("system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token")),
            "NetbootNotBound",
            "asked for with a bootstrap token that is not of netboot's making",
        ),
        (
            client(expiration_seconds=31_536_000),
            "NetbootMalformed",
            "expirationSeconds must be between 600 and 86400, it is 31536000",
        ),
        (
            client(pem=pem("gpu-001") * 2),
            "NetbootMalformed",
            "must be exactly one PEM block of a certificate request",
        ),
        (
            renewal("gpu-009", pem=pem("gpu-001")),
            "NetbootMalformed",
            "asked for by system:node:gpu-009, only system:node:gpu-001 may",
        ),
        (
            serving(sans=("gpu-001", "192.0.2.99")),
            "NetbootForeignName",
            f"the address 192.0.2.99 is not this machine's{SERVED}",
        ),
        (
            serving(sans=("gpu-002",)),
            "NetbootForeignName",
            f"the name gpu-002 is not this machine's{SERVED}",
        ),
    ],
)
def test_a_bent_request_is_denied_with_its_reason(csr: Csr, reason: str, message: str) -> None:
    decision = decide(csr, KNOWN)
    assert isinstance(decision, Deny)
    assert (decision.reason, decision.message) == (reason, message)


@pytest.mark.parametrize(
    ("csr", "known", "why"),
    [
        (client(decided=True), KNOWN, "decided already"),
        (client(signer="kubernetes.io/kube-apiserver-client"), KNOWN, "not a kubelet's request"),
        (client(signer="example.com/own"), KNOWN, "not a kubelet's request"),
        (client(signer=SERVING_SIGNER), KNOWN, "not a kubelet's request"),
        (client(username="alice", groups=("system:masters",)), KNOWN, "not a kubelet's request"),
        (client(username="system:serviceaccount:a:b"), KNOWN, "not a kubelet's request"),
        (renewal("control-1"), Known("default", "control-1"), "not of a machine of ours"),
        (serving("control-1"), Known("default", "control-1"), "not of a machine of ours"),
        (
            client("worker-9", groups=("system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token")),
            Known("default", "worker-9"),
            "not of a machine of ours",
        ),
    ],
)
def test_what_is_not_ours_is_left_alone(csr: Csr, known: Known, why: str) -> None:
    assert decide(csr, known) == LeaveAlone(why)


def test_our_token_for_a_machine_that_there_is_not_is_denied() -> None:
    decision = decide(client("nobody"), Known("default", "nobody"))
    assert decision == Deny(
        "client",
        "NetbootNotAllowed",
        "node nobody may not join now: the inventory has no machine of that node name in cluster default",
    )
    unreadable = decide(client(pem=b"\x00"), Known("default", ""))
    assert unreadable == Deny("client", "NetbootMalformed", "must be exactly one PEM block of a certificate request")


def test_a_token_that_has_expired_meanwhile() -> None:
    words = "the token of node gpu-001 has expired; the agent asks for a new one"
    assert decide(client(), held(token_id=None)) == Deny("client", "NetbootNotBound", words)


def test_the_nodes_and_the_token_that_a_request_names() -> None:
    assert nodes_named(client()) == ("gpu-001",)
    assert nodes_named(renewal("gpu-009", pem=pem("gpu-001"))) == ("gpu-001", "gpu-009")
    assert nodes_named(renewal(pem=b"")) == ("gpu-001",)
    assert nodes_named(client(pem=b"")) == ()
    assert token_of(client()) == "abc123"
    for other in (renewal(), client(groups=("system:bootstrappers",)), client(username="system:bootstrap:abc123x")):
        assert token_of(other) is None


GOOD, STOLEN, OTHER = pem("gpu-001"), pem("gpu-001", THIEF), pem("gpu-002")
STATES = st.sampled_from(["none", "pending", "approved", "retired"])
FACTS = st.builds(
    Known,
    st.just("default"),
    st.sampled_from(["gpu-001", "gpu-002"]),
    st.none() | st.builds(lambda on, floor: MACHINE.model_copy(update={"enabled": on, "identity": floor}),
                          st.booleans(), st.sampled_from(["tpm", "nonce", "address"])),
    st.none() | st.builds(lambda state, generation, ek: Enrolment(
        machine="gpu-001", state=state, generation=generation, ek_sha256=ek), STATES, st.integers(0, 2),
        st.sampled_from([None, EK])),
    st.none() | st.builds(lambda assurance, generation, token: HELD.model_copy(
        update={"assurance": assurance, "generation": generation, "token_id": token}),
        st.sampled_from(["tpm", "nonce", "address"]), st.integers(0, 2), st.sampled_from([None, "abc123", "zzz999"])),
)  # fmt: skip
GROUPS = st.lists(
    st.sampled_from(["system:nodes", PREFIX, client().groups[2], "system:authenticated"]), max_size=4
).map(tuple)
REQUESTS = st.builds(
    lambda base, username, groups, seconds, request: base._replace(
        username=username, groups=groups, expiration_seconds=seconds, pem=request
    ),
    st.sampled_from([client(), renewal(), serving()]),
    st.sampled_from(["system:bootstrap:abc123", "system:node:gpu-001", "system:node:gpu-002", "alice", ""]),
    GROUPS,
    st.sampled_from([None, 3600, 10**8]),
    st.sampled_from([GOOD, STOLEN, OTHER, serving().pem, b"", b"junk"]),
)


@given(REQUESTS, FACTS)
def test_what_is_approved_is_allowed_and_what_is_denied_says_why(csr: Csr, known: Known) -> None:
    decision: Decision = decide(csr, known)
    if isinstance(decision, Approve):
        assert known.machine is not None
        assert known.machine.enabled
        assert known.enrolment is None or known.enrolment.state not in ("pending", "retired")
        assert known.credential is not None
        assert known.credential.node == known.node == nodes_named(csr)[0]
        if decision.purpose == "client":
            assert (known.credential.token_id, csr.username) == ("abc123", "system:bootstrap:abc123")
            assert csr.pem == GOOD
        else:
            assert csr.username == f"system:node:{known.node}"
            assert "system:nodes" in csr.groups
    elif isinstance(decision, Deny):
        assert decision.reason in REASONS
        assert decision.message
