"""What the lifecycle costs an API server: Nodes of a fleet with the gate, conditions and their Events at work.

Against a real control plane; kubelets are simulated (`bench.kubelets`), all else is what ships.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.fleet import Fleet, fleet_processes
from bench.join import World, world_of
from bench.kubelets import Kubelet, Kubelets, kubelets
from bench.members import Member, booted, members
from bench.site import Site
from bench.spans import Span, gates, quiet, said, spanned, until

SECONDS = 300.0
"""Of each span that only goes on."""
SAY_SECONDS = (600.0, 720.0)
"""Between two words of a node that stays as it is: every second report, of which one comes each five to six minutes."""


@dataclass(frozen=True)
class Lifecycle:
    """`closed`: gates of the last span that were closed; all nodes said there that every check fails."""

    nodes: int
    spans: list[Span]
    closed: int


@dataclass(frozen=True)
class Joined:
    """A fleet that has joined. `pairs`: a folder with the certificate and key of each, NAME.pem."""

    world: World
    processes: Fleet
    fleet: list[Member]
    pairs: Path
    simulated: Kubelets


@contextmanager
def joined(folder: Path, cache: Path, nodes: int, prepare: Callable[[Site], None] = lambda _: None) -> Iterator[Joined]:
    """So many machines with a Node each, whose gate is shut; `prepare` has the site before it is served.

    Raises:
        BenchError: something did not start, or not every machine joined.
    """
    fleet, pairs = members(nodes), folder / "pairs"
    pairs.mkdir()
    with ExitStack() as stack:
        world = stack.enter_context(world_of(folder, cache, fleet, prepare))
        processes = stack.enter_context(fleet_processes())
        fleet = booted(fleet, world.site.port, world.site.machines)
        processes.join(fleet, world.door, pairs)
        simulated = stack.enter_context(kubelets(world.cluster, pairs))
        simulated.start()  # first: where all take long to register, Leases of the first ones would be late
        simulated.all(Kubelet.register)
        until(world, "registered", lambda: gates(world)["shut"] == nodes)
        quiet(world)
        yield Joined(world, processes, fleet, pairs, simulated)


def measure(folder: Path, cache: Path, seconds: float, nodes: int) -> Lifecycle:
    """All spans, once. `seconds`: of each that only goes on.

    Raises:
        BenchError: something did not start, not every machine joined, or gates do not open.
    """
    with joined(folder, cache, nodes) as all_of_it:
        world, simulated = all_of_it.world, all_of_it.simulated
        spans = [spanned(world, "Leases of kubelets alone", lambda: _pass(simulated, seconds))]
        spans.append(spanned(world, "each says that it is well, and all gates open", lambda: opened(world, simulated)))
        spans.append(spanned(world, "nothing changes", lambda: _go_on(simulated, seconds)))
        spans.append(spanned(world, "every check of all fails", lambda: _fail(world, simulated)))
        return Lifecycle(nodes, spans, gates(world)["closed"])


def described(found: Lifecycle) -> str:
    """In words, a line for each span, then who wrote what."""
    first = f"{found.nodes} Nodes against a real control plane; kubelets are simulated"
    return "\n".join([first, *map(said, found.spans), f"closed in the end, by the budget: {found.closed}"])


def _pass(simulated: Kubelets, seconds: float) -> None:
    time.sleep(seconds)
    simulated.check()


def opened(world: World, simulated: Kubelets) -> None:
    """Each says that it is well, until all gates are open.

    Raises:
        BenchError: they do not open.
    """
    simulated.all(lambda one: one.say("pass"))
    until(world, "open", lambda: gates(world)["open"] == len(simulated.each))
    quiet(world)


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
    until(world, "closed", lambda: gates(world)["closed"] >= allowed)
    quiet(world)
    simulated.check()
