"""Which orders of what acts by itself have no reason any more."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from netboot.controllers.needless import NeedlessOrders
from netboot.lifecycle.conditions import Ailment, Judged, MachineCondition
from netboot.lifecycle.drains import Drain
from netboot.lifecycle.intents import Exemption, PutOn, Want
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.transitions import Mark
from netboot.status.controllers import LifecycleStatus
from netboot.stores.intents import SqliteIntents, make
from tests.drains import drain
from tests.lifecycle_world import declared
from tests.records import START, boot_id
from tests.remedies import ailment
from tests.remedy_world import PLACE

NAME = "gpu-001"


class World:
    """One machine, well again, and its Node Ready; what was found of it was found just now."""

    def __init__(self, folder: Path) -> None:
        make(folder / "intents.db").close()
        self.intents = SqliteIntents(folder / "intents.db")
        self.ailment: Ailment | None = None
        self.reachable, self.boot, self.unseen, self.up = Reason.NODE_READY, boot_id(NAME, 1), tuple[str, ...](), 0
        places = {NAME: declared(NAME)}
        self.needless = NeedlessOrders(self.intents, self.judged, lambda: places, self.said, self, lambda: self.up)

    def now_ms(self) -> int:
        return START

    def said(self) -> LifecycleStatus:
        status = LifecycleStatus(at_ms=0, conditions=(), overdue={}, waiting=0, unseen=self.unseen)
        return status.model_copy(update={"up_ms": 0})

    def judged(self, names: Sequence[str]) -> Mapping[str, Judged]:
        there = MachineCondition.of(ConditionType.REACHABLE, self.reachable, "", START)
        one = Judged(machine=NAME, conditions=(there,), timers={}, boot=self.boot, ailment=self.ailment)
        return dict.fromkeys(names, one)

    def why(self, owner: str = "remedy/7") -> str:
        order: Drain = drain(NAME, "order-7", "reboot", owner=owner, boot=boot_id(NAME, 1))
        return self.needless.of({NAME: order}).get(NAME, "")


def test_a_machine_that_is_well_again_needs_no_reboot(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.why() == "its node says no more that a check failed"
    assert world.why("rollout/3") == ""
    world.ailment = ailment(NAME)
    assert world.why() == ""


def test_who_cannot_be_seen_or_reached_is_not_well_again(tmp_path: Path) -> None:
    other = {"reachable": Reason.NODE_NOT_READY, "boot": boot_id(NAME, 2), "unseen": (PLACE,), "up": 60_000}
    for name, value in other.items():
        world = World(tmp_path)
        setattr(world, name, value)
        assert world.why() == "", name


@pytest.mark.parametrize(
    ("want", "remedy", "rollout"),
    [
        (Mark.HELD, "it is held, by ann: DIMM 4", "it is held, by ann: DIMM 4"),
        (Mark.QUARANTINED, "it is quarantined, by ann: DIMM 4", "it is quarantined, by ann: DIMM 4"),
        (Exemption.ACCEPTED, "it is accepted, by ann: DIMM 4", ""),
    ],
)
def test_a_machine_that_somebody_has_put_something_on_is_left_to_them(
    tmp_path: Path, want: Want, remedy: str, rollout: str
) -> None:
    world = World(tmp_path)
    world.ailment, world.up = ailment(NAME), 60_000
    world.intents.order(NAME, PutOn(want, "DIMM 4", START + 1), "ann", START)
    assert (world.why(), world.why("rollout/3")) == (remedy, rollout)
