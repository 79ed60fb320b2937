"""The snapshot in force: swapped whole; one that is broken changes nothing and is said."""

import asyncio
import json
from pathlib import Path

import pytest

from images.values import files
from netboot import reread
from netboot.boot import live
from netboot.boot.scripts import Ready
from tests.sockets.boot_server import MAC1, MAC2, MAC_STRANGER, RunningBootServer, serve, snapshot


async def outcome(server: RunningBootServer, mac: str = MAC1) -> str:
    return (await server.ask(f"/v1/boot?mac={mac}")).headers["netboot-outcome"]


def test_a_new_snapshot_takes_effect_whole_and_the_old_scripts_are_forgotten(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        assert await outcome(server) == "boot"
        inventory = snapshot(server.port).inventory
        server.publish(inventory=inventory.model_copy(update={"machines": inventory.machines[1:]}))
        await server.internals.live.refresh()
        assert await outcome(server, MAC1) == "unknown"
        assert await outcome(server, MAC2) == "boot"
        assert json.loads((await server.ask("/readyz")).body) == {
            "ready": True,
            "machines": 2,
            "published_ms": 1_700_000_000_000,
            "problems": [],
        }

    serve(tmp_path, use)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a snapshot: Invalid JSON: EOF while parsing a value at line 1 column 0"),
        (b"{}", "is not a snapshot: site: Field required"),
        (b'{"site": 1' * 10, "is not a snapshot: Invalid JSON"),
        (None, "is not there: nothing has been published yet"),
    ],
)
def test_one_that_cannot_be_used_keeps_the_old_one_in_force_and_is_said(
    tmp_path: Path, content: bytes | None, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(server: RunningBootServer) -> None:
        path = server.config.data / "snapshot.json"
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        for _ in range(3):
            await server.internals.live.refresh()
        assert await outcome(server) == "boot"
        ready = await server.ask("/readyz")
        assert ready.status == 200
        (problem,) = json.loads(ready.body)["problems"]
        assert problem.startswith(f"{path} {words}")
        assert problem.endswith("; the one before stays in force")
        assert [record.levelname for record in caplog.records].count("ERROR") == 1
        server.publish()
        await server.internals.live.refresh()
        assert json.loads((await server.ask("/readyz")).body)["problems"] == []

    serve(tmp_path, use)


def test_the_watch_notices_by_itself_and_at_once_when_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(server: RunningBootServer) -> None:
        monkeypatch.setattr(live, "LOOK_SECONDS", 0.05)
        watching = asyncio.ensure_future(server.internals.live.watch())
        server.publish(published_ms=2)
        while published(server) != 2:
            await asyncio.sleep(0.01)
        monkeypatch.setattr(live, "LOOK_SECONDS", 3600.0)
        before = server.internals.live.catalogue
        await asyncio.sleep(0.1)  # now it is in the long wait
        server.internals.live.hurry()
        while server.internals.live.catalogue is before:
            await asyncio.sleep(0.01)
        watching.cancel()

    serve(tmp_path, use)


def published(server: RunningBootServer) -> int:
    catalogue = server.internals.live.catalogue
    assert catalogue is not None
    return catalogue.snapshot.published_ms


def test_a_file_that_could_not_be_read_is_tried_again_though_it_looks_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(server: RunningBootServer) -> None:
        monkeypatch.setattr(reread, "AGAIN_SECONDS", 0.0)
        with monkeypatch.context() as during:
            during.setattr(files, "bytes_of", refuses)
            await server.internals.live.refresh(force=True)
        assert server.internals.live.problem is not None
        await server.internals.live.refresh()
        assert server.internals.live.problem is None

    serve(tmp_path, use)


def refuses(*_: object) -> bytes:
    raise OSError(5, "Input/output error")


def test_a_hundred_thousand_queries_leave_memory_bounded(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        catalogue = server.internals.live.catalogue
        assert catalogue is not None
        kept = set()
        for number in range(20_000):
            found = catalogue.find(f"mac={MAC1}&serial=S{number}")
            assert isinstance(found, Ready)
            kept.add(id(found))
            catalogue.find(f"mac={MAC_STRANGER}&serial=T{number}")
        assert len(kept) == 1
        assert len(catalogue._by_query) <= 1024 + 2 * 3
        assert len(catalogue._by_machine) == 1
        catalogue.find(f"mac={MAC1}&x=" + "y" * 1_000)
        assert all(len(query) < 500 for query in catalogue._by_query)

    serve(tmp_path, use)
