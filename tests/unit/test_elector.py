"""The thread that has a replica lead, the check before each act, and what is said of both."""

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext

import pytest

from netboot.controllers import elector
from netboot.controllers.elector import Elector
from netboot.controllers.led import REMEDY, UNWRITTEN, Led
from netboot.join.errors import ClusterUnavailableError, ConflictError, ElectionRefusedError, NotLeadingError
from netboot.lifecycle.election import Lease, Times
from netboot.status.approver import ApproverStatus
from tests.elections import ABSENT, FakeElection
from tests.processes import wait_for
from tests.records import START

TIMES = Times(lease_ms=15_000, renew_ms=10_000, retry_ms=2_000)
QUICK = Times(lease_ms=300_000, renew_ms=200_000, retry_ms=10)
"""For threads: looks come soon, and nothing ends by time."""


class Clock:
    """This machine's, in the test's hands."""

    now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


def free(cluster: FakeElection) -> None:
    assert cluster.there is not None
    cluster.put(cluster.there._replace(holder="", released="somebody_before"))


def replica(cluster: FakeElection, clock: Clock, name: str = "alpha", times: Times = TIMES) -> Elector:
    return Elector("approver-default", name, lambda: cluster, times, clock, lambda: START)


def leader(cluster: FakeElection, clock: Clock, name: str = "alpha") -> Elector:
    free(cluster)
    one = replica(cluster, clock, name)
    one.step()
    assert one.leads()
    return one


def test_identities_differ_with_each_start(clock: Clock) -> None:
    """Two of one name, or one that was started again: never the same."""
    first, second = replica(FakeElection(), clock), replica(FakeElection(), clock)
    assert first.identity.startswith("alpha_")
    assert len(first.identity) == len("alpha_") + 16
    assert first.identity != second.identity


def test_a_leader_writes_what_people_read_in_the_lease(clock: Clock) -> None:
    cluster = FakeElection()
    one = leader(cluster, clock)
    assert cluster.there is not None
    assert cluster.there._replace(version="") == Lease(
        "uid-1", "", one.identity, 1, 15, "", "2023-11-14T22:13:20.000000Z", "2023-11-14T22:13:20.000000Z"
    )


def test_only_who_leads_at_this_moment_may_act(clock: Clock) -> None:
    cluster = FakeElection()
    one, other = leader(cluster, clock), replica(cluster, clock, "beta")
    other.step()
    with one.acting():
        pass
    with pytest.raises(NotLeadingError) as caught, other.acting():
        pass
    assert str(caught.value) == (f"this replica (beta) does not lead approver-default: {one.identity} leads, epoch 1")


