"""The last lines of consoles in the state: of few boots, with these, and none of them read for anything else."""

import sqlite3
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from random import Random

import pytest

from netboot.lifecycle import state
from netboot.lifecycle.events import LONGEST_CONSOLE, AnyRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.lifecycle.trace import apply
from netboot.stores.state_rows import raw
from netboot.stores.state_schema import MIGRATIONS
from tests.contract.test_states import UNREADABLE, Both, in_memory, joined, on_disk
from tests.records import START, boot_id, console, event, found_crash, script

BOOT = boot_id("gpu-001", 1)


@pytest.fixture(params=[in_memory, on_disk])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Both]:
    made = request.param(tmp_path)
    yield made
    if hasattr(made.writer, "close"):
        made.writer.close()


def text(both: Both, number: int = 1) -> str | None:
    kept = both.reader.console(boot_id("gpu-001", number))
    return kept.text if kept is not None else None


def rows(folder: Path) -> list[str]:
    """The boots of which there is a text in the file, whoever can see it."""
    with sqlite3.connect(folder / "state.db") as db:
        found = [boot for (boot,) in db.execute("SELECT boot FROM consoles ORDER BY boot")]
    db.close()
    return found


def test_the_newest_is_kept_and_the_same_changes_nothing(both: Both) -> None:
    both.take(script("gpu-001", 1))
    assert text(both) is None
    first = console("gpu-001", 1, 700, "it waits\n")
    both.take(console("gpu-001", 1, 300, "it begins\n"), first, console("gpu-001", 1, 500, "it goes on\n"))
    both.take(console("gpu-001", 1, 600, "it comes late\n"))
    assert both.reader.console(BOOT) == first
    both.take(first.model_copy(update={"at_ms": first.at_ms + 9_000, "peer": "192.0.2.9"}))
    assert both.reader.console(BOOT) == first
    both.take(event("gpu-001", 1, Phase.BOOTED), found_crash("gpu-001", 1, text=first.text))
    assert both.reader.console(BOOT) == first
    found = both.reader.boot(BOOT)
    assert (found.console.at_ms, found.console.uptime_ms, found.console.sha256) == (START + 1_700, 700, first.sha256)
    assert [entry.phase for entry in both.reader.feed(0, 10)] == ["ScriptServed", "Booted"]
    assert both.reader.machines()["gpu-001"].current == found


def test_it_is_kept_of_the_newest_boots_of_each_standing(both: Both, tmp_path: Path) -> None:
    """Who makes up boots in a machine's name pushes out none of a boot that proved itself."""
    for number in (1, 2, 3):
        both.take(*joined("gpu-001", number), console("gpu-001", number, text=f"boot {number}\n"))
    for number in (4, 5, 6):
        both.take(script("gpu-001", number), console("gpu-001", number, text=f"boot {number}\n"))
    both.take(console("gpu-002", 1))
    assert [text(both, number) for number in range(1, 7)] == [
        None,
        "boot 2\n",
        "boot 3\n",
        None,
        "boot 5\n",
        "boot 6\n",
    ]
    assert both.reader.boot(BOOT).console is not None, "that there was one is told still"
    both.take(console("gpu-001", 1, 900, "again\n"))
    assert text(both, 1) is None
    if (tmp_path / "state.db").exists():
        kept = [boot_id("gpu-001", number) for number in (2, 3, 5, 6)]
        assert rows(tmp_path) == sorted([*kept, boot_id("gpu-002", 1)])


def stranger(number: int, address: int) -> list[AnyRecord]:
    """A boot that somebody else made up in gpu-001's name, with a phase and a text."""
    said: list[AnyRecord] = [
        script("gpu-001", number),
        event("gpu-001", number, Phase.INITRD_STARTED),
        console("gpu-001", number),
    ]
    return [type(record).model_validate(record.model_dump() | {"peer": f"192.0.2.{address}"}) for record in said]


