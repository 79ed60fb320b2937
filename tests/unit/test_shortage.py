"""What asyncio and join's door cannot give: a want of files is said once a minute, anything else as ever."""

import asyncio
import errno
import logging
import resource
import socket
from typing import Any, cast

import pytest

from netboot.connections import FILES_EACH, KEPT_FILES, Shortage, connections_for
from netboot.web.join import door


def test_a_want_of_files_is_one_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    shortage, loop = Shortage(lambda: now[0]), asyncio.new_event_loop()
    try:
        for _ in range(2_048):
            shortage(loop, {"message": "accept", "exception": OSError(errno.EMFILE, "Too many open files")})
        now[0] = 61.0
        shortage(loop, {"message": "accept", "exception": OSError(errno.ENFILE, "Too many open files in system")})
        with caplog.at_level(logging.ERROR):
            shortage(loop, {"message": "a defect", "exception": ValueError("why")})
    finally:
        loop.close()
    assert [record.getMessage() for record in caplog.records] == [
        "no new connection can be taken: Too many open files; they wait (ulimit -n)",
        "no new connection can be taken: Too many open files in system; they wait (ulimit -n)",
        "a defect",
    ]


def test_join_s_door_tries_again_and_says_so_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0
    monkeypatch.setattr(door, "FULL_SECONDS", 0.01)

    class Full(socket.socket):
        def accept(self) -> tuple[socket.socket, Any]:
            nonlocal tries
            tries += 1
            raise OSError(errno.EMFILE, "Too many open files")

    async def whole() -> None:
        with Full() as listener, socket.socket() as client:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            client.connect(listener.getsockname())
            opened = door.Door(cast(Any, None), cast(Any, None), cast(Any, None))
            opened.open(listener)
            async with asyncio.timeout(180):
                while tries < 5:
                    await asyncio.sleep(0.01)
            opened.close(listener)

    asyncio.run(whole())
    assert [record.getMessage() for record in caplog.records] == [
        "no new connection can be taken: Too many open files; they wait (ulimit -n)"
    ]


def test_no_more_connections_are_let_in_than_there_are_files_for(monkeypatch: pytest.MonkeyPatch) -> None:
    files = KEPT_FILES + 16 * FILES_EACH
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert [connections_for(wanted) for wanted in (4096, 17, 16, 15)] == [16, 16, 16, 15]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (3, 3))
    assert connections_for(4096) == 1
