"""What is kept of boots and conditions beyond what is so now: by the process that writes it, for who shows it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.history import PROOFS_KEPT, TRANSITIONS_KEPT, Found, HistoryLostError, KnownBoot, Seen
from netboot.lifecycle.objective import MOST_SERIES, Durations, Measured
from netboot.lifecycle.proof import SignedProof
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.stores import history_writer
from netboot.stores.history import SqliteHistory
from netboot.stores.history_writer import HistoryFile


def judged(machine: str, reason: Reason, boot: str = "") -> Judged:
    condition = MachineCondition.of(ConditionType.IN_SERVICE, reason, f"because {reason}", 5)
    return Judged(machine=machine, conditions=(condition,), timers={}, boot=boot)


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[HistoryFile, SqliteHistory]]:
    file = HistoryFile(tmp_path / "history.db")
    yield file, SqliteHistory(tmp_path / "history.db")
    file.close()


def test_of_a_machine_that_is_new_the_last_boot_alone_is_under_way_and_later_every_one(
    both: tuple[HistoryFile, SqliteHistory],
) -> None:
    kept, _ = both
    assert kept.begin({"a": ["1", "2", "3"], "b": ["7"]}).new == ["3", "7"]
    assert kept.begin({"a": ["1", "2", "3"], "b": ["7"]}).new == []
    assert kept.begin({"a": ["2", "3", "4", "5"]}).new == ["4", "5"]
    under_way = {each.boot: each.over for each in kept.under_way()}
    assert under_way == {"3": True, "4": True, "5": False, "7": False}
    kept.count(Found(ready=["3"], counted=["4"]))
    kept.prove({}, ["4"])
    three = KnownBoot("3", "a", ready=True, in_service_ms=None, exact=False, over=True, counted=False)
    assert kept.under_way(["3", "4", "9"]) == [three]
    begun = kept.begin({"a": ["3", "4", "5"], "z": []})
    assert (begun.new, [each.boot for each in begun.under_way]) == ([], ["3", "5"]), "what is done is not begun again"
    assert kept.machines() == {"a", "b"}
    kept.forget(["a"])
    assert kept.machines() == {"b"}


def test_a_boot_is_in_service_since_it_was_first_seen_so(both: tuple[HistoryFile, SqliteHistory]) -> None:
    kept, shown = both
    kept.note([(judged("a", Reason.IN_SERVICE, "1"), 10)])
    assert shown.in_service(["1"]) == {}
    for at_ms, exact in ((20, False), (30, True)):
        kept.note((), (), [Seen("1", "a", at_ms, exact)])
    assert shown.in_service(["1", "2"]) == {"1": 20}
    assert kept.under_way() == [], "nobody has said that it proved itself"
    [known] = kept.begin({"a": ["1"]}).under_way
    assert (known.in_service_ms, known.exact) == (20, False)


def test_a_boot_that_is_counted_is_under_way_until_it_is_proven(both: tuple[HistoryFile, SqliteHistory]) -> None:
    kept, shown = both
    kept.begin({"a": ["1"]})
    kept.count(Found(counted=["1"]))
    [known] = kept.under_way()
    assert known.counted
    kept.prove({("1", "a"): SignedProof(proof="1", signature="s")}, ["1"])
    assert (kept.under_way(), shown.proof("1")) == ([], SignedProof(proof="1", signature="s"))


def test_only_another_status_or_reason_is_a_transition(both: tuple[HistoryFile, SqliteHistory]) -> None:
    kept, shown = both
    kept.note([(judged("a", Reason.HEALTH_GATED), 10), (judged("b", Reason.IN_SERVICE), 11)])
    kept.note([(judged("a", Reason.HEALTH_GATED), 20), (judged("a", Reason.IN_SERVICE), 30)])
    found = [(each.id, each.at_ms, each.machine, each.reason) for each in shown.transitions(None, None, 9)]
    assert found == [(1, 10, "a", "HealthGated"), (2, 11, "b", "InService"), (3, 30, "a", "InService")]
    assert [each.id for each in shown.transitions("a", None, 9)] == [1, 3]
    assert [each.id for each in shown.transitions("a", 1, 9)] == [3]
    assert [each.id for each in shown.transitions(None, 1, 1)] == [2]
    assert shown.transitions("a", None, 1)[0].message == "because InService"


def test_a_transition_has_the_machine_s_own_words_in_its_message(both: tuple[HistoryFile, SqliteHistory]) -> None:
    kept, shown = both
    words = "boot b says that it failed after Joining: 403"
    joined = MachineCondition.of(ConditionType.JOINED, Reason.FAILED, words, 5, said="403")
    kept.note([(Judged(machine="a", conditions=(joined,), timers={}), 10)])
    [found] = shown.transitions("a", None, 9)
    assert (found.type, found.status, found.reason, found.message) == ("Joined", "False", "Failed", words)


def test_a_machine_that_nobody_judged_for_a_while_is_found_anew(both: tuple[HistoryFile, SqliteHistory]) -> None:
    kept, shown = both
    kept.note([(judged("a", Reason.IN_SERVICE), 1), (judged("b", Reason.IN_SERVICE), 1)])
    kept.note([(judged("b", Reason.IN_SERVICE), 2)], ["a"])
    kept.note([(judged("a", Reason.IN_SERVICE), 3)])
    assert [(each.machine, each.at_ms) for each in shown.transitions(None, None, 9)] == [("a", 1), ("b", 1), ("a", 3)]


def test_transitions_of_one_machine_are_bounded_and_push_out_no_other_s(
    both: tuple[HistoryFile, SqliteHistory],
) -> None:
    kept, shown = both
    kept.note([(judged("b", Reason.IN_SERVICE), 1)])
    flapping = [(judged("a", (Reason.IN_SERVICE, Reason.HEALTH_GATED)[n % 2]), n) for n in range(TRANSITIONS_KEPT + 7)]
    kept.note(flapping)
    assert [each.at_ms for each in shown.transitions("a", None, 999)] == list(range(7, TRANSITIONS_KEPT + 7))
    assert len(shown.transitions("b", None, 999)) == 1


def test_all_transitions_together_are_bounded(
    both: tuple[HistoryFile, SqliteHistory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_writer, "TRANSITIONS_IN_ALL", 3)
    kept, shown = both
    kept.note([(judged(f"m{n}", Reason.IN_SERVICE), n) for n in range(5)])
    assert [each.machine for each in shown.transitions(None, None, 9)] == ["m2", "m3", "m4"]


def one(hardware: str = "hgx", image: str = "a" * 12, ms: int = 16_000) -> Measured:
    return Measured("Ready", hardware, image, ms, 1_000)


def test_counts_outlive_the_process_and_begin_nowhere_anew(tmp_path: Path) -> None:
    kept = HistoryFile(tmp_path / "history.db")
    kept.begin({"a": ["1", "2"], "b": ["3"]})
    kept.count(Found([one()], ["2"], ["2"]))
    kept.close()
    again = HistoryFile(tmp_path / "history.db")
    again.count(Found([one(ms=26_000), one(hardware="")], [], ["3"]))
    again.close()
    counted = Durations(target="Ready", hardware="hgx", image="a" * 12).plus(one()).plus(one(ms=26_000))
    other = Durations(target="Ready", hardware="", image="a" * 12).plus(one())
    assert SqliteHistory(tmp_path / "history.db").durations() == [other, counted]


def test_pairs_of_class_and_image_are_bounded_and_the_one_counted_longest_ago_goes(
    both: tuple[HistoryFile, SqliteHistory],
) -> None:
    kept, shown = both
    for number in range(MOST_SERIES):
        kept.count(Found([one(image=f"{number:012}"), one(image=f"{number:012}")._replace(target="InService")]))
    kept.count(Found([one(image=f"{0:012}")]))
    kept.count(Found([one(image="f" * 12)]))
    images = {each.image for each in shown.durations()}
    assert len(images) == MOST_SERIES
    assert {f"{0:012}", "f" * 12} <= images
    assert f"{1:012}" not in images


def test_what_cannot_be_written_is_not_half_written(tmp_path: Path) -> None:
    kept = HistoryFile(tmp_path / "history.db")
    kept.begin({"a": ["1"]})
    with closing(sqlite3.connect(tmp_path / "history.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateUnavailableError, match=r"history\.db cannot be written: database is locked"):
            kept.count(Found([one()], ["1"], ["1"]))
    kept.count(Found([one()], ["1"], ["1"]))
    kept.close()
    shown = SqliteHistory(tmp_path / "history.db")
    assert [each.ms for each in shown.durations()] == [16_000]


def test_a_file_that_is_not_there_or_of_a_newer_version_is_said(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with pytest.raises(StateUnavailableError, match=r"is not there yet: the controllers make it when they start"):
        SqliteHistory(path).durations()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StateUnavailableError, match="is of another version"):
        SqliteHistory(path).durations()
    with pytest.raises(StateUnavailableError, match=r"was written by a newer netboot \(schema 99\)"):
        HistoryFile(path).machines()


def test_a_proof_is_kept_once_outlives_its_machine_and_is_bounded(both: tuple[HistoryFile, SqliteHistory]) -> None:
    kept, shown = both
    for number in range(PROOFS_KEPT + 1):
        proof = SignedProof(proof=f"{number}", signature="s")
        kept.prove({(f"b{number}", "a"): proof, ("other", "z"): SignedProof(proof="z", signature="s")}, ())
    kept.prove({("b7", "a"): SignedProof(proof="another", signature="s")}, ())
    kept.forget(["a"])
    assert shown.proof("b7") == SignedProof(proof="7", signature="s"), "the first stays"
    assert (shown.proof("b0"), shown.proof("nobody")) == (None, None)
    assert shown.proof("other") is not None


def test_proofs_of_names_that_come_and_go_are_bounded_together(
    both: tuple[HistoryFile, SqliteHistory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_writer, "PROOFS_IN_ALL", 3)
    monkeypatch.setattr(history_writer, "SELDOM", 1)
    kept, shown = both
    for number in range(5):
        kept.prove({(f"b{number}", f"m{number}"): SignedProof(proof="p", signature="s")}, ())
    assert [number for number in range(5) if shown.proof(f"b{number}") is not None] == [2, 3, 4]
    monkeypatch.setattr(history_writer, "SELDOM", 9)
    for number in range(5, 8):
        kept.prove({(f"b{number}", f"m{number}"): SignedProof(proof="p", signature="s")}, ())
    assert shown.proof("b2") is not None, "how many there are is looked at seldom"


def test_a_file_that_was_removed_or_replaced_is_said_once_and_then_used(
    both: tuple[HistoryFile, SqliteHistory], tmp_path: Path
) -> None:
    kept, shown = both
    kept.begin({"a": ["1"]})
    (tmp_path / "history.db").unlink()
    with pytest.raises(HistoryLostError, match=r"history\.db was removed or replaced while it was in use"):
        kept.machines()
    assert kept.machines() == set()
    other = HistoryFile(tmp_path / "other.db")
    other.begin({"b": ["2"]})
    other.close()
    (tmp_path / "other.db").replace(tmp_path / "history.db")
    with pytest.raises(HistoryLostError):
        kept.machines()
    assert kept.machines() == {"b"}
    assert shown.durations() == []
