"""A service with as many machines and boots as the design allows: what a scrape, idling and a new inventory cost."""

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bench import procfs
from bench.judging import all_others, busy_processors, changed, compared, judged, one_more, seconds_until, under_way
from bench.serving import HOST, BenchError, get, tail
from bench.site import ROOT, Site, boot_path, make_site
from bench.stats import Verdict, middle
from netboot.lifecycle.bootid import mint
from netboot.lifecycle.events import EventRecord, HealthRecord, ScriptRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import BOOTS_KEPT, REPORTS_KEPT, Batch
from netboot.lifecycle.trace import apply
from netboot.stores.packing import pack
from netboot.stores.state import SqliteStates
from netboot.stores.state_writer import SqliteProjection

MACHINES = 50_000
TEMPLATES = 500
"""Traces and reports that are really made; the others have their bytes, which is as good for size and time."""
START_MS, BOOT_MS = 1_700_000_000_000, 3_600_000
SCRAPES = 9
GIB = 1024**3


@dataclass(frozen=True)
class Scale:
    """What was measured; `silence_seconds`: the longest that the publisher said nothing while it read the inventory;
    `judged_seconds`: until every machine was judged, after the first boots; `unheard_seconds`: the longest that the
    lifecycle said nothing while it compared an inventory that says something else of each; `busy_…`: until that is
    compared, and the same, while a process on each processor computes."""

    machines: int
    boots: int
    state_gib: float
    scrape_seconds: float
    images_seconds: float
    idle_cores: float
    yaml_seconds: float
    silence_seconds: float
    judged_seconds: float
    unheard_seconds: float
    busy_seconds: float
    busy_unheard_seconds: float


def measure(folder: Path, *, quick: bool) -> Scale:
    """All of it, once.

    Raises:
        BenchError: the service does not start, or does not take the inventory.
    """
    machines, boots, idle = (500, 5, 5.0) if quick else (MACHINES, BOOTS_KEPT, 60.0)
    site = make_site(folder / "scale", machines=machines, root_mib=1)
    state = site.folder / "data" / "state.db"
    state.parent.mkdir(exist_ok=True)
    fill(state, machines, boots)
    before = time.perf_counter()
    SqliteStates(state).images(500)
    images_seconds = time.perf_counter() - before
    argv = [sys.executable, "-m", "netboot.cli.main", "serve", "--config", str(site.folder / "netboot.yaml")]
    with (site.folder / "log").open("wb") as log, subprocess.Popen(argv, stdout=log, stderr=log, cwd=ROOT) as service:
        try:
            _wait(site, boot_path(site.machines[-1]))
            scrape = middle(_scrape(site) for _ in range(SCRAPES))
            judging = seconds_until(site, lambda: judged(site, machines))
            procfs.settle(service.pid)
            spent, start = procfs.cpu_seconds(service.pid, named="controllers"), time.monotonic()
            time.sleep(idle)
            spent = procfs.cpu_seconds(service.pid, named="controllers") - spent
            cores = spent / (time.monotonic() - start)
            text, path = one_more(site, 1)
            one = changed(site, text, lambda: _boots(site, path))
            seconds_until(site, lambda: judged(site, machines + 1))
            quiet = changed(site, all_others(site, 2), lambda: compared(site, machines + 2))
            seconds_until(site, lambda: under_way(site, machines))
            with busy_processors():
                busy = changed(site, all_others(site, 3), lambda: compared(site, machines + 3))
        finally:
            service.terminate()
    size = sum(path.stat().st_size for path in state.parent.glob("state.db*"))
    found = (one["took"], one["publisher"], judging, quiet["lifecycle"], busy["took"], busy["lifecycle"])
    return Scale(machines, boots, size / GIB, scrape, images_seconds, cores, *found)


def verdicts(scale: Scale) -> list[Verdict]:
    """The issue's targets."""
    return [
        Verdict("seconds for a scrape", scale.scrape_seconds, 0.1, at_least=False),
        Verdict("cores of the controllers, idle", scale.idle_cores, 0.02, at_least=False),
        Verdict("GiB of state.db", scale.state_gib, 2.0, at_least=False),
        Verdict("seconds without a word of the publisher", scale.silence_seconds, 10.0, at_least=False),
        Verdict("seconds without a word of the lifecycle", scale.unheard_seconds, 10.0, at_least=False),
        Verdict("the same beside busy processors", scale.busy_unheard_seconds, 60.0, at_least=False),
    ]


def described(scale: Scale) -> str:
    """In words."""
    return (
        f"{scale.machines:,} machines × {scale.boots} boots: state.db {scale.state_gib:.2f} GiB, a scrape "
        f"{scale.scrape_seconds * 1000:.0f} ms, images in use {scale.images_seconds * 1000:.0f} ms, controllers idle "
        f"{scale.idle_cores * 100:.2f} % of a core; one machine more boots {scale.yaml_seconds:.0f} s after its YAML, "
        f"meanwhile the publisher said nothing for at most {scale.silence_seconds:.1f} s; all of them are judged "
        f"{scale.judged_seconds:.0f} s after the start; while an inventory that changes each is compared the lifecycle "
        f"says nothing for at most {scale.unheard_seconds:.1f} s; beside busy processors that is read and compared in "
        f"{scale.busy_seconds:.0f} s, with {scale.busy_unheard_seconds:.1f} s without a word"
    )


