"""The approver's decision: whose the request is, and whether that machine may have a certificate now; every word."""

import hashlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.controllers.approver.decision import (
    Approve,
    Decision,
    Deny,
    Known,
    LeaveAlone,
    decide,
    is_of_boot,
    nodes_named,
    token_of,
)
from netboot.join.certificates import MOST, BootCertificates, Issued, descends, recorded
from netboot.join.ports import Credential, Csr, Enrolment
from netboot.machines.values import Machine, Match, Node
from tests.kubelets import FIRST, KEY, THIEF, client, pem, renewal, serving, spki
from tests.records import boot_id
from tokens.binding import PREFIX
from tokens.csr import SERVING_SIGNER
from tokens.errors import TooManyError

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
    holder=hashlib.sha256(spki(KEY)).hexdigest(),
    holder_spki="",
    token_id="abc123",
    token_expires_ms=1_000_000,
    at_ms=1_000,
    ek_sha256=EK,
)
RECORD = BootCertificates(
    cluster="default", machine="gpu-001", boot=BOOT, holder=HELD.holder, generation=0, sha256={FIRST: 0}
)
KNOWN = Known("default", "gpu-001", MACHINE, ENROLLED, HELD, RECORD)
STRANGER = Known("default", "gpu-001")
ASKED = {"client": client, "renewal": renewal, "serving": serving}
SERVED = (
    "; the inventory gives machine gpu-001 the name gpu-001 and 192.0.2.7: declare what is right in its "
    "`node.addresses`"
)
ANOTHER_TPM = "machine gpu-001 proved itself by another TPM than is on record now; reboot it"
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
        (enrolled(ek_sha256="d" * 64), ANOTHER_TPM),
        (held(ek_sha256="d" * 64), ANOTHER_TPM),
        (held(ek_sha256=""), ANOTHER_TPM),
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
    by_inventory = Enrolment(machine="gpu-001", ek_sha256=EK, state="approved", source="inventory")
    assert isinstance(decide(client(), KNOWN._replace(machine=pinned, enrolment=by_inventory)), Approve)


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


LEASES = st.builds(
    lambda **written: HELD.model_copy(update=written),
    assurance=st.sampled_from(["tpm", "nonce", "address"]),
    generation=st.integers(0, 5),
    holder=st.sampled_from([HELD.holder, "e" * 64]),
    ek_sha256=st.sampled_from(["", EK, "d" * 64]),
)


@given(LEASES, st.sampled_from(["none", "pending", "approved", "retired"]), st.sampled_from([EK, "d" * 64]))
def test_whatever_an_issuer_writes_only_what_is_on_record_elsewhere_is_approved(
    written: Credential, state: str, ek_sha256: str
) -> None:
    """A broken one writes Lease, token and binding as it likes; inventory and enrolment say which TPM may join."""
    record = Enrolment.model_validate(
        {"machine": "gpu-001", "state": state, "ek_sha256": None if state == "none" else ek_sha256, "generation": 2}
    )
    right = written.assurance == "tpm" and written.ek_sha256 == ek_sha256 and written.generation >= 2
    decision = decide(client(), KNOWN._replace(enrolment=record, credential=written))
    assert isinstance(decision, Approve) == (right and state == "approved")


STRANGE = (
    f"asked for with a certificate (111111111111...) that is not on record as one of boot {BOOT}, in which machine "
    "gpu-001 proved itself last; if that is not a stolen one, reboot the machine"
)


def record(**changes: Any) -> Known:
    return KNOWN._replace(certificates=RECORD.model_copy(update=changes))


@pytest.mark.parametrize("purpose", ["renewal", "serving"])
@pytest.mark.parametrize(
    "known",
    [
        KNOWN._replace(certificates=None),
        record(sha256={"2" * 64: 0}),
        record(sha256={}),
        record(boot=boot_id("gpu-001", 2)),
        record(holder="e" * 64),
        record(generation=1),
        record(machine="gpu-002"),
        record(cluster="other"),
    ],
    ids=["nothing", "another", "none", "boot", "holder", "generation", "machine", "cluster"],
)
def test_a_certificate_of_another_boot_gets_none(purpose: str, known: Known) -> None:
    assert decide(ASKED[purpose](), known) == Deny(purpose, "NetbootOtherBoot", STRANGE)  # type: ignore[arg-type]


@pytest.mark.parametrize("purpose", ["renewal", "serving"])
def test_an_apiserver_that_does_not_say_who_asks(purpose: str) -> None:
    words = "the apiserver does not say with which certificate node gpu-001 asks (Kubernetes 1.32 and newer do)"
    asked = ASKED[purpose](credential="")
    assert decide(asked, KNOWN) == Deny(purpose, "NetbootOtherBoot", words)  # type: ignore[arg-type]
    assert decide(asked, record(sha256={"": 0})) == Deny(purpose, "NetbootOtherBoot", words)  # type: ignore[arg-type]


