"""Which boot is newer, what is kept and what is forgotten: by arrival, whatever any clock says."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netboot.lifecycle import state
from netboot.lifecycle.bootid import mint
from netboot.lifecycle.events import LATEST_MS, EventRecord, ScriptRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.lifecycle.trace import apply
from netboot.stores.state_schema import MIGRATIONS
from tests.contract.test_states import Both, in_memory, joined, on_disk
from tests.records import IMAGE, KEY, START, boot_id, checked, event, script, sighted, waits

HOUR, YEAR = 3_600_000, 365 * 86_400_000
JOURNALS = ("boot-0.db", "join-0.db", "join-1.db")


def proven(number: int, at_ms: int, machine: str = "gpu-001") -> list[ScriptRecord | EventRecord]:
    """A boot that attested, all of it by a clock that says `at_ms`: its id too."""
    boot = mint(KEY, machine, IMAGE, at_ms, number)
    own = {"boot": boot, "at_ms": at_ms}
    attested = event(machine, number, Phase.ATTESTED).model_copy(update=own)
    return [script(machine, number).model_copy(update=own), attested]


@pytest.fixture(params=[in_memory, on_disk])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Both]:
    made = request.param(tmp_path)
    yield made
    if hasattr(made.writer, "close"):
        made.writer.close()


def current(both: Both, machine: str = "gpu-001") -> str:
    found = both.reader.machines([machine])[machine].current
    assert found is not None
    return str(found.boot)


@pytest.mark.parametrize("off", [YEAR, -YEAR, HOUR, -HOUR])
def test_a_boot_while_the_clock_was_wrong_is_current_until_the_next_one_proves_itself(both: Both, off: int) -> None:
    both.take(*proven(1, START))
    wrong = proven(2, START + off)
    both.take(*wrong)
    assert current(both) == wrong[0].boot
    for number in range(3, 3 + state.BOOTS_KEPT + 10):
        records = proven(number, START + number * 1_000)
        both.take(*records)
        both.writer.settle()
        assert current(both) == records[0].boot
    assert len(both.reader.boots("gpu-001", 1_000)) == state.BOOTS_KEPT
    assert both.reader.boot(wrong[0].boot) is None


def test_a_clock_that_was_set_back_prunes_no_running_boot(both: Both) -> None:
    for number in range(state.BOOTS_KEPT + 5):
        both.take(*proven(number, START + YEAR + number))
        both.writer.settle()
    for number in range(state.BOOTS_KEPT + 5):
        records = proven(number, START - HOUR + number)
        both.take(*records)
        assert current(both) == records[0].boot


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(
        st.tuples(st.integers(0, LATEST_MS), st.sampled_from(JOURNALS), st.sampled_from(["", "settle", "restart"])),
        min_size=1,
        max_size=12,
    )
)
def test_the_last_boot_that_arrived_is_current(steps: list[tuple[int, str, str]]) -> None:
    """Whatever clocks say: of one journal always; of several, where all had been read to their ends meanwhile."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setitem(state.KEPT, state.Standing.PROVEN, 3)
        both, arrived, last = on_disk(Path(folder)), list[str](), ""
        for number, (at_ms, journal, then) in enumerate(steps):
            if last not in ("", journal):
                both.writer.settle()
            last = journal
            records = proven(number, at_ms)
            both.take(*records, journal=journal)
            arrived.append(records[0].boot)
            assert current(both) == arrived[-1]
            assert [trace.boot for trace in both.reader.boots("gpu-001", 9)] == arrived[::-1][:3]
            if then == "settle":
                both.writer.settle()
            elif then == "restart":
                both.writer.close()
        both.writer.close()


def test_what_several_journals_hold_at_the_same_time_is_in_the_order_of_its_clock(both: Both) -> None:
    both.take(*proven(2, START + HOUR), journal="join-1.db")
    both.take(*proven(1, START), journal="join-0.db")
    assert current(both) == proven(2, START + HOUR)[0].boot
    both.writer.settle()
    both.take(*proven(3, START), journal="join-0.db")
    assert current(both) == proven(3, START)[0].boot


