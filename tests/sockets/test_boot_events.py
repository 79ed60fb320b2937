"""`POST /v1/boots/<id>/events` over real sockets."""

import asyncio
import json
from pathlib import Path

import pytest

from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.phases import REPORTED_PHASES
from tests.sockets.boot_server import MAC1, MAC2, MAC_STRANGER, RunningBootServer, close, parse, serve


def body(**fields: object) -> bytes:
    return json.dumps({"mac": MAC1, "phase": "Booted", **fields}).encode()


def path_of(boot: str) -> str:
    return f"/v1/boots/{boot}/events"


def test_an_event_is_acknowledged_when_it_is_durable(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = server.boot_of("gpu-001")
        answer = await server.ask(
            path_of(boot),
            "POST",
            body(mac="52-54-00-00-00-01", phase="ImageFetched", uptime_ms=1234, detail="ok"),
        )
        assert (answer.status, answer.body) == (204, b"")
        (record,) = server.records()
        assert record == EventRecord(
            at_ms=record.at_ms,
            boot=boot,
            machine="gpu-001",
            phase="ImageFetched",
            uptime_ms=1234,
            detail="ok",
            peer="127.0.0.1",
        )
        assert server.internals.counters.events == {"accepted": 1, "refused": 0, "limited": 0}

    serve(tmp_path, use)


def test_every_phase_that_a_machine_may_report_is_taken(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        for phase in sorted(REPORTED_PHASES):
            assert (await server.ask(path_of(server.boot_of("gpu-001")), "POST", body(phase=phase))).status == 204
        assert {record.phase for record in server.records()} == REPORTED_PHASES

    serve(tmp_path, use)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "not an event: Invalid JSON: EOF while parsing a value at line 1 column 0; correct the request"),
        (b"[]", "not an event: Input should be an object; correct the request"),
        (b'{"mac":"52:54:00:00:00:01"}', "not an event: phase: Field required; correct the request"),
        (
            b'{"mac":"x","phase":"Booted"}',
            (
                "not an event: mac: not a MAC address (twelve hexadecimal digits, with ':', '-' or nothing between); "
                "correct the request"
            ),
        ),
        (body(detail="a\nb"), None),
        (body(detail="é"), None),
        (body(detail="x" * 301), None),
        (body(uptime_ms=-1), None),
        (body(uptime_ms=10**13), None),
        (body(phase="Levitated"), None),
        (body(more="x"), None),
        (
            body(phase="KernelFetched"),
            (
                "not an event: phase: a phase that only the service can know; a machine reports what it did itself; "
                "correct the request"
            ),
        ),
        (body(phase="ScriptServed"), None),
        (b"\xff\xfe", None),
    ],
)
def test_what_is_not_an_event_is_refused_with_words(tmp_path: Path, sent: bytes, words: str | None) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask(path_of(server.boot_of("gpu-001")), "POST", sent)
        assert answer.status == 400
        if words is not None:
            assert answer.body.decode() == words + "\n"
        assert server.records() == []
        assert server.internals.counters.events == {"accepted": 0, "refused": 1, "limited": 0}

    serve(tmp_path, use)