def test_which_certificates_are_of_a_boot() -> None:
    """That of the Lease's key, and what was asked for with one of the boot; whoever has approved it."""
    assert is_of_boot(client(), KNOWN)
    assert is_of_boot(client(), KNOWN._replace(certificates=None))
    assert not is_of_boot(client(pem=pem("gpu-001", THIEF)), KNOWN)
    assert not is_of_boot(client(pem=b"junk"), KNOWN)
    assert not is_of_boot(client(token="def456"), KNOWN), "the machine proved itself anew since, with the same key"
    for approved_ms, so in ((None, True), (HELD.at_ms - 30_000, True), (HELD.at_ms - 30_001, False)):
        assert is_of_boot(client(approved_ms=approved_ms), held(token_id=None)) is so
    assert not is_of_boot(client(), held(node="gpu-009"))
    assert not is_of_boot(client(), KNOWN._replace(credential=None))
    assert is_of_boot(renewal(pem=pem("gpu-001", THIEF)), KNOWN)
    assert not is_of_boot(renewal(credential="2" * 64), KNOWN)
    assert not is_of_boot(renewal("gpu-002"), KNOWN)
    assert not is_of_boot(renewal("gpu-002", pem=pem("gpu-001")), KNOWN)
    assert not is_of_boot(renewal(), record(boot=boot_id("gpu-001", 2)))
    assert not is_of_boot(serving(), KNOWN)


DAY_MS = 86_400_000


def certificate(number: int, since_ms: int = 0) -> Issued:
    """A day's, with that number for its fingerprint."""
    return Issued(f"{number:064x}", since_ms, 86_400)


def test_the_record_of_a_boot_is_bounded_and_ends_with_it() -> None:
    """Of those that live none makes room; those that have ended do, also for one that a signer dates back."""
    kept = None
    for number in range(MOST):
        kept = recorded(kept, HELD, certificate(number), 0) or kept
    assert kept is not None
    assert kept.sha256 == {f"{number:064x}": DAY_MS for number in range(MOST)}
    assert recorded(kept, HELD, certificate(0), 0) is None
    words = (
        f"8 certificates of node gpu-001 from boot {BOOT} are in force, and none of them makes room: what was approved "
        "beside them is not recorded, and renews nothing"
    )
    for now_ms in (0, DAY_MS - 1):
        with pytest.raises(TooManyError, match=f"^{re.escape(words)}$"):
            recorded(kept, HELD, certificate(99), now_ms)
    later = recorded(kept, HELD, certificate(99, DAY_MS - 300_000), DAY_MS)
    assert later is not None and later.sha256 == {f"{99:064x}": 2 * DAY_MS - 300_000}
    rebooted = HELD.model_copy(update={"boot": boot_id("gpu-001", 2)})
    after = recorded(kept.model_copy(update={"version": "7"}), rebooted, certificate(1), 0)
    assert after is not None
    assert (after.sha256, after.version) == ({f"{1:064x}": DAY_MS}, "7")


def test_more_certificates_in_force_than_a_kubelet_needs_renew_nothing() -> None:
    """Four at will, four more with 90 minutes between: a kubelet that dies at each start asks at each, for hours."""

    def living(number: int, latest_ms: int = 0) -> Known:
        ends = dict.fromkeys([FIRST, *"abcdefg"][:number], 2 * DAY_MS)
        return record(sha256=ends, latest_ms=latest_ms)._replace(now_ms=DAY_MS)

    def words(number: int) -> str:
        return (
            f"{number} certificates of node gpu-001 from boot {BOOT} are in force, where a kubelet has two at most: "
            "either it dies at each start (`journalctl -u kubelet`), or somebody else has its key; reboot machine "
            "gpu-001, then none of them renews"
        )

    assert decide(renewal(), living(8)) == Deny("renewal", "NetbootTooMany", words(8))
    assert isinstance(decide(serving(), living(8)), Approve)
    assert isinstance(decide(renewal(), living(8)._replace(now_ms=2 * DAY_MS)), Approve)
    assert isinstance(decide(renewal(), living(3, DAY_MS)), Approve)
    for number in (4, 7):
        recent, long_since = DAY_MS - 90 * 60_000 + 1, DAY_MS - 90 * 60_000
        assert decide(renewal(), living(number, recent)) == Deny("renewal", "NetbootTooMany", words(number))
        assert isinstance(decide(renewal(), living(number, long_since)), Approve)


