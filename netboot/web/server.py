"""Gunicorn around a Flask application: one process with threads, on a socket that the supervisor bound."""

import logging
import os
import resource
import socket
import ssl
import struct
import sys
from collections.abc import Callable
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.workers import base

from netboot.process import Heartbeat, end_with
from netboot.web.bodies import told_apart
from netboot.web.tls import Certificate
from netboot.web.worker import STALL_SECONDS, Paced, Worker

THREADS = 32
"""Four times as many as may watch: a watcher keeps one busy."""
GRACE_SECONDS = 15
KEPT_FILES = 64
"""Descriptors for what is not a connection: databases, documents, connections to clusters."""

log = logging.getLogger(__name__)


class Lines:
    """Gunicorn's log, as lines of ours."""

    def __init__(self, _config: Any) -> None:
        self.access_log_enabled = False
        for name in ("critical", "error", "warning"):
            setattr(self, name, getattr(log, name))
        self.info = self.debug = log.debug

    def log(self, level: int, message: str, *arguments: Any, **keywords: Any) -> None:
        """At a level given as a number."""
        log.log(level, message, *arguments, **keywords)

    def exception(self, message: str, *arguments: Any, **_keywords: Any) -> None:
        """A client that stalled is no failure of ours, and there may be many."""
        if isinstance(sys.exc_info()[1], BlockingIOError | TimeoutError):
            log.info("a client that kept us waiting for %d s was let go", STALL_SECONDS)
        else:
            log.exception(message, *arguments)

    def access(self, *_arguments: Any) -> None:
        """Requests are not logged one by one."""

    def reopen_files(self) -> None:
        """There are none."""

    def close_on_exec(self) -> None:
        """There are none."""


class _InMemory:
    """A worker's sign of life as its arbiter looks at it, without the file that gunicorn makes for it: nobody starts on
    a full disk otherwise. (We look elsewhere: `murder_workers` below.)"""

    def __init__(self, _config: Any) -> None:
        self._descriptor = os.memfd_create("worker", os.MFD_CLOEXEC)

    def notify(self) -> None:
        """It goes on."""
        os.utime(self._descriptor)

    def last_update(self) -> float:
        """When it said so."""
        return os.fstat(self._descriptor).st_mtime

    def fileno(self) -> int:
        """The arbiter keeps it open across its own changes."""
        return self._descriptor

    def close(self) -> None:
        """Called by both."""
        os.close(self._descriptor)


base.WorkerTmp = _InMemory


class _Bounded(Paced, ssl.SSLSocket):
    """A connection in TLS that waits no longer than one without it: `ssl` asks again, without an end, where a blocking
    socket's own limit (`bound_to_stall`) has passed."""

    def setblocking(self, flag: bool) -> None:
        self.settimeout(None if flag else 0.0)

    def settimeout(self, value: float | None) -> None:
        super().settimeout(STALL_SECONDS if value is None else value)


def _bounded(context: ssl.SSLContext) -> ssl.SSLContext:
    context.sslsocket_class = _Bounded
    return context


class Server(BaseApplication):  # type: ignore[misc] # gunicorn brings no types
    """`make(stopping)` makes the application, in the worker; `ready` is called when it serves.

    `beats`: of the worker's loop, which takes connections and hands them to threads, and of the arbiter, its parent.
    """

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[Callable[[], bool]], Flask],
        ready: Callable[[], None],
        beats: tuple[Heartbeat, Heartbeat],
        threads: int = THREADS,
        certificate: Certificate | None = None,
    ) -> None:
        self._listener, self._make, self._ready, self._threads = listener, make, ready, threads
        self._beat_worker, self._beat_arbiter = beats
        self._certificate = certificate
        self._worker: Any = None
        bound_to_stall(listener)
        super().__init__()

    def load_config(self) -> None:
        """Settings; each differs from gunicorn's default for the reason beside it."""
        for name, value in {
            "bind": f"fd://{self._listener.fileno()}",
            "workers": 1,
            "worker_class": Worker,
            "threads": self._threads,
            "logger_class": Lines,
            "control_socket_disable": True,  # another way in that nobody needs
            "timeout": 0,  # who is frozen, the supervisor notices, arbiter and worker alike
            "graceful_timeout": GRACE_SECONDS,
            "limit_request_fields": 50,
            "sendfile": False,  # waits for whoever does not read, without an end that anybody could set
            "umask": 0o022,
            "forwarded_allow_ips": "",  # nobody's word is taken for an address or a scheme
            "post_fork": self._forked,
            "post_worker_init": self._serves,
        }.items():
            self.cfg.set(name, value)
        if self._certificate is not None:
            certificate = self._certificate
            self.cfg.set("certfile", os.devnull)  # says that there is TLS; what it is made of the next line says
            self.cfg.set("ssl_context", lambda _config, _default: _bounded(certificate.context()))
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files != resource.RLIM_INFINITY:  # further connections wait in the kernel's queue
            room = max(self._threads + 1, files - KEPT_FILES)
            self.cfg.set("worker_connections", min(self.cfg.worker_connections, room))

    def load(self) -> Flask:
        """Called by gunicorn in the worker."""
        app = self._make(lambda: not self._worker.alive)
        app.wsgi_app = told_apart(app.wsgi_app)  # type: ignore[method-assign, assignment] # as Flask has it for middleware
        return app

    def run(self) -> None:
        """Serve until told to stop."""
        self._beat_arbiter()  # a loop counts from its first beat: it must not hang unheard once its worker is ready
        _Arbiter(self, self._beat_arbiter).run()

    def _serves(self, worker: Any) -> None:
        notify = worker.notify

        def beat() -> None:
            notify()
            self._beat_worker()

        worker.notify = beat
        self._ready()

    def _forked(self, arbiter: Any, worker: Any) -> None:
        end_with(arbiter.pid)
        self._worker = worker


class _Arbiter(Arbiter):  # type: ignore[misc] # gunicorn brings no types
    """Gunicorn's arbiter, which is heard each time that its loop goes round."""

    def __init__(self, application: BaseApplication, beat: Heartbeat) -> None:
        super().__init__(application)
        self._beat = beat

    def murder_workers(self) -> None:
        """Part of each round; there is nobody to murder."""
        self._beat()


def bound_to_stall(listener: socket.socket) -> None:
    """Connections inherit these from the listening socket: no client keeps a thread in a read or write for ever."""
    limit = struct.pack("ll", STALL_SECONDS, 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
