"""How much is written down for whom: by boot, by address, in all; from bounded memory. And what is served once more."""

import asyncio
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from netboot.boot import ingest
from netboot.boot.ingest import (
    ALONE_SECONDS,
    IN_HAND,
    IN_HAND_OF_SEVERAL,
    OVERHEAD,
    Buckets,
    Ingest,
    Repeats,
    Turns,
    network,
)

KIB = 2048
RATE = KIB * 1024


class Hands:
    """A clock that a test moves."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def accepted(limits: Ingest, boot: str, peer: str, tries: int, size: int = 32 * 1024) -> int:
    return sum(limits.take(boot, peer, size) for _ in range(tries))


def test_a_boot_has_its_burst_then_its_share() -> None:
    clock = Hands()
    limits = Ingest(KIB, clock)
    most = 128 * 1024 // (512 + 1000)
    assert accepted(limits, "one", "192.0.2.1", 1_000, 1_000) == most
    assert accepted(limits, "another", "192.0.2.1", 10, 1_000) == 10, "another boot at the same address has its own"
    clock.now += 10
    assert accepted(limits, "one", "192.0.2.1", 1_000, 1_000) == (128 * 1024 % 1512 + 10 * 4096) // 1512


def test_what_one_boot_has_too_much_costs_its_neighbours_nothing() -> None:
    clock = Hands()
    limits = Ingest(KIB, clock)
    accepted(limits, "mad", "192.0.2.1", 100_000)
    behind = sum(limits.take(f"boot-{number}", "192.0.2.1", 19_000) for number in range(1_000))
    assert behind == 1_000, "all that a thousand machines behind one relay tell at once"


def test_an_address_has_half_and_all_together_the_whole() -> None:
    clock = Hands()
    limits = Ingest(KIB, clock)
    cost = 32 * 1024 + OVERHEAD
    flood = sum(limits.take(number, "192.0.2.1", 32 * 1024) for number in range(20_000))
    assert flood == RATE / 2 * 32 // cost
    assert limits.take("honest", "192.0.2.2", 32 * 1024)
    second = sum(limits.take(-number, "192.0.2.3", 32 * 1024) for number in range(1, 20_000))
    assert flood + 1 + second == RATE * 32 // cost
    assert not limits.take("late", "192.0.2.4", 32 * 1024)
    clock.now += 100
    third = sum(limits.take(f"late-{n}", f"192.0.2.{n}", 32 * 1024) for n in range(20_000))
    assert third == RATE * 32 // cost


def test_addresses_of_one_network_of_ipv6_share_a_bucket() -> None:
    limits = Ingest(KIB, Hands())
    flood = sum(limits.take(n, f"2001:db8::{n % 60_000:x}", 32 * 1024) for n in range(20_000))
    assert flood == RATE / 2 * 32 // (32 * 1024 + OVERHEAD)
    assert limits.take("other", "2001:db8:0:1::1", 32 * 1024)


def test_the_least_rate_takes_the_largest_report() -> None:
    assert accepted(Ingest(256, Hands()), "one", "192.0.2.1", 3) == 3


def test_tables_are_bounded() -> None:
    limits = Ingest(10_000_000, Hands())
    tracemalloc.start()
    for number in range(100_000):
        limits.take(f"boot-{number}", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 0)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 16 * 2**20
    buckets = Buckets(1, 1, 3)
    for number in range(5):
        buckets.bucket(number, 0)
    assert len(buckets) == 3
    assert ingest.MOST_BOOTS + ingest.MOST_ADDRESSES < 50_000


def test_who_is_stopped_when_it_was_told_that_it_came_for_nothing_gives_no_turn_back() -> None:
    async def use() -> None:
        turns, peer = Turns(), "192.0.2.1"
        assert all(turns.begin_at_once(peer) for _ in range(IN_HAND))
        gone = asyncio.create_task(turns.begin(peer, lambda: True))
        await asyncio.sleep(0)
        turns.end(peer)
        gone.cancel()
        await asyncio.wait([gone])
        assert gone.cancelled()
        assert [turns.begin_at_once(peer) for _ in range(2)] == [True, False]

    asyncio.run(use())


def test_an_address_has_less_in_hand_while_others_ask_and_more_again_when_it_is_alone() -> None:
    async def use() -> None:
        clock, flood, other = Hands(), "192.0.2.1", "192.0.2.2"
        turns, begun = Turns(clock), list[int]()

        async def record(number: int) -> None:
            await turns.begin(flood, lambda: False)
            begun.append(number)

        assert [turns.begin_at_once(flood) for _ in range(IN_HAND + 1)] == [True] * IN_HAND + [False], "alone"
        waiting = [asyncio.create_task(record(number)) for number in range(2 * IN_HAND)]
        await asyncio.sleep(0)
        assert turns.begin_at_once(other), "whoever else comes is begun at once"
        turns.end(other)
        for _ in range(IN_HAND - IN_HAND_OF_SEVERAL):
            turns.end(flood)
        await asyncio.sleep(0)
        assert begun == [], "what is in hand beyond the smaller number is not replaced"
        turns.end(flood)
        await asyncio.sleep(0)
        assert begun == [0]
        assert not turns.begin_at_once(flood)
        clock.now += ALONE_SECONDS
        assert not turns.begin_at_once(flood), "nobody passes those that wait"
        turns.end(flood)
        await asyncio.sleep(0)
        more = IN_HAND - IN_HAND_OF_SEVERAL + 1
        assert begun == list(range(1 + more)), "alone again: as many as before, in their order"
        while len(turns):
            turns.end(flood)
        await asyncio.wait(waiting)
        assert len(turns) == 0 and begun == list(range(2 * IN_HAND))

    asyncio.run(asyncio.wait_for(use(), 180))


def test_a_boot_id_is_served_again_to_whom_it_was_served_then_to_others() -> None:
    known = Repeats()
    assert known.boot_id("n1", "192.0.2.1", "record", 1_000) is None
    known.remember("n1", "192.0.2.1", "record", "first", 1_000)
    known.remember("n1", "192.0.2.2", "record", "second", 2_000)
    assert known.boot_id("n1", "192.0.2.1", "record", 3_000) == "first"
    assert known.boot_id("n1", "192.0.2.2", "record", 3_000) == "second"
    assert known.boot_id("n1", "192.0.2.3", "record", 3_000) == "second"
    assert known.boot_id("n2", "192.0.2.1", "record", 3_000) is None


def test_no_boot_id_is_served_again_for_another_script_or_after_its_time() -> None:
    known = Repeats()
    known.remember("n1", "192.0.2.1", "record", "first", 1_000)
    assert known.boot_id("n1", "192.0.2.1", "of another image", 1_000) is None
    assert known.boot_id("n1", "192.0.2.1", "record", 1_000 + ingest.REPEAT_MS - 1) == "first"
    assert known.boot_id("n1", "192.0.2.1", "record", 1_000 + ingest.REPEAT_MS) is None
    assert known.boot_id("n1", "192.0.2.1", "record", 999) is None, "the clock was set back"


def test_what_is_remembered_is_bounded() -> None:
    known = Repeats()
    for number in range(ingest.MOST_REPEATS + 5):
        known.remember(f"n{number}", "192.0.2.1", "record", "boot", 1_000)
    assert known.boot_id("n4", "192.0.2.1", "record", 1_000) is None
    assert known.boot_id("n5", "192.0.2.1", "record", 1_000) == "boot"


class Askers:
    """Whoever asks for turns, ends, is cancelled or goes, of two addresses."""

    def __init__(self) -> None:
        self.clock, self.gone = Hands(), set[int]()
        self.turns, self.tasks = Turns(self.clock), list[asyncio.Task[None]]()
        self.begun, self.order = list[str](), dict[str, list[int]]()

    def begin(self, number: int) -> None:
        peer = ("192.0.2.1", "2001:db8::1", "2001:db8::2")[min(number % 8, 2)]
        self.tasks.append(asyncio.create_task(self.record(peer, len(self.tasks))))

    async def record(self, peer: str, number: int) -> None:
        await self.turns.begin(peer, lambda: number in self.gone)
        self.begun.append(peer)
        self.order.setdefault(network(peer), []).append(number)

    def end(self, number: int) -> None:
        if self.begun:
            self.turns.end(self.begun.pop(number % len(self.begun)))

    def cancel(self, number: int) -> None:
        if self.tasks:
            self.tasks[number % len(self.tasks)].cancel()

    def go(self, number: int) -> None:
        self.gone.add(number)

    def tick(self, _number: int) -> None:
        self.clock.now += ALONE_SECONDS / 3


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["begin", "begin", "end", "cancel", "go", "tick"]), st.integers(0, 40))))
def test_no_turn_is_lost_and_in_the_end_nothing_is_kept_in_mind(acts: list[tuple[str, int]]) -> None:
    async def use() -> None:
        askers = Askers()
        for act, number in acts:
            getattr(askers, act)(number)
            if number % 2:
                await asyncio.sleep(0)
        while not all(task.done() for task in askers.tasks) or askers.begun:
            await asyncio.sleep(0)
            askers.end(0)
        await asyncio.gather(*askers.tasks, return_exceptions=True)
        assert (len(askers.turns), askers.turns._waiting) == (0, {})
        assert all(each == sorted(each) for each in askers.order.values())

    asyncio.run(asyncio.wait_for(use(), 180))
