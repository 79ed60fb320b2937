"""The approver's loop over a cluster in memory: what it does in which order, and what it survives."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from netboot.controllers import reflector
from netboot.controllers.approver import approver
from netboot.controllers.approver.approver import Approver
from netboot.controllers.approver.knowledge import Knowledge, Machines
from netboot.join.enrolment import Act, Retire
from netboot.join.errors import RefusedError
from tests.approvers import BOOT, FixedClock, Stage, staged
from tests.enrolments import MemoryEnrolments
from tests.kubelets import THIEF, client, pem, renewal, serving, signed
from tests.processes import wait_for
from tests.records import START


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with staged(monkeypatch) as made:
        yield made


@pytest.fixture
def one_look(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """All requests are looked at once, and followed then: a second look may find one that is just being seen to, and
    then it is seen to twice, which changes nothing but the calls."""
    monkeypatch.setattr(reflector, "SHORT_SECONDS", 60.0)


@pytest.mark.usefixtures("one_look")
def test_from_the_request_to_the_end_of_its_token(stage: Stage) -> None:
    stage.approver()
    csr = stage.cluster.submit(client())
    assert stage.decision(csr) == ("Approved", "NetbootAttested", f"machine gpu-001, proven by tpm in boot {BOOT}")
    wait_for(lambda: not stage.cluster.secrets)
    assert [(one.machine, one.boot, one.phase, one.detail) for one in stage.facts.records] == [
        ("gpu-001", BOOT, "CSRApproved", "certificate request netboot-gpu-001-abc123")
    ]
    calls = [one.split()[0] for one in stage.cluster.calls if one.split()[0] in ("requests.approve", "tokens.delete")]
    assert calls == ["requests.approve", "tokens.delete"]


def test_the_token_stays_until_its_certificate_is_there(stage: Stage) -> None:
    """The agent fetches its certificate with the token; a controller-manager signs some twenty a second."""
    stage.cluster.sign = False
    stage.approver()
    csr = stage.cluster.submit(client())
    stage.decision(csr)
    wait_for(lambda: stage.facts.records)
    assert "abc123" in stage.cluster.secrets
    stage.cluster.submit(stage.cluster.request(csr.name)._replace(certificate=signed(csr, 86_400), version="900"))
    wait_for(lambda: not stage.cluster.secrets)


def test_a_denial_leaves_the_owner_s_token_alone(stage: Stage) -> None:
    approver = stage.approver()
    thief = stage.cluster.submit(client(name="thief", uid="thief", pem=pem("gpu-001", THIEF)))
    words = "the token was not issued for node gpu-001 with this key"
    assert stage.decision(thief) == ("Denied", "NetbootNotBound", words)
    assert "abc123" in stage.cluster.secrets
    assert stage.decision(stage.cluster.submit(client()))[0] == "Approved"
    wait_for(lambda: ("denied", "NetbootNotBound", 1) in approver.status().decided)


def test_renewals_and_serving_certificates(stage: Stage) -> None:
    stage.approver()
    first = stage.join()
    assert stage.decision(stage.cluster.submit(serving(credential=first)))[:2] == ("Approved", "NetbootOwnNames")
    renewed = stage.cluster.submit(renewal(credential=first, pem=pem("gpu-001", THIEF)))
    assert stage.decision(renewed)[:2] == ("Approved", "NetbootInService")
    wait_for(lambda: len(stage.on_record) == 2)
    second = stage.cluster.submit(renewal(name="second", uid="second", credential=stage.on_record[-1]))
    assert stage.decision(second)[0] == "Approved"
    stage.enrolments.apply([("gpu-001", Retire())], Act(), START)
    again = stage.cluster.submit(renewal(name="again", uid="again"))
    assert stage.decision(again) == (
        "Denied",
        "NetbootNotAllowed",
        "node gpu-001 may not renew: machine gpu-001 is retired; `netboot machine approve gpu-001` brings it back",
    )
    assert [fact.detail for fact in stage.facts.records] == ["certificate request netboot-gpu-001-abc123"]


def test_a_machine_that_left_the_inventory_does_not_renew(stage: Stage) -> None:
    held = stage.cluster.credentials["default", "gpu-001"]
    gone = held.model_copy(update={"machine": "gone", "node": "gone-node", "version": ""})
    stage.cluster.leases.write(gone)
    stage.approver()
    assert stage.decision(stage.cluster.submit(renewal("gone-node"))) == (
        "Denied",
        "NetbootNotAllowed",
        "node gone-node may not renew: the inventory has no machine of that node name in cluster default",
    )


def test_others_are_left_alone(stage: Stage) -> None:
    approver = stage.approver()
    kubeadm = ("system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token")
    others = [
        renewal("control-1"),
        serving("other"),
        client("worker-9", groups=kubeadm, username="system:bootstrap:zz"),
    ]
    for one in others:
        stage.cluster.submit(one)
    stage.decision(stage.cluster.submit(client()))
    wait_for(lambda: approver.status().waiting == 0)
    assert set(stage.cluster.decisions) == {client().name}


@pytest.mark.usefixtures("one_look")
def test_killed_between_approve_and_delete(stage: Stage) -> None:
    """What an approver that died has left: approved and signed, the token there, nothing written down."""
    csr = stage.cluster.submit(client())
    stage.cluster.requests.approve(csr, "NetbootAttested", "by one that died")
    stage.approver()
    wait_for(lambda: not stage.cluster.secrets)
    wait_for(lambda: stage.facts.records)
    assert stage.called("requests.approve") == 1
    stage.running[0].stop()
    stage.approver()  # and once more: nothing changes but that the record is there twice, which the trace takes once
    wait_for(lambda: stage.called("tokens.delete") == 2)


def test_a_damaged_lease_costs_the_record_of_a_finished_request_and_nothing_else(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As after an update that cannot read Leases of before: the token goes, and nobody asks again for ever."""
    csr = stage.cluster.submit(client())
    stage.cluster.requests.approve(csr, "NetbootAttested", "by one that died")

    def damaged(_cluster: str, _machine: str) -> None:
        raise RefusedError("the Lease netboot/a is damaged")

    monkeypatch.setattr(stage.cluster.leases, "read", damaged)
    stage.approver()
    wait_for(lambda: f"{csr.name}: not recorded: the Lease netboot/a is damaged" in caplog.text)
    assert not stage.cluster.secrets
    assert stage.facts.records == []
    assert "a defect" not in caplog.text


