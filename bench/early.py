"""What a machine does before its agent: its script, kernel and initrd, and the first of its events; timed."""

import http.client
import json
import re
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

from bench.apart import THREADS
from bench.members import BOOT, Member
from bench.serving import HOST, BenchError
from bench.site import Identity, boot_path

REPORTED = ("InitrdStarted", "ImageFetched", "ImageVerified", "Switched", "Booted")
_BLOB = re.compile(rb"/v1/blobs/[0-9a-f]{64}\?boot=\S+")
_WAIT = 600.0


class Part(NamedTuple):
    """Machines that came to one replica first; milliseconds of each of their scripts and events."""

    fleet: list[Member]
    script_ms: list[float]
    event_ms: list[float]


def fetched(fleet: Sequence[Member], known: Sequence[Identity], asked: int, told: int) -> Part:
    """Each gets its script, kernel and initrd at the port `asked`, and reports at the port `told`, sixteen at once."""
    part, lock = Part([], [], []), threading.Lock()

    def one(pair: tuple[Member, Identity]) -> None:
        member, identity = pair
        with closing(http.client.HTTPConnection(HOST, asked, 60, (member.address, 0))) as connection:
            ms, script = _timed(connection, "GET", boot_path(identity), 200)
            match = BOOT.search(script)
            if match is None:
                raise BenchError(f"{member.name} gets no boot from its script: {script[:200]!r}")
            for path in dict.fromkeys(_BLOB.findall(script)):
                _timed(connection, "GET", path.decode(), 200)
        here = replace(member.rebooted(), boot=match[1].decode(), mac=identity.mac)
        with closing(http.client.HTTPConnection(HOST, told, 60, (member.address, 0))) as connection:
            bodies = (json.dumps({"mac": identity.mac, "phase": phase}) for phase in REPORTED)
            events = [_timed(connection, "POST", f"/v1/boots/{here.boot}/events", 204, body)[0] for body in bodies]
        with lock:
            part.fleet.append(here)
            part.script_ms.append(ms)
            part.event_ms.extend(events)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(one, zip(fleet, known, strict=True)))
    return part


def _timed(
    connection: http.client.HTTPConnection, method: str, path: str, status: int, body: str | None = None
) -> tuple[float, bytes]:
    """Milliseconds, and what is answered; 503 is asked again, as machines do."""
    begun = time.monotonic()
    while True:
        connection.request(method, path, body)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status == status:
            return 1000 * (time.monotonic() - begun), said
        if answer.status != 503 or time.monotonic() - begun > _WAIT:
            raise BenchError(f"{method} {path}: {answer.status} {said[:200]!r}")
        time.sleep(0.5)
