"""New connections of the boot server: a first script on the bare socket, all else by aiohttp, and the same answers.

What one sends who asks on the bare socket is compared with what aiohttp answers to the same bytes.
"""

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp.http import HttpRequestParser, HttpVersion11
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netboot.boot import acceptor, heads
from netboot.boot.acceptor import SILENT_SECONDS, Acceptor
from netboot.boot.heads import Head, Heads
from netboot.boot.ingest import IN_HAND, Repeats
from netboot.lifecycle import bootid
from netboot.stores import journal_file
from netboot.stores.journal_file import JournalFile
from tests.sockets.boot_server import MAC1, MAC_OFF, MAC_STRANGER, RunningBootServer, close, parse, running, serve

SCRIPT = f"/v1/boot?mac={MAC1}"
ASK = f"GET {SCRIPT} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
DIFFERS = re.compile(rb"Date: .*|Content-Length: .*|sleep [0-9]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|in [0-9]+ s")
"""What no two answers have in common: when, how long to wait, and the id of the boot."""
LAST = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However late a connection asks, its first script is answered on the bare socket."""
    monkeypatch.setattr(acceptor, "SILENT_SECONDS", 60.0)


def by_aiohttp(server: RunningBootServer) -> int:
    """How many requests aiohttp has been given."""
    return server.internals.server.requests_count


def scripts(server: RunningBootServer) -> int:
    return server.internals.counters.scripts["boot"]


@pytest.mark.usefixtures("patient")
def test_a_first_script_costs_neither_a_transport_nor_a_request_of_aiohttp(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask(SCRIPT)
        assert (answer.status, answer.headers["netboot-outcome"]) == (200, "boot")
        assert answer.headers["connection"] == "close"
        assert (scripts(server), by_aiohttp(server), server.internals.gate.open) == (1, 0, 0)
        assert [record.peer for record in server.records()] == ["127.0.0.1"]

    serve(tmp_path, use)


@pytest.mark.usefixtures("patient")
def test_a_connection_that_stays_open_is_aiohttp_s_after_its_first_script(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        reader, writer = await server.connect()
        for scripts_before in range(3):
            writer.write(ASK)
            head = parse(await reader.readuntil(b"\r\n\r\n"))
            assert "connection" not in head.headers
            await reader.readexactly(int(head.headers["content-length"]))
            assert (scripts(server), by_aiohttp(server)) == (scripts_before + 1, scripts_before)
        assert server.internals.gate.open == 1
        await close(writer)
        while server.internals.gate.open:
            await asyncio.sleep(0.01)

    serve(tmp_path, use)


def test_what_follows_the_request_line_is_parsed_once_and_not_remembered_without_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed = list[object]()

    def parser(*values: Any, **limits: Any) -> HttpRequestParser:
        parsed.append(values)
        return HttpRequestParser(*values, **limits)

    async def use() -> None:
        instance = Heads(asyncio.get_running_loop())
        for number in range(5):
            assert instance.read(ASK.replace(b"?", b"?x=%d&" % number)) == Head(
                f"x={number}&mac={MAC1}", HttpVersion11, should_close=False
            )
        assert len(parsed) == 1
        for number in range(heads.MOST_REMEMBERED + 9):
            assert instance.read(ASK.replace(b"Host: x", b"Host: %d" % number)) is not None
        longest = ASK.replace(b"Host: x", b"Host: " + b"x" * heads.LONGEST_REMEMBERED)
        assert instance.read(longest) == Head(f"mac={MAC1}", HttpVersion11, should_close=False)
        assert len(instance) <= heads.MOST_REMEMBERED

    monkeypatch.setattr(heads, "HttpRequestParser", parser)
    asyncio.run(use())


@pytest.mark.usefixtures("patient")
def test_a_machine_that_asks_again_has_no_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[object]()

    async def use(server: RunningBootServer) -> None:
        await server.ask(SCRIPT)
        monkeypatch.setattr(Acceptor, "_do", lambda _, work: begun.append(work))
        answer = await server.ask(SCRIPT)
        assert (answer.status, answer.headers["netboot-outcome"]) == (200, "boot")
        assert (scripts(server), server.internals.gate.open, begun) == (2, 0, [])

    serve(tmp_path, use)


@pytest.mark.parametrize(
    ("where", "name", "fails", "word"),
    [
        (bootid.Minter, "mint", lambda *_: 1 / 0, b"the service met an error of its own"),
        (Repeats, "remember", lambda *_: 1 / 0, b"the service met an error of its own"),
        (JournalFile, "commit", lambda *_: "no space", b"its boot cannot be written down right now"),
    ],
    ids=["begun", "written", "disk"],
)
def test_a_script_that_fails_without_a_task_takes_nothing_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: type, name: str, fails: Callable[..., Any], word: bytes
) -> None:
    """Neither a turn of its address, nor a seat, nor a place among those in flight."""

    async def use(server: RunningBootServer) -> None:
        await server.ask(SCRIPT)
        monkeypatch.setattr(where, name, fails)
        for _ in range(IN_HAND + 1):
            answer = await server.ask(SCRIPT)
            assert answer.headers["netboot-outcome"] == "unavailable"
            assert word in answer.body
        monkeypatch.undo()
        assert (await server.ask(SCRIPT)).headers["netboot-outcome"] == "boot"
        assert (server.internals.app.in_flight, server.internals.gate.open) == (0, 0)

    serve(tmp_path, use)


def test_a_script_that_waits_for_the_disk_without_a_task_is_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a stop waits for those."""
    begun, go_on = threading.Event(), threading.Event()
    commit = JournalFile.commit

    def held(file: JournalFile, rows: list[tuple[int, str]]) -> str | None:
        if rows:
            begun.set()
            go_on.wait(60)
        return commit(file, rows)

    async def use(server: RunningBootServer) -> None:
        await server.ask(SCRIPT)
        monkeypatch.setattr(JournalFile, "commit", held)
        monkeypatch.setattr(journal_file, "DEADLINE_SECONDS", 60.0)
        asked = asyncio.create_task(server.ask(SCRIPT))
        try:
            assert await asyncio.to_thread(begun.wait, 60)
            assert server.internals.app.in_flight == 1
        finally:
            go_on.set()
        assert (await asked).headers["netboot-outcome"] == "boot"
        assert server.internals.app.in_flight == 0

    serve(tmp_path, use)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("turns", [0, 1])
