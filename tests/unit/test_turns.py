"""Turns: so many ask at once, others wait in the order in which they came, and nobody waits for ever."""

import threading
from contextlib import ExitStack
from functools import partial

import pytest

from netboot.turns import NoTurnError, Turns
from tests.processes import wait_for


def _has(turns: Turns, number: int) -> bool:
    return len(turns) == number


def test_who_came_first_is_first_and_the_line_has_an_end() -> None:
    turns, done = Turns(1, 3, seconds=60), list[str]()

    def ask(name: str) -> None:
        with turns.turn(name):
            done.append(name)

    with turns.turn("first"):
        waiting = []
        for number, name in enumerate(("second", "third"), 2):
            waiting.append(threading.Thread(target=ask, args=(name,)))
            waiting[-1].start()
            wait_for(partial(_has, turns, number), 10)
        with pytest.raises(NoTurnError), turns.turn("fourth"):
            raise AssertionError
        assert done == []
    for each in waiting:
        each.join()
    assert done == ["second", "third"]


def test_one_address_has_a_part_of_the_line_and_who_has_none_is_not_counted() -> None:
    with ExitStack() as held:
        turns = Turns(9, 9, 2)
        for _ in range(2):
            held.enter_context(turns.turn("192.0.2.1"))
            held.enter_context(turns.turn())
        held.enter_context(turns.turn())
        with pytest.raises(NoTurnError):
            held.enter_context(turns.turn("192.0.2.1"))
        held.enter_context(turns.turn("192.0.2.2"))


def test_who_waits_too_long_leaves_the_line() -> None:
    turns = Turns(1, 2, seconds=0.01)
    with turns.turn():
        for _ in range(3):
            with pytest.raises(NoTurnError), turns.turn():
                raise AssertionError
    with turns.turn():
        pass
