"""Scripts per second and what one costs, beside matchbox: keep-alive and with a new connection per request."""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers import build_matchbox, matchbox
from bench.procfs import settle
from bench.serving import AbsentError, BenchError, Server, answer_size, get
from bench.site import Identity, identities, make_site, netboot, write_paths
from bench.stats import middle, paired
from bench.wrk import Load, load

SIZES = (1, 500, 5_000)
HELD = 10_000
"""Machines that ours holds, over and above the peers' sizes."""
SLOW = 4
"""A peer with thousands of groups answers some twenty requests a second: it is given so many times as long."""
_SLACK = 0.03
"""By how much the mean size of answers may differ from that of a right one (addresses and names vary in length)."""


@dataclass(frozen=True)
class Target:
    """One thing to ask: a running server, a file of paths, the bytes of a right answer with its headers."""

    server: Server
    paths: Path
    seconds: float


@dataclass
class Scripts:
    """All rounds: `keep-alive` or `close` → case (`500`, `1 of 10000`) → rounds, of either side."""

    ours: dict[str, dict[str, list[Load]]] = field(default_factory=dict)
    theirs: dict[str, dict[str, list[Load]]] = field(default_factory=dict)
    """By *our* case: what its peer did in the same rounds."""
    held: int = HELD
    absent: str = ""

    @property
    def one_of_many(self) -> str:
        """The case that asks for one machine while all are held."""
        return f"1 of {self.held}"

    def peer(self, case: str) -> str:
        """With how many machines matchbox stands beside a case."""
        return "1" if case == self.one_of_many else case

    def ratio(self, mode: str, case: str) -> float:
        """Ours as a multiple of theirs: requests per second."""
        sides = (self.ours[mode][case], self.theirs[mode][case])
        return paired(*([figures.per_second for figures in rounds] for rounds in sides))


def rate(rounds: Iterable[Load]) -> float:
    """Median requests per second."""
    return middle(figures.per_second for figures in rounds)


def measure(folder: Path, cache: Path, rounds: int, seconds: float, sizes: tuple[int, ...], held: int) -> Scripts:
    """Measure every size of both, in turn, `rounds` times, in both modes."""
    results = Scripts(held=held)
    with ExitStack() as stack:
        ours = _ours(stack, folder, seconds, sizes, held)
        try:
            theirs = _theirs(stack, folder, build_matchbox(cache), seconds, sizes)
        except AbsentError as error:
            results.absent, theirs = str(error), {}
        for target in [*ours.values(), *theirs.values()]:
            load(target.server, target.paths, 1)
        for mode in ("keep-alive", "close"):
            for number in range(rounds):
                for case in ours:
                    sides = [(results.ours, ours), (results.theirs, theirs)]
                    for loads, targets in sides if number % 2 == 0 else reversed(sides):
                        one = targets.get(results.peer(case) if targets is theirs else case)
                        if one is not None:
                            measured = _once(one, close=mode == "close")
                            loads.setdefault(mode, {}).setdefault(case, []).append(measured)
    return results


def _once(target: Target, *, close: bool) -> Load:
    measured = load(target.server, target.paths, target.seconds, close=close)
    expected = answer_size(target.server.port, target.paths.read_text().splitlines()[0], close=close)
    if abs(measured.size / expected - 1) > _SLACK:
        raise BenchError(
            f"{target.server.name}: a right answer has {expected} bytes, "
            f"those under load had {measured.size:.0f} on average"
        )
    return measured


def _ours(stack: ExitStack, folder: Path, seconds: float, sizes: tuple[int, ...], held: int) -> dict[str, Target]:
    targets = {}
    for machines in (*sizes, held):
        site = make_site(folder / f"site-{machines}", machines=machines, root_mib=1)
        server = stack.enter_context(netboot(site))
        paths = write_paths(folder / f"ours-{machines}.paths", site.machines)
        targets[str(machines)] = Target(server, paths, seconds)
        if machines == held:
            path_of_one = write_paths(folder / "ours-one.paths", site.machines[machines // 2 : machines // 2 + 1])
            targets[f"1 of {machines}"] = Target(server, path_of_one, seconds)
        settle(server.pid)
    return targets


def _theirs(stack: ExitStack, folder: Path, binary: Path, seconds: float, sizes: tuple[int, ...]) -> dict[str, Target]:
    targets = {}
    for machines in sizes:
        known = identities(machines)
        server = stack.enter_context(
            matchbox(binary, folder / f"matchbox-{machines}", [identity.mac for identity in known])
        )
        paths = folder / f"matchbox-{machines}.paths"
        paths.write_text("".join(f"{matchbox_path(identity)}\n" for identity in known))
        for identity in (known[0], known[-1]):
            status, body = get(server.port, matchbox_path(identity))
            if status != 200 or not body.startswith(b"#!ipxe"):
                raise BenchError(f"{server.name}: status {status} for {identity.mac}")
        targets[str(machines)] = Target(server, paths, seconds * (SLOW if machines > 1000 else 1))
    return targets


def matchbox_path(identity: Identity) -> str:
    """What a machine asks after matchbox's own /boot.ipxe (its matchbox/http/ipxe.go)."""
    mac = identity.mac.replace(":", "-")
    return f"/ipxe?uuid={identity.uuid}&mac={mac}&domain=&hostname=&serial={identity.serial}&arch=x86_64"
