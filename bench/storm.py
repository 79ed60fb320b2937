"""A storm of boots told to three replicas, which share its facts through one API server: what they write there, how
late it is, and whether all of them know all of it in the end.

Services, join, agents, approvers and the API server are what ships; TPMs and kubelets are simulated. Each machine gets
its script from one replica, reports to the next and joins at the third.
"""

import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from bench import procfs
from bench.apart import apart
from bench.control_plane import control_plane, flags_of
from bench.early import Part, fetched
from bench.fleet import Fleet, fleet_processes
from bench.kubelets import Kubelet, kubelets
from bench.members import Member, members
from bench.replicas import Replica, replicas
from bench.report_join import p99
from bench.serving import BenchError
from bench.stats import Verdict, middle
from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from netboot.lifecycle.phases import Phase
from netboot.stores.state import SqliteStates

MACHINES = 1_250
PHASES = frozenset(map(str, Phase)) - {str(Phase.FAILED)}
"""Of a boot that goes well."""
MOST_WRITES, MOST_LAG_SECONDS = 50.0, 60.0
LEADERS = ("shipper", "approver-default", "nodes-default")
_WAIT, _JOIN_SECONDS = 600.0, 900.0
_TEN = 10
_OBJECTS = "/apis/netboot.dev/v1alpha1/namespaces/netboot/machines"


class Sample(NamedTuple):
    """At one moment: statuses of Machines written so far, by all replicas; how many of the machines each is behind
    with, and for how long at most; MiB of the largest replica, in each tenth sample, else 0."""

    at: float
    written: int
    behind: int
    lag_seconds: float
    memory_mib: float


@dataclass
class Storm:
    """`seconds`: until the last Node was Ready; `known_seconds`: until all replicas and objects said all of it; `lost`:
    phases that one of them does not know; `status_writes`: as the API server counted them, refused ones, too."""

    machines: int
    seconds: float = 0.0
    known_seconds: float = 0.0
    script_ms: list[float] = field(default_factory=list)
    event_ms: list[float] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    status_writes: int = 0
    etcd_mib: float = 0.0
    lost: int = 0

    @property
    def most_writes(self) -> float:
        """Statuses in a second, in those ten seconds in which they were most."""
        pairs = zip(self.samples, self.samples[_TEN:], strict=False)
        return max(((b.written - a.written) / (b.at - a.at) for a, b in pairs), default=0.0)

    @property
    def lag_seconds(self) -> float:
        """For how long a replica was behind at most."""
        return max((each.lag_seconds for each in self.samples), default=0.0)

    @property
    def memory_mib(self) -> float:
        """Of the largest replica, at most."""
        return max((each.memory_mib for each in self.samples), default=0.0)


def measure(folder: Path, cache: Path, machines: int) -> Storm:
    """One storm. Keys of TPMs are made before any clock starts.

    Raises:
        BenchError: something did not start, or a machine did not join.
    """
    fleet, pairs, found = members(machines), folder / "pairs", Storm(machines)
    pairs.mkdir()
    with ExitStack() as stack:
        cluster = stack.enter_context(control_plane(cache, folder / "cluster"))
        three = stack.enter_context(replicas(folder, cache, cluster, fleet))
        crews = stack.enter_context(fleet_processes(len(three))).each()
        _until("led", lambda: all(any(_leads(one, kind) for one in three) for kind in LEADERS))
        before = _status_writes(cluster)
        with _sampled(three, found):
            begun = time.monotonic()
            with ThreadPoolExecutor(len(three)) as pool:
                parts = list(pool.map(lambda n: _boot(three, n, fleet, crews[n], pairs), range(len(three))))
            simulated = stack.enter_context(kubelets(cluster, pairs))
            simulated.start()
            simulated.all(Kubelet.register)
            found.seconds = time.monotonic() - begun
            boots = {member.name: member.boot for part in parts for member in part.fleet}
            found.lost = _told(cluster, three, boots)
            found.known_seconds = time.monotonic() - begun
            simulated.check()
        found.script_ms = [value for part in parts for value in part.script_ms]
        found.event_ms = [value for part in parts for value in part.event_ms]
        found.status_writes = _status_writes(cluster) - before
        found.etcd_mib = _etcd_mib(cluster)
    return found


def _boot(three: Sequence[Replica], number: int, fleet: Sequence[Member], crew: Fleet, pairs: Path) -> Part:
    """A third of the machines, up to their certificates."""
    first, second, third = (three[(number + n) % len(three)] for n in range(3))
    known = first.site.machines[number :: len(three)]
    part: Part = apart(fetched, fleet[number :: len(three)], known, first.site.port, second.site.port)
    door = replace(third.door, report=second.door.report)
    crew.join(part.fleet, door, pairs, seconds=_JOIN_SECONDS)
    return part


