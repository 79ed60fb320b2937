"""Issuing, step by step: whatever fails, beginning again is safe; whoever writes meanwhile, one of them wins."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from netboot.join import messages
from netboot.join.attest import attest
from netboot.join.errors import (
    ClusterUnavailableError,
    ConflictError,
    CordonedError,
    HeldError,
    NodeKeptError,
    RefusedError,
)
from netboot.join.issued_tokens import sweep
from netboot.join.ports import Credential
from netboot.join.taints import taints_of
from netboot.lifecycle.cordons import hold_of
from netboot.lifecycle.errors import JournalUnavailableError, StateUnavailableError
from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.intents import PutOn, TakeOff
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.transitions import Mark
from tests.joining import NOW, PEER, Stage, boot_id, declared, dumps, pinned
from tests.kube_fake import FakeCluster
from tests.soft_tpm import Machine, new_key

BOOT = boot_id("gpu-001")
STEPS = ["leases.read", "leases.write", "nodes.node", "nodes.delete", "tokens.create"]


@pytest.fixture
def machine() -> Machine:
    return Machine(BOOT)


@pytest.fixture
def stage(machine: Machine) -> Stage:
    made = Stage((pinned(machine),))
    made.cluster.make_node("gpu-001", ready=True, boot_id="before")
    return made


def sound(stage: Stage) -> None:
    """Exactly one token lives, the Lease names it, and no Node of an earlier boot is left."""
    lease = stage.cluster.credentials["default", "gpu-001"]
    assert list(stage.cluster.secrets) == [lease.token_id]
    node = stage.cluster.nodes.node("gpu-001")
    assert node is None or node.boot_id == "now"


class Failing(FakeCluster):
    """Fails a call before it takes effect, or after."""

    at: int = -1
    lost: bool = False
    count: int = 0

    def enter(self, call: str, argument: str = "") -> None:
        super().enter(call, argument)
        self.count += 1
        if self.count - 1 == self.at:
            if not self.lost:
                raise ClusterUnavailableError("the apiserver does not answer")
            self.fail_next = 1


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("at", range(7))
def test_after_a_failure_at_any_step_beginning_again_is_safe(machine: Machine, at: int, lost: bool) -> None:
    cluster = Failing()
    cluster.make_node("gpu-001", ready=True, boot_id="before")
    stage = Stage((pinned(machine),), cluster=cluster)
    cluster.at, cluster.lost = at, lost
    try:
        stage.join(machine)
    except ClusterUnavailableError:
        pass
    else:
        assert lost and at in (0, 1, 3)  # reads have no effect whose answer could be lost
    cluster.at = -1
    cluster.fail_next = 0
    stage.join(machine)
    sound(stage)


def test_a_reissue_leaves_this_boots_node_alone(stage: Stage, machine: Machine) -> None:
    stage.join(machine)
    assert stage.cluster.nodes.node("gpu-001") is None
    stage.cluster.make_node("gpu-001", ready=True, boot_id="now")
    stage.join(machine)
    sound(stage)
    assert stage.cluster.nodes.node("gpu-001") is not None


def test_a_reboot_gets_a_new_token_and_the_old_one_and_the_old_node_go(stage: Stage, machine: Machine) -> None:
    stage.join(machine)
    (old,) = stage.cluster.secrets
    stage.cluster.make_node("gpu-001", ready=True, boot_id="first boot")
    again = Machine(boot_id("gpu-001", 2), resets=machine.resets + 1)
    stage.join(again)
    sound(stage)
    assert old not in stage.cluster.secrets
    lease = stage.cluster.credentials["default", "gpu-001"]
    assert (lease.boot, lease.issued, lease.reset_count) == (again.boot, 1, 6)


def test_four_tokens_for_one_boot_and_no_more(stage: Stage, machine: Machine) -> None:
    for _ in range(4):
        stage.join(machine)
    with pytest.raises(HeldError, match="has had 4 tokens for this boot"):
        stage.join(machine)
    sound(stage)


def test_somebody_else_was_first(stage: Stage, machine: Machine) -> None:
    rival = Machine(BOOT, key=new_key())
    stage.cluster.before["leases.write"] = lambda: stage.join(rival)
    with pytest.raises(HeldError, match="another key holds the credential"):
        stage.join(machine)
    sound(stage)


def test_the_same_agent_twice_at_once_gets_two_answers_of_which_the_later_counts(
    stage: Stage, machine: Machine
) -> None:
    stage.cluster.before["tokens.create"] = lambda: stage.join(machine)
    stage.join(machine)
    sound(stage)


def test_who_loses_the_lease_at_the_last_step_leaves_no_token_behind(stage: Stage, machine: Machine) -> None:
    def meanwhile() -> None:
        stage.cluster.before["leases.write"] = lambda: stage.join(machine)

    stage.cluster.before["tokens.create"] = meanwhile
    stage.join(machine)
    sound(stage)


def test_a_token_id_that_is_taken_is_not_taken_over(stage: Stage, machine: Machine) -> None:
    drawn = iter("aaaaaa" + "s" * 16 + "bbbbbb" + "t" * 16)
    exchange = stage.exchange()
    stage.cluster.secrets["aaaaaa"] = {}
    answer = stage.hello(machine)
    body = messages.read(dumps(machine.attest(answer)), messages.Attest)
    said = attest(replace(exchange, issuer=replace(exchange.issuer, choice=lambda _alphabet: next(drawn))), body, PEER)
    assert said.token == "bbbbbb." + "t" * 16
    assert "token" not in repr(said)


def test_a_lease_that_is_written_all_the_time_is_come_back_to(stage: Stage, machine: Machine) -> None:
    class Contended(type(stage.cluster.leases)):  # type: ignore[misc] # a fake's class
        def write(self, credential: object) -> object:
            raise ConflictError("again")

    stage.leases = Contended(stage.cluster)
    with pytest.raises(ClusterUnavailableError, match="written by others all the time; try again"):
        stage.join(machine)


def test_a_fleet_joins_at_once() -> None:
    machines = [Machine(boot_id(f"m{number}")) for number in range(4)]
    stage = Stage((pinned(machines[0], "m0"),))
    failures: list[BaseException] = []

    def join() -> None:
        try:
            stage.join(machines[0])
        except (HeldError, ClusterUnavailableError) as error:
            failures.append(error)

    threads = [threading.Thread(target=join) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lease = stage.cluster.credentials["default", "m0"]
    assert lease.issued <= 4
    assert set(stage.cluster.secrets) <= {lease.token_id}


@pytest.mark.parametrize("refused", [Phase.ATTESTED, Phase.TOKEN_ISSUED])
def test_a_journal_that_refuses_a_fact_keeps_the_answer_back(stage: Stage, machine: Machine, refused: Phase) -> None:
    def journal(record: EventRecord) -> None:
        if record.phase is refused:
            raise JournalUnavailableError("disk full")
        stage.records.append(record)

    stage.journal = journal
    with pytest.raises(JournalUnavailableError):
        stage.join(machine)
    stage.journal = None
    stage.join(machine)
    sound(stage)


@pytest.mark.parametrize(
    ("taints", "assurance", "expected"),
    [
        ((), "tpm", ("netboot.dev/unchecked:NoExecute",)),
        ((), "nonce", ("netboot.dev/unchecked:NoExecute", "netboot.dev/unattested:NoSchedule")),
        (("a:NoExecute",), "tpm", ("a:NoExecute", "netboot.dev/unchecked:NoExecute")),
        (("netboot.dev/unchecked=x:NoExecute",), "tpm", ("netboot.dev/unchecked=x:NoExecute",)),
        (("a=:NoExecute",), "tpm", ("a:NoExecute", "netboot.dev/unchecked:NoExecute")),
    ],
)
def test_taints(taints: tuple[str, ...], assurance: str, expected: tuple[str, ...]) -> None:
    assert taints_of(declared(node={"taints": taints}), assurance) == expected  # type: ignore[arg-type] # parametrized


@pytest.mark.parametrize(
    ("taints", "added"),
    [
        ((), ("netboot.dev/held=Held:NoSchedule",)),
        (("netboot.dev/held=mine:PreferNoSchedule",), ("netboot.dev/held=Held:NoSchedule",)),
        (("netboot.dev/held=mine:NoSchedule",), ()),  # no Node has two of one key and effect
    ],
)
def test_taints_of_a_machine_that_is_held(taints: tuple[str, ...], added: tuple[str, ...]) -> None:
    machine = declared(node={"taints": taints})
    assert taints_of(machine, "tpm", held=True) == (*taints_of(machine, "tpm"), *added)


def lease(stage: Stage) -> Credential:
    [credential] = stage.cluster.credentials.values()
    return credential


def test_the_lease_names_the_taints_and_the_answer_has_them_and_the_mark() -> None:
    """Also where they were declared otherwise since the boot's first token."""
    machine = Machine(BOOT)
    stage = Stage((pinned(machine, node={"taints": ["rack=a-1:NoExecute", "gpu=:NoSchedule"]}),))
    answer = stage.join(machine)
    assert answer["labels"] == {"netboot.dev/managed-by": "netboot"}
    assert lease(stage).taints == "rack=a-1:NoExecute,gpu:NoSchedule,netboot.dev/unchecked:NoExecute"
    assert ",".join(answer["taints"]) == lease(stage).taints
    stage.machines = (pinned(machine, node={"taints": [], "labels": {"netboot.dev/managed-by": "me"}}),)
    answer = stage.join(machine)
    assert answer["labels"] == {"netboot.dev/managed-by": "netboot"}
    assert answer["taints"] == ["netboot.dev/unchecked:NoExecute"]
    assert lease(stage).taints == "netboot.dev/unchecked:NoExecute"


