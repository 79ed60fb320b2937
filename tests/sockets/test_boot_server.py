"""The boot server as a process: what SIGTERM, SIGHUP and SIGKILL do to it, and what it leaves behind."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from netboot.addresses import Address
from netboot.config import Config, Provisioning
from netboot.connections import ACCEPT_AT_ONCE, Limited
from netboot.process import ProcessSpec
from netboot.status.boot import BootStatus
from netboot.stores.journal_reader import read_after
from netboot.stores.snapshot import write_snapshot
from netboot.stores.status import StatusFolder
from tests.accounts import by_the_service
from tests.processes import environment
from tests.sockets.boot_server import (
    MAC1,
    ROOT,
    RunningBootServer,
    close,
    digest_of,
    fill_store,
    parse,
    running,
    snapshot,
)

COMMAND = [sys.executable, "-m", "netboot.cli.main"]
PATIENT = """\
from netboot.boot import server
from netboot.cli.main import main
server.UNREADY_SECONDS, server.QUIET_SECONDS, server.STOP_SECONDS = 5.0, 60.0, 120.0
main()
"""
"""One whose stop waits for a test that is slow to look."""


class Process(RunningBootServer):
    """A boot server in a process of its own: its `internals` are not ours to look into."""

    process: "subprocess.Popen[bytes]"


@contextmanager
def process(root: Path, *command: str) -> Iterator[Process]:
    """A boot server, which is begun by `command` and has `root`; its listening socket stays open here, as the
    supervisor's does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        provisioning = Provisioning(
            listen=Address("127.0.0.1", port),
            url=f"http://127.0.0.1:{port}",
            workers=1,
            max_connections_per_address=2_000,
        )
        config = Config(site="test", data=root / "data", store=root / "store", provisioning=provisioning)
        if not config.store.exists():
            fill_store(config.store)
            config.data.mkdir()
            write_snapshot(config.data / "snapshot.json", snapshot(port))
        reading, writing = os.pipe()
        numbers = {"listener": listener.fileno(), "ready": writing}
        spec = ProcessSpec(kind="boot", name="boot-0", config=config, supervisor=os.getpid(), **numbers)
        child = subprocess.Popen(
            by_the_service([*(command or COMMAND), "process", "boot-0"], root, config),
            pass_fds=list(numbers.values()),
            stdin=subprocess.PIPE,
            env=environment(),
        )
        os.close(writing)
        assert child.stdin is not None
        with child.stdin as stdin, os.fdopen(reading, "rb") as ready:
            stdin.write(spec.model_dump_json().encode())
            stdin.close()
            assert ready.read(1) == b"1"
        server = Process(config, None, port)  # type: ignore[arg-type]
        server.process = child
        try:
            yield server
        finally:
            child.kill()
            child.wait(60)


