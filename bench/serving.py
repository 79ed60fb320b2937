"""Servers under test: started on loopback, waited for, and ended however the bench ends."""

import contextlib
import http.client
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"


class BenchError(Exception):
    """A measurement that cannot be made, or whose answers are not what they should be."""


class AbsentError(BenchError):
    """A peer that is not here; the bench says so and goes on without it."""


@dataclass(frozen=True)
class Server:
    """A running server: its root process and the port of loopback that it answers on."""

    name: str
    pid: int
    port: int
    front: str = ""
    """How the last argument begins of those of its processes that answer; empty: all do."""


def get(port: int, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    """One request on a connection of its own: status and body."""
    connection = http.client.HTTPConnection(HOST, port, timeout=30)
    try:
        connection.request("GET", path, headers=dict(headers or {}))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def answer_size(port: int, path: str, *, close: bool) -> int:
    """Bytes of an answer with its headers, to a request as wrk sends it."""
    end = "Connection: close\r\n" if close else ""
    with socket.create_connection((HOST, port), timeout=30) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\n{end}\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer and (got := connection.recv(65536)):
            answer += got
    head = answer.partition(b"\r\n\r\n")[0].lower()
    length = next((line for line in head.split(b"\r\n") if line.startswith(b"content-length:")), None)
    if length is None:
        raise BenchError(f"port {port}: {path}: an answer without a length: {answer[:200].decode(errors='replace')}")
    return len(head) + 4 + int(length.split(b":")[1])


@contextlib.contextmanager
def serving(
    name: str,
    argv: Sequence[str],
    port: int,
    log: Path,
    *,
    ready: str,
    front: str = "",
    cwd: Path | None = None,
    wait: float = 120.0,
) -> Iterator[Server]:
    """Run `argv` until the block ends; the block starts when GET `ready` answers 200.

    The process is in a session of its own, so that Ctrl-C reaches only the bench, and dies with the bench (pdeathsig).

    Raises:
        BenchError: it ended or did not get ready in `wait` seconds; the message has the end of its log.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", *argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=cwd,
            start_new_session=True,
        )
        try:
            _wait_ready(name, process, port, ready, wait, log)
            yield Server(name, process.pid, port, front)
        finally:
            _stop(process)


def _wait_ready(name: str, process: subprocess.Popen[bytes], port: int, path: str, wait: float, log: Path) -> None:
    deadline = time.monotonic() + wait
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if get(port, path)[0] == 200:
                return
        if process.poll() is not None:
            raise BenchError(f"{name} ended with status {process.returncode}:\n{tail(log)}")
        if time.monotonic() > deadline:
            raise BenchError(f"{name} did not answer {path} in {wait:.0f} s:\n{tail(log)}")
        time.sleep(0.05)


def tail(log: Path, lines: int = 15) -> str:
    """The last words of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
