"""Join's listener among those who only hold connections: each deadline and each limit, over real sockets."""

import contextlib
import json
import select
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.own_network import IP_FREEBIND, own_network
from tests.processes import wait_for
from tests.sockets.hello_flood import memory_kib
from tests.sockets.join_site import JoinSite, join_site
from tests.soft_tpm import Machine

DEADLINE = 2.0
"""Of each stage, at the site whose clients are in a hurry: longer than an honest one takes on a busy machine, too."""
LATE = 60.0
"""What ends by a deadline has ended by then, on a busy machine too."""
LONG = 180.0
"""Of each stage, where a test asks who makes room: that no deadline ends a connection first, on a busy machine too."""
CLOSED = b""
HELLO = b"POST /v1/join/hello HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n{"


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JoinSite]:
    with join_site(tmp_path_factory.mktemp("hurried"), hellos_per_minute=100_000) as site:
        site.start(deadlines=DEADLINE)
        wait_for(site.ready)
        yield site


@pytest.fixture(scope="module")
def unhurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JoinSite]:
    with join_site(tmp_path_factory.mktemp("unhurried")) as site:
        site.start(deadlines=LONG)
        wait_for(site.ready)
        yield site


def plain(site: JoinSite, source: str = "127.0.0.9", host: str = "127.0.0.1") -> socket.socket:
    """A connection from an address, of loopback or of this namespace's prefixes."""
    sock = socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET)
    sock.setsockopt(socket.SOL_IP, IP_FREEBIND, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(LATE)
    sock.bind((source, 0))
    sock.connect((host, site.ports["join-0"]))
    return sock


def secure(site: JoinSite) -> ssl.SSLSocket:
    return site.context().wrap_socket(plain(site), server_hostname="127.0.0.1")


def client_hello(site: JoinSite) -> bytes:
    """What begins a handshake."""
    out = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        site.context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="127.0.0.1").do_handshake()
    return out.read()


def ended(sock: socket.socket, dribbled: bytes = b"", *, since: float | None = None) -> float:
    """Seconds until the other end has ended it, or `LATE`, while it gets a byte every now and then.

    `since`: from when on, by `time.monotonic`; a deadline that must not come early began with the connection, not with
    this call.
    """
    began, left = time.monotonic() if since is None else since, list(dribbled)
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while time.monotonic() - began < LATE:
            if left:
                sock.sendall(bytes([left.pop(0)]))
            if select.select([sock], [], [], 0.05)[0] and sock.recv(65536) == CLOSED:
                break
    sock.close()
    return time.monotonic() - began


def is_open(sock: socket.socket) -> bool:
    with contextlib.suppress(ConnectionError):
        return not select.select([sock], [], [], 0)[0]
    return False


def has_ended(sock: socket.socket) -> bool:
    return not is_open(sock)


def answered_quickly(site: JoinSite) -> None:
    began = time.monotonic()
    machine = Machine(site.boot())
    assert site.attest(machine, site.hello(machine).body).status in (200, 409)
    assert time.monotonic() - began < LONG / 3


@pytest.mark.parametrize("says", ["nothing", "a byte", "a handshake, slowly"])
def test_a_handshake_has_an_end(hurried: JoinSite, says: str) -> None:
    said = {"nothing": b"", "a byte": b"\x16", "a handshake, slowly": client_hello(hurried)}[says]
    since = time.monotonic()
    assert DEADLINE * 0.8 < ended(plain(hurried), said, since=since) < LATE


def test_a_handshake_that_stops_after_its_first_message_has_an_end(hurried: JoinSite) -> None:
    since = time.monotonic()
    with plain(hurried) as sock:
        sock.sendall(client_hello(hurried))
        wait_for(lambda: select.select([sock], [], [], 0)[0])
        assert sock.recv(65536)[:1] == b"\x16"
        assert DEADLINE * 0.8 < ended(sock, since=since) < LATE


@pytest.mark.parametrize(
    "junk",
    [b"\x17\x03\x03\x00\x05hello", b"\x16\x03\x01\xff\xff\x01", b"\x16\x03\x01\x00\x00"],
    ids=["data", "endless", "empty"],
)
def test_what_is_no_handshake_is_cut_before_any_deadline(unhurried: JoinSite, junk: bytes) -> None:
    with plain(unhurried) as sock:
        sock.sendall(junk)
        assert ended(sock) < LATE


@pytest.mark.parametrize("head", [b"", HELLO.partition(b"\r\n\r\n")[0]], ids=["none", "slowly"])
def test_a_head_has_an_end(hurried: JoinSite, head: bytes) -> None:
    since = time.monotonic()
    assert DEADLINE * 0.8 < ended(secure(hurried), head, since=since) < LATE


def test_a_body_has_an_end_and_its_sender_is_told(hurried: JoinSite) -> None:
    began = time.monotonic()
    with secure(hurried) as sock:
        sock.sendall(HELLO)
        for _ in range(100):
            sock.sendall(b" ")
            if select.select([sock], [], [], 0.05)[0]:
                break
        answer = sock.recv(65536)
        assert DEADLINE * 0.8 < time.monotonic() - began < LATE
        assert answer.startswith(b"HTTP/1.1 408 ")
        message = f"the body did not arrive within {DEADLINE:g} seconds"
        error = {"code": "too-slow", "message": message, "remedy": "send faster"}
        assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"error": error}
        assert ended(sock) < LATE


