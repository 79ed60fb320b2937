"""Questions to an issuer have an end, whatever it sends and however slowly."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from netboot.lifecycle.errors import IssuerUnavailableError
from netboot.oidc.http import Answered, Asker

HEAD = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def answering(say: Callable[[socket.socket, threading.Event], None]) -> Iterator[str]:
    """The address of somebody who takes one connection and says that; the event: the test is over."""
    over = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                say(connection, over)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            listener.close()
            thread.join()


class Drip:
    """Sends a byte now and then, up to `MOST`; `sent`: how many."""

    MOST = 2_000

    def __init__(self, before: bytes) -> None:
        self._before, self.sent = before, 0

    def __call__(self, connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(self._before)
        while self.sent < self.MOST and not over.wait(0.05):
            connection.sendall(b"a")
            self.sent += 1


@pytest.mark.parametrize(
    ("scheme", "before"),
    [
        ("http", b"HTTP/1.1 2"),
        ("http", HEAD + b"X-Head: "),
        ("http", HEAD + b"Content-Length: 9000\r\n\r\n{"),
        ("http", HEAD + b"\r\n{"),
        ("https", b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc"),
    ],
    ids=["status", "head", "body", "body to the end", "handshake"],
)
def test_a_byte_at_a_time_is_late(scheme: str, before: bytes) -> None:
    drip = Drip(before)
    with answering(drip) as where, pytest.raises(IssuerUnavailableError) as late:
        Asker(None, "management.oidc.certificate_authority", deadline=0.5).get(f"{scheme}://{where}/")
    assert (str(late.value), drip.sent < drip.MOST) == ("it did not answer within 0.5 s", True)


def test_what_comes_in_time_is_an_answer() -> None:
    def say(connection: socket.socket, _over: threading.Event) -> None:
        connection.sendall(HEAD + b'Content-Length: 9\r\n\r\n{"a": []}')

    with answering(say) as where:
        assert Asker(None, "x").get(f"http://{where}/") == Answered(200, {"a": []})
