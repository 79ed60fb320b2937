"""Clients that send slowly or nothing to the operators' listener, or read so, and come again at once: others are
answered."""

import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
import requests

from images.store.store import Store
from netboot.cli.authority import new_authority
from netboot.config import load_config
from tests.processes import environment
from tests.sites import TOKEN, add_image, make_site
from tests.sockets.service import Service, serving
from tests.sockets.test_management_tls import certify

ALICE = {"Authorization": f"Bearer {TOKEN}"}
NOTHING = b""
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
HEAD = b"GET /readyz HTTP/1.1\r\nHost: a\r\nX-Slow: "
ANSWERED = b"GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
FORM = b"POST /page/login HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\n"
FORM += b"Content-Type: application/x-www-form-urlencoded\r\n"
BODY = FORM + b"Content-Length: 9000\r\n\r\ntoken="
CHUNKS = FORM + b"Transfer-Encoding: chunked\r\n\r\n1000\r\ntoken="
READ = b"GET /page/static/htmx.min.js HTTP/1.1\r\nHost: a\r\n\r\n" * 12
"""600 kB, of which no buffer takes more than a part."""
OTHERS_SECONDS = 60
"""They are answered within two or three; without the rule not for an hour."""
WAITS_AN_HOUR = """\
import sys
if sys.orig_argv[-1] == "management":
    import netboot.web.server, netboot.web.worker
    netboot.web.server.STALL_SECONDS = netboot.web.worker.STALL_SECONDS = netboot.web.worker.REQUEST_SECONDS = 3600
"""