def fill(path: Path, machines: int, boots: int) -> None:
    """A state of so many machines, each with so many boots that proved themselves and health reports of the last."""
    projection = SqliteProjection(path)
    projection.take(Batch("boot-0.db", 1, 1, _records("node-0", START_MS, 0)[:1]))
    projection.close()
    traces, reports = _packed()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous=OFF")
        db.execute("PRAGMA cache_size=-1000000")
        insert = (
            "INSERT OR REPLACE INTO boots (boot, machine, standing, since, state, image, trace, fed) "
            "VALUES (?, ?, ?, ?, ?, 1, ?, 15)"
        )
        for number in range(boots):
            db.execute("BEGIN")
            made = _rows(number, machines, traces)
            while some := list(islice(made, 1_000)):  # each twice, as it is: a claim first, then all of it
                db.executemany(insert, [(*row[:2], 0, row[3], "ScriptServed", row[5][:120]) for row in some])
                db.executemany(insert, some)
                if number >= boots - REPORTS_KEPT:
                    _report(db, some, reports)
            db.execute("COMMIT")
        db.execute("DELETE FROM claims")
        db.execute("INSERT INTO claims SELECT machine, count(*), max(since) / 1000 FROM boots GROUP BY machine")
        db.execute("DELETE FROM machines")
        db.execute(
            "INSERT INTO machines SELECT b.machine, b.boot, b.state, 1, NULL, NULL, health.status, health.at_ms FROM "
            "(SELECT machine, boot, state, max(since) FROM boots GROUP BY machine) AS b LEFT JOIN health USING (boot)"
        )
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _rows(number: int, machines: int, traces: list[bytes]) -> Iterator[tuple[str, str, int, int, str, bytes]]:
    for machine in range(machines):
        at_ms = START_MS + number * BOOT_MS + machine * BOOT_MS // machines
        name = f"node-{machine}"
        boot = mint(b"k" * 32, name, "a" * 64, at_ms, machine)
        yield boot, name, 2, at_ms * 1_000, "Ready", traces[(machine + number) % len(traces)]


def _report(db: sqlite3.Connection, rows: list[tuple[str, str, int, int, str, bytes]], reports: list[bytes]) -> None:
    db.executemany(
        "INSERT INTO health (boot, machine, at_ms, status, body, arrived) VALUES (?, ?, ?, 'pass', ?, ?)",
        [(row[0], row[1], row[3] // 1_000, reports[place % len(reports)], row[3]) for place, row in enumerate(rows)],
    )


def _records(name: str, at_ms: int, number: int) -> list[ScriptRecord | EventRecord]:
    image, peer = f"{number % 5:064x}", f"10.20.{number >> 8 & 255}.{number & 255}"
    boot = mint(b"k" * 32, name, image, at_ms, number)
    served = {"at_ms": at_ms, "boot": boot, "machine": name, "peer": peer}
    script = ScriptRecord(cluster="default", image=image, profile="node", channel="stable", **served)
    details = {Phase.IMAGE_FETCHED: f"331.{number % 97} MiB from http://10.20.0.{number % 7}:8080 in {number % 61} s"}
    events = [
        EventRecord(
            **{**served, "at_ms": at_ms + place * (2_000 + number % 977)},
            phase=phase,
            uptime_ms=place * (2_000 + number % 971),
            detail=details.get(phase, ""),
        )
        for place, phase in enumerate(Phase)
        if phase not in (Phase.SCRIPT_SERVED, Phase.FAILED)
    ]
    return [script, *events]


def _packed() -> tuple[list[bytes], list[bytes]]:
    """Traces and health reports of many lengths, as the projection writes them."""
    traces, reports = [], []
    for number in range(TEMPLATES):
        trace = None
        for record in _records(f"node-{number}", START_MS + number * 1_000_003, number):
            trace = apply(trace, record)
        assert trace is not None
        traces.append(pack(trace.model_dump_json(exclude_defaults=True)))
        checks = [
            {
                "name": f"gpu-{place}",
                "status": "pass",
                "severity": "critical",
                "summary": f"8 GPUs, {number + place} MiB, {os.urandom(8).hex()}",
                "ms": number + place,
                "facts": {f"value_{fact}": os.urandom(6).hex() for fact in range(6)},
            }
            for place in range(24)
        ]
        report = {"schema": 1, "machine": trace.machine, "taken_ms": START_MS + number, "checks": checks}
        known = {"at_ms": START_MS, "boot": trace.boot, "machine": trace.machine, "peer": "10.20.0.1", "report": report}
        reports.append(pack(HealthRecord.model_validate(known).model_dump_json(by_alias=True)))
    return traces, reports


def _scrape(site: Site) -> float:
    before = time.perf_counter()
    if "netboot_machines_by_state" not in site.metrics():
        raise BenchError("/metrics says nothing of machines")
    return time.perf_counter() - before


def _wait(site: Site, path: str) -> None:
    deadline = time.monotonic() + 600
    while not _boots(site, path):
        if time.monotonic() > deadline:
            raise BenchError(f"netboot does not boot its machines on {HOST}:\n{tail(site.folder / 'log')}")
        time.sleep(0.5)


def _boots(site: Site, path: str) -> bool:
    try:
        return b"netboot.boot=" in get(site.port, path)[1]
    except OSError:
        return False
