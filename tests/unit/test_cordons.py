"""Cordons become holds before their Nodes go, by who may write them; join, who may not, waits."""

from collections.abc import Sequence

import pytest

from netboot.controllers.cordons import AndCordons
from netboot.controllers.nodes.cordoned import AGAIN_SECONDS, CordonsSaid
from netboot.lifecycle.cordons import CORDON, Cordon, CordonsStatus, hold_of, is_kept
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.events import AnyRecord
from netboot.lifecycle.intents import Exemption, PutOn, TakeOff
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.lifecycle.transitions import Mark
from netboot.status import FRESH_MS
from netboot.status.controllers import RolloutsStatus
from tests.intents import GONE, MemoryIntents
from tests.records import START, event, script
from tests.states import MemoryStates

BY = "kubectl-cordon, 2026-11-23T10:00:00Z"
OLD = (Phase.ATTESTED, Phase.TOKEN_ISSUED, Phase.NODE_REGISTERED)


class Stage:
    """n-1 has a Node that somebody cordoned."""

    def __init__(self) -> None:
        self.intents, self.states, self.taken = MemoryIntents(), MemoryStates(), 0
        self.cordons: dict[str, Cordon] = {"n-1": Cordon(node="worker-1", by=BY)}
        self.now, self.read_to, self.rounds = 0, 1_000, 0
        self.loop = AndCordons(
            self, self.intents, self.states, lambda: self.cordons, lambda up: up <= self.read_to, self, lambda: self.now
        )

    def now_ms(self) -> int:
        return START

    def step(self) -> None:
        """The loop around which this is."""
        self.rounds += 1

    def status(self) -> RolloutsStatus:
        return RolloutsStatus(at_ms=START, rollouts=())

    def boots(self, number: int, *phases: Phase) -> None:
        records: list[AnyRecord] = [script("n-1", number), *(event("n-1", number, phase) for phase in phases)]
        self.taken += len(records)
        self.states.take(Batch("any.db", 1, self.taken, tuple(records)))

    def held(self) -> list[tuple[str, str, str]]:
        self.loop.step()
        return [(one.owner, one.who, one.reason) for one in self.intents.of("n-1", START)]


HELD = [(CORDON, BY, "the Node worker-1 was cordoned when it was deleted")]


def test_a_cordon_is_a_hold_once_a_new_boot_attested_and_not_before() -> None:
    stage = Stage()
    assert stage.held() == [], "nothing is known of the machine"
    stage.boots(1, *OLD)
    assert stage.held() == [], "it may be lifted as it was put on"
    stage.boots(2, Phase.SWITCHED)
    assert stage.held() == [], "anybody may report that"
    stage.boots(2, Phase.ATTESTED)
    assert stage.held() == HELD
    assert stage.held() == HELD
    assert [entry.act for entry in stage.intents.history("n-1", 9)] == ["put-on"]
    assert stage.rounds == 5, "what it is around goes on"


def test_the_node_of_a_boot_that_has_its_token_is_its_own() -> None:
    stage = Stage()
    stage.boots(1, *OLD)
    stage.boots(2, Phase.ATTESTED, Phase.TOKEN_ISSUED)
    assert stage.held() == []
    stage.boots(3, Phase.ATTESTED)
    stage.cordons = {}
    assert stage.held() == []


def test_a_boot_may_have_its_node_by_a_token_that_nobody_has_read_yet() -> None:
    """The processor was elsewhere since the join server's journal was read to its end, and the Node of the new boot
    was cordoned."""
    stage = Stage()
    stage.boots(1, *OLD)
    stage.boots(2, Phase.ATTESTED)
    stage.now = 1_001
    assert stage.held() == []
    stage.now = 5_000
    assert stage.held() == [], "it was not read since the Node was seen"
    stage.read_to = 1_000 + 1
    assert stage.held() == HELD, "read until it was seen first, by which time its boot had no token"


def test_of_another_node_the_state_has_to_be_newer() -> None:
    stage = Stage()
    stage.boots(2, Phase.ATTESTED)
    stage.now, stage.cordons = 1_001, {"n-1": Cordon(node="worker-1", by=BY, uid="1")}
    assert stage.held() == []
    stage.read_to, stage.now, stage.cordons = 1_500, 2_000, {"n-1": Cordon(node="worker-1", by=BY, uid="2")}
    assert stage.held() == []
    stage.read_to = 2_000
    assert stage.held() == HELD


