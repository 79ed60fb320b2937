"""The texts of crashes in the state: kept with their boots, and none of them read for anything else."""

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.lifecycle import state
from netboot.lifecycle.events import LONGEST_CRASH, CrashRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.lifecycle.trace import apply
from netboot.stores.state_schema import MIGRATIONS
from tests.contract.test_states import UNREADABLE, Both, in_memory, joined, on_disk
from tests.records import boot_id, event, found_crash, script

BOOT = boot_id("gpu-001", 1)


@pytest.fixture(params=[in_memory, on_disk])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Both]:
    made = request.param(tmp_path)
    yield made
    if hasattr(made.writer, "close"):
        made.writer.close()


def texts(both: Both, boot: str = BOOT) -> list[str]:
    return sorted(both.reader.crash_texts(boot).values())


def rows(folder: Path) -> int:
    """How many texts are in the file, whoever can see them."""
    with sqlite3.connect(folder / "state.db") as db:
        count: int = db.execute("SELECT count(*) FROM crashes").fetchone()[0]
    db.close()
    return count


def test_the_texts_are_those_of_the_crashes_that_are_kept(both: Both) -> None:
    both.take(script("gpu-001", 1))
    assert texts(both) == []
    both.take(*(found_crash("gpu-001", 1, i, f"crash {i}\n") for i in range(7)))
    assert texts(both) == ["crash 0\n", "crash 1\n", "crash 5\n", "crash 6\n"]
    both.take(found_crash("gpu-001", 1, 3, "crash 3\n"), found_crash("gpu-001", 1, 9, "crash 9\n"))
    assert texts(both) == ["crash 0\n", "crash 1\n", "crash 6\n", "crash 9\n"]
    both.take(event("gpu-001", 1, Phase.BOOTED), event("gpu-001", 1, Phase.ATTESTED, 900))
    assert texts(both) == ["crash 0\n", "crash 1\n", "crash 6\n", "crash 9\n"], "each event writes its boot anew"
    assert texts(both, boot_id("gpu-001", 2)) == []


def test_two_boots_that_found_the_same_have_it_each(both: Both, tmp_path: Path) -> None:
    both.take(found_crash("gpu-001", 1), found_crash("gpu-001", 2))
    assert texts(both) == texts(both, boot_id("gpu-001", 2)) == ["panic\n"]


def test_a_boot_that_is_pruned_takes_its_texts_with_it(
    both: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(state.KEPT, state.Standing.REPORTED, 2)
    for number in (1, 2, 3):
        both.take(found_crash("gpu-001", number, text=f"crash {number}\n"))
    assert [texts(both, boot_id("gpu-001", number)) for number in (1, 2, 3)] == [[], ["crash 2\n"], ["crash 3\n"]]
    if (tmp_path / "state.db").exists():
        assert rows(tmp_path) == 2


def test_a_machine_that_is_forgotten_takes_its_texts_with_it(both: Both, tmp_path: Path) -> None:
    both.take(*joined("gpu-001", 1), found_crash("gpu-001", 1), *joined("gpu-002", 1), found_crash("gpu-002", 1))
    both.writer.declare(["gpu-002"], 0)
    assert both.writer.declare(["gpu-002"], state.REMOVED_KEPT_SECONDS) == 1
    assert (texts(both), texts(both, boot_id("gpu-002", 1))) == ([], ["panic\n"])
    if (tmp_path / "state.db").exists():
        assert rows(tmp_path) == 1


def incompressible(seed: int) -> CrashRecord:
    characters = [chr(code) for code in range(32, 127)]
    return found_crash("gpu-001", 1, seed, "".join(random.Random(seed).choices(characters, k=LONGEST_CRASH)))


def test_an_event_of_a_boot_with_crashes_reads_and_writes_none_of_their_texts(tmp_path: Path) -> None:
    made = on_disk(tmp_path)
    made.take(*joined("gpu-001", 1), *(incompressible(seed) for seed in range(4)))
    with sqlite3.connect(tmp_path / "state.db") as db:
        ((bytes_of_trace,),) = db.execute("SELECT length(trace) FROM boots").fetchall()
        (untouched,) = db.execute("SELECT group_concat(id) FROM crashes").fetchall()
        made.take(event("gpu-001", 1, Phase.FAILED, 9_000))
        assert db.execute("SELECT group_concat(id) FROM crashes").fetchall() == [untouched]
    db.close()
    assert bytes_of_trace < 1_000
    assert len(texts(made)) == 4
    made.writer.close()


def test_a_state_of_version_5_is_read_on_and_takes_crashes(tmp_path: Path) -> None:
    trace = apply(apply(None, script("gpu-001", 1)), event("gpu-001", 1, Phase.BOOTED))
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.create_function("minted_in", 1, lambda _: 0)
        db.create_function("image_in", 1, lambda _: None)
        db.executescript(f"{'; '.join(MIGRATIONS[:5])}; PRAGMA user_version = 5")
        body = trace.model_dump_json(exclude_defaults=True)
        db.execute("INSERT INTO boots VALUES (?, ?, 1, ?, ?, 2, 1, NULL)", (BOOT, "gpu-001", trace.state, body))
    db.close()
    made = on_disk(tmp_path)
    made.take(found_crash("gpu-001", 1))
    assert made.reader.boot(BOOT).reached == trace.reached
    assert texts(made) == ["panic\n"]
    made.writer.close()


@pytest.mark.parametrize("body", UNREADABLE)
def test_a_text_that_cannot_be_read_is_left_out_and_set_aside_and_comes_again(tmp_path: Path, body: bytes) -> None:
    made = on_disk(tmp_path)
    oops, panic = found_crash("gpu-001", 1, 1, "oops\n"), found_crash("gpu-001", 1, 2)
    made.take(oops, panic)
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute("UPDATE crashes SET body = CAST(? AS TEXT) WHERE sha256 = ?", (body, panic.sha256))
    db.close()
    found = made.reader.boot(BOOT)
    assert (len(found.crashes), texts(made)) == (2, ["oops\n"])
    counts = [made.writer.inspect() for _ in range(20)]
    assert sum(found.get("state.db", 0) for found in counts if found) == 1
    assert (made.reader.boot(BOOT), texts(made), rows(tmp_path)) == (found, ["oops\n"], 1)
    made.writer.take(Batch("boot-0.db", 7, 3, [panic]))
    assert (made.reader.boot(BOOT), texts(made)) == (found, ["oops\n", "panic\n"])
    made.writer.close()