def test_a_node_that_is_not_known_to_be_netboots_is_refused_before_anything_is_written(
    stage: Stage, machine: Machine
) -> None:
    """Of before the update, or somebody else's: admission would refuse to delete it, each time anew."""
    stage.cluster.make_node("gpu-001", ready=True, marked=False)
    for _ in range(2):
        with pytest.raises(RefusedError) as caught:
            stage.join(machine)
        assert str(caught.value) == (
            "there is a Node gpu-001 without the label netboot.dev/managed-by=netboot, so netboot does not know it and "
            "may not delete it: if an earlier boot of this machine left it, `kubectl label node gpu-001 "
            "netboot.dev/managed-by=netboot`; if it is another machine's, give this one another name in the inventory"
        )
    assert (stage.records, stage.cluster.credentials, stage.cluster.secrets) == ([], {}, {})
    stage.cluster.make_node("gpu-001")
    stage.join(machine)
    sound(stage)


def test_there_is_no_token_while_the_node_of_the_boot_before_is_not_gone(stage: Stage, machine: Machine) -> None:
    """A kubelet would adopt it, open as it is: a finalizer is enough, and root there may have written one."""
    stage.cluster.make_node("gpu-001", ready=True)
    stage.cluster.kept = {"gpu-001"}
    for _ in range(2):
        with pytest.raises(NodeKeptError):
            stage.join(machine)
        assert stage.cluster.secrets == {}
    stage.cluster.kept = set()
    stage.join(machine)
    sound(stage)


