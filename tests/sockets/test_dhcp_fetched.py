"""Whether what a DHCP server names can be fetched: by HTTP and TFTP, from whoever is there and however he answers."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from netboot.dhcp import asking
from netboot.dhcp.packets import Offer


def offer(file: str) -> Offer:
    return Offer("192.0.2.2", "", "127.0.0.1", file, http=False, menu=False)


@contextmanager
def answering(*parts: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A server for one connection that sends these parts once it has been asked, and then keeps still; its port, and
    what it was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as connection, suppress(ConnectionError):  # it reads no more than it needs
                asked.append(connection.recv(4096))
                for part in parts:
                    connection.sendall(part)
                connection.recv(1)  # until the other end has gone

        thread = threading.Thread(target=answer)
        thread.start()
        yield listener.getsockname()[1], asked
        thread.join()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((b"HTTP/1.1 200 OK\r\n\r\n",), ""),
        ((b"HTTP/1.0 2", b"00 \r\n"), ""),
        ((b"HTTP/1.1 404 Not Found\r\n",), "HTTP status 404"),
        ((b"SSH-2.0-OpenSSH_9.2\r\n",), "what answers there does not speak HTTP"),
        ((bytes(5000),), "what answers there does not speak HTTP"),
        ((b"HTTP/1.1 200",), "no answer within 0.5 s"),
    ],
)
def test_by_http(monkeypatch: pytest.MonkeyPatch, parts: tuple[bytes, ...], said: str) -> None:
    monkeypatch.setattr(asking, "_FETCH_SECONDS", 0.5 if said.startswith("no answer") else 60.0)
    with answering(*parts) as (port, asked):
        assert asking.why_not_fetched(offer(f"http://127.0.0.1:{port}/boot.ipxe?a=1")) == said
    assert asked == [
        f"HEAD /boot.ipxe?a=1 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode("ascii")
    ]


@pytest.mark.parametrize(
    "url", ["https://192.0.2.1/x", "tftp://192.0.2.1/x", "http://", "http://192.0.2.1/a b", "file:///etc/passwd"]
)
def test_what_is_not_tried(url: str) -> None:
    assert asking.why_not_fetched(offer(url)) == "not tried: it is no http:// URL"


def test_urls_that_are_none() -> None:
    for url in ("http://127.0.0.1:99999/x", "http://[::1/x", "http://127.0.0.1:x/"):
        assert asking.why_not_fetched(offer(url)).isprintable()
        assert asking.why_not_fetched(offer(url))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"\0\3\0\1" + bytes(512), ""),
        (b"\0\5\0\1file \x1b not found\0", "TFTP error: file ? not found"),
        (b"\0\5\0\1" + b"a" * 1000, "TFTP error: " + "a" * 96),
        (b"\0\4\0\1", "what answers there does not speak TFTP"),
        (b"", "what answers there does not speak TFTP"),
        (None, "no answer within 0.5 s"),
    ],
)
def test_by_tftp(monkeypatch: pytest.MonkeyPatch, answer: bytes | None, said: str) -> None:
    monkeypatch.setattr(asking, "_FETCH_SECONDS", 0.5 if answer is None else 60.0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        monkeypatch.setattr(asking, "_TFTP", server.getsockname()[1])
        thread = threading.Thread(target=_answer, args=(server, answer))
        thread.start()
        assert asking.why_not_fetched(offer("snponly.efi")) == said
        thread.join()


def _answer(server: socket.socket, answer: bytes | None) -> None:
    request, peer = server.recvfrom(1000)
    assert request == b"\0\1snponly.efi\0octet\0"
    if answer is not None:
        server.sendto(answer, peer)


def test_a_server_without_an_address_is_not_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        held.bind(("127.0.0.1", 0))
        monkeypatch.setattr(asking, "_TFTP", held.getsockname()[1])
        monkeypatch.setattr(asking, "_FETCH_SECONDS", 0.2)
        nobody = offer("snponly.efi")._replace(server="", tftp="")
        assert asking.why_not_fetched(nobody) == "it does not say from which server"


def test_a_port_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        held.bind(("127.0.0.1", 0))
        monkeypatch.setattr(asking, "_TFTP", held.getsockname()[1])
    assert asking.why_not_fetched(offer("snponly.efi")) == "Connection refused"
