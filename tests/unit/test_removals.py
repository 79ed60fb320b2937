"""What is remembered for an hour of machines that went: nobody is another by leaving and coming back, or loses what it
had by a fault of its object; over restarts, too."""

import logging
from pathlib import Path

import pytest

from netboot.config import Config, load_config
from netboot.lifecycle.snapshot import Snapshot
from netboot.machines.removals import REMEMBERED_MS, Removals, without_the_oldest
from netboot.machines.resources import Resource
from netboot.status.controllers import InventoryStatus
from netboot.stores import removals as stores
from netboot.stores.acceptance import Acceptance
from netboot.stores.removals import RemovalsFile
from netboot.stores.snapshot import write_snapshot
from tests.sites import make_site
from tests.unit.test_resources import ALL, InForce, fleet, machine, replaced, resource

IN_FORCE = InventoryStatus(ok=True, valid=True, message="in force")
UNTOLD = "which machines went within the last hour cannot be told"
WAITS = "for an hour what removes machines, adds some, or changes by what they are known, waits for an operator"


class Site(InForce):
    """What is in force is published, as objects are judged by it."""

    def looks(self) -> InventoryStatus:
        said = super().looks()
        assert self.inventory.value is not None
        snapshot = Snapshot(
            site="s",
            published_ms=1,
            inventory=self.inventory.value,
            channels={},
            unusable={},
            images={},
            url="http://h",
            origins=(),
        )
        write_snapshot(self.config.data / "snapshot.json", snapshot)
        return said

    def accepts(self, status: InventoryStatus) -> InventoryStatus:
        assert status.pending is not None
        Acceptance(self.config.data).write(status.pending.digest)
        said = self.looks()
        self.inventory.published()
        return said


@pytest.fixture
def config(tmp_path: Path) -> Config:
    file = make_site(tmp_path).keys.parent / "netboot.yaml"
    file.write_text(file.read_text() + "inventory_kubernetes: {}\n")
    return load_config(file)


@pytest.fixture
def site(config: Config) -> Site:
    made = Site(config)
    assert made.reads(fleet()) == IN_FORCE
    return made


def without(*numbers: int) -> list[Resource]:
    return [each for each in fleet() if each.name not in {f"gpu-{number:03}" for number in numbers}]


def another(number: int) -> Resource:
    return machine(number, f"52:54:00:00:01:{number:02x}")


def test_who_leaves_and_comes_back_as_another_became_another(site: Site) -> None:
    assert site.reads(without(1, 2, 3)).lately == 3
    again = replaced(fleet(), *map(another, (1, 2, 3)))
    assert site.reads(again) == IN_FORCE.model_copy(update={"lately": 3})
    status = site.reads([each for each in again if each.name not in ALL[3:]])
    assert status.pending is not None
    assert (status.pending.removed, status.pending.others, status.pending.lately) == (3, 0, 3)
    assert site.reads(again).lately == 3
    status = site.reads(replaced(again, *map(another, (4, 5, 6))))
    assert status.message == (
        "its objects changed: it changes by what 3 of 6 machines are recognised or prove themselves (gpu-004, gpu-005, "
        "gpu-006), after 3 within the last hour; the one before stays in force until an operator accepts it"
    )


def test_many_that_come_back_as_others_wait(site: Site) -> None:
    """Those that went were few enough; one that becomes another beside them is one too many."""
    assert site.reads(without(1, 2, 3, 4, 5)).lately == 5
    status = site.reads(replaced(fleet(), *map(another, range(1, 7))))
    assert status.pending is not None
    assert (status.pending.removed, status.pending.others, status.pending.lately) == (0, 6, 0)
    assert site.machines == ["gpu-006"]
    assert site.accepts(status) == IN_FORCE
    assert RemovalsFile(site.config.data).read().went == {}


def test_who_comes_back_by_another_name_is_held_against_what_it_was(site: Site) -> None:
    renamed = resource(
        "machine", "n-1", match={"macs": ["52:54:00:00:01:01"]}, profile="compute", former_names=["gpu-001"]
    )
    assert site.reads(without(1)).lately == 1
    assert site.reads([*without(1), renamed]).lately == 1
    assert list(RemovalsFile(site.config.data).read().others) == ["n-1"]