@contextmanager
def _sampled(three: Sequence[Replica], found: Storm) -> Iterator[None]:
    """Look at all of them once a second while in the block."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(1.0):
            said = [one.detail("shipper") for one in three]
            written, behind = (sum(each.get(key, 0) for each in said) for key in ("written", "behind"))
            lag = max(each.get("lag_seconds") or 0.0 for each in said)
            memory = max(procfs.rss_mib(one.server.pid) for one in three) if len(found.samples) % _TEN == 0 else 0.0
            found.samples.append(Sample(time.monotonic(), written, behind, lag, memory))

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            yield
        finally:
            ended.set()
            looking.result()


def _told(cluster: Cluster, three: Sequence[Replica], boots: Mapping[str, str]) -> int:
    """Wait until each knows all of each boot, and each object says it; phases that are missing after ten minutes."""
    states = [SqliteStates(one.site.folder / "data" / "state.db") for one in three]
    deadline, missing = time.monotonic() + _WAIT, dict(boots)
    while missing and time.monotonic() < deadline:
        time.sleep(2.0)
        objects = _objects(cluster)
        missing = {name: boot for name, boot in missing.items() if _lacks(states, objects.get(name), boot)}
    return sum(_lacks(states, _objects(cluster).get(name), boot) for name, boot in missing.items())


def _lacks(states: Sequence[SqliteStates], status: Any, boot: str) -> int:
    """Phases that are missing in the state of a replica, or the object's status."""
    told = [{step["phase"] for each in (status or {}).get("boots", ()) if each["id"] == boot for step in each["steps"]}]
    for each in states:
        trace = each.boot(boot)
        told.append({str(one.phase) for one in trace.reached} if trace is not None else set())
    return sum(len(PHASES - phases) for phases in told)


def _objects(cluster: Cluster) -> dict[str, Any]:
    with closing(Admin(cluster)) as admin:
        items = admin("GET", _OBJECTS).json()["items"]
    return {each["metadata"]["name"]: each.get("status") for each in items}


def _leads(replica: Replica, kind: str) -> bool:
    return bool((replica.detail(kind).get("leader") or {}).get("leads"))


def _until(what: str, true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT
    while not true():
        if time.monotonic() > deadline:
            raise BenchError(f"the replicas are not {what} after {_WAIT:.0f} s")
        time.sleep(0.5)


def _status_writes(cluster: Cluster) -> int:
    """Requests that would write a status of a Machine, as the API server has counted them."""
    with closing(Admin(cluster)) as admin:
        lines = admin("GET", "/metrics").text.splitlines()
    of = re.compile(
        r'apiserver_request_total{(?=.*resource="machines")(?=.*subresource="status")(?!.*verb="GET").*} (\S+)'
    )
    return sum(int(float(found[1])) for line in lines if (found := of.fullmatch(line)))


def _etcd_mib(cluster: Cluster) -> float:
    url = next(flag.partition("=")[2] for flag in flags_of(cluster, "etcd") if flag.startswith("--listen-client-urls="))
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        found = re.search(r"^etcd_mvcc_db_total_size_in_bytes (\S+)$", answer.read().decode(), re.MULTILINE)
    if found is None:
        raise BenchError("etcd does not tell how large it is")
    return float(found[1]) / 2**20


def described(found: Storm) -> str:
    """In words."""
    times = ", ".join(
        f"{name}: median {middle(values):.1f} ms, p99 {p99(values):.1f}, longest {max(values):.0f}"
        for name, values in (("a script", found.script_ms), ("an event", found.event_ms))
    )
    first = (
        f"{found.machines} machines boot at once by three replicas, {len(PHASES)} phases each; all Ready after "
        f"{found.seconds:.1f} s, known to all replicas and told by all objects after {found.known_seconds:.1f} s"
    )
    second = (
        f"statuses of Machines: {found.status_writes} requests to write one, "
        f"{found.status_writes / found.machines:.1f} of each, at most {found.most_writes:.1f}/s in ten seconds; "
        f"a replica was behind for at most {found.lag_seconds:.1f} s; phases lost: {found.lost}"
    )
    last = f"memory of a replica: at most {found.memory_mib:.0f} MiB; etcd: {found.etcd_mib:.0f} MiB"
    return "\n".join([first, second, times, last])


def verdicts(found: Storm) -> list[Verdict]:
    """The issue's, whatever the number of machines."""
    of = f"{found.machines} machines: "
    return [
        Verdict(f"{of}statuses written in a second", found.most_writes, MOST_WRITES, at_least=False),
        Verdict(f"{of}seconds that a replica is behind", found.lag_seconds, MOST_LAG_SECONDS, at_least=False),
        Verdict(f"{of}phases lost", found.lost, 0, at_least=False),
    ]
