"""What the controllers say of themselves while a new inventory is read and compared, on a quiet processor and on one
that others keep busy: the lifecycle works at the lowest priority (SCHED_IDLE)."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.serving import BenchError, tail
from bench.site import Site, boot_path, identities
from netboot.status import up_ms

LONGEST = 900.0
"""Seconds that anything may take."""
ALL = 0.98
_BUSY = "while True: pass"


def said(site: Site, loop: str) -> Any:
    """What a loop of the controllers said last; empty where it has said nothing."""
    path = Path(site.folder) / "data" / "status" / f"{loop}.json"
    return json.loads(path.read_bytes()) if path.exists() else {}


def judged(site: Site, machines: int) -> bool:
    """Whether the lifecycle has looked at that many machines, and none waits."""
    status = said(site, "lifecycle")
    known = sum(count for kind, _, count in status.get("conditions", ()) if kind == "Booted")
    return known == machines and not status["waiting"]


def compared(site: Site, machines: int) -> bool:
    """Whether that many machines are known, or on their way to be: nearly all of them wait."""
    return said(site, "lifecycle").get("waiting", 0) > ALL * machines or judged(site, machines)


def under_way(site: Site, machines: int) -> bool:
    """Whether some of those that waited have been judged."""
    return bool(said(site, "lifecycle")["waiting"] < ALL * machines)


def seconds_until(site: Site, what: Callable[[], bool]) -> float:
    """How long that takes."""
    start = time.monotonic()
    while not what():
        _be_quick(site, start)
        time.sleep(0.1)
    return time.monotonic() - start


def changed(site: Site, text: str, until: Callable[[], bool]) -> dict[str, float]:
    """Put another inventory in the place of the one in force: seconds until then (`took`), and the longest silence of
    each loop meanwhile."""
    file, start = site.folder / "inventory" / "site.yaml", time.monotonic()
    staged, silence = file.with_suffix(".new"), dict.fromkeys(("publisher", "projection", "lifecycle"), 0)
    staged.write_text(text)
    staged.replace(file)
    while not until():
        _be_quick(site, start)
        for loop, longest in silence.items():
            silence[loop] = max(longest, up_ms() - said(site, loop)["up_ms"])
        time.sleep(0.1)
    return {"took": time.monotonic() - start, **{loop: longest / 1_000 for loop, longest in silence.items()}}


def one_more(site: Site, number: int) -> tuple[str, str]:
    """The inventory with one machine more, the `number`-th, and where that one asks for its script."""
    count = len(site.machines) + number
    new = identities(count)[-1]
    text = (site.folder / "inventory" / "site.yaml").read_text()
    entry = f'- {{name: node-{count - 1}, profile: node, match: {{macs: ["{new.mac}"]}}}}\n'
    return text + entry, boot_path(new)


def all_others(site: Site, number: int) -> str:
    """The same, and something else said of each machine: how long its boots may stay at a phase."""
    said_now, deadlines = re.compile(r"name: node, (deadlines: \{.*?\}, )?"), f"{{Switched: {10 + number}m}}"
    other, times = said_now.subn(f"name: node, deadlines: {deadlines}, ", one_more(site, number)[0])
    if times != 1:
        raise BenchError("the inventory's profile has another form than this bench knows")
    return other


@contextmanager
def busy_processors() -> Iterator[None]:
    """One process for each processor computes without an end, at this one's priority."""
    others = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def _be_quick(site: Site, start: float) -> None:
    if time.monotonic() - start > LONGEST:
        raise BenchError(f"the controllers take longer than {LONGEST:.0f} s:\n{tail(site.folder / 'log')}")