def test_a_node_that_registered_in_this_boot_is_nobodys_to_delete(stage: Stage, machine: Machine) -> None:
    """Whatever its label says by now: the boot's next token asks nothing of it."""
    stage.join(machine)
    stage.cluster.make_node("gpu-001", boot_id="now", marked=False)
    stage.join(machine)
    sound(stage)


# -- clean-up ------------------------------------------------------------------------------------------------------


def test_expired_tokens_are_swept_by_what_the_leases_say(stage: Stage, machine: Machine) -> None:
    stage.join(machine)
    target = stage.exchange().issuer.clusters["default"]
    for now, swept in ((NOW + 300_000, 0), (NOW + 359_999, 0), (NOW + 360_000, 1), (NOW + 900_000, 0)):
        assert sweep(target, now) == swept
    assert stage.cluster.secrets == {}
    lease = stage.cluster.credentials["default", "gpu-001"]
    assert (lease.token_id, lease.issued, lease.holder) == (None, 1, lease.holder)


def test_it_is_the_apiserver_s_clock_that_ends_a_token(stage: Stage, machine: Machine) -> None:
    """A replica whose clock is hours ahead deletes nobody's token."""
    stage.join(machine)
    target = stage.exchange().issuer.clusters["default"]
    stage.apiserver_ahead_ms = -7_200_000
    assert sweep(target, NOW + 7_200_000) == 0
    assert stage.cluster.secrets
    stage.apiserver_ahead_ms = 360_000
    assert sweep(target, NOW) == 1


def test_a_replica_that_is_not_fit_sweeps_nothing(stage: Stage, machine: Machine) -> None:
    def unfit() -> None:
        raise ClusterUnavailableError("the apiserver's clock is 40 s behind ours")

    stage.join(machine)
    target = stage.exchange().issuer.clusters["default"]
    stage.preflight = unfit
    with pytest.raises(ClusterUnavailableError):
        sweep(target, NOW + 900_000)
    assert stage.cluster.secrets