def test_a_leader_that_was_frozen_does_not_act_when_it_goes_on(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of it ran meanwhile, the thread that renews neither."""
    caplog.set_level(logging.INFO)
    cluster = FakeElection()
    one, other = leader(cluster, clock), replica(cluster, clock, "beta")
    other.step()
    clock.now_ms += 15_000
    other.step()
    assert other.leads()
    with pytest.raises(NotLeadingError) as caught, one.acting():
        pass
    assert str(caught.value) == (
        "this replica (alpha) does not lead approver-default: its Lease was not renewed in time"
    )
    one.step()
    assert f"this replica leads approver-default no longer: {other.identity} leads, epoch 2" in caplog.messages
    assert not one.leads()
    assert one.status().leader == other.identity


def test_a_leader_that_renews_in_time_goes_on(clock: Clock) -> None:
    cluster = FakeElection()
    one, other = leader(cluster, clock), replica(cluster, clock, "beta")
    for _ in range(20):
        clock.now_ms += 9_000
        one.step()
        other.step()
        assert (one.leads(), other.leads()) == (True, False)


def test_an_api_server_that_is_away_ends_it_with_its_time(clock: Clock) -> None:
    cluster = FakeElection()
    one = leader(cluster, clock)
    cluster.down = "the apiserver lab cannot be reached"
    clock.now_ms += 9_999
    with pytest.raises(ClusterUnavailableError):
        one.step()
    assert one.leads()
    clock.now_ms += 1
    with pytest.raises(ClusterUnavailableError):
        one.step()
    assert not one.leads()
    cluster.down = ""
    one.step()  # nobody took over
    assert one.leads()
    assert one.status().epoch == 1


def test_a_write_whose_answer_was_lost_gives_nothing_until_one_is_answered(clock: Clock) -> None:
    cluster = FakeElection(lost=1)
    free(cluster)
    one = replica(cluster, clock)
    with pytest.raises(ClusterUnavailableError):
        one.step()
    assert not one.leads()
    one.step()
    assert one.leads()
    cluster.lost = 1  # a renewal, this time
    clock.now_ms += 5_000
    with pytest.raises(ClusterUnavailableError):
        one.step()
    with pytest.raises(ConflictError):
        one.step()  # what it wrote itself is another version
    assert not one.leads()
    one.step()
    assert (one.leads(), one.status().epoch) == (True, 1)


@pytest.mark.parametrize("what", ["remove", "refuse", "remake", "wipe"])
def test_a_lease_that_is_not_as_it_was_left_ends_it_with_the_next_look(clock: Clock, what: str) -> None:
    cluster = FakeElection()
    one = leader(cluster, clock)
    if what == "refuse":
        cluster.refused = "the account of approver.kubeconfig lacks a right"
    else:
        getattr(cluster, what)()
    with pytest.raises((ElectionRefusedError, ConflictError)):
        one.step()
    assert not one.leads()
    with pytest.raises(NotLeadingError) as caught, one.acting():
        pass
    assert str(caught.value) == "this replica (alpha) does not lead approver-default: who leads cannot be told"


def test_who_is_told_to_stop_lets_go_and_another_leads_at_once(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elector, "LET_GO_SECONDS", 180.0)
    cluster = FakeElection()
    free(cluster)
    one, other = replica(cluster, clock, times=QUICK), replica(cluster, clock, "beta", QUICK)
    one.start()
    wait_for(one.leads)
    other.step()
    one.stop()
    assert not one.leads()
    assert cluster.there is not None
    assert (cluster.there.holder, cluster.there.released) == ("", one.identity)
    other.step()
    assert (other.leads(), other.status().epoch) == (True, 2)


def test_who_is_told_to_stop_lets_go_after_what_is_under_way(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elector, "LET_GO_SECONDS", 180.0)
    cluster = FakeElection()
    free(cluster)
    one = replica(cluster, clock, times=QUICK)
    one.start()
    wait_for(one.leads)
    with ExitStack() as acts:
        acts.enter_context(one.acting())
        stopping = threading.Thread(target=one.stop)
        stopping.start()
        wait_for(lambda: not one.leads())
        stopping.join(0.5)
        assert stopping.is_alive()
        assert cluster.there is not None
        assert cluster.there.holder == one.identity
        with pytest.raises(NotLeadingError) as caught, one.acting():
            pass
        assert str(caught.value) == "this replica (alpha) does not lead approver-default: it is stopping"
    stopping.join(60)
    assert cluster.there is not None
    assert cluster.there.holder == ""


def test_one_that_never_began_has_nothing_to_let_go_of(clock: Clock) -> None:
    cluster = FakeElection()
    replica(cluster, clock).stop()
    assert cluster.writes == []


def test_what_cannot_be_told_is_said_once(caplog: pytest.LogCaptureFixture, clock: Clock) -> None:
    cluster = FakeElection()
    cluster.remove()
    one = replica(cluster, clock, times=QUICK)
    one.start()
    wait_for(lambda: one.status().problem)
    cluster.remake()
    wait_for(lambda: not one.status().problem)
    one.stop()
    said = [(each.levelname, each.getMessage()) for each in caplog.records if each.levelno >= logging.WARNING]
    assert said == [("WARNING", f"leader: {ABSENT}"), ("WARNING", "leader: the Lease can be read again")]


def test_a_leader_that_cannot_do_the_work_lets_another_lead(
    clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elector, "LET_GO_SECONDS", 0.01)
    caplog.set_level(logging.WARNING, "netboot")
    cluster = FakeElection()
    one, other = leader(cluster, clock), replica(cluster, clock, "beta")
    for problem in ("the journal is full", "the journal is full"):
        one.can(problem)
        one.step()
        other.step()
        assert one.leads()
        clock.now_ms += 9_000
    one.can("the journal is full")
    with one.acting():  # a request that hangs: it is renewed, and tried again
        one.step()
        assert one.leads()
    one.step()
    assert not one.leads()
    other.step()
    assert other.leads()
    one.step()
    assert not one.leads()
    assert caplog.messages == [
        "this replica lets another lead approver-default, for it cannot do the work: the journal is full",
        "this replica leads approver-default no longer: nobody leads",
    ]


def test_a_leader_of_whose_work_nothing_is_heard_lets_another_lead(clock: Clock) -> None:
    cluster = FakeElection()
    one = leader(cluster, clock)
    one.can("")
    for _ in range(3):
        clock.now_ms += 9_000
        one.step()
        assert one.leads()
    clock.now_ms += 9_000
    one.step()
    assert not one.leads()


def test_an_api_server_that_is_away_has_nobody_let_go(clock: Clock) -> None:
    cluster = FakeElection()
    one = leader(cluster, clock)
    for down in ("", "the apiserver lab cannot be reached"):
        one.can("certificate requests cannot be followed")
        cluster.down = down
        with pytest.raises(ClusterUnavailableError) if down else nullcontext():
            one.step()
        clock.now_ms += 9_000
    cluster.down = ""
    one.can("certificate requests cannot be followed")
    for _ in range(2):  # it is its own still, and is renewed; who leads is asked whether it is to let go
        one.step()
        assert one.leads()


# -- with a controller ------------------------------------------------------------------------------------------------


class Controller:
    """One that is in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.followed = True

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def status(self) -> ApproverStatus:
        words = "certificate requests are decided"
        return ApproverStatus(
            at_ms=START,
            ok=self.followed,
            message=words,
            decided=(),
            unavailable=0,
            waiting=0,
            oldest_seconds=0,
            followed=self.followed,
        )


@pytest.fixture
def led(clock: Clock) -> Iterator[tuple[Led, Elector, FakeElection]]:
    cluster = FakeElection()
    mine = replica(cluster, clock)
    yield Led(Controller(), mine, 30.0), mine, cluster


def said(one: Led) -> ApproverStatus:
    status = one.status()
    assert isinstance(status, ApproverStatus)
    return status


def test_a_follower_is_in_order(led: tuple[Led, Elector, FakeElection], clock: Clock) -> None:
    one, mine, cluster = led
    other = leader(cluster, clock, "beta")
    mine.step()
    status = said(one)
    assert (status.ok, status.followed, status.message) == (True, True, "certificate requests are decided")
    assert status.leader is not None
    assert status.leader.model_dump() == {
        "replica": "alpha", "leads": False, "leader": other.identity, "epoch": 1, "since_ms": START,
        "vacant_seconds": 0.0, "problem": "",
    }  # fmt: skip


def test_one_renewal_that_is_not_answered_is_not_the_end(led: tuple[Led, Elector, FakeElection], clock: Clock) -> None:
    """Neither where this replica leads, nor where it has seen another lead."""
    one, mine, cluster = led
    free(cluster)
    mine._trouble.note("the apiserver lab cannot be reached")
    assert said(one).message == "who leads cannot be told: the apiserver lab cannot be reached"
    other = replica(cluster, clock, "beta")
    mine.step()
    other.step()
    assert mine.leads()
    assert (mine.another(), other.another()) == (False, True)
    assert (said(one).ok, said(one).message) == (True, "certificate requests are decided")
    other._trouble.note("the apiserver lab cannot be reached")
    assert Led(Controller(), other, 30.0).status().ok


def test_a_lease_that_nobody_looks_at_says_nothing_of_who_leads(
    led: tuple[Led, Elector, FakeElection], clock: Clock
) -> None:
    """Its thread waits for something, or was not run."""
    one, mine, cluster = led
    leader(cluster, clock, "beta")
    mine.step()
    clock.now_ms += 15_000
    assert (said(one).ok, mine.another()) == (True, True)
    clock.now_ms += 1_000
    assert (said(one).followed, mine.another()) == (False, False)
    assert said(one).message == "who leads cannot be told: the Lease has not been looked at for 16 s"
    clock.now_ms += 15_000
    words = "nobody has led for 31 s: the Lease has not been looked at for 31 s"
    assert (said(one).ok, said(one).message) == (False, words)


def test_a_controller_that_cannot_follow_leads_no_more(clock: Clock) -> None:
    cluster, controller = FakeElection(), Controller()
    mine = leader(cluster, clock)
    one = Led(controller, mine, 30.0)
    controller.followed = False
    for _ in range(3):
        said(one)
        mine.step()
        clock.now_ms += 7_500
    assert not mine.leads()


def test_a_replica_whose_disk_takes_nothing_leads_no_more(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Its requests and Nodes are followed: nothing of what it reads of itself is new any more."""
    cluster = FakeElection()
    mine = leader(cluster, clock)
    one, room = Led(Controller(), mine, 30.0), [True]
    say = one.saying(lambda _: room[0])
    for written in (True, False, False, False):
        room[0] = written
        say(said(one))
        mine.step()
        assert mine.leads()
        clock.now_ms += 7_500
    say(said(one))
    mine.step()
    assert not mine.leads()
    assert "this replica lets another lead approver-default, for it cannot do the work: " + UNWRITTEN in caplog.messages
    room[0] = True
    for _ in range(2):
        say(said(one))
        mine.step()
    assert mine.leads()


def test_nobody_leads_for_longer_than_two_durations(led: tuple[Led, Elector, FakeElection], clock: Clock) -> None:
    one, mine, cluster = led
    mine.step()
    cluster.down = "the apiserver lab cannot be reached"
    for _ in range(4):
        clock.now_ms += 10_001
        with pytest.raises(ClusterUnavailableError):
            mine.step()
        status = said(one)
        assert status.followed is False  # nobody decides meanwhile: nothing that waits for it is late
    assert (status.ok, status.message, status.remedy) == (False, "nobody has led for 40 s", REMEDY)