def test_an_answer_that_was_lost(stage: Stage) -> None:
    """The approval took effect and its answer did not arrive: trying again conflicts, and the watch tells the rest."""
    stage.approver()
    wait_for(lambda: stage.called("requests.watch"))
    stage.cluster.fail_next = 1
    csr = stage.cluster.submit(client())
    assert stage.decision(csr)[0] == "Approved"
    wait_for(lambda: not stage.cluster.secrets)
    wait_for(lambda: stage.facts.records)


@pytest.mark.usefixtures("one_look")
def test_somebody_else_was_faster(stage: Stage) -> None:
    csr = client()
    stage.cluster.before["requests.approve"] = lambda: void(stage.cluster.touch(csr.name))
    stage.approver()
    stage.cluster.submit(csr)
    assert stage.decision(csr)[0] == "Approved"
    assert stage.called("requests.approve") == 2


def void(_value: object) -> None:
    """For callables of which nobody wants the answer."""


def test_an_apiserver_that_goes_away_and_comes_back(stage: Stage) -> None:
    approver = stage.approver()
    wait_for(lambda: approver.status().ok)
    stage.cluster.down = "the apiserver does not answer"
    stage.cluster.submit(client())
    wait_for(lambda: approver.status().message == "the apiserver does not answer")
    assert stage.cluster.decisions == {}
    before = stage.called("requests.watch")
    stage.cluster.down = ""
    stage.decision(client())
    wait_for(lambda: approver.status().ok)
    status = approver.status()
    assert status.unavailable >= 1
    assert before < 400


@pytest.mark.parametrize(
    ("breaks", "mends"),
    [
        (lambda s: setattr(s, "connecting", "there is no kubeconfig"), lambda s: setattr(s, "connecting", "")),
        (lambda s: setattr(s, "published", False), lambda s: setattr(s, "published", True)),
    ],
)
def test_what_cannot_be_told_is_neither_approved_nor_denied(
    stage: Stage, breaks: Callable[[Stage], None], mends: Callable[[Stage], None]
) -> None:
    breaks(stage)
    approver = stage.approver()
    csr = stage.cluster.submit(client())
    wait_for(lambda: approver.status().unavailable >= 2)
    assert stage.cluster.decisions == {}
    mends(stage)
    assert stage.decision(csr)[0] == "Approved"


