"""Approvers of which one leads, over a cluster in memory: who follows sees everything, and changes nothing."""

from collections.abc import Iterator
from functools import partial

import pytest

from netboot.controllers.approver import approver
from netboot.controllers.approver.approver import Approver
from netboot.join.errors import NotLeadingError
from tests.approvers import BOOT, MemoryFacts, Stage, staged
from tests.kubelets import client, renewal, signed
from tests.processes import wait_for

WRITES = ("requests.approve", "requests.deny", "tokens.delete", "certificates.write", "certificates.write_signing")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(approver, "ROUND_SECONDS", 0.2)
    with staged(monkeypatch) as made:
        yield made


class Replicas:
    """Two, of which one leads, or none."""

    def __init__(self, stage: Stage) -> None:
        self.leader = ""
        self.facts = {name: MemoryFacts() for name in "ab"}
        self.approvers = {name: stage.replica(partial(self.leads, name), self.facts[name]) for name in "ab"}

    def leads(self, name: str) -> bool:
        return self.leader == name


def waits(one: Approver, count: int) -> bool:
    return one.status().waiting == count


def complete(facts: MemoryFacts) -> bool:
    return bool(facts.certificates and facts.records)


def writes(stage: Stage) -> list[str]:
    return [call for call in stage.cluster.calls if call.split()[0] in WRITES]


def test_a_follower_waits_and_changes_nothing(stage: Stage) -> None:
    replicas = Replicas(stage)
    csr = stage.cluster.submit(client())
    for one in replicas.approvers.values():
        wait_for(partial(waits, one, 1))
    seen = stage.called("requests.watch")
    wait_for(lambda: stage.called("requests.watch") > seen + 3)
    assert writes(stage) == []
    assert csr.name not in stage.cluster.decisions
    assert all(one.status().unavailable == 0 for one in replicas.approvers.values())


def test_the_leader_decides_and_both_know(stage: Stage) -> None:
    """Whichever has the Nodes' gates next knows which certificates are of which boot."""
    replicas = Replicas(stage)
    replicas.leader = "b"
    csr = stage.cluster.submit(client())
    assert stage.decision(csr)[0] == "Approved"
    wait_for(lambda: not stage.cluster.secrets)
    for facts in replicas.facts.values():
        wait_for(partial(complete, facts))
        assert [(one.machine, one.boot, one.phase) for one in facts.records] == [("gpu-001", BOOT, "CSRApproved")]
    (ours,), (theirs,) = (facts.certificates for facts in replicas.facts.values())
    assert ours.sha256 == theirs.sha256 == stage.on_record[0]
    for one in replicas.approvers.values():
        wait_for(partial(waits, one, 0))
    assert [call.split()[0] for call in writes(stage)].count("requests.approve") == 1


def test_what_a_leader_left_undone_the_next_one_does(stage: Stage) -> None:
    """It approved, and was gone before the certificate was on record and the token deleted."""
    replicas = Replicas(stage)
    replicas.leader = "a"
    stage.cluster.sign = False
    csr = stage.cluster.submit(client())
    assert stage.decision(csr)[0] == "Approved"
    replicas.leader = ""
    issued = stage.cluster.request(csr.name)._replace(certificate=signed(csr, 86_400), version="900")
    stage.cluster.submit(issued)
    wait_for(lambda: replicas.approvers["b"].status().waiting == 1)
    assert (stage.on_record, bool(stage.cluster.secrets)) == ((), True)
    replicas.leader = "b"
    wait_for(lambda: stage.on_record)
    wait_for(lambda: not stage.cluster.secrets)
    again = renewal(credential=stage.on_record[0], expiration_seconds=3600)
    assert stage.decision(stage.cluster.submit(again))[0] == "Approved"


def test_a_token_that_a_leader_left_the_next_one_deletes(stage: Stage) -> None:
    """All else was done, by the dead one and by its followers."""
    replicas = Replicas(stage)
    replicas.leader = "a"

    def dies() -> None:
        replicas.leader = ""
        raise NotLeadingError("another replica leads")

    stage.cluster.before["tokens.delete"] = dies
    stage.cluster.submit(client())
    wait_for(partial(complete, replicas.facts["b"]))
    wait_for(partial(waits, replicas.approvers["b"], 0))
    assert stage.cluster.secrets
    replicas.leader = "b"
    wait_for(lambda: not stage.cluster.secrets)


def test_a_request_that_was_denied_is_not_waited_for(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas(stage)
    monkeypatch.setattr(approver, "ROUND_SECONDS", 600.0)  # of what waits; they go round as before
    csr = stage.cluster.submit(client())
    for one in replicas.approvers.values():
        wait_for(partial(waits, one, 1))
    stage.cluster.requests.deny(stage.cluster.request(csr.name), "SomebodyElse", "no")
    for one in replicas.approvers.values():
        wait_for(partial(waits, one, 0))
    assert writes(stage) == [f"requests.deny {csr.name}"]


def test_what_is_nobody_of_ours_waits_in_no_replica(stage: Stage) -> None:
    replicas = Replicas(stage)
    stage.cluster.submit(client()._replace(username="kubernetes-admin", groups=()))
    looks = stage.called("requests.watch")
    wait_for(lambda: stage.called("requests.watch") > looks + 3)
    for one in replicas.approvers.values():
        wait_for(partial(waits, one, 0))  # each look brings it, for a moment
