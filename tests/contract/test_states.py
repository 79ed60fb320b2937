"""The state, in memory and in SQLite: the same suite."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netboot.lifecycle import state
from netboot.lifecycle.errors import NoSuchBootError, StateUnavailableError
from netboot.lifecycle.events import AnyRecord as Record
from netboot.lifecycle.hardware import MOST_MACHINES
from netboot.lifecycle.phases import OBSERVED_PHASES, REPORTED_PHASES, Phase
from netboot.lifecycle.state import Batch, Claims, SetAside, Waited
from netboot.lifecycle.trace import apply
from netboot.stores.state import SqliteStates
from netboot.stores.state_schema import MIGRATIONS, VERSION
from netboot.stores.state_writer import SqliteProjection
from tests.records import (
    START,
    boot_id,
    certified,
    checked,
    console,
    event,
    found_crash,
    made_of,
    script,
    sighted,
    waits,
)
from tests.states import MemoryStates


class Both:
    """A writer, and a reader of what it wrote."""

    def __init__(self, writer: Any, reader: Any) -> None:
        self.writer, self.reader = writer, reader
        self._next: dict[str, int] = {}

    def take(self, *records: Record, journal: str = "boot-0.db") -> None:
        last = self._next[journal] = self._next.get(journal, 0) + len(records)
        self.writer.take(Batch(journal, 7, last, records))


def in_memory(_folder: Path) -> Both:
    states = MemoryStates()
    return Both(states, states)


def on_disk(folder: Path) -> Both:
    return Both(SqliteProjection(folder / "state.db"), SqliteStates(folder / "state.db"))


MAKERS = pytest.mark.parametrize("make", [in_memory, on_disk])


@pytest.fixture(params=[in_memory, on_disk])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Both]:
    made = request.param(tmp_path)
    yield made
    if isinstance(made.writer, SqliteProjection):
        made.writer.close()


def test_of_hardware_the_latest_report_of_each_of_the_last_machines_is_kept(both: Both) -> None:
    macs = [f"52:54:00:00:01:{number:02x}" for number in range(MOST_MACHINES + 2)]
    both.take(*(made_of(mac, START + number) for number, mac in enumerate(macs)))
    both.take(made_of(macs[5], START + 900, memory=2))
    found = both.reader.hardware()
    assert [record.report.mac for record in found] == [macs[5], *(mac for mac in reversed(macs[2:]) if mac != macs[5])]
    assert [record.report.memory_bytes for record in found] == [2, *[1] * (MOST_MACHINES - 1)]


def test_of_hardware_it_is_kept_that_somebody_else_said_to_be_that_machine(both: Both) -> None:
    mac, ek, other = "52:54:00:00:01:00", {"ek_sha256": "ab" * 32}, {"ek_sha256": "cd" * 32}

    def told(number: int, peer: str, tpm: Any) -> tuple[str, str, int]:
        record = made_of(mac, START + number, tpm=tpm).model_copy(update={"peer": peer})
        both.take(record)
        (found,) = both.reader.hardware()
        assert found.report == record.report
        return found.peer, found.other, found.other_ms

    assert told(0, "192.0.2.9", None) == ("192.0.2.9", "", 0)
    assert told(1, "192.0.2.9", ek) == ("192.0.2.9", "", 0), "its TPM was found later"
    assert told(2, "192.0.2.66", ek) == ("192.0.2.66", "192.0.2.9", START + 1)
    assert told(3, "192.0.2.66", ek) == ("192.0.2.66", "192.0.2.9", START + 1)
    assert told(4, "192.0.2.66", other) == ("192.0.2.66", "192.0.2.66", START + 3)
    both.take(*(made_of(mac, START + 5 + n).model_copy(update={"peer": f"192.0.2.{n}"}) for n in range(3)))
    (found,) = both.reader.hardware()
    assert (found.peer, found.other, found.other_ms) == ("192.0.2.2", "192.0.2.1", START + 6)


def test_reports_of_a_clock_that_was_set_back_keep_out_none_that_arrive(both: Both) -> None:
    macs = [f"52:54:00:00:01:{number:02x}" for number in range(MOST_MACHINES)]
    both.take(*(made_of(mac, START + 10**10 + number) for number, mac in enumerate(macs)))
    both.writer.settle()
    both.take(made_of(macs[3], START, memory=2), made_of("52:54:00:00:02:00", START + 1))
    found = both.reader.hardware()
    assert [record.report.mac for record in found[:2]] == ["52:54:00:00:02:00", macs[3]]
    assert (len(found), found[1].report.memory_bytes) == (MOST_MACHINES, 2)


def test_boots_since_one_was_ready_are_told_by_standing_newest_first(both: Both) -> None:
    def since(least: state.Standing, limit: int = 16) -> list[str]:
        return [trace.boot for trace in both.reader.since_ready("gpu-001", least, limit)]

    claimed, reported, proven = state.Standing
    both.take(script("gpu-001", 1), event("gpu-001", 1, Phase.ATTESTED), script("gpu-002", 9))
    assert since(claimed) == [boot_id("gpu-001", 1)]
    both.take(script("gpu-001", 2), event("gpu-001", 2, Phase.READY), event("gpu-001", 2, Phase.FAILED))
    assert since(claimed) == []
    both.take(script("gpu-001", 3), script("gpu-001", 4), event("gpu-001", 4, Phase.SWITCHED))
    both.take(script("gpu-001", 5), event("gpu-001", 5, Phase.ATTESTED), script("gpu-001", 6))
    assert since(claimed) == [boot_id("gpu-001", number) for number in (6, 5, 4, 3)]
    assert since(claimed, 2) == [boot_id("gpu-001", number) for number in (6, 5)]
    assert since(reported) == [boot_id("gpu-001", number) for number in (5, 4)]
    assert since(proven) == [boot_id("gpu-001", 5)]
    both.take(event("gpu-001", 3, Phase.SWITCHED, 9_000))
    assert since(reported) == [boot_id("gpu-001", number) for number in (3, 5, 4)]
    both.take(event("gpu-001", 4, Phase.READY, 9_000))
    assert since(claimed) == []


def test_a_boot_comes_together_from_two_journals_in_any_order(both: Both) -> None:
    both.take(event("gpu-001", 1, Phase.INITRD_STARTED), journal="boot-1.db")
    both.take(script("gpu-001", 1))
    trace = both.reader.boot(boot_id("gpu-001", 1))
    assert [one.phase for one in trace.reached] == [Phase.SCRIPT_SERVED, Phase.INITRD_STARTED]
    assert trace.script.channel == "stable"
    assert both.reader.machines(["gpu-001"])["gpu-001"].current == trace
    assert both.reader.counts() == {"InitrdStarted": 1}


def test_a_claim_is_not_a_boot(both: Both) -> None:
    both.take(script("gpu-001", 1), event("gpu-001", 1, Phase.BOOTED))
    up = both.reader.machines()["gpu-001"].current
    both.take(
        script("gpu-001", 2), event("gpu-001", 2, Phase.KERNEL_FETCHED), event("gpu-001", 2, Phase.INITRD_FETCHED)
    )
    after = both.reader.machines()["gpu-001"]
    assert after.current == up
    assert (after.claims.served, after.claims.last_ms) == (2, START + 2_000)
    assert [one.boot for one in both.reader.boots("gpu-001", 10)] == [boot_id("gpu-001", 2), boot_id("gpu-001", 1)]
    both.take(event("gpu-001", 2, Phase.INITRD_STARTED))
    assert both.reader.machines()["gpu-001"].current.boot == boot_id("gpu-001", 2)


def test_a_late_report_of_an_older_boot_does_not_become_current(both: Both) -> None:
    both.take(script("gpu-001", 2), event("gpu-001", 2, Phase.BOOTED))
    both.take(script("gpu-001", 1), event("gpu-001", 1, Phase.FAILED, detail="late"), journal="boot-1.db")
    assert both.reader.machines()["gpu-001"].current.boot == boot_id("gpu-001", 2)


JOINED = (Phase.ATTESTED, Phase.TOKEN_ISSUED, Phase.CSR_APPROVED, Phase.NODE_REGISTERED, Phase.READY)


def joined(machine: str, number: int) -> list[Record]:
    """A boot from its script to the Ready node."""
    observed = [event(machine, number, phase, 600 + 10 * place) for place, phase in enumerate(JOINED)]
    return [script(machine, number), event(machine, number, Phase.INITRD_STARTED, 300), *observed]


def test_false_events_in_a_ready_machine_s_name_alter_nothing(both: Both) -> None:
    both.take(*joined("gpu-001", 1))
    ready = both.reader.machines()["gpu-001"]
    phases = (Phase.INITRD_STARTED, Phase.IMAGE_VERIFIED, Phase.SWITCHED, Phase.BOOTED, Phase.JOINING, Phase.FAILED)
    both.take(script("gpu-001", 2), *(event("gpu-001", 2, phase, detail="a false report") for phase in phases))
    after = both.reader.machines()["gpu-001"]
    assert after.current == ready.current
    assert (after.current.boot, after.current.state) == (boot_id("gpu-001", 1), Phase.READY)
    assert both.reader.counts() == {"Ready": 1}
    assert after.pending.boot == boot_id("gpu-001", 2)  # a reboot on its way would look the same


def test_a_false_failure_of_the_very_boot_is_kept_and_alters_nothing(both: Both) -> None:
    both.take(*joined("gpu-001", 1))
    both.take(event("gpu-001", 1, Phase.FAILED, 9_000, "a false report"))
    current = both.reader.machines()["gpu-001"].current
    assert (current.state, current.reason) == (Phase.READY, "")
    assert [one.detail for one in current.failures] == ["a false report"]
    assert both.reader.counts() == {"Ready": 1}


def test_a_reboot_is_pending_until_it_proves_itself(both: Both) -> None:
    both.take(*joined("gpu-001", 1))
    both.take(script("gpu-001", 2))
    assert both.reader.machines()["gpu-001"].pending is None  # a claim only
    both.take(event("gpu-001", 2, Phase.INITRD_STARTED))
    assert both.reader.machines()["gpu-001"].pending.state == Phase.INITRD_STARTED
    both.take(event("gpu-001", 2, Phase.ATTESTED, 900))
    after = both.reader.machines()["gpu-001"]
    assert (after.current.boot, after.current.state, after.pending) == (boot_id("gpu-001", 2), Phase.ATTESTED, None)
    assert both.reader.counts() == {"Attested": 1}


def test_the_boot_that_proved_itself_last_is_current_whichever_was_minted_first(both: Both) -> None:
    both.take(event("gpu-001", 2, Phase.ATTESTED, 0), event("gpu-001", 1, Phase.ATTESTED, 60_000))
    assert both.reader.machines()["gpu-001"].current.boot == boot_id("gpu-001", 1)


def test_proven_boots_of_machines_come_in_the_order_in_which_they_proved_themselves(both: Both) -> None:
    both.take(event("gpu-001", 2, Phase.ATTESTED, 0), event("gpu-001", 1, Phase.ATTESTED, 60_000))
    both.take(script("gpu-001", 3), event("gpu-002", 1, Phase.BOOTED), event("gpu-003", 1, Phase.ATTESTED))
    both.take(event("gpu-001", 2, Phase.READY, 120_000))
    assert both.reader.proven(["gpu-001", "gpu-002", "nobody"]) == {
        "gpu-001": (boot_id("gpu-001", 2), boot_id("gpu-001", 1))
    }
    assert both.reader.proven_machines() == {"gpu-001", "gpu-003"}


def test_no_number_of_unproven_boots_pushes_out_a_boot_that_proved_itself(both: Both) -> None:
    both.take(*joined("gpu-001", 0))
    for number in range(1, state.BOOTS_KEPT + 30):
        both.take(script("gpu-001", number), event("gpu-001", number, Phase.BOOTED))
    assert both.reader.machines()["gpu-001"].current.boot == boot_id("gpu-001", 0)
    assert len(both.reader.boots("gpu-001", 1000)) == state.BOOTS_KEPT + 1


def test_a_batch_is_taken_once(both: Both) -> None:
    batch = Batch("boot-0.db", 7, 2, [script("gpu-001", 1), sighted("52:54:00:00:00:99")])
    for _ in range(3):
        both.writer.take(batch)
    assert both.writer.cursor("boot-0.db") == (7, 2)
    assert both.reader.machines()["gpu-001"].claims.served == 1
    assert len(both.reader.feed(0, 10)) == 1


def test_a_journal_that_took_the_place_of_another_is_another(both: Both) -> None:
    both.writer.take(Batch("boot-0.db", 7, 900, [script("gpu-001", 1)]))
    both.writer.take(Batch("boot-0.db", 8, 1, [script("gpu-001", 2)]))
    assert both.writer.cursor("boot-0.db") == (8, 1)
    assert both.reader.machines()["gpu-001"].claims.served == 2


def test_a_storm_of_claims_is_counted_and_pushes_out_no_boot(both: Both) -> None:
    both.take(script("gpu-001", 1), event("gpu-001", 1, Phase.BOOTED))
    both.take(*(script("gpu-001", number) for number in range(2, 400)))
    both.take(*(script("gpu-001", number) for number in range(400, 500)), event("gpu-001", 450, Phase.KERNEL_FETCHED))
    found = both.reader.boots("gpu-001", 1000)
    assert len(found) == state.CLAIMS_KEPT + 1
    assert found[0].boot == boot_id("gpu-001", 499)
    assert found[-1].boot == boot_id("gpu-001", 1)
    assert both.reader.machines()["gpu-001"].claims.served == 499


def test_boots_are_kept_to_a_number_for_each_machine(both: Both) -> None:
    for number in range(state.BOOTS_KEPT + 20):
        both.take(script("gpu-001", number), event("gpu-001", number, Phase.BOOTED))
    both.take(script("gpu-002", 0), event("gpu-002", 0, Phase.BOOTED))
    assert len(both.reader.boots("gpu-001", 1000)) == state.BOOTS_KEPT
    assert len(both.reader.boots("gpu-002", 1000)) == 1
    assert len(both.reader.boots(None, 10)) == 10


def test_boots_go_on_behind_one_of_them(both: Both) -> None:
    both.take(*(script(f"gpu-00{1 + number % 2}", number) for number in range(1, 7)))
    whole = [one.boot for one in both.reader.boots(None, 10)]
    assert [one.boot for one in both.reader.boots(None, 2, whole[1])] == whole[2:4]
    assert both.reader.boots(None, 2, whole[-1]) == []
    assert [one.boot for one in both.reader.boots("gpu-001", 9, whole[2])] == [
        one.boot for one in both.reader.boots("gpu-001", 9) if one.boot in whole[3:]
    ]
    with pytest.raises(NoSuchBootError):
        both.reader.boots(None, 2, boot_id("gpu-001", 99))


def test_what_a_machine_waited_for_last_is_known_by_its_name(both: Both) -> None:
    minute = 60_000
    both.take(waits("gpu-001", START), waits("gpu-001", START + 5 * minute, "cut off", "192.0.2.7"), waits("gpu-002"))
    both.take(waits("gpu-001", START - minute), journal="boot-1.db")  # written down before, and taken later
    both.take(script("gpu-002", 1), journal="boot-1.db")
    found = both.reader.machines()
    assert found["gpu-001"].current is None
    assert found["gpu-001"].claims == Claims(
        waited=Waited(reason="no image", peer="192.0.2.9", first_ms=START - minute, last_ms=START + 5 * minute)
    )
    assert found["gpu-002"].claims.served == 1
    assert found["gpu-002"].claims.waited == Waited(reason="no image", peer="192.0.2.9", first_ms=START, last_ms=START)
    assert both.reader.machines(["gpu-001"]) == {"gpu-001": found["gpu-001"]}
    both.take(waits("gpu-001", START + 66 * minute, "anew"), journal="boot-1.db")
    waited = both.reader.machines()["gpu-001"].claims.waited
    assert waited == Waited(reason="anew", peer="192.0.2.9", first_ms=START + 66 * minute, last_ms=START + 66 * minute)
    assert (both.reader.discovered(9), both.reader.feed(0, 9)[0].machine) == ([], "gpu-002")
    assert both.writer.declare({"gpu-002"}, 0) == 0
    assert both.reader.removed() == 1, "one that only waited is known, and forgotten in its time"


def test_a_wait_is_the_same_though_its_journal_was_replaced_by_an_older_copy(both: Both) -> None:
    for _ in range(2):
        both.writer.take(Batch("boot-0.db", 7, 1, [waits("gpu-001")]))
        both.writer.rewind("boot-0.db", 1)
    waited = both.reader.machines()["gpu-001"].claims.waited
    assert waited is not None
    assert waited.first_ms == waited.last_ms


@pytest.mark.parametrize("later", ["gpu-001", "r7-1"])
def test_of_a_machine_that_is_renamed_the_later_wait_stays(tmp_path: Path, later: str) -> None:
    made = on_disk(tmp_path)
    made.take(*(waits(name, START + (name == later), name) for name in ("gpu-001", "r7-1")), waits("gpu-002"))
    for _ in range(2):
        made.writer.rename({"gpu-001": "r7-1"})
    found = made.reader.machines()
    assert found.keys() == {"r7-1", "gpu-002"}
    assert found["r7-1"].claims.waited == Waited(reason=later, peer="192.0.2.9", first_ms=START + 1, last_ms=START + 1)
    made.writer.close()


def test_the_discovered_are_one_for_each_and_bounded(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "DISCOVERED_KEPT", 50)
    macs = [f"52:54:00:00:{number >> 8:02x}:{number & 255:02x}" for number in range(300)]
    both.take(*(sighted(mac, START + number) for number, mac in enumerate(macs)))
    both.take(sighted(None, START + 1, peer="192.0.2.10"), sighted(macs[299], START + 999, outcome="refused"))
    found = both.reader.discovered(1000)
    assert len(found) == 50
    newest = found[0]
    assert (newest.mac, newest.outcome) == (macs[299], "refused")
    assert (newest.first_ms, newest.last_ms) == (START + 299, START + 999)


def test_a_failure_that_is_said_again_counts_once(both: Both) -> None:
    failed = event("gpu-001", 1, Phase.FAILED, detail="no link")
    both.take(script("gpu-001", 1), failed, failed.model_copy(update={"at_ms": failed.at_ms + 20}))
    both.take(failed.model_copy(update={"at_ms": failed.at_ms + 9_000}), journal="boot-1.db")
    assert [one.at_ms for one in both.reader.machines()["gpu-001"].current.failures] == [failed.at_ms]
    assert [one.phase for one in both.reader.feed(0, 10)] == [Phase.SCRIPT_SERVED, Phase.FAILED]


def test_a_crash_is_with_the_boot_that_found_it_and_no_step_of_it(both: Both) -> None:
    both.take(script("gpu-001", 1), found_crash("gpu-001", 1), found_crash("gpu-001", 1, text="its oops\n"))
    both.take(found_crash("gpu-001", 1))
    found = both.reader.boot(boot_id("gpu-001", 1))
    assert [(crash.crashed_ms, crash.begins) for crash in found.crashes] == [(START, "its oops\n"), (START, "panic\n")]
    texts = both.reader.crash_texts(found.boot)
    assert [texts[crash.sha256] for crash in found.crashes] == ["its oops\n", "panic\n"]
    assert both.reader.machines()["gpu-001"].current == found, "it was said, so the boot is no claim"
    assert [entry.phase for entry in both.reader.feed(0, 10)] == ["ScriptServed"]


def test_a_certificate_is_with_its_boot_and_brings_none_back(both: Both) -> None:
    """The approver tells of those that it finds when it starts, also of boots that are forgotten since."""
    both.take(script("gpu-001", 2), event("gpu-001", 2, Phase.ATTESTED))
    both.take(certified("gpu-001", 2), certified("gpu-001", 1, after_ms=9_000), journal="approver-default.db")
    current = both.reader.machines()["gpu-001"].current
    assert current.boot == boot_id("gpu-001", 2)
    assert [one.sha256 for one in current.certificates] == ["c" * 64]
    assert [entry.phase for entry in both.reader.feed(None, 10)] == [Phase.SCRIPT_SERVED, Phase.ATTESTED]
    both.take(event("gpu-001", 3, Phase.ATTESTED), journal="join-0.db")
    assert both.reader.machines()["gpu-001"].current.certificates == ()


def test_a_journal_that_was_replaced_by_an_older_copy_counts_nothing_twice(both: Both) -> None:
    records: list[Record] = [script("gpu-001", 1), event("gpu-001", 1, Phase.BOOTED), sighted("52:54:00:00:00:99")]
    assert both.writer.take(Batch("boot-0.db", 7, 9, records, (1, 2, 9))) == {}
    before = (both.reader.machines(), both.reader.feed(0, 10), both.reader.discovered(5))
    both.writer.rewind("boot-0.db", 3)
    assert both.writer.cursor("boot-0.db") == (7, 0)
    new = script("gpu-001", 30)
    both.writer.take(Batch("boot-0.db", 7, 3, [*records[:2], new]))
    machines, feed, discovered = before
    assert both.reader.machines()["gpu-001"].current == machines["gpu-001"].current
    assert both.reader.machines()["gpu-001"].claims.served == 2
    assert [one.boot for one in both.reader.feed(0, 10)] == [*(one.boot for one in feed), new.boot]
    assert both.reader.discovered(5) == discovered
    both.writer.take(
        Batch("boot-0.db", 7, 4, [script("gpu-001", 2, START + 9)])
    )  # by a clock that was set back: it is new
    assert both.reader.machines()["gpu-001"].claims.served == 3


def test_rows_that_are_no_records_are_counted_by_origin(both: Both) -> None:
    rows = [SetAside("boot-0.db", f"record {number}", "no record", b"?") for number in (1, 3)]
    assert both.writer.take(Batch("boot-0.db", 7, 3, [script("gpu-001", 1)], (2,), rows)) == {"boot-0.db": 2}
    assert both.writer.take(Batch("boot-0.db", 7, 3, [script("gpu-001", 1)], (2,), rows)) == {}
    assert both.writer.cursor("boot-0.db") == (7, 3)


def test_the_feed_goes_on_where_one_left_off(both: Both) -> None:
    both.take(script("gpu-001", 1), event("gpu-001", 1, Phase.FAILED, detail="no link"))
    first = both.reader.feed(0, 1)
    rest = both.reader.feed(first[0].id, 10)
    assert [(one.phase, one.source, one.detail) for one in (*first, *rest)] == [
        (Phase.SCRIPT_SERVED, "served", ""),
        (Phase.FAILED, "reported", "no link"),
    ]
    assert both.reader.feed(None, 1) == rest
    assert both.reader.feed(rest[0].id, 10) == []


def test_the_latest_health_report_of_the_current_boot_is_the_machine_s(both: Both) -> None:
    both.take(script("gpu-001", 1), event("gpu-001", 1, Phase.BOOTED))
    assert both.reader.machines()["gpu-001"].checked is None
    assert both.reader.health_counts(0) == {"none": 1}
    first, second = checked("gpu-001", 1, "fail", 600), checked("gpu-001", 1, "absent", 700)
    both.take(checked("gpu-001", 1, "warn", 650), second, journal="boot-1.db")
    both.take(first)
    found = both.reader.machines(["gpu-001"])["gpu-001"].checked
    assert found == state.Checked(status="pass", at_ms=second.at_ms)
    assert both.reader.health(boot_id("gpu-001", 1)) == second
    assert both.reader.health_counts(second.at_ms) == {"pass": 1}
    assert both.reader.health_counts(second.at_ms + 1) == {"stale": 1}


def test_no_report_of_another_boot_alters_that_of_a_boot_that_proved_itself(both: Both) -> None:
    both.take(script("gpu-001", 1), event("gpu-001", 1, Phase.ATTESTED), checked("gpu-001", 1, "fail"))
    both.take(*(checked("gpu-001", number) for number in range(2, 40)), event("gpu-001", 3, Phase.BOOTED))
    machine = both.reader.machines()["gpu-001"]
    assert machine.checked is not None
    assert machine.checked.status == "fail"
    kept = [number for number in range(1, 40) if both.reader.health(boot_id("gpu-001", number))]
    assert kept == [1, 3, 38, 39], "two of each standing at most"


def test_a_health_report_alone_is_no_boot(both: Both) -> None:
    both.take(checked("gpu-001", 1))
    assert both.reader.machines() == {}
    assert both.reader.boot(boot_id("gpu-001", 1)) is None
    assert both.reader.health_counts(0) == {}


def test_what_was_never_heard_of(both: Both) -> None:
    both.take()
    assert both.reader.boot(boot_id("gpu-001", 1)) is None
    assert both.reader.machines(["gpu-001"]) == {}
    assert both.reader.boots("gpu-001", 5) == []
    assert both.writer.cursor("boot-9.db") == (0, 0)


MACHINES = st.sampled_from(["gpu-001", "gpu-002"])
NUMBERS = st.integers(1, 4)
CLAIMS = st.one_of(
    st.builds(script, MACHINES, NUMBERS),
    st.builds(event, MACHINES, NUMBERS, st.sampled_from([Phase.KERNEL_FETCHED, Phase.INITRD_FETCHED])),
    st.builds(waits, MACHINES, st.sampled_from([START, START + 60_000, START + 2 * state.PAUSE_MS])),
)
REPORTS = st.builds(event, MACHINES, NUMBERS, st.sampled_from(sorted(REPORTED_PHASES)), st.integers(1, 900))
HEALTH = st.builds(
    checked, MACHINES, NUMBERS, st.sampled_from(["pass", "warn", "fail", "unknown", "absent"]), st.integers(1, 900)
)
OBSERVED = st.builds(event, MACHINES, NUMBERS, st.sampled_from(sorted(OBSERVED_PHASES)), st.integers(1, 900))
CRASHES = st.builds(found_crash, MACHINES, NUMBERS, st.integers(0, 3_000), st.sampled_from(["", "oops\n", "panic\n"]))
CONSOLES = st.builds(console, MACHINES, NUMBERS, st.integers(0, 2), st.sampled_from(["oops\n", "panic\n"]))
BATCHES = st.lists(st.lists(st.one_of(CLAIMS, REPORTS, OBSERVED, HEALTH, CRASHES, CONSOLES), max_size=6), max_size=6)


@MAKERS
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batches=BATCHES, claims=st.lists(CLAIMS, max_size=8), place=st.integers(0, 6))
def test_no_claim_alters_what_a_machine_reported(
    make: Callable[[Path], Both], batches: list[list[Record]], claims: list[Record], place: int
) -> None:
    """Wherever claims come in between, the phases that machines reported and their current boots stay what they are."""

    def reported(with_claims: bool) -> dict[str, Any]:
        with TemporaryDirectory() as folder:
            both = make(Path(folder))
            mixed = [*batches[:place], claims, *batches[place:]] if with_claims else batches
            for records in mixed:
                both.take(*records)
            both.take()
            machines = both.reader.machines()
            if isinstance(both.writer, SqliteProjection):
                both.writer.close()
            return {
                name: (
                    one.current.boot,
                    [r for r in one.current.reached if r.source == "reported"],
                    one.current.failures,
                )
                for name, one in machines.items()
                if one.current is not None
            }

    assert reported(with_claims=True) == reported(with_claims=False)


@MAKERS
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    batches=BATCHES,
    unproven=st.lists(st.one_of(CLAIMS, REPORTS, CRASHES, CONSOLES), max_size=8),
    place=st.integers(0, 6),
)
def test_nothing_that_can_be_claimed_alters_what_was_proven(
    make: Callable[[Path], Both], batches: list[list[Record]], unproven: list[Record], place: int
) -> None:
    """Wherever scripts and reports come in between: which proven boot is current, and what was observed of it, stay;
    and a Ready one stays Ready."""

    def proven(with_unproven: bool) -> dict[str, Any]:
        with TemporaryDirectory() as folder:
            both = make(Path(folder))
            for records in [*batches[:place], unproven, *batches[place:]] if with_unproven else batches:
                both.take(*records)
            both.take()
            machines = both.reader.machines()
            if isinstance(both.writer, SqliteProjection):
                both.writer.close()
        found = {}
        for name, one in machines.items():
            observed = [r for r in one.current.reached if r.source == "observed"] if one.current else []
            if observed:
                ready = one.current.phase(Phase.READY) is not None
                assert one.current.state == Phase.READY or not ready
                found[name] = (one.current.boot, observed)
        return found

    assert proven(with_unproven=True) == proven(with_unproven=False)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batches=BATCHES)
def test_the_state_on_disk_is_the_state_in_memory(batches: list[list[Record]]) -> None:
    with TemporaryDirectory() as folder:
        disk, memory = on_disk(Path(folder)), in_memory(Path(folder))
        for records in batches:
            disk.take(*records)
            memory.take(*records)
        disk.take()
        disk.writer.close()
        assert disk.reader.machines() == memory.reader.machines()
        assert disk.reader.machines(["gpu-002"]) == memory.reader.machines(["gpu-002"])
        assert disk.reader.counts() == memory.reader.counts()
        assert disk.reader.boots(None, 100) == memory.reader.boots(None, 100)
        assert disk.reader.health_counts(START + 2_500) == memory.reader.health_counts(START + 2_500)
        boots = [boot_id(machine, number) for machine in ("gpu-001", "gpu-002") for number in range(1, 5)]
        assert [disk.reader.health(boot) for boot in boots] == [memory.reader.health(boot) for boot in boots]
        assert [disk.reader.crash_texts(boot) for boot in boots] == [memory.reader.crash_texts(boot) for boot in boots]
        assert [disk.reader.console(boot) for boot in boots] == [memory.reader.console(boot) for boot in boots]
        assert [one.model_copy(update={"id": 0}) for one in disk.reader.feed(0, 1000)] == [
            one.model_copy(update={"id": 0}) for one in memory.reader.feed(0, 1000)
        ]


def test_a_state_of_the_version_before_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as db:
        db.executescript(f"{MIGRATIONS[0]}; PRAGMA user_version = 1")
        trace = apply(apply(None, script("gpu-001", 1)), event("gpu-001", 1, Phase.BOOTED))
        row = (trace.boot, trace.machine, True, trace.state, trace.model_dump_json(), 2)
        db.execute("INSERT INTO boots (boot, machine, reported, state, trace, fed) VALUES (?, ?, ?, ?, ?, ?)", row)
    db.close()
    with pytest.raises(StateUnavailableError, match=f"has schema 1, this program wants {VERSION}"):
        SqliteStates(path).machines()
    made = on_disk(tmp_path)
    made.take(event("gpu-001", 1, Phase.ATTESTED, 900))
    assert made.reader.machines()["gpu-001"].current.state == Phase.ATTESTED
    made.writer.close()


def test_a_state_of_version_3_keeps_its_cursors_and_counts(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as db:
        db.executescript(f"{'; '.join(MIGRATIONS[:3])}; PRAGMA user_version = 3")
        db.execute("INSERT INTO cursors (journal, identity, last) VALUES ('boot-0.db', 7, 4)")
        db.execute("INSERT INTO claims (machine, served, last_ms) VALUES ('gpu-001', 4, ?)", (START + 4_000,))
    db.close()
    made = on_disk(tmp_path)
    assert made.writer.cursor("boot-0.db") == (7, 4)
    assert made.reader.machines()["gpu-001"].claims == Claims(served=4, last_ms=START + 4_000)
    made.writer.rewind("boot-0.db", 2)
    made.take(script("gpu-001", 1), script("gpu-001", 2))
    assert made.reader.machines()["gpu-001"].claims.served == 4
    made.writer.close()


UNREADABLE = [b'{"phase": "Teleported"}', b"\xff\xfe", b"", b"\0", b"[" * 100_000]


@pytest.mark.parametrize("body", UNREADABLE)
def test_a_wait_that_cannot_be_read_is_left_out_and_set_aside(tmp_path: Path, body: bytes) -> None:
    made = on_disk(tmp_path)
    made.take(script("gpu-001", 1), waits("gpu-001"))
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute("UPDATE waits SET body = CAST(? AS TEXT)", (body,))
    db.close()
    assert made.reader.machines()["gpu-001"].claims == Claims(served=1, last_ms=START + 1_000)
    counts = list[Any]()
    while (found := made.writer.inspect()) is not None:
        counts += found.items()
    assert counts == [("state.db", 1)]
    made.take(waits("gpu-001", START + 5))
    waited = made.reader.machines()["gpu-001"].claims.waited
    assert waited == Waited(reason="no image", peer="192.0.2.9", first_ms=START + 5, last_ms=START + 5)
    made.writer.close()


@pytest.mark.parametrize("body", UNREADABLE)
def test_a_row_of_the_state_that_cannot_be_read_blocks_no_other(tmp_path: Path, body: bytes) -> None:
    made = on_disk(tmp_path)
    for number, name in enumerate(("gpu-001", "gpu-002"), start=1):
        made.take(*joined(name, number), checked(name, number), sighted(f"52:54:00:00:00:0{number}"))
    bad = boot_id("gpu-001", 1)
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute("UPDATE boots SET trace = CAST(? AS TEXT), state = 'Teleported' WHERE boot = ?", (body, bad))
        db.execute("UPDATE health SET body = CAST(? AS TEXT) WHERE boot = ?", (body, bad))
        db.execute("UPDATE discovered SET body = CAST(? AS TEXT) WHERE key = '52:54:00:00:00:01'", (body,))
        db.execute("UPDATE feed SET body = CAST(? AS TEXT) WHERE id = 1", (body,))
    db.close()
    assert made.reader.machines()["gpu-002"].current.state == Phase.READY
    assert made.reader.machines()["gpu-001"].current is None
    assert [one.machine for one in made.reader.boots(None, 10)] == ["gpu-002"]
    assert [one.mac for one in made.reader.discovered(10)] == ["52:54:00:00:00:02"]
    assert len(made.reader.feed(0, 100)) == 13
    for question in (made.reader.boot, made.reader.health):
        with pytest.raises(StateUnavailableError, match=f"{bad} in .* cannot be read"):
            question(bad)
    counts = [made.writer.inspect() for _ in range(20)]
    assert sum(found.get("state.db", 0) for found in counts if found) == 4
    assert counts[-1] is None
    assert (made.reader.boot(bad), made.reader.health(bad)) == (None, None)
    assert made.reader.counts() == {"Ready": 1}
    with sqlite3.connect(tmp_path / "state.db") as db:
        rows = db.execute("SELECT origin, row, body FROM set_aside ORDER BY id").fetchall()
    db.close()
    keys = [f"boots {bad}", f"health {bad}", "discovered 52:54:00:00:00:01", "feed 1"]
    assert rows == [("state.db", key, body[: state.SET_ASIDE_BYTES]) for key in keys]
    made.writer.close()


@pytest.mark.parametrize("body", UNREADABLE)
def test_a_record_of_a_boot_that_cannot_be_read_begins_it_anew(tmp_path: Path, body: bytes) -> None:
    made = on_disk(tmp_path)
    made.take(script("gpu-001", 1), checked("gpu-001", 1), sighted("52:54:00:00:00:01"))
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute("UPDATE boots SET trace = CAST(? AS TEXT)", (body,))
        db.execute("UPDATE health SET body = CAST(? AS TEXT)", (body,))
        db.execute("UPDATE discovered SET body = CAST(? AS TEXT)", (body,))
    db.close()
    more: list[Record] = [
        event("gpu-001", 1, Phase.BOOTED),
        checked("gpu-001", 1, "fail", 700),
        sighted("52:54:00:00:00:01"),
    ]
    assert made.writer.take(Batch("boot-0.db", 7, 6, more)) == {"state.db": 3}
    assert made.reader.machines()["gpu-001"].current.state == Phase.BOOTED
    assert made.reader.health(boot_id("gpu-001", 1)) == more[1]
    assert [one.mac for one in made.reader.discovered(10)] == ["52:54:00:00:00:01"]
    made.writer.close()


def test_a_record_that_cannot_be_taken_is_set_aside_alone(tmp_path: Path) -> None:
    made = on_disk(tmp_path)
    records = [script("gpu-001", number) for number in range(1, 9)]
    records[4] = script("gpu-002", 5).model_copy(update={"at_ms": 2**70})  # no INTEGER of SQLite has room for it
    assert made.writer.take(Batch("boot-0.db", 7, 80, records, range(10, 90, 10))) == {"boot-0.db": 1}
    assert made.reader.machines()["gpu-001"].claims.served == 7
    assert made.writer.cursor("boot-0.db") == (7, 80)
    with sqlite3.connect(tmp_path / "state.db") as db:
        ((row, reason, body),) = db.execute("SELECT row, reason, body FROM set_aside").fetchall()
    db.close()
    assert (row, body) == ("record 50", records[4].model_dump_json().encode())
    assert reason == "cannot be taken: Python int too large to convert to SQLite INTEGER"
    made.writer.close()


def test_a_file_of_a_newer_version_is_refused_by_both_sides(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    with pytest.raises(StateUnavailableError, match="written by a newer netboot"):
        SqliteProjection(path).cursor("boot-0.db")
    with pytest.raises(StateUnavailableError, match=f"has schema {VERSION + 1}, this program wants {VERSION}"):
        SqliteStates(path).machines()


def test_a_file_that_is_not_there_or_is_no_database_cannot_tell(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with pytest.raises(StateUnavailableError, match="is not there yet"):
        SqliteStates(path).boots(None, 1)
    path.write_bytes(b"this is not a database" * 100)
    with pytest.raises(StateUnavailableError, match="cannot be read: file is not a database"):
        SqliteStates(path).boots(None, 1)
    with pytest.raises(StateUnavailableError, match="cannot be written: file is not a database"):
        SqliteProjection(path).take(Batch("boot-0.db", 1, 1, []))


def test_a_batch_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    made = on_disk(tmp_path)
    made.take(script("gpu-001", 1))
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute("CREATE TRIGGER full BEFORE INSERT ON discovered BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    db.close()
    with pytest.raises(StateUnavailableError, match="disk full"):
        made.take(script("gpu-001", 2), sighted("52:54:00:00:00:99"))
    assert made.writer.cursor("boot-0.db") == (7, 1)
    assert made.reader.boot(boot_id("gpu-001", 2)) is None
    made.writer.close()
