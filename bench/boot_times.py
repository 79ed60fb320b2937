"""Seconds from the start of a machine's kernel to each phase of its boot. Pure.

A machine says how long its kernel has run, the service and the bench when they heard or saw something. What they heard
soonest after it was said tells when the kernel started.
"""

import re
from collections.abc import Sequence
from typing import Any

from bench.serving import BenchError
from netboot.clock import moment_ms

_SAID = re.compile(r"floor: (\w+) ([\d.]+)\s*$", re.MULTILINE)
_HEARD = re.compile(r"^\[ *([\d.]+)\] floor: \w+ ([\d.]+)\s*$", re.MULTILINE)
"""A line has the time of its beginning, so one that another writer began tells nothing of when this was heard."""
_NODE = re.compile(r"^\[ *([\d.]+)\] floor +(\S+)\s*$", re.MULTILINE)
Seconds = dict[str, float]


def of_trace(reached: Sequence[dict[str, Any]]) -> Seconds:
    """By phase, of a trace of the service (`/v1/boots/<id>`). What happened before the kernel started is below 0.

    Raises:
        BenchError: no phase says how long the kernel had run.
    """
    said = [one for one in reached if one.get("uptime_ms") is not None]
    if not said:
        raise BenchError("the trace has no report of the machine")
    start = min(moment_ms(one["at"]) - one["uptime_ms"] for one in said)
    own = {one["phase"]: one["uptime_ms"] / 1000 for one in said}
    return {one["phase"]: own.get(one["phase"], (moment_ms(one["at"]) - start) / 1000) for one in reached}


def of_floor(console: str, console_began: float, nodes: str, nodes_began: float) -> Seconds:
    """By phase, of the floor's machine: logs of its console and of `kubectl get nodes --watch`, as `lab.output_log`
    keeps them, each with the second at which it began by one clock.

    Raises:
        BenchError: the console says no phase.
    """
    heard = [float(at) + console_began - float(uptime) for at, uptime in _HEARD.findall(console)]
    if not heard:
        raise BenchError("the floor's console says no phase")
    start = min(heard)
    found = {phase: float(uptime) for phase, uptime in _SAID.findall(console)}
    seen = [(float(heard) + nodes_began - start, ready == "True") for heard, ready in _NODE.findall(nodes)]
    for phase, times in (("NodeRegistered", [at for at, _ in seen]), ("Ready", [at for at, ready in seen if ready])):
        if times:
            found[phase] = min(times)
    return found