def test_sigterm_fails_readiness_first_cuts_nothing_and_exits_zero(tmp_path: Path) -> None:
    async def use(server: Process) -> None:
        big = bytes(64 * 2**20)
        (server.config.store / "blobs" / digest_of(big)).write_bytes(big)
        asker, asking = await server.connect()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=2**16)
        writer.write(f"GET /v1/blobs/{digest_of(big)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 OK" in head
        server.process.send_signal(signal.SIGTERM)
        while (ready := await server.ask("/readyz")).status == 200:
            await asyncio.sleep(0.01)
        assert json.loads(ready.body)["problems"] == ["the service is stopping"]
        asking.write(f"GET /v1/boot?mac={MAC1} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        last = parse(await asker.read(-1))
        assert (last.status, last.headers["netboot-outcome"]) == (200, "boot")
        assert last.headers["connection"] == "close"
        got = 0
        while piece := await reader.read(2**16):
            got += len(piece)
        assert got == len(big)
        await close(writer)
        await close(asking)
        assert await asyncio.to_thread(server.process.wait, 150) == 0
        assert [record.kind for record in server.records()] == ["script"]

    with process(tmp_path, sys.executable, "-c", PATIENT) as server:
        asyncio.run(asyncio.wait_for(use(server), 180))


def test_killed_during_a_thousand_posts_it_has_every_one_that_was_acknowledged(tmp_path: Path) -> None:
    acknowledged: set[str] = set()

    async def post(server: Process, number: int) -> None:
        """Post after post, until there is no answer any more."""
        body = json.dumps({"mac": MAC1, "phase": "Booted"}).encode()
        while server.process.returncode is None:
            boot = server.boot_of("gpu-001", number)
            try:
                answer = await server.ask(f"/v1/boots/{boot}/events", "POST", body)
            except (ConnectionError, IndexError):
                return
            assert answer.status == 204
            acknowledged.add(boot)
            number += 1_000
            if len(acknowledged) == 2_500:
                server.process.kill()

    async def use(server: Process) -> None:
        posting = [asyncio.ensure_future(post(server, number)) for number in range(1_000)]
        await asyncio.to_thread(server.process.wait, 170)
        # those that wait in the dead one's socket would wait for its successor
        _, waiting = await asyncio.wait(posting, timeout=1.0)
        for one in waiting:
            one.cancel()
        await asyncio.wait(posting)

    with process(tmp_path) as server:
        asyncio.run(asyncio.wait_for(use(server), 180))
        assert server.process.wait(60) == -signal.SIGKILL
        rows = read_after(server.config.data / "journal" / "boot-0.db", 0, most=10**6)
        written = {json.loads(row.body)["boot"] for row in rows}
    assert len(acknowledged) >= 2_500
    assert acknowledged <= written
    with process(tmp_path) as again:
        asyncio.run(again.ask(f"/v1/boot?mac={MAC1}"))
        assert len(again.records()) == len(written) + 1


def test_sighup_reads_the_snapshot_again_and_harms_nothing(tmp_path: Path) -> None:
    async def use(server: Process) -> None:
        server.publish(published_ms=77)
        server.process.send_signal(signal.SIGHUP)
        while json.loads((await server.ask("/readyz")).body)["published_ms"] != 77:
            await asyncio.sleep(0.01)

    with process(tmp_path) as server:
        asyncio.run(asyncio.wait_for(use(server), 180))


def test_what_it_counted_can_be_read_and_who_takes_its_place_counts_on(tmp_path: Path) -> None:
    async def use(server: Process) -> None:
        await server.ask(f"/v1/boot?mac={MAC1}")
        await server.ask(f"/v1/blobs/{digest_of(ROOT)}")
        server.process.terminate()
        await asyncio.to_thread(server.process.wait, 150)

    for times in (1, 2):
        with process(tmp_path) as server:
            asyncio.run(asyncio.wait_for(use(server), 180))
            said = StatusFolder(server.config.data / "status").read("boot-0", BootStatus)
        assert said is not None
        assert said.scripts == {"boot": times, "unknown": 0, "refused": 0, "unavailable": 0, "discovery": 0}
        assert (said.bytes_sent, said.transfers) == (times * len(ROOT), {"whole": times, "broken": 0})


def test_a_stop_takes_what_the_kernel_has_accepted_and_answers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections are made while the event loop does not come round, more than it takes at once."""
    monkeypatch.setattr("netboot.boot.server.QUIET_SECONDS", 60.0)

    async def stop() -> list[bytes]:
        with ExitStack() as held:
            async with running(tmp_path, max_connections_per_address=1_000) as server:
                made = [
                    held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
                    for _ in range(4 * ACCEPT_AT_ONCE)
                ]
                for connection in made:
                    connection.sendall(f"GET /v1/boot?mac={MAC1} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            return [connection.recv(15) for connection in made]

    assert asyncio.run(asyncio.wait_for(stop(), 180)) == [b"HTTP/1.1 200 OK"] * (4 * ACCEPT_AT_ONCE)


def test_a_stop_lets_a_connection_ask_that_has_asked_nothing_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netboot.boot.server.QUIET_SECONDS", 60.0)
    unasked = Limited.unasked

    async def stop() -> bytes:
        waited_for = asyncio.Event()

        def looked(limited: Limited) -> int:
            waited_for.set()
            return unasked(limited)

        async def ask_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
            waits, ends = asyncio.create_task(waited_for.wait()), asyncio.create_task(reader.read(1))
            await asyncio.wait((waits, ends), return_when=asyncio.FIRST_COMPLETED)
            assert not ends.done(), "it was ended before it could ask"
            ends.cancel()
            await asyncio.wait((ends,))
            writer.write(f"GET /v1/boot?mac={MAC1} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            return await reader.read(-1)

        monkeypatch.setattr(Limited, "unasked", looked)
        async with running(tmp_path) as boot:
            reader, writer = await boot.connect()
            while not boot.internals.server.connections:
                await asyncio.sleep(0.01)
            asking = asyncio.create_task(ask_late(reader, writer))
        answer = await asking
        await close(writer)
        return answer

    answer = parse(asyncio.run(asyncio.wait_for(stop(), 180)))
    assert (answer.status, answer.headers["netboot-outcome"]) == (200, "boot")
