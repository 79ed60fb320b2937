"""The management server's life: both of its loops are heard."""

import logging
import os
import socket
import ssl

import pytest
from flask import Flask
from gunicorn.config import Config
from gunicorn.workers.gthread import ThreadWorker

from netboot.process import Heartbeat
from netboot.web import server
from netboot.web.worker import STALL_SECONDS, Connection, Worker


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


def test_a_connection_in_tls_waits_no_longer_than_one_without() -> None:
    """Where gunicorn wants it to wait without an end, too."""
    context = server._bounded(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    ours, theirs = socket.socketpair()
    with theirs, context.wrap_socket(ours, server_side=True, do_handshake_on_connect=False) as made:
        for wanted, waits in ((None, STALL_SECONDS), (3.0, 3.0), (0.0, 0.0)):
            made.settimeout(wanted)
            assert made.gettimeout() == waits
        made.setblocking(True)
        assert made.gettimeout() == STALL_SECONDS


def test_the_end_of_a_connection_is_waited_for_in_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """In gunicorn's loop, two seconds for each who does not end it, all others would wait."""
    monkeypatch.setattr(ThreadWorker, "handle", lambda _worker, _connection: False)
    settings = Config()
    worker = Worker(1, os.getpid(), [], None, 30, settings, logging.getLogger("test"))
    ours, theirs = socket.socketpair()
    connection = Connection(worker, settings, ours, ("", 0), ("", 0))
    theirs.close()
    assert worker.handle(connection) is False
    assert ours.fileno() == -1
