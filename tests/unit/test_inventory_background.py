"""The inventory's files are read in a thread, while one is in force: nobody waits for them."""

import threading
from pathlib import Path

import pytest

from netboot.config import Config
from netboot.controllers.changes import Changes
from netboot.controllers.inventory import InventoryInForce
from netboot.machines.inventory import load_inventory
from netboot.machines.joining import Joining
from netboot.machines.values import Inventory
from netboot.status.controllers import InventoryStatus
from netboot.stores import inventory as declared
from tests.processes import wait_for
from tests.sites import INVENTORY, make_site

MORE = INVENTORY.replace(
    "profiles:", '  - {name: gpu-009, match: {macs: ["52:54:00:00:00:09"]}, profile: compute}\nprofiles:'
)


class Slow:
    """Reads the inventory, when it may."""

    def __init__(self) -> None:
        self.may, self.reads = threading.Event(), 0

    def __call__(self, folder: Path, joining: Joining | None) -> Inventory:
        self.reads += 1
        read = load_inventory(folder, joining)
        self.may.wait(60)
        return read


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    slow = Slow()
    monkeypatch.setattr(declared, "load_inventory", slow)
    return slow


def site(root: Path) -> Config:
    """With the folder of a service that has run."""
    config = make_site(root)
    config.data.mkdir()
    return config


def names(in_force: InventoryInForce) -> list[str]:
    assert in_force.value is not None
    return [machine.name for machine in in_force.value.machines]


def test_the_one_before_is_in_force_while_the_files_are_read(tmp_path: Path, slow: Slow) -> None:
    config = site(tmp_path)
    in_force = InventoryInForce(config, load_inventory(config.inventory), in_background=True)
    (config.inventory / "site.yaml").write_text(MORE)
    assert not in_force.step(now=True)
    assert not in_force.step(now=False)
    assert ("gpu-009" in names(in_force), in_force.status(None).ok) == (False, True)
    slow.may.set()
    wait_for(lambda: in_force.step(now=False))
    assert ("gpu-009" in names(in_force), slow.reads) == (True, 1)


def test_files_that_changed_while_they_were_read_are_read_again(tmp_path: Path, slow: Slow) -> None:
    config = site(tmp_path)
    in_force, file = (
        InventoryInForce(config, load_inventory(config.inventory), in_background=True),
        config.inventory / "site.yaml",
    )
    file.write_text(MORE)
    assert not in_force.step(now=True)
    wait_for(lambda: slow.reads)
    file.write_text(MORE + "\n")
    file.write_text(MORE)  # the same bytes as those that began to be read
    slow.may.set()
    wait_for(lambda: in_force.step(now=False))
    assert ("gpu-009" in names(in_force), slow.reads) == (True, 2)


def test_with_nothing_in_force_it_waits_for_the_files(tmp_path: Path) -> None:
    in_force = InventoryInForce(site(tmp_path), None, in_background=True)
    assert in_force.step(now=True)
    assert "gpu-001" in names(in_force)


def test_faults_that_were_read_meanwhile_are_told(tmp_path: Path) -> None:
    config = site(tmp_path)
    in_force = InventoryInForce(config, load_inventory(config.inventory), in_background=True)
    (config.inventory / "site.yaml").write_text("machines: 7\n")
    wait_for(lambda: in_force.step(now=True))
    assert (in_force.valid, "gpu-001" in names(in_force)) == (False, True)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def late(seconds: int, words: str) -> InventoryStatus:
    late = words.format(seconds)
    remedy = "see whether the file system of `inventory` answers, and who writes there all the time"
    message = f"{late}; the one before stays in force"
    return InventoryStatus(ok=False, valid=False, message=message, remedy=remedy, late=late)


@pytest.mark.parametrize("act", ["looked at", "read"])
def test_files_that_cannot_be_read_to_their_end_are_said_and_nobody_waits_for_them(
    tmp_path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, act: str
) -> None:
    settled = Changes.settled

    def stands(changes: Changes, *, now: bool) -> bool:
        slow.may.wait(60)
        return settled(changes, now=now)

    if act == "looked at":
        monkeypatch.setattr(Changes, "settled", stands)
    config, clock = site(tmp_path), Clock()
    in_force = InventoryInForce(config, load_inventory(config.inventory), clock, in_background=True)
    (config.inventory / "site.yaml").write_text(MORE)
    for seconds in (0, 60):
        clock.now = seconds
        assert (in_force.step(now=True), in_force.status(None).ok) == (False, True)
    for seconds in (61, 90):
        clock.now = seconds
        assert not in_force.step(now=False)
        words = "its files are being read for {} s, without an end"
        assert in_force.status(None) == late(seconds, words)
    assert [record.getMessage() for record in caplog.records] == [
        "inventory: its files are being read for 61 s, without an end; the one before stays in force"
    ]
    slow.may.set()
    wait_for(lambda: in_force.step(now=False))
    assert ("gpu-009" in names(in_force), in_force.status(None).ok) == (True, True)


def test_files_that_change_more_often_than_they_can_be_read_are_said(tmp_path: Path) -> None:
    config, clock = site(tmp_path), Clock()
    in_force = InventoryInForce(config, load_inventory(config.inventory), clock, in_background=True)
    wait_for(lambda: in_force.step(now=True))
    text = MORE
    while clock.now < 62:
        text += "#\n"
        (config.inventory / "site.yaml").write_text(text)
        wait_for(lambda: not in_force.step(now=False) and in_force._reading is None)
        assert in_force.status(None).ok == (clock.now <= 60)
        clock.now += 1
    words = "its files change more often than they can be read, for {} s"
    assert in_force.status(None) == late(62, words)
    wait_for(lambda: in_force.step(now=False))
    assert ("gpu-009" in names(in_force), in_force.status(None).ok) == (True, True)