def test_an_answer_has_an_end_whatever_trickles_off(hurried: JoinSite) -> None:
    """One request after the other, each with an answer of some 60 KiB, of which the reader takes a little every now and
    then, so that the kernel does not end it."""
    hurried.say("unfit", "x" * 20_000)
    try:
        wait_for(lambda: not hurried.ready())
        sock = secure(hurried)
        sock.setblocking(False)
        asked, taken = 0.0, b""

        def gone() -> bool:
            nonlocal asked, taken
            try:
                if time.monotonic() - asked > 0.2:
                    asked = time.monotonic()
                    with contextlib.suppress(ssl.SSLWantWriteError):
                        sock.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
                with contextlib.suppress(ssl.SSLWantReadError):
                    piece = sock.recv(16)
                    taken += piece
                    return piece == CLOSED
            except OSError:
                return True
            return False

        wait_for(gone, LATE)
        sock.close()
        assert taken.startswith(b"HTTP/1.1 503 ")
    finally:
        (hurried.folder / "unfit").unlink()
        wait_for(hurried.ready)


def test_who_asks_on_before_it_has_the_answer_gets_one_answer(hurried: JoinSite) -> None:
    began = time.monotonic()
    with secure(hurried) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
    assert answer.count(b"HTTP/1.1 200 OK") == 1
    assert DEADLINE * 0.8 < time.monotonic() - began < LATE


def held(site: JoinSite, sources: list[str], host: str = "127.0.0.1") -> list[socket.socket]:
    """Connections that say nothing, one after the other; each is accepted before the next one comes."""
    return [plain(site, source, host) for source in sources]


def takes_the_place_of(site: JoinSite, source: str, waits_longest: socket.socket) -> socket.socket:
    """The first connection that another is ended for; those before it come too soon after the last change of hands, and
    are ended themselves."""
    while True:
        sock = plain(site, source)
        wait_for(lambda: has_ended(sock) or has_ended(waits_longest), LONG / 2)  # noqa: B023 - waited for here
        if has_ended(waits_longest):
            return sock
        sock.close()


def ends(site: JoinSite, connections: list[socket.socket]) -> list[bool]:
    """Which of these have ended, once the server has come to each: it accepts in the order in which they came, so that
    what it answers on one more connection comes after what became of them."""
    assert site.ask("join-0", "GET", "/healthz").status == 200
    return [has_ended(connection) for connection in connections]


def test_one_address_has_an_eighth_and_who_waited_longest_makes_room(tmp_path: Path) -> None:
    with join_site(tmp_path / "join", max_connections=64) as site, contextlib.ExitStack() as stack:
        site.start(deadlines=LONG)
        wait_for(site.ready)
        others = [stack.enter_context(sock) for sock in held(site, ["127.0.0.8"] * 8)]
        connections = [stack.enter_context(sock) for sock in held(site, ["127.0.0.9"] * 8)]
        later = [stack.enter_context(takes_the_place_of(site, "127.0.0.9", sock)) for sock in connections[:3]]
        assert ends(site, [*connections, *later]) == [True] * 3 + [False] * 8
        assert all(is_open(sock) for sock in others)
        answered_quickly(site)


def test_all_together_have_max_connections_and_who_waited_longest_makes_room(tmp_path: Path) -> None:
    with join_site(tmp_path / "join", max_connections=64) as site, contextlib.ExitStack() as stack:
        site.start(deadlines=LONG)
        wait_for(site.ready)
        sources = [f"127.0.1.{number}" for number in range(1, 11) for _ in range(7)]
        connections = [stack.enter_context(sock) for sock in held(site, sources)]
        assert ends(site, connections) == [True] * 7 + [False] * 63, "six for the last six, one for whoever asks"
        answered_quickly(site)


def test_one_ipv6_64_has_half_whatever_its_addresses(tmp_path: Path) -> None:
    with (
        own_network("2001:db8:0:1::/64", "2001:db8:0:2::/64"),
        join_site(tmp_path / "join", max_connections=64) as site,
        contextlib.ExitStack() as stack,
    ):
        site.start(address="::", deadlines=LONG)
        wait_for(site.ready)
        other = [stack.enter_context(sock) for sock in held(site, ["2001:db8:0:2::9"] * 8, "2001:db8:0:2::1")]
        sources = [f"2001:db8:0:1::{number:x}" for number in range(16, 16 + 36)]
        connections = [stack.enter_context(sock) for sock in held(site, sources, "2001:db8:0:1::1")]
        assert ends(site, connections) == [False] * 32 + [True] * 4
        assert all(is_open(sock) for sock in other)
        answered_quickly(site)


def test_what_only_begins_a_handshake_costs_little_memory(tmp_path: Path) -> None:
    with join_site(tmp_path / "join") as site, contextlib.ExitStack() as stack:
        site.start()
        wait_for(site.ready)
        pid = site.processes["join-0"].pid
        before, hello = memory_kib(pid), client_hello(site)
        for number in range(400):
            sock = stack.enter_context(plain(site, f"127.0.2.{number % 60 + 1}"))
            sock.sendall(hello)
            assert sock.recv(1)  # the server's part of the handshake
        assert memory_kib(pid) - before < 400 * 160