def test_who_is_back_takes_nobody_s_memory_by_a_former_name(site: Site) -> None:
    """That went with it: else who comes by that name afterwards would be new, and another unasked."""
    [last] = [each for each in fleet() if each.name == "gpu-006"]
    taking = last.model_copy(update={"spec": {**last.spec, "former_names": ["gpu-001"]}})
    assert site.reads(without(1, 6)).lately == 2
    assert site.reads([*without(1, 6), taking]).lately == 1
    assert site.reads(without(1)).lately == 1
    assert site.reads(replaced(fleet(), another(1))).lately == 1
    assert list(RemovalsFile(site.config.data).read().others) == ["gpu-001"]


def test_a_restart_forgets_nothing(site: Site) -> None:
    assert site.reads(without(1, 2, 3, 4, 5)).lately == 5
    assert site.restarts().lately == 5
    again = replaced(fleet(), *map(another, range(1, 6)))
    assert site.reads(again).lately == 5
    assert site.restarts().lately == 5
    status = site.reads(again[:-1])
    assert status.pending is not None
    assert (status.pending.removed, status.pending.lately) == (1, 5)
    site.now += REMEMBERED_MS / 1000
    assert site.restarts() == IN_FORCE.model_copy(update={"lately": 1})
    assert list(RemovalsFile(site.config.data).read().went) == ["gpu-006"]


def test_a_clock_that_was_set_back_makes_nothing_younger_than_now_and_nothing_forgotten(site: Site) -> None:
    assert site.reads(without(1)).lately == 1
    file = RemovalsFile(site.config.data)
    kept = file.read()
    [went] = kept.went.values()
    file.write(kept.model_copy(update={"went": {"gpu-001": went.model_copy(update={"at_ms": 2**50})}}))
    assert site.restarts().lately == 1
    site.now += REMEMBERED_MS / 1000
    assert site.looks().lately == 0


def test_who_comes_back_as_it_was_counts_no_more(site: Site) -> None:
    site.reads(without(1, 2, 3, 4, 5))
    assert site.reads(fleet()) == IN_FORCE
    assert RemovalsFile(site.config.data).read().went == {}


def test_after_an_hour_it_is_a_new_machine(site: Site) -> None:
    site.reads(without(1))
    site.now += REMEMBERED_MS / 1000
    assert site.reads(replaced(fleet(), another(1))) == IN_FORCE


