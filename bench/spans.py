"""What a control plane is put to for some time: writes to the API server by whom, etcd, CPU; and what gates say."""

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from bench import counted
from bench.counted import Audit, Etcd
from bench.join import World
from bench.serving import BenchError

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


def said(span: Span) -> str:
    """In words: a line, then who wrote what, a line each."""
    ours, theirs = span.of("netboot's"), span.of("nodes")
    busy = ", ".join(f"{name} {spent:.1f}" for name, spent in span.cpu.items() if spent >= 0.1)
    line = (
        f"{span.name}: {span.seconds:.1f} s; writes: {ours} of netboot's accounts ({ours / span.seconds:.2f}/s), "
        f"{theirs} of nodes but for Leases ({theirs / span.seconds:.2f}/s); etcd: {span.etcd.puts} puts, "
        f"{span.etcd.received / 1024:.0f} KiB sent to it, {span.etcd.written / 1024:.0f} KiB to the disk; "
        f"CPU seconds: {busy}"
    )
    return "\n".join([line, *(f"    {key}: {count}" for key, count in sorted(span.writes.items()))])


def spanned(world: World, name: str, what: Callable[[], None]) -> Span:
    """What this comes to, from its beginning to its end."""
    audit, before, spent, begun = Audit(world.cluster), counted.etcd(world.cluster), world.cpu(), time.monotonic()
    what()
    seconds, after = time.monotonic() - begun, world.cpu()
    cpu = {key: after[key] - spent[key] for key in after}
    return Span(name, seconds, dict(audit.writes()), counted.etcd(world.cluster) - before, cpu)


def quiet(world: World) -> None:
    """Until netboot's accounts write nothing for some seconds: Events come after what they tell of."""
    audit = Audit(world.cluster)
    deadline, wrote = time.monotonic() + _WAIT, True
    while wrote and time.monotonic() < deadline:
        time.sleep(QUIET_SECONDS)
        wrote = any(key.startswith("netboot's") for key in audit.writes())


def gates(world: World) -> Counter[str]:
    """How many are open, shut and closed, by the service's own metrics."""
    found = re.findall(
        r'^netboot_gate_nodes\{cluster="default",state="(\w+)"\} (\S+)$', world.site.metrics(), re.MULTILINE
    )
    return Counter({state: int(float(count)) for state, count in found})


def until(world: World, what: str, true: Callable[[], bool]) -> None:
    """Wait for it.

    Raises:
        BenchError: it does not come.
    """
    deadline = time.monotonic() + _WAIT
    while not true():
        if time.monotonic() > deadline:
            raise BenchError(f"not all Nodes are {what} after {_WAIT:.0f} s: {dict(gates(world))}")
        time.sleep(0.2)
