"""Join: exchanges on one core, tokens against a real apiserver, and a fleet until the last certificate is in hand."""

import http.client
import os
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import control_plane
from bench.control_plane import Fsyncs
from bench.fleet import Fleet, Joined, fleet_processes
from bench.issuing import Issuing, issuing
from bench.members import Door, Member, booted, members
from bench.pairs import Paired, exchange
from bench.procfs import cpu_seconds, named_so, pin, settle
from bench.serving import HOST, BenchError, Server, tail
from bench.site import Joining, Site, make_site, netboot
from lab.kube.cluster import Cluster
from lab.site import free_port

NODES = 437
MOST_NODES = 10_000
TARGET = 60.0
"""Seconds for that many nodes on two cores."""
RESETS = 1_000_000
"""Between rounds of exchanges: the counters of the TPMs only ever grow, whatever each round counts by itself."""
_OURS = ("join", "approver", "nodes", "boot", "management", "controllers")
"""How the names of the service's processes begin."""
SECTIONS = """\
join: {{listen: "0.0.0.0:{port}", url: "https://{host}:{port}"}}
clusters:
  default: {{endpoints: ["{url}"], authority: "{authority}"}}
"""


@dataclass(frozen=True)
class FleetRound:
    """One fleet: when each had joined, CPU seconds of everything that took part, etcd's syncs to the disk."""

    joined: Joined
    cpu: dict[str, float]
    fsyncs: Fsyncs


@dataclass(frozen=True)
class PairRound:
    """One round of exchanges, and the CPU seconds that the join process spent on it."""

    paired: Paired
    cpu: float

    @property
    def cpu_us(self) -> float:
        """CPU µs of the join process for each pair."""
        return self.cpu / self.paired.pairs * 1e6


@dataclass(frozen=True)
class Join:
    """All rounds, and what the control plane was told."""

    nodes: int
    cores: int
    flags: list[str]
    fleets: list[FleetRound]
    pairs: list[PairRound]
    issued: list[Issuing]


@dataclass(frozen=True)
class World:
    """Everything that runs."""

    cluster: Cluster
    site: Site
    server: Server
    door: Door

    def cpu(self) -> dict[str, float]:
        """CPU seconds so far, by what takes part."""
        spent = {name: cpu_seconds(process.pid) for name, process in self.cluster.processes.items()}
        return spent | {f"netboot's {name}": cpu_seconds(self.server.pid, named=name) for name in _OURS}


def measure(folder: Path, cache: Path, rounds: int, seconds: float, nodes: int) -> Join:
    """Measure. The keys of the TPMs, P-256, are made before any clock starts.

    Raises:
        BenchError: something did not start, or not every machine joined.
    """
    fleet = members(nodes)
    fleets, pairs, issued = [], [], []
    with ExitStack() as stack:
        world = stack.enter_context(world_of(folder, cache, fleet))
        processes = stack.enter_context(fleet_processes())
        for _ in range(min(rounds, 3)):
            fleet = booted(fleet, world.site.port, world.site.machines)
            settle(world.server.pid)
            fleets.append(_fleet_round(world, processes, fleet))
        for number in range(rounds):
            ahead = [member.rebooted((2 * number + 1) * RESETS) for member in fleet]
            pairs.append(_pair_round(world, ahead, seconds))
            ahead = [member.rebooted((2 * number + 2) * RESETS) for member in fleet]
            issued.append(issuing(world.site.folder / "netboot.yaml", ahead, seconds))
        flags = control_plane.signing_flags(world.cluster)
    return Join(nodes, len(os.sched_getaffinity(0)), flags, fleets, pairs, issued)


def _fleet_round(world: World, processes: Fleet, fleet: Sequence[Member]) -> FleetRound:
    before, synced = world.cpu(), control_plane.fsyncs(world.cluster)
    joined = processes.join(fleet, world.door)
    after = world.cpu()
    spent = {name: after[name] - before[name] for name in after} | {"the machines": joined.cpu}
    return FleetRound(joined, spent, control_plane.fsyncs(world.cluster) - synced)


def _pair_round(world: World, fleet: Sequence[Member], seconds: float) -> PairRound:
    """The join process on one core, the machines on the others; the apiserver runs where it can."""
    cores = sorted(os.sched_getaffinity(0))
    workers = named_so(world.server.pid, "join-")
    settle(world.server.pid)
    pin(workers, cores[:1])
    try:
        before = cpu_seconds(world.server.pid, named="join-")
        paired = exchange(fleet, world.door, seconds, cores[1:] or cores)
        return PairRound(paired, cpu_seconds(world.server.pid, named="join-") - before)
    finally:
        pin(workers, cores)


@contextmanager
def world_of(
    folder: Path, cache: Path, fleet: Sequence[Member], prepare: Callable[[Site], None] = lambda _: None
) -> Iterator[World]:
    """A control plane, and a site of ours whose machines these are, served; `prepare` has it before that.

    Raises:
        BenchError: something did not start.
    """
    with ExitStack() as stack:
        cluster = stack.enter_context(control_plane.control_plane(cache, folder / "cluster"))
        port, authority = free_port(HOST), cluster.folder / "ca.crt"
        config = SECTIONS.format(host=HOST, port=port, url=cluster.url, authority=authority)
        eks = [member.tpm().machine.ek_sha256 for member in fleet]
        site = make_site(folder / "join", machines=len(fleet), root_mib=1, joining=Joining(port, config, eks))
        control_plane.accounts(cluster, site.folder / "secrets")
        prepare(site)
        server = stack.enter_context(netboot(site))
        authorities = (site.folder / "tls" / "ca.crt").read_text()
        _wait_fit(port, authorities, site.folder / "log")
        door = Door(f"http://{HOST}:{site.port}", f"https://{HOST}:{port}", authorities)
        yield World(cluster, site, server, door)


def _wait_fit(port: int, authorities: str, log: Path, wait: float = 180.0) -> None:
    """Until join says that machines can join through it.

    Raises:
        BenchError: it does not, with its words.
    """
    context, deadline, reason = ssl.create_default_context(cadata=authorities), time.monotonic() + wait, ""
    while time.monotonic() < deadline:
        connection = http.client.HTTPSConnection(HOST, port, timeout=10, context=context)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            reason = answer.read().decode(errors="replace")
            if answer.status == 200:
                return
        except (OSError, http.client.HTTPException) as error:
            reason = str(error)
        finally:
            connection.close()
        time.sleep(0.1)
    raise BenchError(f"join is not ready after {wait:.0f} s: {reason}\n{tail(log)}")
