"""The management server's life: both of its loops are heard."""

import os
import socket

import pytest
from flask import Flask

from netboot.process import Heartbeat
from netboot.web import server


def test_the_arbiter_is_heard_before_its_worker_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was stopped in between would hang for ever: nobody waits for a loop that was never heard."""
    reading, writing = os.pipe()
    monkeypatch.setattr(server._Arbiter, "run", lambda _arbiter: os.write(writing, b"1"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        beats = Heartbeat(writing, "main loop"), Heartbeat(writing, "arbiter")
        server.Server(listener, lambda _stopping: Flask("none"), lambda: None, beats).run()
    assert os.read(reading, 10) == b"a1"
    for descriptor in (reading, writing):
        os.close(descriptor)
