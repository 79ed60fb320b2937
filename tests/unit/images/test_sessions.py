"""A session leaves no connection open once it is closed, whatever refers to its answers."""

import socket
import threading
from collections.abc import Iterator

import pytest

from images.values.sessions import session

EMPTY = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
LONGER = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 7\r\n\r\nrefused"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(60)
        yield listening


@pytest.mark.parametrize("said", [EMPTY, LONGER], ids=["read", "unread"])
def test_what_is_closed_has_no_connection_though_an_answer_is_kept(listener: socket.socket, said: bytes) -> None:
    over = threading.Event()

    def answers() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(60)
            connection.recv(65536)
            connection.sendall(said)
            if connection.recv(1) == b"":
                over.set()

    server = threading.Thread(target=answers)
    server.start()
    with session() as asking:
        kept = asking.get(f"http://127.0.0.1:{listener.getsockname()[1]}/", timeout=60, stream=said == LONGER)
        assert kept.status_code in {404, 401}
        assert not over.is_set()
    server.join(60)
    assert over.is_set()
    assert kept.raw is not None  # it refers to the pool of connections, as one that a traceback keeps does


def test_it_takes_nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:3128")
    with session() as asking:
        settings = asking.merge_environment_settings("http://192.0.2.2/", {}, None, None, None)
    assert dict(settings["proxies"]) == {}
