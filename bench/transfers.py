"""Image bytes per second, beside nginx with sendfile: whole files and 4 MiB ranges, 8 clients, the same files."""

import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.download import Clients, Job, all_ranges, clients, whole_files
from bench.peers import nginx
from bench.procfs import TICK_SECONDS, cpu_seconds, settle
from bench.serving import AbsentError, BenchError, Server, get
from bench.site import Site, boot_path, make_site, netboot
from bench.stats import middle, paired

SHAPES: dict[str, Callable[[int, str, int, int], list[Job]]] = {
    "whole files": whole_files,
    "4 MiB ranges": all_ranges,
}


@dataclass(frozen=True)
class Transfer:
    """One round of one server."""

    gb_per_second: float
    cpu_per_gb: float
    """CPU seconds of all its processes per GB (10⁹ bytes)."""
    clients_per_gb: float
    """CPU seconds of the clients per GB: how much of the machine the measuring itself took."""


@dataclass(frozen=True)
class Bytes:
    """All rounds: shape → server → rounds. `absent`: why the peer is missing."""

    blob: int
    """Bytes of the file."""
    rounds: dict[str, dict[str, list[Transfer]]]
    absent: str = ""

    def median(self, shape: str, server: str, figure: str) -> float:
        """Median of one figure of `Transfer`."""
        return middle(getattr(transfer, figure) for transfer in self.rounds[shape][server])

    def ratio(self, shape: str, figure: str) -> float:
        """One figure of ours as a multiple of nginx's."""
        sides = (self.rounds[shape][server] for server in ("netboot", "nginx"))
        return paired(*([getattr(transfer, figure) for transfer in rounds] for rounds in sides))


def measure(folder: Path, rounds: int, seconds: float, mib: int) -> Bytes:
    """Measure; `seconds` is roughly how long one round of one server takes."""
    site = make_site(folder / "bytes", machines=1, root_mib=mib)
    results: dict[str, dict[str, list[Transfer]]] = {shape: {} for shape in SHAPES}
    absent = ""
    with ExitStack() as stack:
        servers = [stack.enter_context(netboot(site))]
        try:
            servers.append(stack.enter_context(nginx(site.store, folder / "nginx", site.blob_path[4:])))
        except AbsentError as error:
            absent = str(error)
        team = stack.enter_context(clients())
        for server in servers:
            _verify(server, site)
        path = _as_a_machine_asks(servers[0], site)
        times = {
            shape: _times(team, make(site.port, path, site.blob_size, 1), seconds) for shape, make in SHAPES.items()
        }
        for number in range(rounds):
            for shape, make in SHAPES.items():
                for server in servers if number % 2 == 0 else reversed(servers):
                    transfer = _round(team, server, make(server.port, path, site.blob_size, times[shape]))
                    results[shape].setdefault(server.name, []).append(transfer)
    return Bytes(site.blob_size, results, absent)


def _as_a_machine_asks(server: Server, site: Site) -> str:
    """The path of the root image with the query that a script gives it; nginx passes over that."""
    _, script = get(server.port, boot_path(site.machines[0]))
    boot = re.search(rb"netboot\.boot=([0-9a-f-]{36})", script)
    if boot is None:
        raise BenchError("the machine got no script that boots it")
    return f"{site.blob_path}?boot={boot[1].decode()}&machine=node-0"


def _times(team: Clients, jobs: Sequence[Job], seconds: float) -> int:
    """How often each client fetches the file, so that a round takes about `seconds`; warms caches too."""
    done = team.run(jobs)
    took = max(fetch.end for fetch in done) - min(fetch.start for fetch in done)
    return max(1, round(seconds / took))


def _round(team: Clients, server: Server, jobs: Sequence[Job]) -> Transfer:
    settle(server.pid)
    before = cpu_seconds(server.pid)
    done = team.run(jobs)
    settle(server.pid)  # what it does behind its answers is its own work
    spent = max(cpu_seconds(server.pid) - before, TICK_SECONDS)  # what the kernel's clock did not see was not nothing
    gigabytes = sum(fetch.received for fetch in done) / 1e9
    took = max(fetch.end for fetch in done) - min(fetch.start for fetch in done)
    return Transfer(gigabytes / took, spent / gigabytes, sum(fetch.cpu for fetch in done) / gigabytes)


def _verify(server: Server, site: Site) -> None:
    """The bytes are the right ones, whole and in parts, before anything is timed."""
    status, body = get(server.port, site.blob_path)
    if status != 200 or hashlib.sha256(body).hexdigest() != site.blob_path.rpartition("/")[2]:
        raise BenchError(f"{server.name}: {site.blob_path}: status {status}, or other bytes than its name says")
    status, part = get(server.port, site.blob_path, {"Range": "bytes=4194304-8388607"})
    if status != 206 or part != body[4194304:8388608]:
        raise BenchError(f"{server.name}: {site.blob_path}: status {status} for a range, or other bytes")
