"""The state of `netboot serve`, whole, where clocks are wrong, where it is older than what came after, and where the
inventory shrinks: real processes, real sockets."""

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from images.store.store import Store
from netboot.clock import moment_ms
from netboot.lifecycle import state
from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.phases import Phase
from netboot.stores.facts import Facts
from tests.processes import environment, wait_for
from tests.sites import INVENTORY, add_image, make_site
from tests.sockets.service import Service, serving

MAC1, MAC2 = "52:54:00:00:00:01", "52:54:00:00:00:02"
YEAR = 365 * 86_400
CLOCKS = Path(__file__).parent.parent / "clocks"


class Site:
    """A service whose clock, `wrong` seconds off, can be set while it runs."""

    def __init__(self, service: Service, clock: Path) -> None:
        self.service, self._clock = service, clock

    def set_clock(self, seconds: int) -> None:
        """In one write, into the very file: the processes have it open."""
        with self._clock.open("r+b", buffering=0) as file:
            file.write(f"{seconds:<32}".encode())

    def booted(self, mac: str = MAC1) -> str:
        """A boot that said it is up; its id, once everything of it has been taken over."""
        boot = self.service.boot(mac)
        assert self.service.post(boot, mac, "Booted") == 204
        wait_for(lambda: self.service.api(f"/v1/boots/{boot}").get("state") == "Booted")
        return boot

    def proven(self, at_ms: int) -> str:
        """A boot that attested: as join's processes write it down, in a journal that nobody has open any more."""
        boot = self.booted()
        path = self.service.config.data / "join-9.db"
        facts = Facts(path)
        facts.append(EventRecord(at_ms=at_ms, boot=boot, machine="gpu-001", phase=Phase.ATTESTED, peer="192.0.2.7"))
        facts.close()
        path.rename(path.parent / "journal" / path.name)
        wait_for(lambda: self.service.api(f"/v1/boots/{boot}").get("state") == "Attested")
        return boot

    def at_work(self) -> bool:
        """Whether it is ready, and says so of its loops: on a busy machine one may not be heard for ten seconds."""
        said = self.service.readyz()
        loops = {said["details"][name]["message"] for name in ("publisher", "projection")}
        return (said["ready"], loops) == (True, {"at work"})

    def machine(self, name: str = "gpu-001") -> Any:
        return self.service.api(f"/v1/machines/{name}")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    config = make_site(tmp_path / "site", workers=1)
    Store(config.store).set_channel("stable", add_image(config))
    clock = tmp_path / "site" / "clock"
    clock.write_text("0")
    service = Service(config, tmp_path / "site" / "netboot.yaml")
    ours = environment()
    service.environment = {**ours, "PYTHONPATH": f"{CLOCKS}:{ours['PYTHONPATH']}", "NETBOOT_TEST_CLOCK": str(clock)}
    with serving(config, service.file, service=service):
        yield Site(service, clock)


@pytest.mark.parametrize("wrong", [YEAR, -YEAR])
def test_the_last_boot_is_current_though_the_clock_is_a_year_off_and_set_right_again(site: Site, wrong: int) -> None:
    assert site.booted() == site.machine()["current"]["boot"]
    site.set_clock(wrong)
    off = [site.booted() for _ in range(2)]
    assert site.machine()["current"]["boot"] == off[-1]
    assert abs(moment_ms(site.machine()["current"]["reached"][0]["at"]) / 1000 - site_time() - wrong) < 3_600
    wait_for(site.at_work)
    site.set_clock(0)
    right = [site.booted() for _ in range(2)]
    assert site.machine()["current"]["boot"] == right[-1]
    assert [boot["boot"] for boot in site.machine()["boots"]][:4] == [*right[::-1], *off[::-1]]
    first = site.proven(0)
    assert site.machine()["current"]["boot"] == first
    second = site.proven(-wrong * 1_000 if wrong < 0 else 1)
    assert site.machine()["current"]["boot"] == second
    assert site.service.stop() == 0
    site.service.start()
    assert site.machine()["current"]["boot"] == second
    third = site.proven(0)
    assert site.machine()["current"]["boot"] == third


def test_a_clock_that_was_set_back_an_hour_prunes_no_running_boot(site: Site) -> None:
    for _ in range(state.BOOTS_KEPT):
        boot = site.service.boot(MAC1)
        assert site.service.post(boot, MAC1, "Booted") == 204
    wait_for(lambda: len(site.service.api("/v1/boots?machine=gpu-001&limit=1000")["boots"]) == state.BOOTS_KEPT)
    site.set_clock(-3_600)
    running = site.booted()
    assert site.machine()["current"]["boot"] == running
    assert len(site.service.api("/v1/boots?machine=gpu-001&limit=1000")["boots"]) == state.BOOTS_KEPT


def test_a_restored_state_goes_on_from_what_the_journals_hold_and_says_what_is_lost(site: Site) -> None:
    service, data = site.service, site.service.config.data
    before = site.booted()
    assert service.stop() == 0
    shutil.copy(data / "state.db", data / "older")
    service.start()
    lost = site.booted()
    wait_for(lambda: all_purged(data))
    assert service.stop() == 0
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (data / name).unlink(missing_ok=True)
    (data / "older").rename(data / "state.db")
    service.start()
    assert site.machine()["current"]["boot"] == before
    assert "state" not in service.api(f"/v1/boots/{lost}")
    after = site.booted()
    assert site.machine()["current"]["boot"] == after
    assert "state.db is older than journal boot-0.db: records 3 to 4 went into one that is gone" in service.log
    assert service.post(lost, MAC1, "Joining") == 204, "its machine is still there, and is heard"
    wait_for(lambda: service.api(f"/v1/boots/{lost}").get("state") == "Joining")
    wait_for(site.at_work)
    assert service.processes()["controllers"]["restarts"] == 0


def test_a_machine_that_left_the_inventory_is_counted_apart(site: Site) -> None:
    site.booted(MAC1)
    site.booted(MAC2)
    wait_for(lambda: 'netboot_machines_by_state{state="Booted"} 2.0' in site.service.text("/metrics"))
    without = INVENTORY.replace("gpu-002", "gpu-009").replace(MAC2, "52:54:00:00:00:99")
    assert without != INVENTORY
    (site.service.config.inventory / "site.yaml").write_text(without)
    expected = {"netboot_machines_removed 1.0", 'netboot_machines_by_state{state="Booted"} 1.0'}
    # of one answer: both are read one after the other, and it is given to whoever asks within a second
    wait_for(lambda: expected <= set(site.service.text("/metrics").splitlines()))


def site_time() -> float:
    """Seconds since 1970, by the clock of this process, which is right."""
    return time.time()


def all_purged(data: Path) -> bool:
    """Whether every record has been taken over and thrown away by the journals' owners."""
    counts = []
    for path in (data / "journal").glob("boot-*.db"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            counts.append(db.execute("SELECT count(*) FROM records").fetchone()[0])
    return counts != [] and not any(counts)