def test_boots_that_are_made_up_elsewhere_hide_no_text_of_the_machine_s_own_address(both: Both) -> None:
    own = console("gpu-001", 1, 20_000, "its own\n")
    both.take(script("gpu-001", 1), event("gpu-001", 1, Phase.INITRD_STARTED), own)
    for number in range(2, 10):
        both.take(*stranger(number, 66))
    assert [text(both, number) is not None for number in range(1, 10)] == [True, *[False] * 6, True, True]
    both.take(*[record for number in range(10, 24) for record in stranger(number, 60 + number // 2)])
    kept = [number for number in range(1, 24) if text(both, number) is not None]
    assert (text(both), kept) == ("its own\n", [1, 11, 13, 15, 17, 19, 21, 23]), "of eight addresses, one of each"
    again = console("gpu-001", 1, 60_000, "and again\n")
    both.take(again)
    assert both.reader.console(BOOT) == again
    both.take(*stranger(24, 72))
    assert text(both) is None, "there is a bound"


@pytest.mark.parametrize("seed", range(4))
def test_how_much_is_taken_at_once_changes_nothing_of_what_is_kept(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    boots = [stranger(number, random.randrange(random.choice((3, 12)))) for number in range(1, 40)]
    kept = []
    for place, most in enumerate((1, 4, 15, 39)):
        (folder := tmp_path / str(place)).mkdir()
        for made in (in_memory(folder), on_disk(folder)):
            for first in range(0, len(boots), most):
                made.take(*chain.from_iterable(boots[first : first + most]))
            kept.append([number for number in range(1, 40) if text(made, number) is not None])
            if hasattr(made.writer, "close"):
                made.writer.close()
    assert kept == [kept[0]] * 8
    assert len(kept[0]) == state.CONSOLES_KEPT


def test_a_boot_that_is_pruned_or_forgotten_takes_it_along(
    both: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(state.KEPT, state.Standing.REPORTED, 1)
    both.take(console("gpu-001", 1), console("gpu-002", 1))
    both.take(console("gpu-001", 2))
    assert [text(both, 1), text(both, 2)] == [None, "it waits\n"]
    both.writer.declare(["gpu-002"], 0)
    assert both.writer.declare(["gpu-002"], state.REMOVED_KEPT_SECONDS) == 1
    assert text(both, 2) is None
    if (tmp_path / "state.db").exists():
        assert rows(tmp_path) == [boot_id("gpu-002", 1)]


def test_an_event_of_a_boot_reads_and_writes_no_text(tmp_path: Path) -> None:
    made = on_disk(tmp_path)
    made.take(script("gpu-001", 1), console("gpu-001", 1, text="x" * LONGEST_CONSOLE))
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute("UPDATE consoles SET body = 'damaged'")
        (untouched,) = db.execute("SELECT rowid, body FROM consoles").fetchall()
        db.commit()
        made.take(event("gpu-001", 1, Phase.BOOTED))
        assert db.execute("SELECT rowid, body FROM consoles").fetchall() == [untouched]
        ((bytes_of_trace,),) = db.execute("SELECT length(trace) FROM boots").fetchall()
    db.close()
    assert bytes_of_trace < 500
    made.writer.close()


def test_a_state_of_version_10_is_read_on_and_takes_consoles(tmp_path: Path) -> None:
    trace = apply(apply(None, script("gpu-001", 1)), event("gpu-001", 1, Phase.BOOTED))
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.create_function("minted_in", 1, lambda _: 0)
        db.create_function("image_in", 1, lambda _: None)
        db.executescript(f"{'; '.join(MIGRATIONS[:10])}; PRAGMA user_version = 10")
        body = trace.model_dump_json(exclude_defaults=True)
        columns = "boot, machine, standing, state, trace, fed, since"
        values = (BOOT, "gpu-001", trace.state, body)
        db.execute(f"INSERT INTO boots ({columns}) VALUES (?, ?, 1, ?, ?, 2, 1)", values)
    db.close()
    made = on_disk(tmp_path)
    made.take(console("gpu-001", 1))
    assert (made.reader.boot(BOOT).reached, text(made)) == (trace.reached, "it waits\n")
    made.writer.close()


@pytest.mark.parametrize("body", UNREADABLE)
def test_what_cannot_be_read_is_left_out_and_set_aside_and_comes_again(tmp_path: Path, body: bytes) -> None:
    made = on_disk(tmp_path)
    sent = console("gpu-001", 1)
    made.take(sent)
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute("UPDATE consoles SET body = CAST(? AS TEXT)", (body,))
    db.close()
    found = made.reader.boot(BOOT)
    assert (found.console.uptime_ms, text(made)) == (700, None)
    counts = [made.writer.inspect() for _ in range(20)]
    assert sum(count.get("state.db", 0) for count in counts if count) == 1
    assert (made.reader.boot(BOOT), text(made), rows(tmp_path)) == (found, None, [])
    made.writer.take(Batch("boot-0.db", 7, 2, [sent.model_copy(update={"at_ms": sent.at_ms + 1})]))
    assert (made.reader.boot(BOOT), made.reader.console(BOOT)) == (found, sent)
    made.writer.close()


def test_it_goes_with_a_machine_that_is_renamed_and_counts_for_it(tmp_path: Path) -> None:
    made = on_disk(tmp_path)
    made.take(console("gpu-001", 1), console("gpu-001", 2), found_crash("gpu-001", 1))
    made.writer.rename({"gpu-001": "r7-1"})
    assert [text(made, 1), text(made, 2)] == ["it waits\n"] * 2
    assert made.reader.console(BOOT).machine == "r7-1"
    with sqlite3.connect(tmp_path / "state.db") as db:
        bodies = db.execute("SELECT body FROM crashes UNION ALL SELECT body FROM consoles").fetchall()
    db.close()
    assert [b'"machine":"r7-1"' in raw(body) for (body,) in bodies] == [True] * 3
    made.take(console("r7-1", 3))
    assert [text(made, 1), text(made, 2)] == [None, "it waits\n"]
    made.writer.close()
