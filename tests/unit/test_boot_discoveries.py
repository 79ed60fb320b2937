"""Sightings of machines that may not boot: journalled at a bounded rate, from bounded memory."""

import asyncio
import json
import tracemalloc
from collections.abc import Awaitable

from netboot.boot import discoveries
from netboot.boot.discoveries import Discoveries
from netboot.lifecycle.decide import Claim, Refused, Unavailable, Unknown
from netboot.lifecycle.events import DiscoveryRecord
from netboot.lifecycle.sightings import Discovered, seen_again, sighting
from tests.journals import MemoryJournal

UNKNOWN = Unknown(because=("left out serial: a placeholder", "no machine of the inventory has it"))
REFUSED = Refused(reason="disabled", machines=("n1",), because=("machine n1 is disabled",))


def waits(machine: str) -> Unavailable:
    return Unavailable(
        reason="no-image", machines=(machine,), because=("a machine", "channel stable has no image yet …")
    )


class Hands:
    """A clock that a test moves."""

    now = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.now


def mac(number: int) -> str:
    digits = f"5254{number:08x}"
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))


def run(work: Awaitable[None]) -> None:
    async def whole() -> None:
        await work

    asyncio.run(whole())


def test_the_same_machine_is_journalled_again_only_after_a_while() -> None:
    async def use() -> None:
        journal, clock = MemoryJournal(), Hands()
        noted = Discoveries(journal, clock)
        for _ in range(5):
            await noted.note(UNKNOWN, Claim(mac=mac(1)), "192.0.2.1")
        assert len(journal.bodies) == 1
        await noted.note(REFUSED, Claim(mac=mac(1)), "192.0.2.1")
        assert len(journal.bodies) == 2, "another outcome is news"
        clock.now += discoveries.AGAIN_MS
        await noted.note(UNKNOWN, Claim(mac=mac(1)), "192.0.2.1")
        assert len(journal.bodies) == 3
        record = json.loads(journal.bodies[0])
        assert record == {
            "kind": "discovery",
            "at_ms": 1_700_000_000_000,
            "outcome": "unknown",
            "mac": mac(1),
            "uuid": None,
            "serial": None,
            "architecture": None,
            "reason": "no machine of the inventory has it",
            "peer": "192.0.2.1",
        }

    run(use())


def test_how_many_boot_servers_wrote_it_down_makes_no_difference() -> None:
    """Of 24 requests in ten minutes two are written down by each: since when it asks is the same in either order."""

    async def use() -> None:
        clock, journals = Hands(), [MemoryJournal(), MemoryJournal()]
        servers = [Discoveries(journal, clock) for journal in journals]
        for _ in range(12):
            for noted in servers:
                await noted.note(UNKNOWN, Claim(mac=mac(1)), "192.0.2.1")
            clock.now += discoveries.AGAIN_MS // 6
        one, both = ([body for journal in some for body in journal.bodies] for some in (journals[:1], journals))
        assert (len(one), len(both)) == (2, 4)
        kept = []
        for bodies in (one, both, sorted(both)):
            seen: Discovered | None = None
            for body in bodies:
                seen = seen_again(seen, sighting(DiscoveryRecord.model_validate_json(body)))
            kept.append(seen)
        assert kept[0] is not None
        assert kept[0].first_ms == 1_700_000_000_000
        assert kept == [kept[0]] * 3

    run(use())


def test_machines_that_wait_for_an_image_take_no_place_of_those_that_may_not_boot() -> None:
    async def use() -> None:
        journal, clock = MemoryJournal(), Hands()
        noted = Discoveries(journal, clock)
        for number in range(discoveries.BURST + 10):
            for _ in range(2):
                await noted.note(waits(f"n{number}"), Claim(mac=mac(number)), "192.0.2.1")
        assert len(journal.bodies) == discoveries.BURST, "each once, and those beyond the burst another time"
        assert json.loads(journal.bodies[0]) == {
            "kind": "wait",
            "at_ms": 1_700_000_000_000,
            "machine": "n0",
            "reason": "channel stable has no image yet ?",
            "peer": "192.0.2.1",
        }
        assert (noted.sighted.dropped, noted.waiting.dropped) == (0, 20)
        clock.now += 1_000  # there is room for more
        for number in range(40):
            await noted.note(waits("n1"), Claim(mac=mac(90_000 + number), serial="S1"), "192.0.2.1")
        assert len(journal.bodies) == discoveries.BURST, "one machine, whatever cards are said to be its own"
        await noted.note(UNKNOWN, Claim(mac=mac(1)), "192.0.2.1")
        await noted.note(Unavailable(reason="no-inventory", because=("none yet",)), Claim(mac=mac(1)), "192.0.2.1")
        assert [json.loads(body)["kind"] for body in journal.bodies[discoveries.BURST :]] == ["discovery"]

    run(use())


def test_a_hundred_thousand_unknown_machines_leave_memory_and_journal_bounded() -> None:
    async def use() -> None:
        journal, clock = MemoryJournal(), Hands()
        noted = Discoveries(journal, clock)
        tracemalloc.start()
        for number in range(100_000):
            if number % 100 == 0:
                clock.now += 100
            await noted.note(UNKNOWN, Claim(mac=mac(number)), "192.0.2.1")
        journalled = len(journal.bodies)
        seconds = 100
        most = discoveries.BURST + seconds * discoveries.PER_SECOND
        assert most - discoveries.PER_SECOND <= journalled <= most
        assert noted.sighted.dropped == 100_000 - journalled
        journal.bodies.clear()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < 8 * 2**20

    run(use())


def test_what_is_remembered_is_bounded_even_if_the_clock_runs() -> None:
    async def use() -> None:
        journal, clock = MemoryJournal(), Hands()
        noted = Discoveries(journal, clock)
        for number in range(20_000):
            clock.now += 1_000 // discoveries.PER_SECOND
            await noted.note(UNKNOWN, Claim(mac=mac(number)), "192.0.2.1")
        assert len(noted.sighted._recent) == discoveries.REMEMBERED

    run(use())


def test_a_failing_journal_is_no_matter_of_the_machine_and_the_sighting_is_not_lost() -> None:
    async def use() -> None:
        journal, clock = MemoryJournal(), Hands()
        noted = Discoveries(journal, clock)
        journal.failure = "the disk"
        await noted.note(UNKNOWN, Claim(mac=mac(1)), "192.0.2.1")
        journal.failure = None
        await noted.note(UNKNOWN, Claim(mac=mac(1)), "192.0.2.1")
        assert len(journal.bodies) == 1

    run(use())