BOOTS = st.builds(
    lambda number, holder, generation: HELD.model_copy(
        update={"boot": boot_id("gpu-001", number), "holder": holder * 64, "generation": generation}
    ),
    st.integers(1, 3), st.sampled_from("ab"), st.integers(0, 1),
)  # fmt: skip


@given(st.lists(st.tuples(BOOTS, st.integers(0, MOST - 1)), max_size=40), BOOTS)
def test_only_what_was_issued_since_the_lease_was_written_descends_from_it(
    events: list[tuple[Credential, int]], now: Credential
) -> None:
    """Certificates are recorded under Leases as they follow each other, a thief asks with any of them."""
    kept: BootCertificates | None = None
    for held_then, number in events:
        kept = recorded(kept, held_then, certificate(number), 0) or kept
    latest = []
    for held_then, number in reversed(events):
        if held_then != now:
            break
        latest.append(f"{number:064x}")
    allowed = {f"{number:064x}" for number in range(10) if descends(kept, now, f"{number:064x}")}
    assert allowed == set(latest)


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
RECORDED: list[dict[str, int]] = [{}, {FIRST: 0}, dict.fromkeys([FIRST, *"abcdefg"], 0)]
STATES = st.sampled_from(["none", "pending", "approved", "retired"])
FACTS = st.builds(
    Known,
    st.just("default"),
    st.sampled_from(["gpu-001", "gpu-002"]),
    st.none() | st.builds(lambda on, floor: MACHINE.model_copy(update={"enabled": on, "identity": floor}),
                          st.booleans(), st.sampled_from(["tpm", "nonce", "address"])),
    st.none() | st.builds(lambda state, generation, ek: Enrolment(
        machine="gpu-001", state=state, generation=generation, ek_sha256=ek), STATES, st.integers(0, 2),
        st.sampled_from([None, EK, "d" * 64])),
    st.none() | st.builds(lambda assurance, generation, token: HELD.model_copy(
        update={"assurance": assurance, "generation": generation, "token_id": token}),
        st.sampled_from(["tpm", "nonce", "address"]), st.integers(0, 2), st.sampled_from([None, "abc123", "zzz999"])),
    st.none() | st.builds(lambda generation, sha256: RECORD.model_copy(
        update={"generation": generation, "sha256": sha256}), st.integers(0, 2), st.sampled_from(RECORDED)),
)  # fmt: skip
GROUPS = st.lists(
    st.sampled_from(["system:nodes", PREFIX, client().groups[2], "system:authenticated"]), max_size=4
).map(tuple)
REQUESTS = st.builds(
    lambda base, username, groups, seconds, request, credential: base._replace(
        username=username, groups=groups, expiration_seconds=seconds, pem=request, credential=credential
    ),
    st.sampled_from([client(), renewal(), serving()]),
    st.sampled_from(["system:bootstrap:abc123", "system:node:gpu-001", "system:node:gpu-002", "alice", ""]),
    GROUPS,
    st.sampled_from([None, 3600, 10**8]),
    st.sampled_from([GOOD, STOLEN, OTHER, serving().pem, b"", b"junk"]),
    st.sampled_from([FIRST, "2" * 64, ""]),
)


@given(REQUESTS, FACTS)
def test_what_is_approved_is_allowed_and_what_is_denied_says_why(csr: Csr, known: Known) -> None:
    decision: Decision = decide(csr, known)
    if isinstance(decision, Approve):
        assert known.machine is not None
        assert known.machine.enabled
        assert known.enrolment is None or known.enrolment.state not in ("pending", "retired")
        if known.credential is not None and known.credential.assurance == "tpm":
            assert known.enrolment is not None
            assert known.credential.ek_sha256 == known.enrolment.ek_sha256
        assert known.credential is not None
        assert known.credential.node == known.node == nodes_named(csr)[0]
        if decision.purpose == "client":
            assert (known.credential.token_id, csr.username) == ("abc123", "system:bootstrap:abc123")
            assert csr.pem == GOOD
        else:
            assert known.certificates is not None
            assert known.certificates.is_of(known.credential)
            assert csr.credential in known.certificates.sha256
            assert decision.purpose == "serving" or len(known.certificates.sha256) < MOST
            assert csr.username == f"system:node:{known.node}"
            assert "system:nodes" in csr.groups
    elif isinstance(decision, Deny):
        reasons = {"NetbootNotBound", "NetbootForeignName", "NetbootNotAllowed", "NetbootMalformed", "NetbootOtherBoot"}
        reasons |= {"NetbootTooMany"}
        assert decision.reason in reasons
        assert decision.message
