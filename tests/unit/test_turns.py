"""Turns: so many ask at once, others wait in the order in which they came, and nobody waits for ever."""

import threading
from contextlib import ExitStack
from functools import partial

import pytest

from netboot.kube import token_reviews
from netboot.oidc import logins
from netboot.processes.management import IN_LINES, STRANGERS
from netboot.turns import NoTurnError, Places, Turns
from netboot.web.server import THREADS
from netboot.web.watchers import MOST_WATCHERS
from tests.processes import wait_for


def _has(turns: Turns, number: int) -> bool:
    return len(turns) == number


def test_who_came_first_is_first_and_the_line_has_an_end() -> None:
    turns, done = Turns(1, 3, seconds=180), list[str]()

    def ask(name: str) -> None:
        with turns.turn(name):
            done.append(name)

    with turns.turn("first"):
        waiting = []
        for number, name in enumerate(("second", "third"), 2):
            waiting.append(threading.Thread(target=ask, args=(name,)))
            waiting[-1].start()
            wait_for(partial(_has, turns, number))
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


def test_all_lines_together_leave_places_and_strangers_leave_some_to_who_is_known() -> None:
    places = Places(most=5, of_strangers=3)
    logins, reviews = (Turns(9, 9, places=places.strangers) for _ in range(2))
    known = Turns(9, 9, places=places.known)
    with ExitStack() as held:
        held.enter_context(logins.turn())
        for _ in range(2):
            held.enter_context(reviews.turn())
        for full in (logins, reviews):
            with pytest.raises(NoTurnError):
                held.enter_context(full.turn())
        for _ in range(2):
            held.enter_context(known.turn())
        with pytest.raises(NoTurnError):
            held.enter_context(known.turn())
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(logins.turn())
        for _ in range(2):
            held.enter_context(known.turn())


def test_who_finds_no_turn_keeps_no_place() -> None:
    places = Places(most=2, of_strangers=2)
    turns = Turns(1, 1, places=places.strangers)
    with turns.turn():
        for _ in range(3):
            with pytest.raises(NoTurnError), turns.turn():
                raise AssertionError
        with Turns(1, 1, places=places.known).turn():
            pass


def test_the_listener_keeps_threads_for_whoever_has_a_token_of_the_site() -> None:
    assert THREADS - MOST_WATCHERS - IN_LINES == 6
    assert STRANGERS < IN_LINES


def test_strangers_who_fill_one_line_leave_places_to_the_other() -> None:
    for line in (logins, token_reviews):
        assert STRANGERS - line.STRANGERS_IN_LINE >= 4
    assert logins.OF_ONE_ADDRESS < logins.STRANGERS_IN_LINE
