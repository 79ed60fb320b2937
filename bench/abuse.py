"""Scripts while 1,000 readers do not read and 500 senders do not finish: p99 beside idle, and the service's memory."""

import time
from dataclasses import dataclass
from pathlib import Path

from bench.abusers import Held, attached
from bench.procfs import rss_mib, settle
from bench.site import make_site, netboot, write_paths
from bench.stats import middle, paired
from bench.wrk import Load, load
from netboot.config import Provisioning

HOLD = Provisioning.model_fields["send_stall_seconds"].default + 5
"""Seconds that the crowd is there before the load: longer than each deadline that is to end it."""


@dataclass(frozen=True)
class Round:
    """One round: idle, then with the crowd. Memory in MiB: before the crowd, once it is there, after the load."""

    idle: Load
    abused: Load
    held: Held
    before_mib: float
    attached_mib: float
    after_mib: float


@dataclass(frozen=True)
class Abused:
    """All rounds."""

    rounds: list[Round]
    machines: int

    def p99_ratio(self) -> float:
        """p99 with the crowd as a multiple of that without."""
        return paired((each.abused.p99_ms for each in self.rounds), (each.idle.p99_ms for each in self.rounds))

    def growth(self) -> float:
        """Memory after the load of the last round as a multiple of that of the first: what a leak would raise."""
        return self.rounds[-1].after_mib / self.rounds[0].after_mib

    def crowd_mib(self) -> float:
        """What the crowd costs while it is there, MiB."""
        return middle(each.attached_mib - each.before_mib for each in self.rounds)


def measure(folder: Path, rounds: int, seconds: float, machines: int, hold: float = HOLD) -> Abused:
    """Measure `rounds` times idle and abused in turn, on one running service; the crowd is there for `hold` seconds
    before its memory is looked at for the first time."""
    site = make_site(folder / "abuse", machines=machines, root_mib=64)
    paths = write_paths(folder / "abuse.paths", site.machines)
    done = []
    with netboot(site) as server:
        load(server, paths, seconds)
        for _ in range(rounds):
            idle = load(server, paths, seconds)
            before = rss_mib(server.pid)
            with attached(server.port, site.blob_path) as crowd:
                time.sleep(hold)
                there = rss_mib(server.pid)
                abused = load(server, paths, seconds)
                held = crowd.held()
                after = rss_mib(server.pid)
            settle(server.pid)
            done.append(Round(idle, abused, held, before, there, after))
    return Abused(done, machines)
