"""Runs checks, each in a process group of its own: one that hangs, crashes or is wrong is a result, and no more.

A process that waits for a device in the kernel (state D) does not even die by SIGKILL. It is left behind then, and not
waited for: the result says so.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .machine import CannotTellError, Machine
from .result import STATUSES, Check, Result

AT_ONCE = 4
"""Checks that run side by side: a tool that hangs for one of them holds up none of the others for long."""
LONGEST = 256 * 1024
"""Bytes of one result."""
REAP_SECONDS = 10.0
"""A killed process that has not ended by then is stuck in the kernel."""


@dataclass
class _Running:
    check: Check
    pid: int
    pipe: int
    started: float
    data: bytearray = field(default_factory=bytearray)

    @property
    def deadline(self) -> float:
        return self.started + self.check.seconds


def run_all(checks: Sequence[Check], machine: Machine, at_once: int = AT_ONCE) -> list[dict[str, Any]]:
    """The results as they go into the document, in the order of `checks`."""
    done: dict[str, dict[str, Any]] = {}
    waiting, running = list(checks), dict[int, _Running]()
    while waiting or running:
        while waiting and len(running) < at_once:
            process = _start(waiting.pop(0), machine)
            running[process.pipe] = process
        for ended in _wait(running):
            del running[ended.pipe]
            done[ended.check.name] = _finish(ended)
    return [done[check.name] for check in checks]


def run_chosen(checks: Sequence[Check], machine: Machine) -> list[dict[str, Any]]:
    """The same but for checks that the machine's class skips, which is their result."""
    skip = machine.expected.hardware.skip_checks
    skipped = {"status": "absent", "summary": "the class skips it", "remedy": "", "ms": 0, "facts": {}}
    done = {found["name"]: found for found in run_all([one for one in checks if one.name not in skip], machine)}
    return [done.get(one.name) or {"name": one.name, "severity": one.severity, **skipped} for one in checks]


def bounded(machine: Machine, seconds: float, work: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
    """What `work` returned, made in a process of its own; None: it did not end in time, or failed.

    For work that is no check and could hang as well, like asking a server.
    """
    process = _start(Check("(work)", "minor", seconds, lambda _: Result("pass", "", facts=work() or {})), machine)
    while not _wait({process.pipe: process}):
        pass
    result = _finish(process)
    return result["facts"] if result["status"] == "pass" and result["facts"] else None


def _start(check: Check, machine: Machine) -> _Running:
    sys.stdout.flush()
    sys.stderr.flush()
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(check, machine, theirs)
    os.close(theirs)
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)  # here and there: whoever comes first
    return _Running(check, pid, ours, time.monotonic())


def _child(check: Check, machine: Machine, pipe: int) -> None:
    """Never returns."""
    status = 1
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        result = _run(check, machine)
        fields = {name: getattr(result, name) for name in ("status", "summary", "remedy", "facts")}
        with os.fdopen(pipe, "wb") as file:
            file.write(json.dumps(fields, default=str).encode())
        status = 0
    finally:
        os._exit(status)


def _run(check: Check, machine: Machine) -> Result:
    try:
        return check.look(machine)
    except CannotTellError as error:
        return Result(error.status, str(error), error.remedy)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a check is a result
        summary = f"a defect in this check: {type(error).__name__}: {error}"
        return Result("unknown", summary, "report it, with this line")


def _wait(running: dict[int, _Running]) -> list[_Running]:
    """Those that have said everything, or run out of time."""
    soonest = min(process.deadline for process in running.values())
    ready, _, _ = select.select(list(running), [], [], max(0.0, soonest - time.monotonic()))
    ended = []
    for pipe, process in running.items():
        if pipe in ready:
            piece = os.read(pipe, 65536)
            process.data += piece
            if not piece or len(process.data) > LONGEST:
                ended.append(process)
                continue
        if time.monotonic() >= process.deadline:
            ended.append(process)
    return ended


def _finish(process: _Running) -> dict[str, Any]:
    """Its result; nothing that it started is left where that can be helped."""
    took = time.monotonic() - process.started
    os.close(process.pipe)
    try:
        result = json.loads(process.data)
    except ValueError:
        result = None
    long, late = len(process.data) > LONGEST, took >= process.check.seconds
    status, stuck = _reap(process.pid, kill=result is not None or long or late)
    if long:
        result = _nothing(f"the check said more than {LONGEST} bytes{stuck}")
    elif not _is_result(result) and late:
        result = _nothing(f"no answer within {process.check.seconds:g} s{stuck}")
    elif not _is_result(result):
        how = f"was ended by {signal.Signals(-status).name}" if status and status < 0 else "ended without a result"
        result = _nothing(f"the check {how}{stuck}")
    return {"name": process.check.name, "severity": process.check.severity, "ms": int(took * 1000), **result}


def _is_result(value: Any) -> bool:
    return isinstance(value, dict) and value.get("status") in STATUSES


def _nothing(summary: str) -> dict[str, Any]:
    """The result of a check that gave none."""
    return {
        "status": "unknown",
        "summary": summary,
        "remedy": "see the kernel log; ask by hand what it asks",
        "facts": {},
    }


def _reap(pid: int, *, kill: bool) -> tuple[int | None, str]:
    """The exit status (negative: a signal), and words where the process does not end. Its group goes with it."""
    late = time.monotonic() + REAP_SECONDS
    while True:
        if kill:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status), ""
        if time.monotonic() >= late:
            if not kill:
                late, kill = time.monotonic() + REAP_SECONDS, True
                continue
            return None, f"; process {pid} cannot be ended: it is stuck in the kernel"
        time.sleep(0.01)