def test_a_report_of_health_by_a_clock_that_was_set_back_is_the_latest(both: Both) -> None:
    both.take(*joined("gpu-001", 1), checked("gpu-001", 1, "pass", YEAR))
    both.writer.settle()
    latest = checked("gpu-001", 1, "fail", 700)
    both.take(latest, journal="boot-1.db")
    assert both.reader.health(boot_id("gpu-001", 1)) == latest
    assert both.reader.machines()["gpu-001"].checked == state.Checked(status="fail", at_ms=latest.at_ms)


def test_what_was_seen_last_is_what_arrived_last(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "DISCOVERED_KEPT", 2)
    both.take(sighted("52:54:00:00:00:01", START + YEAR))
    both.take(sighted("52:54:00:00:00:02", START), sighted("52:54:00:00:00:03", START))
    assert [seen.mac for seen in both.reader.discovered(9)] == ["52:54:00:00:00:03", "52:54:00:00:00:02"]
    both.take(sighted("52:54:00:00:00:02", START - HOUR, outcome="refused"))
    seen = both.reader.discovered(1)[0]
    assert (seen.outcome, seen.first_ms, seen.last_ms) == ("refused", START - HOUR, START - HOUR)


def test_a_boot_that_comes_again_from_an_older_copy_is_no_newer(both: Both) -> None:
    old = [record for number in range(4) for record in proven(number, START + number)]
    both.writer.take(Batch("join-0.db", 7, 8, old))
    for number in range(4, 4 + state.BOOTS_KEPT):
        both.take(*proven(number, START + number), journal="join-1.db")
    both.writer.settle()
    both.writer.rewind("join-0.db", 8)
    both.writer.take(Batch("join-0.db", 7, 8, old))
    newest = proven(3 + state.BOOTS_KEPT, START + 3 + state.BOOTS_KEPT)
    assert current(both) == newest[0].boot
    assert len(both.reader.boots("gpu-001", 1_000)) == state.BOOTS_KEPT


def test_machines_that_left_the_inventory_are_not_counted_and_forgotten_in_time(both: Both) -> None:
    both.take(*joined("gpu-001", 1), *joined("gpu-002", 2), script("gpu-003", 3), checked("gpu-002", 2))
    assert both.writer.declare(["gpu-001", "gpu-009"], 0) == 0
    assert (both.reader.counts(), both.reader.removed()) == ({"Ready": 1}, 2)
    assert both.reader.health_counts(0) == {"none": 1}
    assert both.reader.machines()["gpu-002"].current is not None, "whoever asks is told still"
    assert both.writer.declare(["gpu-001"], state.REMOVED_KEPT_SECONDS - 1) == 0
    assert both.writer.declare(["gpu-001", "gpu-003"], 600) == 1
    assert both.reader.machines().keys() == {"gpu-001", "gpu-003"}
    assert (both.reader.boots("gpu-002", 9), both.reader.health(boot_id("gpu-002", 2))) == ([], None)
    assert (both.reader.counts(), both.reader.removed()) == ({"Ready": 1}, 0)


def test_a_machine_that_comes_back_is_counted_from_the_beginning(both: Both) -> None:
    both.take(*joined("gpu-001", 1))
    for seconds, declared in ((0, []), (state.REMOVED_KEPT_SECONDS - 1, []), (1, ["gpu-001"]), (1, [])):
        assert both.writer.declare(declared, seconds) == 0
    assert both.writer.declare([], state.REMOVED_KEPT_SECONDS - 1) == 0
    assert both.writer.declare([], 1) == 1
    assert both.reader.machines() == {}


def test_of_machines_that_left_those_that_left_last_are_kept(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "REMOVED_KEPT", 2)
    for number in range(5):
        both.take(*joined(f"gpu-00{number}", number))
    assert both.writer.declare(["gpu-003", "gpu-004"], 0) == 1
    assert both.writer.declare([], 60) == 2
    assert both.reader.machines().keys() == {"gpu-003", "gpu-004"}