@pytest.fixture(scope="module", params=["plain", "tls"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    root = tmp_path_factory.mktemp("site")
    config = make_site(root, workers=1)
    Store(config.store).set_channel("stable", add_image(config))
    file = root / "netboot.yaml"
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "tls":
            file.write_text(file.read_text() + "  tls: {authority: tls/ca.crt}\n")
            (root / "tls").mkdir()
            for name, pem in zip(("ca.crt", "ca.key"), new_authority("test"), strict=True):
                (root / "tls" / name).write_bytes(pem)
            certify(root, ["127.0.0.1"])
            patched.setenv("REQUESTS_CA_BUNDLE", str(root / "tls" / "ca.crt"))
        (root / "hour").mkdir()
        (root / "hour/sitecustomize.py").write_text(WAITS_AN_HOUR)
        with serving(load_config(file), file, path=str(root / "hour")) as service:
            yield service


def raw(service: Service) -> socket.socket:
    listen = service.config.management.listen
    return slow_reader((listen.host, listen.port))


def slow_reader(address: tuple[str, int]) -> socket.socket:
    """A connection that takes few bytes at once, for which the server's kernel keeps few, too."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    made.settimeout(OTHERS_SECONDS)
    made.connect(address)
    return made


def connected(service: Service) -> socket.socket:
    made = raw(service)
    if service.management.startswith("http:"):
        return made
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(made)


class Crowd:
    """Clients, each of which sends its text and then a byte each half second, or takes so many, and comes again once
    it is let go."""

    def __init__(self, service: Service, texts: list[bytes], taking: int = 0) -> None:
        self._taking = taking
        self._service, self._gone, self._there = service, threading.Event(), threading.Semaphore(0)
        self._threads = [threading.Thread(target=self._come_again, args=(text,)) for text in texts]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()
        for _ in range(32):
            assert self._there.acquire(timeout=OTHERS_SECONDS)

    def __exit__(self, *_: object) -> None:
        self._gone.set()
        for thread in self._threads:
            thread.join()

    def _come_again(self, text: bytes) -> None:
        while not self._gone.is_set():
            with suppress(OSError, AssertionError), (raw if text == HELLO else connected)(self._service) as made:
                made.sendall(text)
                self._there.release()
                while not self._gone.wait(0.5):
                    if self._taking:
                        assert made.recv(self._taking)
                    else:
                        made.sendall(b"a" if text else b"")


def others_are_answered(service: Service) -> None:
    def answered(path: str) -> bool:
        return requests.get(f"{service.management}{path}", headers=ALICE, timeout=OTHERS_SECONDS).ok

    with ThreadPoolExecutor(2) as threads:
        assert all(threads.map(answered, ["/readyz", "/v1/channels"]))


@pytest.mark.parametrize("service", ["plain"], indirect=True)
@pytest.mark.parametrize("text", [HEAD, BODY, CHUNKS, ANSWERED], ids=["head", "body", "chunks", "end"])
def test_forty_slow_clients_make_room(service: Service, text: bytes) -> None:
    with Crowd(service, [text] * 40):
        others_are_answered(service)
    assert "Traceback" not in service.log


@pytest.mark.parametrize("service", ["plain"], indirect=True)
@pytest.mark.parametrize("end", [b"zz\r\n", b"5\r\nabcdezz\r\n", b"fff\r\nabc", b"5;\r\nabcde\r\n0\r\nX\r\n\r\n"])
@pytest.mark.parametrize("path", [b"/page/login", b"/v1/freeze"])
def test_a_body_that_is_not_in_chunks_is_the_client_s_fault(service: Service, path: bytes, end: bytes) -> None:
    """400, and the end: where the next request begins nobody knows."""
    head = FORM.replace(b"/page/login", path) + f"Authorization: Bearer {TOKEN}\r\n".encode()
    if path.startswith(b"/v1/"):
        head = head.replace(b"application/x-www-form-urlencoded", b"application/json")
    with connected(service) as made:
        made.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + end + b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
        made.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: made.recv(65536), b""))
    assert (answer[:13], answer.count(b"HTTP/1.1 ")) == (b"HTTP/1.1 400 ", 1)
    assert b"\r\nConnection: close\r\n" in answer, "a proxy that has the connection is not to use it again"
    assert "Traceback" not in service.log


@pytest.mark.parametrize("taking", [0, 2000])
def test_forty_who_read_slowly_or_nothing_make_room(service: Service, taking: int) -> None:
    with Crowd(service, [READ] * 40, taking):
        for _ in range(5):  # each turn fills what buffers there are for the crowd
            others_are_answered(service)
    assert "Traceback" not in service.log


@pytest.mark.parametrize("service", ["tls"], indirect=True)
def test_handshakes_that_stall_make_room(service: Service) -> None:
    with Crowd(service, [HELLO] * 150):
        others_are_answered(service)
    assert "Traceback" not in service.log


def test_a_watch_goes_on_while_a_hundred_make_room(service: Service) -> None:
    url = f"{service.management}/v1/boots/watch"
    crowd = Crowd(service, [NOTHING, HEAD, BODY, CHUNKS, HELLO] * 20)
    with requests.get(url, headers=ALICE, timeout=60, stream=True) as watch, crowd:
        others_are_answered(service)
        boot = service.boot("52:54:00:00:00:01")
        events = (json.loads(line).get("event", {}) for line in watch.iter_lines() if line)
        assert boot in (event.get("boot") for event in events)


def test_a_slow_request_is_answered_while_there_are_threads(service: Service) -> None:
    body = b'{"reason": "a test", "seconds": 60, "dry_run": true}'
    head = f"POST /v1/freeze HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    head += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    others_are_answered(service)  # behind all that is left of a crowd of before
    with connected(service) as made:
        for piece in (head[:30], head[30:] + body[:9]):
            made.sendall(piece)
            made.settimeout(0.8)
            with pytest.raises(TimeoutError):
                made.recv(1)
        made.settimeout(OTHERS_SECONDS)
        made.sendall(body[9:])
        assert made.recv(65536).startswith(b"HTTP/1.1 200 ")


SERVER = """
import socket
import threading
from flask import Flask, Response, request
import netboot.web.worker
from netboot.web.server import Server
netboot.web.worker.REQUEST_SECONDS = 1

closed = threading.Event()

def large():
    try:
        yield bytes(32 * 1024 * 1024)
    finally:
        closed.set()

def make(stopping):
    app = Flask("test")
    app.add_url_rule("/", "read", lambda: str(len(request.get_data())), methods=["POST"])
    app.add_url_rule("/large", "large", lambda: Response(large()))
    app.add_url_rule("/closed", "closed", lambda: str(closed.wait(100)))
    return app

listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
Server(listener, make, lambda: print(port, flush=True), (lambda: None, lambda: None)).run()
"""


@pytest.fixture
def small() -> Iterator[tuple[str, int]]:
    """A server whose requests and answers have an end after a second."""
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(), text=True) as server:
        try:
            assert server.stdout is not None
            yield "127.0.0.1", int(server.stdout.readline())
        finally:
            server.terminate()
            server.wait(60)


@pytest.mark.parametrize("text", [HEAD, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n"])
def test_a_request_has_an_end(small: tuple[str, int], text: bytes) -> None:
    with socket.create_connection(small, OTHERS_SECONDS) as made:
        made.sendall(text)
        made.settimeout(0.2)
        assert any(ended(made) for _ in range(300))


def test_an_answer_that_is_read_slowly_has_an_end(small: tuple[str, int]) -> None:
    url = f"http://{small[0]}:{small[1]}/closed"
    with slow_reader(small) as made, ThreadPoolExecutor(1) as others:
        made.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        closed = others.submit(lambda: requests.get(url, timeout=120).text)
        while not closed.done():
            with suppress(OSError):
                made.recv(2_000)
            threading.Event().wait(0.1)
        assert closed.result() == "True"


def test_an_answer_that_is_taken_goes_on(small: tuple[str, int]) -> None:
    url = f"http://{small[0]}:{small[1]}/large"
    assert len(requests.get(url, timeout=OTHERS_SECONDS).content) == 32 * 1024 * 1024


def ended(made: socket.socket) -> bool:
    try:
        made.sendall(b"a")
        return made.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize(
    ("sent", "status", "reason"),
    [
        (b"\x01\x02 nonsense\r\n\r\n", 400, "Bad Request"),
        (b"GET /readyz HTTP/1.1\r\nHost a\r\n\r\n", 400, "Bad Request"),
        (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414, "URI Too Long"),
        (b"GET /readyz HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(200)) + b"\r\n", 431, ""),
    ],
)
def test_what_is_no_request_is_answered_in_problem_details(
    service: Service, sent: bytes, status: int, reason: str
) -> None:
    with connected(service) as client:
        client.sendall(sent)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} {reason}".encode()), head
    assert b"\r\nContent-Type: application/problem+json\r\n" in head
    said = json.loads(body)
    assert (said["status"], said["code"], bool(said["remedy"]), len(said["instance"])) == (
        status,
        said["title"].lower().replace(" ", "-"),
        True,
        16,
    )
    assert b"nonsense" not in body
