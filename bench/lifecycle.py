"""What the lifecycle costs an API server: Nodes of a fleet with the gate, conditions and their Events at work.

Against a real control plane; kubelets are simulated (`bench.kubelets`), all else is what ships.
"""

import random
import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench import counted
from bench.counted import Audit, Etcd
from bench.fleet import fleet_processes
from bench.join import World, world_of
from bench.kubelets import Kubelet, Kubelets, kubelets
from bench.members import booted, members
from bench.serving import BenchError, get

SECONDS = 300.0
"""Of each span that only goes on."""
SAY_SECONDS = (600.0, 720.0)
"""Between two words of a node that stays as it is: every second report, of which one comes each five to six minutes."""
QUIET_SECONDS = 5.0
_WAIT = 300.0
_LEASES = "leases"


@dataclass(frozen=True)
class Span:
    """`writes`: by who and what, all that the API server carried out; `cpu`: seconds, by what takes part."""

    name: str
    seconds: float
    writes: dict[str, int]
    etcd: Etcd
    cpu: dict[str, float]

    def of(self, who: str) -> int:
        """How many writes were theirs, but for Leases."""
        return sum(n for key, n in self.writes.items() if key.startswith(who) and not key.endswith(_LEASES))


@dataclass(frozen=True)
class Lifecycle:
    """`closed`: gates of the last span that were closed; all nodes said there that every check fails."""

    nodes: int
    spans: list[Span]
    closed: int


def measure(folder: Path, cache: Path, seconds: float, nodes: int) -> Lifecycle:
    """All spans, once. `seconds`: of each that only goes on.

    Raises:
        BenchError: something did not start, not every machine joined, or gates do not open.
    """
    fleet, pairs = members(nodes), folder / "pairs"
    pairs.mkdir()
    with ExitStack() as stack:
        world = stack.enter_context(world_of(folder, cache, fleet))
        processes = stack.enter_context(fleet_processes())
        processes.join(booted(fleet, world.site.port, world.site.machines), world.door, pairs)
        simulated = stack.enter_context(kubelets(world.cluster, pairs))
        simulated.all(Kubelet.register)
        simulated.start()
        _until(world, "registered", lambda: _gates(world)["shut"] == nodes)
        _quiet(world)
        spans = [_span(world, "Leases of kubelets alone", lambda: _pass(simulated, seconds))]
        spans.append(_span(world, "each says that it is well, and all gates open", lambda: _open(world, simulated)))
        spans.append(_span(world, "nothing changes", lambda: _go_on(simulated, seconds)))
        spans.append(_span(world, "every check of all fails", lambda: _fail(world, simulated)))
        return Lifecycle(nodes, spans, _gates(world)["closed"])


def described(found: Lifecycle) -> str:
    """In words, a line for each span, then who wrote what."""
    lines = [f"{found.nodes} Nodes against a real control plane; kubelets are simulated"]
    for span in found.spans:
        lines += [_said(span), *(f"    {key}: {count}" for key, count in sorted(span.writes.items()))]
    return "\n".join([*lines, f"closed in the end, by the budget: {found.closed}"])


def _said(span: Span) -> str:
    ours, theirs = span.of("netboot's"), span.of("nodes")
    busy = ", ".join(f"{name} {spent:.1f}" for name, spent in span.cpu.items() if spent >= 0.1)
    return (
        f"{span.name}: {span.seconds:.1f} s; writes: {ours} of netboot's accounts ({ours / span.seconds:.2f}/s), "
        f"{theirs} of nodes but for Leases ({theirs / span.seconds:.2f}/s); etcd: {span.etcd.puts} puts, "
        f"{span.etcd.received / 1024:.0f} KiB sent to it, {span.etcd.written / 1024:.0f} KiB to the disk; "
        f"CPU seconds: {busy}"
    )


def _span(world: World, name: str, what: Callable[[], None]) -> Span:
    audit, before, spent, begun = Audit(world.cluster), counted.etcd(world.cluster), world.cpu(), time.monotonic()
    what()
    seconds, after = time.monotonic() - begun, world.cpu()
    cpu = {key: after[key] - spent[key] for key in after}
    return Span(name, seconds, dict(audit.writes()), counted.etcd(world.cluster) - before, cpu)


def _pass(simulated: Kubelets, seconds: float) -> None:
    time.sleep(seconds)
    simulated.check()


def _open(world: World, simulated: Kubelets) -> None:
    simulated.all(lambda one: one.say("pass"))
    _until(world, "open", lambda: _gates(world)["open"] == len(simulated.each))
    _quiet(world)


def _go_on(simulated: Kubelets, seconds: float) -> None:
    """Each says the same again, at its time: at a moment by chance of a first interval that has begun already."""
    due = [(random.uniform(0, random.uniform(*SAY_SECONDS)), one) for one in simulated.each]
    begun = time.monotonic()
    for moment, kubelet in sorted(((at, one) for at, one in due if at < seconds), key=lambda pair: pair[0]):
        time.sleep(max(0.0, begun + moment - time.monotonic()))
        kubelet.say("pass")
    _pass(simulated, max(0.0, begun + seconds - time.monotonic()))


def _fail(world: World, simulated: Kubelets) -> None:
    simulated.all(lambda one: one.say("fail"))
    allowed = max(1, len(simulated.each) // 10)
    _until(world, "closed", lambda: _gates(world)["closed"] >= allowed)
    _quiet(world)
    simulated.check()


def _quiet(world: World) -> None:
    """Until netboot's accounts write nothing for some seconds: Events come after what they tell of."""
    audit = Audit(world.cluster)
    deadline, wrote = time.monotonic() + _WAIT, True
    while wrote and time.monotonic() < deadline:
        time.sleep(QUIET_SECONDS)
        wrote = any(key.startswith("netboot's") for key in audit.writes())


def _gates(world: World) -> Counter[str]:
    """How many are open, shut and closed, by the service's own metrics."""
    config = yaml.safe_load((world.site.folder / "netboot.yaml").read_text())
    _, text = get(int(str(config["management"]["listen"]).rpartition(":")[2]), "/metrics")
    found = re.findall(r'^netboot_gate_nodes\{cluster="default",state="(\w+)"\} (\S+)$', text.decode(), re.MULTILINE)
    return Counter({state: int(float(count)) for state, count in found})


def _until(world: World, what: str, true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT
    while not true():
        if time.monotonic() > deadline:
            raise BenchError(f"not all Nodes are {what} after {_WAIT:.0f} s: {dict(_gates(world))}")
        time.sleep(0.2)