def test_images_of_current_pending_and_latest_boots(both: Both) -> None:
    def served(number: int, *phases: Phase) -> list[Any]:
        image = f"{number:x}" * 64
        first = script("gpu-001", number).model_copy(update={"image": image})
        return [first, *(event("gpu-001", number, phase) for phase in phases)]

    for number, phases in ((1, [Phase.ATTESTED]), (2, [Phase.ATTESTED]), (3, [Phase.BOOTED]), (4, []), (5, [])):
        both.take(*served(number, *phases))
    assert both.reader.images(0) == {"2" * 64, "3" * 64}
    assert both.reader.images(1) == {"2" * 64, "3" * 64, "5" * 64}


def test_a_state_of_version_4_is_brought_up_to_date(tmp_path: Path) -> None:
    """Its boots are in the order of their clocks, for it says no other; what arrives from then on is newer."""
    ahead = proven(7, START + YEAR)
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.executescript(f"{'; '.join(MIGRATIONS[:4])}; PRAGMA user_version = 4")
        for records in (joined("gpu-001", 1), joined("gpu-001", 2), ahead, joined("gpu-002", 3)):
            trace = None
            for record in records:
                assert isinstance(record, ScriptRecord | EventRecord)
                trace = apply(trace, record)
            assert trace is not None
            row = (trace.boot, trace.machine, 2, records[-1].at_ms, trace.state, trace.model_dump_json(), 1)
            names = "boot, machine, standing, proven_ms, state, trace, fed"
            db.execute(f"INSERT INTO boots ({names}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        db.execute("INSERT INTO boots VALUES ('not an id', 'gpu-003', 1, 'Booted', '{', 1, NULL)")
        report = checked("gpu-002", 3, "warn")
        known = (report.boot, "gpu-002", report.at_ms, "warn", report.model_dump_json(by_alias=True))
        db.execute("INSERT INTO health (boot, machine, at_ms, status, body) VALUES (?, ?, ?, ?, ?)", known)
    db.close()
    both = on_disk(tmp_path)
    both.take()
    assert both.reader.counts() == {"Attested": 1, "Ready": 1, "Booted": 1}
    assert both.reader.health_counts(0) == {"none": 2, "warn": 1}
    assert (current(both), both.reader.images(0)) == (ahead[0].boot, {"a" * 64})
    assert [trace.boot for trace in both.reader.boots("gpu-001", 9)][1:] == [boot_id("gpu-001", n) for n in (2, 1)]
    both.take(*joined("gpu-001", 4))
    assert current(both) == boot_id("gpu-001", 4)
    assert both.writer.inspect() == {"state.db": 1}
    assert both.reader.counts() == {"Ready": 2}
    both.writer.close()


def test_a_boot_id_that_is_ahead_of_the_clock_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    both = on_disk(tmp_path)
    first, second = proven(1, START + YEAR)
    both.take(first, second.model_copy(update={"at_ms": START}))
    said = "is 31536000 s ahead of the clock: it was set back since, or is wrong now"
    assert [record.message for record in caplog.records] == [f"the id of boot {first.boot} of gpu-001 {said}"]
    both.writer.close()


def test_a_state_that_counted_sightings_is_read_on(tmp_path: Path) -> None:
    made = on_disk(tmp_path)
    made.take(sighted("52:54:00:00:00:01", START), waits("gpu-001"))
    made.writer.close()
    with sqlite3.connect(tmp_path / "state.db") as db:
        for table in ("discovered", "waits"):
            db.execute(f"UPDATE {table} SET body = json_set(body, '$.times', 7)")
        db.execute("INSERT INTO waits (machine, body) VALUES ('gpu-002', 'no JSON')")
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) - 1}")
    db.close()
    made = on_disk(tmp_path)
    made.take(sighted("52:54:00:00:00:02", START), journal="boot-1.db")
    assert [one.mac for one in made.reader.discovered(9)] == ["52:54:00:00:00:02", "52:54:00:00:00:01"]
    assert made.reader.machines()["gpu-001"].claims.waited is not None
    made.writer.close()