def test_a_full_disk_keeps_nobody_out_and_loses_no_record(stage: Stage) -> None:
    stage.facts.failure = "no space left"
    approver = stage.approver()
    csr = stage.cluster.submit(client())
    assert stage.decision(csr)[0] == "Approved"
    wait_for(lambda: not stage.cluster.secrets)
    wait_for(lambda: approver.status().unavailable >= 1)
    stage.facts.failure = None
    wait_for(lambda: stage.facts.records)
    wait_for(lambda: stage.facts.certificates)


def test_each_client_certificate_of_a_boot_is_written_down_and_no_other(stage: Stage) -> None:
    """By them the gate tells whose report it is."""
    stage.approver()
    first = stage.join()
    stage.decision(stage.cluster.submit(serving(credential=first)))
    assert stage.decision(stage.cluster.submit(renewal(credential=first)))[:2] == ("Approved", "NetbootInService")
    wait_for(lambda: len(stage.facts.certificates) == 2)
    assert [(one.machine, one.boot, one.sha256) for one in stage.facts.certificates] == [
        ("gpu-001", BOOT, sha256) for sha256 in stage.on_record
    ]
    record = stage.cluster.certificates.records["default", "gpu-001"]
    assert {one.sha256: one.until_ms for one in stage.facts.certificates} == record.sha256


def defeated(stage: Stage, harmless: threading.Event) -> Approver:
    """An approver that meets a defect with each request of a known machine until it is `harmless`."""

    class Poisoned(MemoryEnrolments):
        def of(self, machine: str) -> Any:
            if not harmless.is_set():
                raise ZeroDivisionError
            return stage.enrolments.of(machine)

    knowledge = Knowledge("default", Machines("default", stage.view), Poisoned(), FixedClock().now_ms)
    one = Approver("default", stage.connect, knowledge, stage.facts, FixedClock())
    stage.running.append(one)
    one.start()
    return one


def test_one_request_that_defeats_us_holds_up_no_other_and_is_said(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(approver, "DEFECTS", 1_000_000)  # five take a tenth of a second here, and no round follows soon
    harmless = threading.Event()
    one = defeated(stage, harmless)
    defeats = stage.cluster.submit(client())
    others = [stage.cluster.submit(client("other-1", name=name, uid=name)) for name in ("second", "third")]
    assert [stage.decision(csr)[0] for csr in others] == ["Denied", "Denied"]
    wait_for(lambda: one.status().message == "a defect; see the log")
    assert not one.status().ok
    assert f"certificate request {defeats.name}: a defect" in caplog.text
    harmless.set()
    assert stage.decision(defeats)[0] == "Approved"
    wait_for(lambda: one.status().ok)


@pytest.mark.usefixtures("one_look")
def test_a_request_that_defeats_us_for_good_is_left_to_the_next_round_and_forgotten_with_the_request(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approver, "DEFECTS", 1)
    one = defeated(stage, threading.Event())
    stage.cluster.submit(client())
    wait_for(lambda: one.status().waiting == 0 and one.status().message == "a defect; see the log")
    one._defects._monotonic = lambda: time.monotonic() + approver.DEFECT_SECONDS  # as long afterwards
    assert one.status().ok


def test_a_storm(stage: Stage) -> None:
    """Five hundred at once, most of them of nobody: each is decided once."""
    approver = stage.approver()
    at_first = approver.status().decided
    assert {count for _, _, count in at_first} == {0}, "each is there before its first time, which is a rise then"
    assert ("denied", "NetbootTooMany", 0) in at_first
    for number in range(500):
        stage.cluster.submit(client(f"n{number}", f"{number:06}", name=f"n{number}", uid=f"n{number}"))
    wait_for(lambda: len(stage.cluster.decisions) == 500)
    wait_for(lambda: approver.status().waiting == 0)
    assert [each for each in approver.status().decided if each[2]] == [("denied", "NetbootNotAllowed", 500)]
