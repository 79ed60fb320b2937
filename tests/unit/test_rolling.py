"""Processes that are started again one after the other."""

import signal
from typing import cast

import pytest

from netboot.supervise.process import Process
from netboot.supervise.rolling import Rolling


class Counted:
    """A process that counts what it is told."""

    def __init__(self, pid: int) -> None:
        self.pid: int | None = pid
        self.ready = True
        self.told: list[int] = []
        self.definition = type("Definition", (), {"name": f"boot-{pid}"})

    def signal(self, number: signal.Signals) -> None:
        self.told.append(number)


@pytest.fixture
def both() -> list[Counted]:
    return [Counted(1), Counted(2)]


def begin(rolling: Rolling, processes: list[Counted]) -> None:
    rolling.begin(cast(list[Process], processes))
    rolling.step()


def test_who_is_ending_is_told_once_and_its_end_is_no_death_though_a_second_reload_came(both: list[Counted]) -> None:
    rolling = Rolling()
    begin(rolling, both)
    begin(rolling, both)
    assert [each.told for each in both] == [[signal.SIGTERM], []]
    assert rolling.is_told(cast(Process, both[0]))
    both[0].pid = 11
    rolling.step()
    rolling.step()
    assert [each.told for each in both] == [[signal.SIGTERM], [signal.SIGTERM]]
    begin(rolling, both)
    assert rolling.is_told(cast(Process, both[1]))
    both[1].pid = 12
    for _ in range(2):
        rolling.step()
    assert [len(each.told) for each in both] == [2, 1]


def test_who_was_started_by_the_configuration_before_is_told_again(both: list[Counted]) -> None:
    rolling = Rolling()
    begin(rolling, both)
    both[0].pid = 11
    begin(rolling, both)
    assert [len(each.told) for each in both] == [2, 0]
