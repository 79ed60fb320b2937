"""Clients that misbehave over real sockets: bounded, and the others do not notice."""

import asyncio
from pathlib import Path

import pytest

from tests.sockets.boot_server import MAC1, ROOT, RunningBootServer, close, digest_of, parse, serve

ASK = f"GET /v1/boot?mac={MAC1} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


async def works(server: RunningBootServer) -> None:
    answer = await server.ask(f"/v1/boot?mac={MAC1}")
    assert (answer.status, answer.headers["netboot-outcome"]) == (200, "boot")


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /v1/boot?serial=" + b"x" * 10_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/boot HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 10_000 + b"\r\n\r\n",
        b"GET /v1/boot HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(200)) + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /v1/boot HTTP/9.9\r\n\r\n",
        b"POST /v1/boots/x/events HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/boots/x/events HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /v1/boot HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
    ],
    ids=["line", "header", "headers", "tls", "nonsense", "version", "negative", "smuggled", "nul"],
)
def test_what_is_not_http_or_too_long_is_refused_in_a_line_and_closed(
    tmp_path: Path, raw: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.send(raw)
        assert answer.status == 400
        assert answer.body == b"not an HTTP request, or its first line or headers are too long\n"
        await works(server)

    serve(tmp_path, use)
    assert [record for record in caplog.records if record.levelname != "DEBUG"] == []


def test_a_query_that_is_longer_than_any_honest_one_is_not_looked_at(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask(f"/v1/boot?mac={MAC1}&x=" + "y" * 3_000)
        assert (answer.status, answer.headers["netboot-outcome"]) == (200, "unknown")

    serve(tmp_path, use)


async def stalled(server: RunningBootServer, count: int) -> list[asyncio.StreamWriter]:
    """Readers of a file that do not read: connections that are served and go on being served."""
    big = b"\0" * 16 * 2**20
    (server.config.store / "blobs" / digest_of(big)).write_bytes(big)
    writers, before = [], server.internals.app.in_flight
    for _ in range(count):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
        writer.write(f"GET /v1/blobs/{digest_of(big)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        writers.append(writer)
    while server.internals.app.in_flight < before + count:
        await asyncio.sleep(0.01)
    return writers


async def emptied(server: RunningBootServer, writers: list[asyncio.StreamWriter]) -> None:
    for writer in writers:
        writer.transport.abort()
    while server.internals.gate.open:
        await asyncio.sleep(0.01)
    assert server.internals.artifacts.transfers == set()


def test_excess_connections_are_told_to_come_back_and_then_cut(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        held = await stalled(server, 8)
        for target in ("/boot.ipxe", f"/v1/boot?mac={MAC1}"):
            script = await server.ask(target)
            assert (script.status, script.headers["netboot-outcome"]) == (200, "unavailable")
            assert b"too many connections at once, or too many from this address" in script.body
            assert script.headers["connection"] == "close"
        other = await server.ask(f"/v1/blobs/{digest_of(ROOT)}")
        assert (other.status, other.headers["retry-after"]) == (503, "5")
        assert other.headers["connection"] == "close"
        told = [(await server.connect())[1] for _ in range(8)]
        while server.internals.gate.open < 16:
            await asyncio.sleep(0.01)
        with pytest.raises((ConnectionError, IndexError)):
            await server.ask("/boot.ipxe")
        assert server.internals.gate.refused == 3 + 8 + 1
        await emptied(server, held + told)
        await works(server)

    serve(tmp_path, use, max_connections_per_address=8)


def test_who_holds_connections_and_asks_nothing_makes_room(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        held = [await server.connect() for _ in range(8)]
        while server.internals.gate.open < 8:
            await asyncio.sleep(0.01)
        await works(server)
        assert await held[0][0].read(-1) == b""
        assert server.internals.gate.refused == 1
        await emptied(server, [writer for _, writer in held])

    serve(tmp_path, use, max_connections_per_address=8)


async def until_ended(reader: asyncio.StreamReader) -> bytes:
    """What came; an end in the moment in which we send another byte is an error."""
    try:
        return await reader.read(-1)
    except ConnectionError:
        return b""


def test_idle_connections_and_slow_heads_are_ended(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        idle_reader, idle = await server.connect()
        slow_reader, slow = await server.connect()
        kept_reader, kept = await server.connect()
        kept.write(ASK)

        async def dribble() -> None:
            for byte in ASK:
                slow.write(bytes([byte]))
                await asyncio.sleep(0.1)

        dribbling = asyncio.ensure_future(dribble())
        said = [await asyncio.wait_for(until_ended(reader), 60) for reader in (idle_reader, slow_reader, kept_reader)]
        dribbling.cancel()
        assert said[:2] == [b"", b""]
        assert parse(said[2]).headers["netboot-outcome"] == "boot"
        for writer in (idle, slow, kept):
            await close(writer)

    serve(tmp_path, use, idle_seconds=2.0)


def test_one_that_asks_and_asks_and_never_reads_is_ended(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)

        async def ask() -> None:
            while True:
                writer.write(ASK * 100)
                await writer.drain()

        asking = asyncio.ensure_future(ask())
        while server.internals.gate.open == 0 and not asking.done():
            await asyncio.sleep(0.01)
        await works(server)
        while server.internals.gate.open:
            await asyncio.sleep(0.01)
        with pytest.raises(ConnectionError):
            await asking
        await close(writer)

    serve(tmp_path, use, send_stall_seconds=0.5)


def test_others_do_not_notice_many_stalled_readers_and_slow_senders(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        writers = await stalled(server, 100)
        for _ in range(50):
            _, writer = await server.connect()
            writer.write(b"POST /v1/boots/x/events HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            writers.append(writer)
        while server.internals.app.in_flight < 150:
            await asyncio.sleep(0.01)
        for _ in range(20):
            await works(server)
        assert (await server.ask(f"/v1/blobs/{digest_of(ROOT)}")).body == ROOT
        await emptied(server, writers)

    # none of them is ended before all are there
    serve(tmp_path, use, max_connections_per_address=1_000, body_seconds=170.0, send_stall_seconds=170.0)


def test_a_body_that_nobody_asked_for_does_not_hold_the_connection(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        raw = f"GET /v1/boot?mac={MAC1} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nxxx".encode()
        answer = await server.send(raw)
        assert answer.headers["netboot-outcome"] == "boot"

    serve(tmp_path, use)
