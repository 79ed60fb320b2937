"""Load on scripts by wrk: one thread, 32 connections, walking a list of paths."""

import json
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from bench.procfs import cpu_seconds, settle
from bench.serving import HOST, BenchError, Server

CONNECTIONS = 32
_LUA = Path(__file__).with_name("load.lua")


@dataclass(frozen=True)
class Load:
    """What wrk saw, and what the server's processes paid for it."""

    requests: int
    seconds: float
    size: float
    """Mean bytes of an answer with its headers."""
    p50_ms: float
    p99_ms: float
    errors: int
    cpu_us: float = 0.0
    """CPU µs per request of all the server's processes, with what they did behind their answers."""
    answer_us: float = 0.0
    """The same of those processes alone that answer."""
    settled: float = 0.0
    """Seconds until the server's processes were idle again."""

    @property
    def per_second(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds


class NoAnswerError(BenchError):
    """Nothing was answered in the time: a peer that needs seconds for an answer."""


def parse(output: str) -> Load:
    """The line that load.lua printed at the end of wrk's output.

    Raises:
        BenchError: there is no such line. NoAnswerError: nothing was answered.
    """
    line = next((line for line in output.splitlines() if line.startswith("RESULT ")), None)
    if line is None:
        raise BenchError(f"wrk printed no result:\n{output}")
    raw = json.loads(line.removeprefix("RESULT "))
    if raw["requests"] == 0:
        raise NoAnswerError("wrk got no answer at all")
    return Load(
        requests=raw["requests"],
        seconds=raw["duration_us"] / 1e6,
        size=raw["bytes"] / raw["requests"],
        p50_ms=raw["p50_us"] / 1000,
        p99_ms=raw["p99_us"] / 1000,
        errors=sum(raw[kind] for kind in ("connect", "read", "write", "status", "timeout")),
    )


def load(server: Server, paths: Path, seconds: float, *, close: bool = False) -> Load:
    """Load `server` for `seconds`, or for four times as long where that brought no answer at all.

    The figures count its work until it is idle again.

    Raises:
        BenchError: wrk is missing or failed, or more than one answer in a hundred was an error.
    """
    try:
        return _load(server, paths, seconds, close=close)
    except NoAnswerError:
        return _load(server, paths, 4 * seconds, close=close)


def _load(server: Server, paths: Path, seconds: float, *, close: bool) -> Load:
    wrk = shutil.which("wrk")
    if wrk is None:
        raise BenchError("wrk is not installed: run ./setup.sh")
    # wrk takes whole seconds; and 30 s more, since a peer with thousands of groups needs seconds for an answer.
    argv = [wrk, "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "--timeout", "30s", "--latency"]
    argv += ["-s", str(_LUA), f"http://{HOST}:{server.port}", "--", str(paths), *(["close"] if close else [])]
    before, before_front = cpu_seconds(server.pid), cpu_seconds(server.pid, named=server.front)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    settled = settle(server.pid)
    spent, front = cpu_seconds(server.pid) - before, cpu_seconds(server.pid, named=server.front) - before_front
    if done.returncode != 0:
        raise BenchError(f"wrk ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    result = parse(done.stdout)
    if result.errors > result.requests / 100:
        raise BenchError(f"{server.name}: {result.errors} errors beside {result.requests} answers:\n{done.stdout}")
    each = 1e6 / result.requests
    return replace(result, cpu_us=spent * each, answer_us=front * each, settled=settled)
