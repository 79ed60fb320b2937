"""What every journal promises: the same suite for the fake and the real one."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import pytest

from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.events import DiscoveryRecord, EventRecord, ScriptRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.ports import Journal
from netboot.stores import journal_file
from netboot.stores.journal import SqliteJournal
from netboot.stores.journal_reader import cursor_path, read_after, write_cursor
from tests.journals import MemoryJournal
from tests.records import event, script, sighted


class Kept(Journal, Protocol):
    async def aclose(self) -> None: ...


class Memory:
    """The fake."""

    def open(self, most_rows: int = 1_000_000) -> Kept:
        self.journal = MemoryJournal(most_rows)
        return self.journal

    def bodies(self) -> list[str]:
        return self.journal.bodies

    def ship(self, upto: int) -> None:
        self.journal.cursor = upto


class Real:
    """SQLite on a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal" / "boot-0.db"

    def open(self, most_rows: int = 1_000_000) -> Kept:
        return SqliteJournal(self.path, most_rows=most_rows)

    def bodies(self) -> list[str]:
        return [row.body for row in read_after(self.path, 0)]

    def ship(self, upto: int) -> None:
        write_cursor(cursor_path(self.path), upto)


Kind = Memory | Real


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kind:
    monkeypatch.setattr(journal_file, "HOUSEKEEPING_SECONDS", 0.0)
    return Memory() if request.param == "memory" else Real(tmp_path)


def run(kind: Kind, use: Callable[[Kept], Awaitable[None]], most_rows: int = 1_000_000) -> None:
    async def whole() -> None:
        journal = kind.open(most_rows)
        try:
            await asyncio.wait_for(use(journal), 180)
        finally:
            await journal.aclose()

    asyncio.run(whole())


def test_what_append_returned_for_is_there_in_order_and_every_kind_of_record(kind: Kind) -> None:
    records: list[ScriptRecord | EventRecord | DiscoveryRecord] = [
        script("n1", 1),
        event("n1", 1, Phase.BOOTED, detail='with "quotes", \\ and ~'),
        sighted(None),
    ]

    async def use(journal: Kept) -> None:
        for position, record in enumerate(records, 1):
            await journal.append(record)
            assert len(kind.bodies()) == position

    run(kind, use)
    assert kind.bodies() == [record.model_dump_json() for record in records]


def test_a_thousand_at_once_are_all_there(kind: Kind) -> None:
    records = [script("n1", number) for number in range(1_000)]

    async def use(journal: Kept) -> None:
        await asyncio.gather(*(journal.append(record) for record in records))

    run(kind, use)
    assert sorted(kind.bodies()) == sorted(record.model_dump_json() for record in records)


def test_a_record_that_is_json_already_is_kept_as_it_is(kind: Kind) -> None:
    body = script("n1", 1).model_dump_json()

    async def use(journal: Kept) -> None:
        await journal.append_json(1, body)

    run(kind, use)
    assert kind.bodies() == [body]


def test_one_that_nobody_waits_for_any_more_is_kept_and_harms_nobody(kind: Kind) -> None:
    async def use(journal: Kept) -> None:
        impatient = asyncio.ensure_future(journal.append(script("n1", 1)))
        await asyncio.sleep(0)
        impatient.cancel()
        await journal.append(script("n1", 2))

    run(kind, use)
    assert kind.bodies() == [script("n1", 1).model_dump_json(), script("n1", 2).model_dump_json()]


def test_a_full_journal_refuses_until_the_projection_has_taken_some_over(kind: Kind) -> None:
    async def use(journal: Kept) -> None:
        for number in range(3):
            await write(journal, number)
        with pytest.raises(JournalUnavailableError):
            await write(journal, 9)
        kind.ship(2)
        await write(journal, 3)
        await write(journal, 4)
        with pytest.raises(JournalUnavailableError):
            await write(journal, 9)

    run(kind, use, most_rows=3)
    assert script("n1", 9).model_dump_json() not in kind.bodies()


def test_the_last_quarter_is_for_those_that_may_have_it(kind: Kind) -> None:
    async def use(journal: Kept) -> None:
        for number in range(6):
            await journal.append(event("n1", number, Phase.BOOTED))
        with pytest.raises(JournalUnavailableError):
            await journal.append(event("n1", 9, Phase.BOOTED))
        await write(journal, 6)
        await write(journal, 7)
        with pytest.raises(JournalUnavailableError):
            await write(journal, 8)

    run(kind, use, most_rows=8)
    assert len(kind.bodies()) == 8


async def write(journal: Kept, number: int) -> None:
    await journal.append_json(number, script("n1", number).model_dump_json(), reserved=True)


def test_a_closed_journal_refuses_and_kept_what_it_had(kind: Kind) -> None:
    async def use(journal: Kept) -> None:
        waiting = [asyncio.ensure_future(journal.append(script("n1", number))) for number in range(5)]
        await asyncio.sleep(0)
        await journal.aclose()
        await asyncio.gather(*waiting)
        with pytest.raises(JournalUnavailableError):
            await journal.append(script("n1", 9))

    run(kind, use)
    assert len(kind.bodies()) == 5