def test_a_sweep_that_meets_a_new_token_leaves_it(stage: Stage, machine: Machine) -> None:
    stage.join(machine)
    stage.now_ms += 400_000
    again: Callable[[], object] = lambda: stage.join(machine)  # noqa: E731
    stage.cluster.before["leases.write"] = lambda: (again(), None)[1]
    sweep(stage.exchange().issuer.clusters["default"], stage.now_ms)
    sound(stage)


def test_a_machine_that_is_held_registers_with_the_taint_and_no_reboot_takes_it_off(
    stage: Stage, machine: Machine
) -> None:
    stage.intents.order("gpu-001", PutOn(Mark.HELD, "DIMM 4", stage.now_ms + 60_000), "alice", stage.now_ms)
    taints = ["netboot.dev/unchecked:NoExecute", "netboot.dev/held=Held:NoSchedule"]
    assert stage.join(machine)["taints"] == taints
    assert lease(stage).taints == ",".join(taints)
    machine.boot, machine.resets, machine.key = boot_id("gpu-001", 2), machine.resets + 1, new_key()
    assert stage.join(machine)["taints"] == taints
    stage.now_ms += 60_000
    machine.boot, machine.resets, machine.key = boot_id("gpu-001", 3), machine.resets + 1, new_key()
    assert stage.join(machine)["taints"] == taints[:1]


def test_a_machine_in_quarantine_gets_no_token_and_is_not_told_why(stage: Stage, machine: Machine) -> None:
    stage.intents.order("gpu-001", PutOn(Mark.QUARANTINED, "stolen credentials"), "alice", stage.now_ms)
    answer = stage.hello(machine)
    with pytest.raises(RefusedError) as refused:
        stage.attest(machine, answer)
    assert str(refused.value) == "gpu-001 is in quarantine: `netboot machine readmit gpu-001` lets it join again"
    assert (stage.cluster.secrets, stage.cluster.credentials, stage.records) == ({}, {}, [])
    assert stage.cluster.nodes.node("gpu-001") is not None
    stage.intents.order("gpu-001", TakeOff(Mark.QUARANTINED, "a mistake"), "alice", stage.now_ms)
    stage.attest(machine, answer)
    sound(stage)


def test_a_node_that_somebody_cordoned_goes_when_its_machine_is_held_for_that(stage: Stage, machine: Machine) -> None:
    node = stage.cluster.nodes.node("gpu-001")
    assert node is not None
    stage.cluster.put_node(node._replace(cordoned=True, cordoned_by="kubectl-cordon, 2026-11-23T10:00:00Z"))
    words = (
        "the Node gpu-001 is cordoned, and goes when gpu-001 is held for that, which the service sees to within "
        "seconds; where it does not, `kubectl uncordon gpu-001` lets the machine join"
    )
    stage.intents.order("gpu-001", PutOn(Mark.HELD, "for an hour", stage.now_ms + 3_600_000), "alice", stage.now_ms)
    for _ in range(6):
        with pytest.raises(CordonedError) as error:
            stage.join(machine)
        assert str(error.value) == words
    assert (stage.cluster.secrets, error.value.cordon.who) == ({}, "kubectl-cordon, 2026-11-23T10:00:00Z")
    assert stage.cluster.nodes.node("gpu-001") is not None
    assert {record.phase for record in stage.records} == {Phase.ATTESTED}, "by this the hold is put on"
    stage.intents.order("gpu-001", hold_of(error.value.cordon), error.value.cordon.who, stage.now_ms)
    assert stage.join(machine)["taints"] == ["netboot.dev/unchecked:NoExecute", "netboot.dev/held=Held:NoSchedule"]
    sound(stage)
    assert stage.cluster.nodes.node("gpu-001") is None


def test_a_node_that_is_uncordoned_goes_at_once(stage: Stage, machine: Machine) -> None:
    node = stage.cluster.nodes.node("gpu-001")
    assert node is not None
    stage.cluster.put_node(node._replace(cordoned=True))
    with pytest.raises(CordonedError):
        stage.join(machine)
    stage.cluster.put_node(node)
    assert stage.join(machine)["taints"] == ["netboot.dev/unchecked:NoExecute"]
    sound(stage)


def test_where_it_cannot_be_told_who_is_held_nobody_joins(stage: Stage, machine: Machine) -> None:
    answer = stage.hello(machine)
    stage.intents.broken = True
    with pytest.raises(StateUnavailableError, match="what is held cannot be told"):
        stage.attest(machine, answer)
    assert stage.cluster.secrets == {}
