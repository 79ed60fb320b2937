"""A known machine while another address floods the boot server: it is answered before what the flood has queued up."""

import asyncio
import socket
import struct
import threading
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from netboot.boot import ingest
from netboot.boot.ingest import ALONE_SECONDS, IN_HAND, IN_HAND_OF_SEVERAL, Turns
from netboot.stores import journal_file
from netboot.stores.journal_file import JournalFile, Rows
from tests.sockets.boot_server import MAC1, MAC2, RunningBootServer, serve

FLOOD, KNOWN = f"/v1/boot?mac={MAC1}", f"/v1/boot?mac={MAC2}"


def ask(held: ExitStack, server: RunningBootServer, target: str, address: str, *, times: int = 1) -> socket.socket:
    """Ask while the event loop stands still."""
    connection = held.enter_context(
        socket.create_connection(("127.0.0.1", server.port), timeout=60, source_address=(address, 0))
    )
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * times)
    return connection


async def answered(server: RunningBootServer, scripts: int) -> list[str]:
    """Machines, in the order in which their scripts were written down."""
    while server.internals.counters.scripts["boot"] < scripts:
        await asyncio.sleep(0.01)
    return [record.machine for record in server.records()]


def test_a_known_machine_is_answered_before_what_a_flood_has_queued_up(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        with ExitStack() as held:
            for _ in range(60):
                ask(held, server, FLOOD, "127.0.0.1")
            ask(held, server, KNOWN, "127.0.0.2")
            order = await answered(server, 61)
        assert order.index("gpu-002") == IN_HAND, "behind what the flood may have in hand, and no more"

    serve(tmp_path, use)


def test_a_known_machine_is_answered_while_a_flood_goes_on_over_connections_that_are_kept(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        with ExitStack() as held:
            for _ in range(60):
                ask(held, server, FLOOD, "127.0.0.1", times=10)
            await answered(server, 60)
            ask(held, server, KNOWN, "127.0.0.2")
            before = server.internals.counters.scripts["boot"]
            order = await answered(server, 601)
        assert order.count("gpu-001") == 600, "the flood, too, is answered"
        assert order.index("gpu-002") <= before + 2 * IN_HAND, "in the next commit"

    serve(tmp_path, use, ingest_kib_per_second=10_000_000)


def test_a_flood_has_less_in_hand_while_a_known_machine_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "ALONE_SECONDS", 3600.0)

    async def use(server: RunningBootServer) -> None:
        with ExitStack() as held:
            for _ in range(60):
                ask(held, server, FLOOD, "127.0.0.1", times=10)
            ask(held, server, KNOWN, "127.0.0.2")
            while "gpu-002" not in (order := await answered(server, 200)):
                await asyncio.sleep(0.01)
            before = server.internals.counters.scripts["boot"]
            ask(held, server, KNOWN, "127.0.0.3")
            order = await answered(server, 602)
        assert order.count("gpu-001") == 600, "the flood, too, is answered"
        last = len(order) - 1 - order[::-1].index("gpu-002")
        assert before < last <= before + 2 * IN_HAND_OF_SEVERAL, "in the next commit"

    serve(tmp_path, use, ingest_kib_per_second=10_000_000)


RESET = struct.pack("ii", 1, 0)
"""`SO_LINGER`: what is closed is reset (socket(7))."""


@pytest.mark.parametrize("how", ["closes", "resets"])
@pytest.mark.parametrize("flood", [f"GET {FLOOD}", "POST events"])
def test_who_has_gone_when_its_turn_comes_is_passed_over(
    flood: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, commit = threading.Event(), JournalFile.commit

    def held_up(file: JournalFile, rows: Rows) -> str | None:
        if rows:
            goes_on.wait(180)
        return commit(file, rows)

    async def use(server: RunningBootServer) -> None:
        monkeypatch.setattr(JournalFile, "commit", held_up)
        monkeypatch.setattr(journal_file, "DEADLINE_SECONDS", 180.0)
        event, ghosts = b'{"machine": "gpu-001", "phase": "Booted"}', IN_HAND + 40
        post = f"POST /v1/boots/{server.boot_of('gpu-001')}/events HTTP/1.1\r\nHost: x\r\n"
        post += f"Content-Length: {len(event)}\r\n\r\n"
        asked = f"{flood} HTTP/1.1\r\nHost: x\r\n\r\n".encode() if flood != "POST events" else post.encode() + event
        with ExitStack() as held:
            for _ in range(ghosts):
                connection = held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
                connection.sendall(asked)
                if how == "resets":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            while server.internals.app.in_flight < ghosts:
                await asyncio.sleep(0.01)
        while flood == "POST events" and server.internals.gate.open:
            await asyncio.sleep(0.01)
        with ExitStack() as held:
            ask(held, server, KNOWN, "127.0.0.1")
            while server.internals.app.in_flight <= ghosts:
                await asyncio.sleep(0.01)
            goes_on.set()
            await answered(server, 1 if flood == "POST events" else IN_HAND + 1)
            while server.internals.app.in_flight or server.internals.gate.open > 1:
                await asyncio.sleep(0.01)
        machines = [record.machine for record in server.records()]
        assert machines == ["gpu-001"] * IN_HAND + ["gpu-002"], "what was in hand, then who is still there"

    serve(tmp_path, use)


def test_an_address_has_so_many_in_hand_and_the_rest_of_its_own_wait_in_their_order() -> None:
    async def use() -> None:
        later = partial(next, count(0.0, 2 * ALONE_SECONDS))  # nobody is disturbed by who asked before
        turns, begun, durable = Turns(later), list[str](), [asyncio.Event() for _ in range(IN_HAND + 4)]

        async def record(number: int, peer: str) -> None:
            await turns.begin(peer, lambda: False)
            try:
                begun.append(peer)
                await durable[number].wait()
            finally:
                turns.end(peer)

        peers = [*(f"2001:db8::{number:x}" for number in range(IN_HAND + 3)), "2001:db8:0:1::1"]
        records = [asyncio.ensure_future(record(number, peer)) for number, peer in enumerate(peers)]
        await asyncio.sleep(0)
        assert begun == [*peers[:IN_HAND], peers[-1]]
        records[IN_HAND].cancel()  # whoever asked that has gone
        await asyncio.wait([records[IN_HAND]])
        durable[0].set()
        await asyncio.sleep(0)
        records[IN_HAND + 1].cancel()  # … and this one goes as its turn comes
        await asyncio.wait([records[IN_HAND + 1]])
        await asyncio.sleep(0)
        assert begun[IN_HAND + 1 :] == [peers[IN_HAND + 2]]
        for event in durable:
            event.set()
        await asyncio.wait(records)
        assert len(turns) == 0

    asyncio.run(asyncio.wait_for(use(), 180))