def test_who_made_room_on_its_way_to_aiohttp_is_not_answered_there(tmp_path: Path, turns: int) -> None:
    """`turns` of the loop lie between what a connection asks and the newcomer that it makes room for."""

    async def use(server: RunningBootServer) -> None:
        with ExitStack() as stack:

            def connect() -> socket.socket:
                return stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))

            clients = [connect()]
            for refused in range(1, 31):
                while server.internals.gate.refused < refused - 1 or not server.internals.gate.open:
                    await asyncio.sleep(0)
                clients[-1].sendall(LAST)
                for _ in range(turns):
                    await asyncio.sleep(0)
                clients.append(connect())
                while server.internals.gate.refused < refused:
                    await asyncio.sleep(0)
            clients[-1].sendall(ASK)
            while not server.records():
                await asyncio.sleep(0.01)
        assert by_aiohttp(server) == 0

    serve(tmp_path, use, max_connections_per_address=1)


@pytest.mark.usefixtures("patient")
def test_who_made_room_is_not_answered_though_it_asked_in_that_very_moment(tmp_path: Path) -> None:
    """Each newcomer's connection and the silent one's request come in one turn of the loop."""

    async def use(server: RunningBootServer) -> None:
        with ExitStack() as stack:

            def connect() -> socket.socket:
                return stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))

            clients = [connect()]
            while not server.internals.gate.open:
                await asyncio.sleep(0)
            for _ in range(30):
                newcomer = connect()
                clients[-1].sendall(ASK)
                clients.append(newcomer)
                for _ in range(3):
                    await asyncio.sleep(0)
                    assert server.internals.app.in_flight <= server.internals.gate.open
            clients[-1].sendall(ASK)
            while not server.records():
                await asyncio.sleep(0.01)
        assert (len(server.records()), server.internals.gate.refused) == (1, 30)

    serve(tmp_path, use, max_connections_per_address=1)


def test_however_many_come_and_go_the_silent_are_looked_at_by_one_timer(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        loop, looks = asyncio.get_running_loop(), list[object]()
        begun = loop.time()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "call_later", partial(count_timers, loop.call_later, looks))
            for _ in range(20):
                _, writer = await server.connect()
                while not server.internals.gate.open:
                    await asyncio.sleep(0)
                await close(writer)
                while server.internals.gate.open:
                    await asyncio.sleep(0)
        assert len(looks) <= 3 + (loop.time() - begun) / SILENT_SECONDS, "one at a time, however many come"

    serve(tmp_path, use)


def count_timers(call_later: Callable[..., Any], looks: list[object], delay: float, *what: Any, **more: Any) -> Any:
    if delay == SILENT_SECONDS:
        looks.append(what)
    return call_later(delay, *what, **more)


