"""Floods of scripts, events and health reports over real sockets: bounded by boot and address, and no machine's script
is refused for it. The journal's reserve is tried in `tests/contract/test_journal.py`."""

import asyncio
import json
import re
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from netboot.boot import ingest
from netboot.boot.ingest import Ingest
from netboot.lifecycle.events import EventRecord, ScriptRecord
from netboot.stores import journal, journal_file
from netboot.stores.journal_file import JournalFile, Rows
from tests.sockets.boot_server import INITRD, MAC1, MAC2, RunningBootServer, digest_of, serve

EVENT = json.dumps({"mac": MAC1, "phase": "Booted", "detail": "x" * 300}).encode()
CHECK = {"name": "cpus", "status": "pass", "severity": "major", "summary": "2 CPUs", "ms": 3, "facts": {"online": 2}}
A_BOOT = 128 * 1024
"""Bytes of a boot's full bucket at the least rate; a second later it has 4,096 more."""


@pytest.fixture(autouse=True)
def _no_hold(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is one too many is answered at once, but where a test is of that."""
    if "later" not in request.node.name:
        monkeypatch.setattr(ingest, "HOLD_SECONDS", 0.0)


def most(size: int, began: float) -> float:
    """Records of `size` bytes that one boot may have had since then, by `time.monotonic`."""
    return (A_BOOT + 4096 * (time.monotonic() - began)) / (size + 512)


def test_events_of_one_boot_are_limited_and_another_s_are_not(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        path = f"/v1/boots/{server.boot_of('gpu-001')}/events"
        began = time.monotonic()
        answers = [await server.ask(path, "POST", EVENT) for _ in range(300)]
        statuses = [answer.status for answer in answers]
        assert statuses[0] == 204
        assert A_BOOT // (len(EVENT) + 512) <= statuses.count(204) <= most(len(EVENT), began)
        assert set(statuses) == {204, 429}
        limited = [answer for answer in answers if answer.status == 429]
        assert {answer.headers["retry-after"] for answer in limited} == {"15"}
        assert {answer.body for answer in limited} == {b"too much in a short time; try again\n"}
        assert len(server.records()) == statuses.count(204)
        assert server.internals.counters.events == {
            "accepted": statuses.count(204),
            "refused": 0,
            "limited": statuses.count(429),
        }
        other = f"/v1/boots/{server.boot_of('gpu-001', 2)}/events"
        assert (await server.ask(other, "POST", EVENT)).status == 204, "a machine's next boot is another boot"

    serve(tmp_path, use, ingest_kib_per_second=256)


def test_what_is_one_too_many_is_answered_later_and_others_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(server: RunningBootServer) -> None:
        path = f"/v1/boots/{server.boot_of('gpu-001')}/events"
        took = []
        for _ in range(300):
            began = asyncio.get_running_loop().time()
            if (await server.ask(path, "POST", EVENT)).status == 429:
                took.append(asyncio.get_running_loop().time() - began)
                break
        assert took[0] >= ingest.HOLD_SECONDS
        is_held, is_over, goes_on, real = asyncio.Event(), asyncio.Event(), asyncio.Event(), Ingest.hold

        async def hold(of: Ingest) -> None:
            is_held.set()
            await real(of)
            is_over.set()
            await goes_on.wait()  # however long the others take

        monkeypatch.setattr(Ingest, "hold", hold)
        monkeypatch.setattr(ingest, "HOLD_SECONDS", 5.0)
        waits = asyncio.ensure_future(is_held.wait())
        while not waits.done():  # what flowed into the bucket meanwhile is enough for one or two
            held = asyncio.ensure_future(server.ask(path, "POST", EVENT))
            await asyncio.wait((held, waits), return_when=asyncio.FIRST_COMPLETED)
        assert not is_over.is_set(), "nobody else has a turn while it is held"
        await boot_of(server, MAC2)
        assert not held.done()
        goes_on.set()
        assert (await held).status == 429

    serve(tmp_path, use, ingest_kib_per_second=256)


def test_health_reports_of_one_boot_are_limited(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        path = f"/v1/boots/{server.boot_of('gpu-001')}/health"
        report = json.dumps(
            {"machine": "gpu-001", "schema": 1, "taken_ms": 5, "checks": [CHECK], "more": "x" * 30_000}
        ).encode()
        began = time.monotonic()
        statuses = [(await server.ask(path, "POST", report)).status for _ in range(12)]
        assert set(statuses) == {204, 429}
        assert 4 <= statuses.count(204) <= most(30_000, began)
        assert server.internals.counters.health["limited"] == statuses.count(429)

    serve(tmp_path, use, ingest_kib_per_second=256)


def test_a_blob_fetched_over_and_over_is_written_down_a_bounded_number_of_times(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        path = f"/v1/blobs/{digest_of(INITRD)}?boot={server.boot_of('gpu-001')}&machine=gpu-001"
        began = time.monotonic()
        for _ in range(400):
            assert (await server.ask(path)).status == 200
        fetched = [record for record in server.records() if isinstance(record, EventRecord)]
        assert A_BOOT // 512 <= len(fetched) <= most(0, began)

    serve(tmp_path, use, ingest_kib_per_second=256)


def test_a_script_is_never_refused_and_beyond_the_limit_it_is_one_that_is_written_down(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        began = time.monotonic()
        boots = [await boot_of(server, MAC1) for _ in range(300)]
        written = [record.boot for record in server.records() if isinstance(record, ScriptRecord)]
        assert set(boots) == set(written), "each that was served is written down"
        assert len(written) == len(set(boots)) <= most(100, began)
        assert server.internals.counters.scripts["boot"] == 300
        assert server.internals.counters.scripts_repeated == 300 - len(written)
        assert await boot_of(server, MAC2) not in boots, "another machine's is its own"

    serve(tmp_path, use, ingest_kib_per_second=256)


def test_room_that_is_kept_in_a_journal_is_for_scripts_of_known_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JournalFile, "crowded", lambda *_: True)

    async def use(server: RunningBootServer) -> None:
        boot = await boot_of(server, MAC1)
        assert (await server.ask(f"/v1/boots/{boot}/events", "POST", EVENT)).status == 503
        assert [record.kind for record in server.records()] == ["script"]

    serve(tmp_path, use)


async def boot_of(server: RunningBootServer, mac: str) -> str:
    answer = await server.ask(f"/v1/boot?mac={mac}")
    found = re.search(rb"netboot\.boot=([0-9a-f-]{36})", answer.body)
    assert found is not None, answer.body
    return found[1].decode()


def test_a_disk_that_stands_still_costs_scripts_and_events_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stands, goes_on, commit = threading.Event(), threading.Event(), JournalFile.commit

    def slow(file: JournalFile, rows: Rows) -> str | None:
        if stands.is_set():
            goes_on.wait(180)
        return commit(file, rows)

    monkeypatch.setattr(JournalFile, "commit", slow)

    async def use(server: RunningBootServer) -> None:
        events = f"/v1/boots/{server.boot_of('gpu-001')}/events"
        assert (await server.ask(events, "POST", EVENT)).status == 204
        monkeypatch.setattr(journal_file, "DEADLINE_SECONDS", 0.5)
        stands.set()
        waiting = [asyncio.ensure_future(server.ask(events, "POST", EVENT)) for _ in range(20)]
        script = asyncio.ensure_future(server.ask(f"/v1/boot?mac={MAC1}"))
        for path in ("/healthz", f"/v1/blobs/{digest_of(INITRD)}", "/boot.ipxe"):
            async with asyncio.timeout(60):  # before the disk goes on
                assert (await server.ask(path)).status == 200
        assert {answer.status for answer in await asyncio.gather(*waiting)} == {503}
        unavailable = await script
        assert (unavailable.status, unavailable.headers["netboot-outcome"]) == (200, "unavailable")
        async with asyncio.timeout(60):
            assert (await server.ask(events, "POST", EVENT)).status == 503, "at once: nobody waits behind it"
            ready = json.loads((await server.ask("/readyz")).body)
        assert ready["ready"] is False
        assert ready["problems"] == ["the disk has not answered for 5 seconds; look at the disk of the data folder"]
        stands.clear()
        monkeypatch.setattr(journal_file, "DEADLINE_SECONDS", 60.0)
        goes_on.set()
        while (await server.ask(events, "POST", EVENT)).status != 204:
            await asyncio.sleep(0.05)
        assert json.loads((await server.ask("/readyz")).body)["problems"] == []

    serve(tmp_path, use)
    said = [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "WARNING")]
    assert said == [
        "journal: the disk has not answered for 5 seconds; look at the disk of the data folder",
        "journal: records are written down again",
    ]


def test_an_idle_boot_server_says_that_its_disk_stands_still_before_a_machine_has_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_file, "PROBE_SECONDS", 0.0)

    async def use(server: RunningBootServer) -> None:
        async def problems() -> Any:
            return json.loads((await server.ask("/readyz")).body)["problems"]

        # Answered: the journal is there, in WAL mode. One that is still being made would be "locked" at once.
        assert (await server.ask(f"/v1/boots/{server.boot_of('gpu-001')}/events", "POST", EVENT)).status == 204
        monkeypatch.setattr(journal_file, "DEADLINE_SECONDS", 0.3)
        path = server.config.data / "journal" / "boot-0.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")  # whoever writes waits, whoever only reads does not
            while await problems() != [journal_file.STANDING]:
                await asyncio.sleep(0.05)
            assert (await server.ask("/readyz")).status == 503
            db.execute("ROLLBACK")
        monkeypatch.setattr(journal_file, "DEADLINE_SECONDS", 60.0)
        while await problems():
            await asyncio.sleep(0.05)
        assert (await server.ask("/readyz")).status == 200

    serve(tmp_path, use)


def test_a_stop_does_not_wait_for_a_disk_that_stands_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stands, goes_on = threading.Event(), threading.Event()

    def stand(_file: JournalFile, _rows: Rows) -> str | None:
        stands.set()
        goes_on.wait(180)
        return None

    monkeypatch.setattr(JournalFile, "commit", stand)
    monkeypatch.setattr(journal_file, "DEADLINE_SECONDS", 0.1)

    async def whole() -> None:
        standing = journal.SqliteJournal(tmp_path / "boot-0.db")
        try:
            async with asyncio.timeout(60):  # before the disk goes on
                await standing.aclose()
        finally:
            goes_on.set()
            await asyncio.to_thread(standing._thread.join)

    asyncio.run(whole())
    assert stands.is_set()
