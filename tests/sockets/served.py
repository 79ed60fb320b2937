"""The management API in this process behind a real socket, and the command line against it, without starting others."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from werkzeug.serving import make_server

from tests.commands import Run, caller
from tests.sockets.api import Api


@contextmanager
def served(api: Api, port: int = 0) -> Iterator[str]:
    """The address of the API while in the block."""
    server = make_server("127.0.0.1", port, api.client.application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def runner(address: str, api: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`netboot …` with the operator's token."""
    monkeypatch.setenv("NETBOOT_SERVER", address)
    monkeypatch.setenv("NETBOOT_TOKEN_FILE", str(api.config.management.token_file))
    return caller(capsys)