@pytest.mark.parametrize(
    ("pieces", "outcomes"),
    [
        ([ASK.replace(b"GET", b"HEAD")], [405]),
        ([ASK.replace(b"GET", b"POST")], [405]),
        ([ASK.replace(b"GET /", b"GET http://somewhere/")], [200]),
        ([ASK.replace(b"\r\n\r\n", b"\r\nContent-Length: 2\r\n\r\n{}")], [200]),
        ([ASK.replace(b"\r\n\r\n", b"\r\nContent-Length: 4\r\n\r\n\r\n\r\n")], [200]),
        ([ASK.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")], [200]),
        ([ASK.replace(b"\r\n\r\n", b"\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")], [200]),
        ([ASK.replace(b"?", b"/?")], [404]),
        ([ASK + ASK], [200, 200]),
        ([ASK[:20], ASK[20:]], [200]),
        ([b"\r\n" + ASK], [200]),
        ([b"G", ASK[1:] + ASK], [200, 200]),
    ],
    ids=["HEAD", "POST", "absolute", "body", "blank", "chunked", "upgrade", "path", "two", "halves", "CRLF", "byte"],
)
def test_all_else_goes_to_aiohttp_with_what_was_read_of_it(
    tmp_path: Path, pieces: list[bytes], outcomes: list[int]
) -> None:
    async def use(server: RunningBootServer) -> None:
        reader, writer = await server.connect()
        for number, piece in enumerate(pieces):
            writer.write(piece)
            while number == 0 and len(pieces) > 1 and not server.internals.server.connections:
                await asyncio.sleep(0.01)  # what came first has been read, and handed over
        for status in outcomes:
            head = parse(await reader.readuntil(b"\r\n\r\n"))
            assert head.status == status
            if b"HEAD" not in pieces[0]:
                await reader.readexactly(int(head.headers["content-length"]))
        assert by_aiohttp(server) == len(outcomes)
        await close(writer)

    serve(tmp_path, use)


def test_one_that_says_nothing_is_soon_aiohttp_s_and_one_that_leaves_is_forgotten(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        (_, silent), (_, leaving) = await server.connect(), await server.connect()
        while server.internals.gate.open < 2:
            await asyncio.sleep(0.01)
        await close(leaving)
        begun = asyncio.get_running_loop().time()
        while len(server.internals.server.connections) < 1 or server.internals.gate.open > 1:
            await asyncio.sleep(0.01)
        assert asyncio.get_running_loop().time() - begun < SILENT_SECONDS + 60
        await close(silent)

    serve(tmp_path, use, idle_seconds=170.0)


def test_one_that_leaves_before_its_answer_takes_no_place_afterwards(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        for _ in range(IN_HAND):
            with socket.create_connection(("127.0.0.1", server.port)) as hasty:
                hasty.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
                hasty.sendall(ASK)
        while scripts(server) < IN_HAND or server.internals.gate.open:
            await server.ask(f"/v1/boot?mac={MAC_STRANGER}")

    serve(tmp_path, use)


def test_a_script_that_fails_on_the_bare_socket_gets_aiohttp_s_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(server: RunningBootServer) -> None:
        monkeypatch.setattr(server.internals.live, "catalogue", object())
        answer = await server.ask(SCRIPT)
        assert (answer.status, answer.headers["netboot-outcome"]) == (200, "unavailable")
        assert b"the service met an error of its own" in answer.body
        assert server.internals.gate.open == 0

    serve(tmp_path, use)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "defect: /v1/boot was not answered"
    ]


class Both:
    """A boot server, and its aiohttp alone on another port; in an event loop that runs while something is asked."""

    def __init__(self, runner: asyncio.Runner, server: RunningBootServer, aiohttp_port: int) -> None:
        self.runner, self.server, self.aiohttp_port = runner, server, aiohttp_port
        self.heads = Heads(runner.get_loop())

    def judge(self, raw: bytes) -> bool:
        """Whether these bytes are answered on the bare socket; if so, by the same answer as aiohttp's."""
        if self.heads.read(raw) is None:
            return False
        before = by_aiohttp(self.server)
        bare = self.runner.run(self._answers(self.server.port, raw))
        given = by_aiohttp(self.server) - before
        assert bare == self.runner.run(self._answers(self.aiohttp_port, raw))
        assert given == (1 if bare[1] else 0), "the first one never, the last one where the connection stayed open"
        return True

    async def _answers(self, port: int, raw: bytes) -> tuple[list[bytes], bytes]:
        """The lines of the answer but for what differs from boot to boot, and the body of what is asked after it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(60):
                writer.write(raw)
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(parse(head).headers["content-length"]))
                writer.write(LAST)
                try:
                    rest = await reader.read(-1)
                except ConnectionError:
                    rest = b""
        finally:
            await close(writer)
        return DIFFERS.sub(b"", head + body).split(b"\n"), rest.rpartition(b"\r\n")[2]


@contextmanager
def both(root: Path) -> Iterator[Both]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def start() -> Both:
            server = await stack.enter_async_context(
                running(root, max_connections_per_address=1_000, ingest_kib_per_second=10_000_000)
            )
            loop = asyncio.get_running_loop()
            alone = await loop.create_server(server.internals.server, "127.0.0.1", 0)
            stack.callback(alone.close)
            return Both(runner, server, alone.sockets[0].getsockname()[1])

        try:
            yield runner.run(start())
        finally:
            runner.run(stack.aclose())


def targets(starts: list[str], more: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    return st.builds(
        lambda start, mac, more: f"{start}{mac}{more}".encode("latin-1"),
        st.sampled_from(starts),
        st.sampled_from([MAC1, MAC_OFF, MAC_STRANGER, ""]),
        more,
    )


STARTS = ["/v1/boot?mac=", "/v1/boot?x=1&mac=", "/v1/boot?"]
TARGETS = targets(STARTS, st.text("ab1%&=+;:@|\"'<>~.\xe9", max_size=12))
WILD_TARGETS = targets(
    [*STARTS, "/v1/boot", "/v1/boot#", "/v1/boot/?", "/v1/bo?"], st.text(st.characters(max_codepoint=255), max_size=12)
)
TAME = st.sampled_from(
    [
        *(b"Connection: " + value for value in (b"close", b"keep-alive", b"Close", b"close, x", b"")),
        *(b"Content-Length: " + value for value in (b"0", b"00")),
        b"Expect: 100-continue",
        b"User-Agent: iPXE/1.21.1",
        b"X-Latin: \xe9",
        b"X: " + b"y" * 4_000,
    ]
)
WILD = st.one_of(
    TAME,
    st.sampled_from(
        [
            *(b"Connection: " + value for value in (b"upgrade", b"Upgrade, close")),
            *(b"Content-Length: " + value for value in (b"+0", b"1", b"0, 0", b"-0", b"")),
            *(b"Transfer-Encoding: " + value for value in (b"chunked", b"identity", b"")),
            b"Upgrade: websocket",
            b"Host: other",
            b"Host:",
            b" folded: x",
            b"no colon",
            b"Keep-Alive : x",
            b"X: " + b"y" * 4_200,
        ]
    ),
    st.binary(max_size=12),
)


def requests(
    targets: st.SearchStrategy[bytes],
    headers: st.SearchStrategy[bytes],
    versions: list[bytes],
    methods: list[bytes],
    ends: list[bytes],
    eols: list[bytes],
) -> st.SearchStrategy[bytes]:
    return st.builds(
        lambda method, target, version, headers, eol, end: (
            eol.join([method + target + version, *headers, b"", b""]) + end
        ),
        st.sampled_from(methods),
        targets,
        st.sampled_from(versions),
        st.lists(headers, max_size=4).map(lambda headers: [b"Host: x", *headers]),
        st.sampled_from(eols),
        st.sampled_from(ends),
    )


VERSIONS = [b" HTTP/1.1", b" HTTP/1.0"]
REQUESTS = st.one_of(
    requests(TARGETS, TAME, VERSIONS, [b"GET "], [b"", b"", b"\r\n"], [b"\r\n"]),
    requests(
        WILD_TARGETS,
        WILD,
        [*VERSIONS, b" HTTP/2.0", b"  HTTP/1.1", b""],
        [b"GET ", b"GET  ", b"get ", b"HEAD "],
        [b"", b"\r\n\r\n", b"{}\r\n\r\n", ASK, ASK[:-4]],
        [b"\r\n", b"\n", b"\r"],
    ),
)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        REQUESTS,
        st.builds(
            lambda query, rest: b"GET /v1/boot?" + query + b" HTTP/1.1\r\n" + rest + b"\r\n\r\n",
            st.one_of(st.binary(max_size=3), st.integers(900, 5_000).map(lambda length: b"a" * length)),
            st.one_of(
                st.just(b"Host: x"), st.binary(max_size=12), st.integers(900, 5_000).map(lambda n: b"X: " + b"a" * n)
            ),
        ),
    )
)
def test_what_is_remembered_of_headers_is_what_the_parser_says_of_the_whole(raw: bytes) -> None:
    async def compare() -> None:
        fresh, used = Heads(asyncio.get_running_loop()), Heads(asyncio.get_running_loop())
        used.read(re.sub(rb"\?\S* ", b"?other=1 ", raw, count=1))
        answers = [used.read(raw), fresh.read(raw)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(heads, "_USUAL", re.compile(rb"(?!)"))
            assert answers == [Heads(asyncio.get_running_loop()).read(raw)] * 2

    asyncio.run(compare())


@pytest.mark.usefixtures("patient")
def test_who_asks_on_the_bare_socket_gets_the_answer_that_aiohttp_gives(tmp_path: Path) -> None:
    with both(tmp_path) as pair:
        answered = 0

        @settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
        @given(REQUESTS)
        def compare(raw: bytes) -> None:
            nonlocal answered
            answered += pair.judge(raw)

        compare()
    assert answered > 60, "few of the requests that were made up are of those that can differ"
