"""Whose request of join gets the next thread."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.web.join.turns import Turns


def in_turns(most: int, use: Callable[[Turns], Awaitable[None]]) -> None:
    async def whole() -> None:
        turns = Turns(most)
        await asyncio.wait_for(use(turns), 180)
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
        async with self.turns.turn(network, 60):
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
        async with turns.turn("a", 60):
            with pytest.raises(TimeoutError):
                async with turns.turn("b", 0.01):
                    raise AssertionError
            leaving = asyncio.ensure_future(turns.turn("c", 60).__aenter__())
            await asyncio.sleep(0)
            assert len(turns) == 2
            leaving.cancel()
            await asyncio.wait([leaving])
            assert len(turns) == 1
        async with turns.turn("d", 0.01):
            pass

    in_turns(1, use)


STEPS = st.lists(
    st.tuples(st.just("ask"), st.sampled_from("abc"))
    | st.tuples(st.sampled_from(["leave", "end"]), st.integers(0, 9))
    | st.just(("turn of the loop", 0)),
    max_size=40,
)


@given(st.integers(1, 4), STEPS)
def test_whoever_leaves_whenever_no_thread_is_lost_and_nobody_is_stranded(
    most: int, steps: list[tuple[str, str | int]]
) -> None:
    """Also who leaves in the very moment in which another gives its thread back."""

    async def use(turns: Turns) -> None:
        tasks, ends = list[asyncio.Task[None]](), list[asyncio.Event]()

        async def served(network: str, end: asyncio.Event) -> None:
            async with turns.turn(network, 60):
                await end.wait()

        for step, which in steps:
            if isinstance(which, str):
                ends.append(asyncio.Event())
                tasks.append(asyncio.ensure_future(served(which, ends[-1])))
                await asyncio.sleep(0)
            elif step == "leave" and which < len(tasks):
                tasks[which].cancel()
            elif step == "end" and which < len(ends):
                ends[which].set()
            else:
                await asyncio.sleep(0)
        for end in ends:
            end.set()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            assert outcome is None or isinstance(outcome, asyncio.CancelledError)
        async with contextlib.AsyncExitStack() as held:
            for number in range(most):
                await held.enter_async_context(turns.turn(f"network-{number}", 60))

    in_turns(most, use)


def test_who_leaves_while_another_gives_its_thread_back_takes_none_with_it() -> None:
    async def use(turns: Turns) -> None:
        served = list[str]()

        async def serve(name: str) -> None:
            async with turns.turn("c", 60):
                served.append(name)

        async with turns.turn("a", 60):
            leaving, staying = (asyncio.ensure_future(serve(name)) for name in ("leaving", "staying"))
            await asyncio.sleep(0)
            leaving.cancel()
        await asyncio.wait([leaving, staying], timeout=60)
        assert served == ["staying"]

    in_turns(1, use)
