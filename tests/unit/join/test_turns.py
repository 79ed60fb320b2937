"""Whose request of join gets the next thread."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from netboot.web.join.turns import Turns


def in_turns(most: int, use: Callable[[Turns], Awaitable[None]]) -> None:
    async def whole() -> None:
        turns = Turns(most)
        await asyncio.wait_for(use(turns), 20)
        assert len(turns) == 0

    asyncio.run(whole())


class Requests:
    """Requests that hold their thread until told to give it back; `order`: who got one."""

    def __init__(self, turns: Turns) -> None:
        self.turns, self.order = turns, list[str]()
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks = list[asyncio.Task[None]]()

    async def ask(self, *networks: str) -> None:
        for network in networks:
            self._tasks.append(asyncio.ensure_future(self._served(network)))
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)

    async def all_answered(self) -> None:
        while not all(task.done() for task in self._tasks):
            for end in self._ends.values():
                end.set()
            await asyncio.sleep(0.001)

    async def _served(self, network: str) -> None:
        async with self.turns.turn(network, 10):
            self.order.append(network)
            end = self._ends[f"{network}{len(self._ends)}"] = asyncio.Event()
            await end.wait()


def test_one_network_has_half_of_the_threads() -> None:
    async def use(turns: Turns) -> None:
        requests = Requests(turns)
        await requests.ask("a", "a", "a", "a", "b")
        assert requests.order == ["a", "a", "b"]
        await requests.all_answered()
        assert requests.order == ["a", "a", "b", "a", "a"]

    in_turns(4, use)


def test_networks_take_turns_whoever_asked_first() -> None:
    async def use(turns: Turns) -> None:
        requests = Requests(turns)
        await requests.ask("x", "y", "a", "a", "a", "b", "b", "c")
        assert requests.order == ["x", "y"]
        await requests.all_answered()
        assert "".join(requests.order) == "xyabcaba"

    in_turns(2, use)


def test_who_waits_too_long_or_leaves_has_no_turn_and_costs_none() -> None:
    async def use(turns: Turns) -> None:
        async with turns.turn("a", 1):
            with pytest.raises(TimeoutError):
                async with turns.turn("b", 0.01):
                    raise AssertionError
            leaving = asyncio.ensure_future(turns.turn("c", 10).__aenter__())
            await asyncio.sleep(0)
            assert len(turns) == 2
            leaving.cancel()
            await asyncio.wait([leaving])
            assert len(turns) == 1
        async with turns.turn("d", 0.01):
            pass

    in_turns(1, use)