def test_boots_that_do_not_exist_or_are_another_machines_are_not_found(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        mine = server.boot_of("gpu-001")
        forged = mine[:-1] + ("0" if mine[-1] != "0" else "1")
        for boot, mac in (
            (mine, MAC2),
            (mine, MAC_STRANGER),
            (server.boot_of("gpu-002"), MAC1),
            (server.boot_of("nobody"), MAC1),
            (forged, MAC1),
            ("00000000-0000-8000-8000-000000000000", MAC1),
            ("x", MAC1),
            ("", MAC1),
            (mine.upper(), MAC1),
        ):
            answer = await server.ask(path_of(boot), "POST", body(mac=mac))
            assert (answer.status, answer.body) == (404, b"no such boot of this machine; see `netboot boot list`\n")
        assert (await server.ask(f"/v1/boots/{mine}/events/", "POST", body())).status == 404
        assert (await server.ask(f"/v1/boots/{mine}", "POST", body())).status == 404
        assert server.records() == []

    serve(tmp_path, use)


def test_a_body_that_is_too_long_is_refused_before_it_is_read(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        target = path_of(server.boot_of("gpu-001"))
        for head in ("Content-Length: 4097", "Content-Length: 999999999999"):
            answer = await server.send(f"POST {target} HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode())
            assert (answer.status, answer.body) == (413, b"an event has at most 4096 bytes: send less\n")
        chunks = b"1000\r\n" + b"x" * 4096 + b"\r\n1\r\ny\r\n0\r\n\r\n"
        answer = await server.send(
            f"POST {target} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + chunks
        )
        assert answer.status == 413
        assert (await server.ask(target, "POST", body().ljust(4096))).status == 204
        assert server.internals.counters.events == {"accepted": 1, "refused": 3, "limited": 0}

    serve(tmp_path, use)


@pytest.mark.parametrize("chunks", [b"zz\r\n{\r\n0\r\n\r\n", b"1\r\n{}}}\r\n0\r\n\r\n"])
def test_a_body_that_is_framed_wrongly_is_refused(
    tmp_path: Path, chunks: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(server: RunningBootServer) -> None:
        reader, writer = await server.connect()
        target = path_of(server.boot_of("gpu-001"))
        writer.write(f"POST {target} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        while server.internals.app.in_flight == 0:
            await asyncio.sleep(0.01)
        writer.write(chunks)
        # aiohttp does not tell a body that cannot go on from one that is slow; either answer ends it
        assert parse(await reader.read(-1)).status in (400, 408)
        assert server.records() == []
        await close(writer)

    serve(tmp_path, use, body_seconds=2.0)  # not over before it was seen in flight
    assert "defect" not in caplog.text


def test_a_body_that_dribbles_in_has_a_deadline(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        reader, writer = await server.connect()
        writer.write(
            f"POST {path_of(server.boot_of('gpu-001'))} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n".encode()
        )

        async def dribble() -> None:
            while True:
                writer.write(b"{")
                await asyncio.sleep(0.05)

        dribbling = asyncio.ensure_future(dribble())
        answer = parse(await reader.readuntil(b"faster\n"))
        dribbling.cancel()
        assert answer.status == 408
        assert answer.body == b"the body did not arrive within 0.3 seconds: send faster\n"
        await close(writer)

    serve(tmp_path, use, body_seconds=0.3)


def test_one_that_goes_away_in_the_middle_of_its_body_leaves_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(server: RunningBootServer) -> None:
        _, writer = await server.connect()
        target = path_of(server.boot_of("gpu-001"))
        writer.write(f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())
        while server.internals.app.in_flight == 0:
            await asyncio.sleep(0.01)
        writer.transport.abort()
        while server.internals.app.in_flight or server.internals.gate.open:
            await asyncio.sleep(0.01)
        assert server.records() == []

    serve(tmp_path, use)
    assert "defect" not in caplog.text


def test_who_expects_100_continue_gets_it(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        reader, writer = await server.connect()
        target = path_of(server.boot_of("gpu-001"))
        sent = body()
        writer.write(
            f"POST {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n"
            f"Content-Length: {len(sent)}\r\n\r\n".encode()
        )
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(sent)
        assert parse(await reader.read(-1)).status == 204
        await close(writer)

    serve(tmp_path, use)


def test_before_anything_was_published_an_event_is_to_come_again(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask(path_of(server.boot_of("gpu-001")), "POST", body())
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")

    serve(tmp_path, use, published=False)


def test_a_thousand_posts_at_once_are_all_taken(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boots = [server.boot_of("gpu-001", number) for number in range(1_000)]
        answers = await asyncio.gather(*(server.ask(path_of(boot), "POST", body()) for boot in boots))
        assert {answer.status for answer in answers} == {204}
        assert sorted(record.boot for record in server.records()) == sorted(boots)

    serve(tmp_path, use, max_connections_per_address=2_000)