@pytest.mark.parametrize("damaged", [b"", b"{", b'{"went": 7}', None])
def test_where_it_cannot_be_read_all_that_may_be_another_waits(
    site: Site, damaged: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    site.reads(without(1))
    path = site.config.data / "removals.json"
    path.unlink()
    path.mkdir() if damaged is None else path.write_bytes(damaged)
    why = "cannot be read: Is a directory" if damaged is None else "is not what this version writes"
    with caplog.at_level(logging.ERROR):
        said = site.restarts()
    assert f"inventory: {UNTOLD}: {path} {why}; {WAITS}" in caplog.messages
    assert (said.ok, said.valid) == (False, True)
    if damaged is not None:
        assert said.message == f"in force; {UNTOLD}: {WAITS}"
        assert site.restarts().message == said.message, "over a restart, too"
    status = site.reads(replaced(fleet(), another(1)))
    assert status.message == (
        "its objects changed: it changes by what 1 of 5 machines are recognised or prove themselves (gpu-001), and "
        f"{UNTOLD}; the one before stays in force until an operator accepts it"
    )
    assert site.machines == ALL[1:]
    renewed = replaced(without(1), resource("channel", "stable", description="of the week"))
    assert site.reads(renewed).valid, "all else is taken"
    site.accepts(site.reads(without(1, 2)))
    assert site.machines == ALL[2:]
    assert site.reads(replaced(fleet(), another(1))).valid, "an operator has looked"


def test_an_hour_later_nothing_is_missing(site: Site) -> None:
    (site.config.data / "removals.json").write_bytes(b"{")
    assert not site.restarts().ok
    site.now += REMEMBERED_MS / 1000
    assert site.reads(fleet(7)) == IN_FORCE


def test_more_than_can_be_kept_is_said_and_waited_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.reads(without(1))
    one = (site.config.data / "removals.json").stat().st_size
    monkeypatch.setattr(stores, "MOST_BYTES", 3 * one)
    site.now += 1
    status = site.reads(without(1, 2, 3, 4))
    assert status.message == f"in force; {UNTOLD}: {WAITS}"
    assert list(RemovalsFile(site.config.data).read().went) == ["gpu-003", "gpu-004"]
    assert site.reads(without(1, 2, 3)).pending is not None


def test_a_disk_that_does_not_take_it_is_said_and_tried_again(site: Site) -> None:
    path = site.config.data / "removals.json"
    path.unlink(missing_ok=True)
    path.mkdir()
    status = site.reads(without(1))
    assert status.message.startswith(f"cannot write {path}: ")
    assert status.message.endswith("; a restart would forget which machines went within the last hour")
    assert (status.ok, status.valid, site.machines) == (False, True, ALL[1:])
    path.rmdir()
    assert site.looks() == IN_FORCE.model_copy(update={"lately": 1})
    assert list(RemovalsFile(site.config.data).read().went) == ["gpu-001"]


THIEF = machine(9, "52:54:00:00:00:01")
KEEPS = (
    "machine/gpu-009: spec.match.macs[0]: MAC 52:54:00:00:00:01 is the machine's 'gpu-001', which had it in force last "
    "and keeps it"
)


@pytest.mark.parametrize(
    "faulty",
    [
        machine(1, profile="compote"),
        machine(1, "none"),
        machine(1, colour="blue"),
        Resource(kind="machine", name="gpu-001", shown="machine/gpu-001", spec=None, refused="has 70,000 bytes"),
    ],
)
@pytest.mark.parametrize("seconds", [0, 2 * REMEMBERED_MS / 1000])
def test_what_a_machine_had_stays_its_own_while_its_object_has_a_fault(
    site: Site, faulty: Resource, seconds: float
) -> None:
    """However long it takes to correct it, and whoever says meanwhile that it is theirs."""
    assert site.reads(replaced(fleet(), faulty)).left_out > 0
    site.now += seconds
    site.restarts()
    status = site.reads([*replaced(fleet(), faulty), THIEF])
    assert KEEPS in status.faults
    assert site.machines == ALL[1:]
    assert site.reads([*fleet(), THIEF]).faults == (KEEPS,)
    assert site.machines == ALL
    assert site.reads(fleet()).ok


def test_nor_is_it_taken_by_the_very_write_that_brings_the_fault(site: Site) -> None:
    status = site.reads([*replaced(fleet(), machine(1, "none")), THIEF])
    assert KEEPS.replace("had it in force last", "has it in force") in status.faults
    assert site.machines == ALL[1:]


def test_what_was_accepted_to_go_keeps_what_it_had_while_its_object_is_there(site: Site) -> None:
    broken = resource("profile", "compute", channel="stabel")
    assert site.accepts(site.reads(replaced(fleet(), broken))).lately == 0
    assert site.machines == []
    assert KEEPS in site.reads([*replaced(fleet(), broken), THIEF]).faults
    site.reads([*fleet(), THIEF])
    assert site.machines == ALL


def test_what_is_deleted_or_given_up_is_free(site: Site) -> None:
    site.reads(replaced(fleet(), machine(1, profile="compote")))
    assert site.reads([*without(1), THIEF]).ok
    assert site.machines == [*ALL[1:], "gpu-009"]
    assert site.reads(without(1)).ok
    moved = machine(2, "52:54:00:00:00:0e", profile="compote")
    assert site.reads([*replaced(without(1), moved), machine(9, "52:54:00:00:00:02")]).left_out == 1
    assert "gpu-009" in site.machines


MANY = fleet(60)
"""Six that were there, and 54 more."""


def test_machines_that_were_added_lift_the_bound_for_none_that_was_there(site: Site) -> None:
    """Over a restart, too; those that came may go as before, and are machines like others after an hour."""
    assert site.reads(MANY) == IN_FORCE
    site.restarts()
    kept = {f"gpu-{number:03}" for number in range(1, 7)}
    status = site.reads([each for each in MANY if each.name not in kept])
    assert status.message == (
        "its objects changed: it removes 6 of 60 machines (gpu-001, gpu-002, gpu-003, …), 6 of the 6 that were there "
        "before this hour; the one before stays in force until an operator accepts it"
    )
    assert site.reads(replaced(MANY, *map(another, range(1, 7)))).pending is not None
    assert site.reads(MANY[:-6]) == IN_FORCE.model_copy(update={"lately": 6})
    assert site.reads(MANY) == IN_FORCE
    site.now += REMEMBERED_MS / 1000
    site.looks()
    assert site.reads(replaced(MANY, *map(another, range(1, 7)))) == IN_FORCE.model_copy(update={"lately": 6})


def test_nor_do_those_that_have_another_name_by_now(site: Site) -> None:
    """And a machine that was there is one that was, by whatever name."""
    assert site.reads(MANY) == IN_FORCE
    renamed = [
        each.model_copy(
            update={
                "name": f"n{each.name[3:]}",
                "shown": f"machine/n{each.name[3:]}",
                "spec": {**each.spec, "former_names": [each.name]},
            }
        )
        if each.kind == "machine"
        else each
        for each in MANY
    ]
    assert site.reads(renamed) == IN_FORCE
    status = site.reads([*renamed[:3], *renamed[9:]])
    assert status.pending is not None
    assert (status.pending.removed, status.pending.of_older, status.pending.names[0]) == (6, 6, "n-001")


def test_boards_of_machines_that_came_and_left_again_are_changed_one_by_one(site: Site) -> None:
    """Who came an hour ago and went since was none of those that were there before."""
    more = fleet(20)
    assert site.reads(more) == IN_FORCE
    site.now += 1_800
    assert site.reads(fleet(250)) == IN_FORCE
    site.now += 1_700
    left = [each for each in fleet(250) if each in fleet() or each not in more]
    assert site.reads(left).lately == 14
    site.now += 600
    assert site.reads(replaced(left, another(1))) == IN_FORCE.model_copy(update={"lately": 15})


def test_what_came_is_corrected_unasked_be_it_by_another_name(site: Site) -> None:
    """As many as the bound on all lets go."""
    assert site.reads(MANY) == IN_FORCE
    corrected = [
        resource(
            "machine",
            f"n-{number}",
            match={"macs": [f"52:54:00:00:02:{number:02x}"]},
            profile="compute",
            former_names=[f"gpu-{number:03}"],
        )
        for number in range(10, 16)
    ]
    names = {f"gpu-{number:03}" for number in range(10, 16)}
    assert site.reads([*(each for each in MANY if each.name not in names), *corrected]).lately == 6


def test_who_leaves_and_comes_back_is_no_newcomer(site: Site) -> None:
    assert site.reads(MANY) == IN_FORCE
    gone = {f"gpu-{number:03}" for number in range(1, 6)}
    assert site.reads([each for each in MANY if each.name not in gone]).lately == 5
    assert site.reads(MANY) == IN_FORCE
    assert site.reads([each for each in MANY if each.name not in ALL]).pending is not None


def test_who_was_out_for_a_fault_however_long_is_no_newcomer(site: Site) -> None:
    assert site.reads(MANY) == IN_FORCE
    site.now += 2 * REMEMBERED_MS / 1000
    site.looks()
    faulty = [machine(number, profile="compote") for number in range(1, 6)]
    assert site.reads(replaced(MANY, *faulty)).left_out == 5
    site.now += 2 * REMEMBERED_MS / 1000
    site.looks()
    assert site.reads(MANY) == IN_FORCE
    assert RemovalsFile(site.config.data).read().came == {}
    assert site.reads(MANY[:-6]) == IN_FORCE.model_copy(update={"lately": 6}), "a tenth of all sixty"


def test_what_was_accepted_makes_nobody_older(site: Site) -> None:
    more = fleet(99)
    assert site.reads(more) == IN_FORCE
    assert site.accepts(site.reads(more[:-33])) == IN_FORCE
    status = site.reads([each for each in more[:-33] if each.name not in ALL])
    assert status.pending is not None and (status.pending.older, status.pending.of_older) == (6, 6)


def under(name: str, number: int, *former: str) -> Resource:
    """That machine by another name."""
    more = {"former_names": list(former)} if former else {}
    return resource("machine", name, match={"macs": [f"52:54:00:00:00:{number:02x}"]}, profile="compute", **more)


OTHERS = [each for each in fleet() if each.kind != "machine"]
RENAMED = [*OTHERS, *(under(f"n-{number}", number, f"gpu-{number:03}") for number in range(1, 7))]
"""All six by other names, with those that they had; WITHOUT: and no more with these."""
WITHOUT = [*OTHERS, *(under(f"n-{number}", number) for number in range(1, 7))]
ANEW = [another(number) for number in range(1, 7)]
NAMES_ANEW = (
    "its objects changed: it changes by what 6 of 6 machines are recognised or prove themselves (gpu-001, gpu-002, "
    "gpu-003, …); the one before stays in force until an operator accepts it"
)


@pytest.mark.parametrize("restarted", [False, True])
def test_who_gets_a_name_that_a_renamed_machine_gave_up_is_another(site: Site, restarted: bool) -> None:
    """In one edit with that, and in the next one; over restarts, too. An hour later it is a new machine."""
    assert site.reads(RENAMED) == IN_FORCE
    assert site.reads([*WITHOUT, *ANEW]).message == NAMES_ANEW
    assert site.reads(WITHOUT) == IN_FORCE
    if restarted:
        site.restarts()
    assert site.reads([*WITHOUT, *ANEW]).message == NAMES_ANEW
    assert site.reads([*WITHOUT, *ANEW[:2]]) == IN_FORCE.model_copy(update={"lately": 2})
    assert site.reads([*WITHOUT, *ANEW]).pending is not None
    site.now += REMEMBERED_MS / 1000
    assert site.reads([*WITHOUT, *ANEW]) == IN_FORCE


def test_nor_is_a_name_given_up_by_going_and_coming_back_without_it(site: Site) -> None:
    assert site.reads(RENAMED) == IN_FORCE
    assert site.reads([*RENAMED[:-5]]).lately == 5
    assert site.reads([*RENAMED[:-5], *WITHOUT[-5:]]) == IN_FORCE
    status = site.reads([*RENAMED[:-6], *WITHOUT[-6:], *ANEW])
    assert status.message == NAMES_ANEW


def test_nor_by_a_former_name_of_one_that_is_there(site: Site) -> None:
    """Who says that he had it, and takes it then, is another as who takes it at once."""
    assert site.reads([*fleet(12)]) == IN_FORCE
    left = [each for each in fleet(12) if each.name not in ALL]
    assert site.reads([*left, *WITHOUT[len(OTHERS) :]]).pending is not None, "without their former names they are new"
    assert site.reads([*left, *RENAMED[len(OTHERS) :]]) == IN_FORCE
    assert site.reads([*left, *WITHOUT[len(OTHERS) :]]) == IN_FORCE
    had = [under(f"gpu-{number + 6:03}", number + 6, f"gpu-{number:03}") for number in range(1, 7)]
    assert site.reads([*WITHOUT, *had]) == IN_FORCE
    takes = [under(f"gpu-{number:03}", number + 6, f"gpu-{number + 6:03}") for number in range(1, 7)]
    status = site.reads([*WITHOUT, *takes])
    assert status.pending is not None and status.pending.others == 6


def test_who_takes_its_own_name_back_is_the_same(site: Site) -> None:
    assert site.reads(RENAMED) == IN_FORCE
    assert site.reads(WITHOUT) == IN_FORCE
    back = [under(f"gpu-{number:03}", number, f"n-{number}") for number in range(1, 7)]
    assert site.reads([*OTHERS, *back]) == IN_FORCE
    assert RemovalsFile(site.config.data).read().given_up == {}


def test_a_name_that_was_given_up_keeps_nothing_for_an_object_of_that_name(site: Site) -> None:
    assert site.reads(RENAMED) == IN_FORCE
    assert site.reads(WITHOUT) == IN_FORCE
    status = site.reads([*WITHOUT, machine(1, "none")])
    assert [fault.partition(":")[0] for fault in status.faults] == ["machine/gpu-001"]
    assert site.machines == [f"n-{number}" for number in range(1, 7)]


def test_what_was_accepted_is_asked_once(site: Site) -> None:
    site.reads(RENAMED)
    assert site.accepts(site.reads([*WITHOUT, *ANEW])) == IN_FORCE
    assert RemovalsFile(site.config.data).read().given_up == {}
    assert site.reads(WITHOUT).pending is not None, "six of twelve go"


def test_where_those_that_came_alone_are_too_much_they_are_forgotten_too() -> None:
    """Else it would never be small enough."""
    assert without_the_oldest(Removals(came={"gpu-001": 5}), 7) == Removals(untold_ms=7)


def test_of_names_that_were_given_up_the_earlier_half_is_forgotten_too(site: Site) -> None:
    site.reads(RENAMED)
    site.reads(WITHOUT)
    found = RemovalsFile(site.config.data).read()
    assert len(found.given_up) == 6
    assert (len(without_the_oldest(found, 7).given_up), without_the_oldest(found, 7).untold_ms) == (3, 7)
