"""A server with which no TLS handshake comes to its end."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

ALERT = bytes((21, 3, 3, 0, 2, 2, 50))
"""A fatal `decode_error` in the record of an alert (RFC 8446, 6)."""


@contextmanager
def failing(context: ssl.SSLContext | None = None) -> Iterator[str]:
    """`127.0.0.1:port`. Whoever connects is sent an alert; with `context` it is shown that certificate, and nothing
    more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with suppress(OSError):  # it is shut down
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.settimeout(60)
                        _answer(connection, context)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _answer(connection: socket.socket, context: ssl.SSLContext | None) -> None:
    if context is None:
        connection.recv(65_536)
        connection.sendall(ALERT)
        return
    with suppress(OSError):  # an SSLError is one, too: it is not believed
        context.wrap_socket(connection, server_side=True).close()
