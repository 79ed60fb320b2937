"""What was done to machines, from two records, asked no more often than it must be."""

import pytest

from netboot.controllers.acts import LOOK_SECONDS, RecordedActs
from netboot.join.enrolment import Act as Word
from netboot.join.enrolment import Approve, Import, Record, Reinstate, Retire
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.intents import PutOn, TakeOff
from netboot.lifecycle.transitions import Act, Mark, marks_after
from tests.commits import Told
from tests.drains import MemoryDrains, drain
from tests.enrolments import MemoryEnrolments
from tests.intents import MemoryIntents

WORD = Word("alice", "")


class Records(MemoryEnrolments):
    """Counts how often all are asked for; None: they cannot be told."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.broken = 0, False

    def records(self) -> list[Record]:
        self.asked += 1
        if self.broken:
            raise StateUnavailableError("gone")
        return super().records()


class Site:
    """Two records beside their files, which change when `touch` says so."""

    def __init__(self) -> None:
        self.enrolments, self.intents, self.drains = Records(), MemoryIntents(), MemoryDrains()
        self.up, self.now_ms = 0.0, 1_000
        self.files = {"enrolment.db": Told(), "intents.db": Told()}
        self.acts = RecordedActs(
            self.enrolments,
            self.intents,
            self.drains,
            lambda: self.now_ms,
            self.files["enrolment.db"],
            self.files["intents.db"],
            lambda: self.up,
        )

    def touch(self, name: str) -> None:
        self.files[name].touch()

    def later(self) -> object:
        self.up += LOOK_SECONDS
        return self.acts.acts()

    def order(self, *orders: PutOn | TakeOff) -> None:
        for order in orders:
            self.intents.order("a", order, "alice", self.now_ms)
        self.touch("intents.db")


@pytest.fixture
def site() -> Site:
    return Site()


def test_every_mark_that_can_be_wanted_has_the_act_that_puts_it_on(site: Site) -> None:
    for mark in (Mark.QUARANTINED, Mark.HELD):
        site.order(PutOn(mark, "r"))
        site.later()
        assert marks_after(site.acts.acts()["a"]) == {mark}
        site.order(TakeOff(mark, "r"))
    assert site.later() == {}


def test_both_records_count(site: Site) -> None:
    site.enrolments.apply([("a", Import("a1" * 32)), ("a", Retire()), ("b", Import("b2" * 32))], WORD, 1)
    site.touch("enrolment.db")
    site.order(PutOn(Mark.HELD, "r"))
    assert site.later() == {"a": (Act.RETIRE, Act.HOLD)}
    site.enrolments.apply([("a", Reinstate(site.enrolments.record("a").revision))], WORD, 2)
    site.enrolments.apply([("a", Approve("a1" * 32))], WORD, 2)
    site.touch("enrolment.db")
    assert site.later() == {"a": (Act.HOLD,)}


def test_nothing_is_asked_while_nothing_changed(site: Site) -> None:
    site.order(PutOn(Mark.HELD, "r"))
    first = site.later()
    asked = site.enrolments.asked
    assert [site.later() for _ in range(5)] == [first] * 5
    assert site.acts.acts() is first
    assert site.enrolments.asked == asked
    site.order(TakeOff(Mark.HELD, "r"))
    assert site.acts.acts() is first  # looked at a moment ago
    assert site.later() == {}
    assert site.enrolments.asked == asked


def test_an_end_is_not_forgotten_where_drains_cannot_be_told(site: Site) -> None:
    site.order(PutOn(Mark.HELD, "r", 5_000))
    assert site.later() == {"a": (Act.HOLD,)}
    site.now_ms, site.drains.broken = 5_000, True
    assert site.later() == {"a": (Act.HOLD,)}
    site.drains.broken = False
    assert site.later() == {}


def test_what_has_an_end_ends_though_no_file_changes(site: Site) -> None:
    site.order(PutOn(Mark.HELD, "r", 5_000), PutOn(Mark.QUARANTINED, "r", 9_000))
    assert site.later() == {"a": (Act.QUARANTINE, Act.HOLD)}
    site.now_ms = 5_000
    assert site.later() == {"a": (Act.QUARANTINE,)}
    site.now_ms = 9_000
    assert site.later() == {}


def test_before_the_first_answer_nothing_can_be_told(site: Site) -> None:
    """Least of all that nobody is held."""
    site.order(PutOn(Mark.HELD, "r"))
    for broken in (site.enrolments, site.intents):
        broken.broken = True
        for _ in range(2):
            with pytest.raises(StateUnavailableError):
                site.later()
        broken.broken = False
    assert site.later() == {"a": (Act.HOLD,)}


def test_a_record_that_cannot_be_told_leaves_in_force_what_was(site: Site) -> None:
    site.enrolments.apply([("a", Retire())], WORD, 1)
    site.touch("enrolment.db")
    site.order(PutOn(Mark.HELD, "r"))
    site.later()
    site.intents.broken = True
    site.touch("intents.db")
    assert site.later() == {"a": (Act.RETIRE, Act.HOLD)}
    site.intents.broken, site.enrolments.broken = False, True
    site.intents.order("a", TakeOff(Mark.HELD, "r"), "alice", 1)  # the disk is back, and the file looks the same
    site.touch("enrolment.db")
    assert site.later() == {"a": (Act.RETIRE,)}
    site.enrolments.broken = False
    assert site.later() == {"a": (Act.RETIRE,)}


def test_who_is_to_be_drained_is_so_until_the_order_ends(site: Site) -> None:
    site.order(PutOn(Mark.HELD, "DIMM 4"))
    site.drains.order(drain("b", "1"))
    site.touch("intents.db")
    assert site.later() == {"a": (Act.HOLD,), "b": (Act.DRAIN,)}
    site.drains.finish("1", "undone", "x", 2_000)
    site.touch("intents.db")
    assert site.later() == {"a": (Act.HOLD,)}
