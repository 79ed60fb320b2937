"""What asyncio cannot give: a want of files is said once a minute, anything else as ever."""

import asyncio
import errno
import logging

import pytest

from netboot.connections import Shortage


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