@pytest.mark.parametrize(("unseen", "held"), [(FRESH_MS, HELD), (FRESH_MS + 1, [])])
def test_a_node_is_the_same_whoever_writes_it_and_though_it_is_not_seen_for_a_while(
    unseen: int, held: list[tuple[str, str, str]]
) -> None:
    stage = Stage()
    stage.boots(2, Phase.ATTESTED)
    stage.now, stage.cordons = 2_000, {"n-1": Cordon(node="worker-1", by="annotator, 2026-11-23T09:00:00Z", uid="1")}
    assert stage.held() == []
    stage.cordons = {}
    assert stage.held() == []
    stage.read_to, stage.now = 2_000, 2_000 + unseen
    stage.cordons = {"n-1": Cordon(node="worker-1", by=BY, uid="1")}
    assert stage.held() == held


def test_who_is_taken_off_by_a_person_stays_off_once_the_node_is_gone() -> None:
    stage = Stage()
    stage.boots(1, *OLD)
    stage.boots(2, Phase.ATTESTED)
    assert stage.held() == HELD
    stage.boots(2, Phase.TOKEN_ISSUED)
    stage.intents.order("n-1", TakeOff(Mark.HELD, "DIMM replaced"), "bob", START)
    assert stage.held() == [], "though the deleted Node is listed for a while"


def test_a_hold_that_ends_does_not_stand_for_a_cordon() -> None:
    stage = Stage()
    stage.intents.order("n-1", PutOn(Mark.HELD, "DIMM 4", START + 60_000), "alice", START)
    stage.boots(1, Phase.ATTESTED)
    assert [owner for owner, _, _ in stage.held()] == [CORDON, "operator"]


def test_where_it_cannot_be_written_down_it_is_said_and_tried_again() -> None:
    stage = Stage()
    stage.boots(1, Phase.ATTESTED)
    stage.intents.broken = True
    stage.loop.step()
    assert (stage.loop.status().problem, stage.rounds) == (GONE, 1)
    stage.intents.broken = False
    assert stage.held() == HELD
    assert stage.loop.status().problem == ""


@pytest.mark.parametrize(
    ("orders", "kept"),
    [
        ((), False),
        ((hold_of(Cordon(node="w")),), True),
        ((PutOn(Mark.HELD, "DIMM 4"),), False),
        ((PutOn(Mark.QUARANTINED, "x", owner=CORDON), PutOn(Exemption.ACCEPTED, "x", owner=CORDON)), False),
    ],
)
def test_which_holds_stand_for_a_cordon(orders: Sequence[PutOn], kept: bool) -> None:
    intents = MemoryIntents()
    for order in orders:
        intents.order("n-1", order, Cordon(node="w").who, START)
    assert is_kept(intents.of("n-1", START)) is kept


def test_a_collector_says_what_is_cordoned_while_it_follows_nodes() -> None:
    said: list[CordonsStatus] = []
    cordons = {"n-1": Cordon(node="worker-1", by=BY)}
    well, up = True, 0.0

    def write(status: CordonsStatus) -> bool:
        said.append(status)
        return well

    collector = CordonsSaid(lambda: dict(cordons), write, lambda: START, lambda: up)
    collector.say(followed=False)
    assert said == []
    well = False
    collector.say(followed=True)
    well = True
    collector.say(followed=True)
    assert [dict(one.cordons) for one in said] == [cordons, cordons], "what could not be written is tried again"
    collector.say(followed=True)
    up += AGAIN_SECONDS
    collector.say(followed=True)
    collector.say(followed=True)
    assert len(said) == 3, "now and then, for its readers ask how old it is"
    cordons.clear()
    for _ in range(3):
        collector.say(followed=True)
        up += AGAIN_SECONDS
    assert [dict(one.cordons) for one in said[3:]] == [{}]


def test_the_state_that_cannot_be_read_makes_no_hold() -> None:
    stage = Stage()

    def broken(names: Sequence[str] | None = None) -> None:
        raise StateUnavailableError("state.db cannot be used")

    stage.states.machines = broken  # type: ignore[method-assign,assignment]
    stage.loop.step()
    assert stage.loop.status().problem == "state.db cannot be used"
