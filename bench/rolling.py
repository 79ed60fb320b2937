"""Rollouts of a whole fleet by the real service, on the Nodes of a real control plane.

Drains, orders and withdrawals are what ships, and so are join and the agent; kubelets are simulated, and a reboot takes
no time (`bench.rebooting`). The machines have no Pods.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bench.lifecycle import Joined, joined, opened
from bench.rebooting import Lost, Machines
from bench.serving import BenchError
from bench.site import ROOT, Site, add_image
from bench.spans import Span, quiet, said, spanned
from bench.stats import Verdict
from bench.watched import Watched, watched
from images.node.orders.__main__ import LOOK_SECONDS
from images.store.store import Store
from netboot.cli.client import Client, Connection

CANARIES, RACK, CHANNEL = 2, 8, "stable"
_LONGEST = 3600.0
"""Seconds of one rollout, and of its undoing."""
_ASK_SECONDS = 2.0


class Image(NamedTuple):
    """One that machines are brought to. `lost`: which of them do not come back with it."""

    name: str
    lost: Lost


@dataclass(frozen=True)
class Rolled:
    """A rollout. `seconds`: until it had ended or was paused; `machines`: by the service's word, how many became what;
    `allowed` and `most_out`: Nodes out of service at once; `rebooted`: machines that took the order; `lost`: those of
    them that did not come back. `span` goes on until nothing more is written."""

    state: str
    why: str
    seconds: float
    machines: dict[str, int]
    allowed: int
    most_out: int
    rebooted: int
    lost: int
    span: Span


@dataclass(frozen=True)
class Rolling:
    """All rollouts, one after the other; between them those that were lost are brought back."""

    nodes: int
    rollouts: list[Rolled]


class _Bench(NamedTuple):
    """What a rollout needs."""

    fleet: Joined
    machines: Machines
    client: Client
    deadline: str
    look_seconds: float


def measure(folder: Path, cache: Path, nodes: int, *, quick: bool) -> Rolling:
    """A rollout through 2 % failures, one to an image that is bad for all, and one to an image that is so behind the
    canaries. `quick`: machines look for orders more often than they do, and are waited for not as long.

    Raises:
        BenchError: something did not start, a machine did not join, or a rollout neither ends nor is paused.
    """
    images = (
        Image("2 % do not come back", lambda number, _: number % 50 == min(25, nodes // 2)),
        Image("none comes back", lambda _, __: True),
        Image("none but the canaries comes back", lambda _, before: before >= CANARIES),
    )
    digests = list[str]()
    with joined(folder, cache, nodes, lambda site: digests.extend(prepare(site, len(images)))) as fleet:
        opened(fleet.world, fleet.simulated)
        config = fleet.world.site.folder / "netboot.yaml"
        look_seconds = LOOK_SECONDS / 6 if quick else LOOK_SECONDS
        machines, client = Machines(fleet, look_seconds), Connection(config).open()
        bench = _Bench(fleet, machines, client, "1m" if quick else "2m", look_seconds)
        rollouts = []
        for number, (image, digest) in enumerate(zip(images, digests, strict=True), 1):
            rollouts.append(_rolled(bench, number, image, digest))
            _restore(bench, number)
        return Rolling(nodes, rollouts)


def prepare(site: Site, count: int) -> list[str]:
    """Racks, a channel that no inventory pins, and so many images more; their digests."""
    file = site.folder / "inventory" / "site.yaml"
    inventory = yaml.safe_load(file.read_text())
    Store(site.store).set_channel(CHANNEL, inventory["channels"][0].pop("image"))
    for number, machine in enumerate(inventory["machines"]):
        machine["rack"] = f"r{number // RACK}"
    inventory["racks"] = [{"name": name} for name in sorted({each["rack"] for each in inventory["machines"]})]
    file.write_text(yaml.safe_dump(inventory))
    return [add_image(site.folder, 1).digest for _ in range(count)]


def _rolled(bench: _Bench, number: int, image: Image, digest: str) -> Rolled:
    nodes, ended = len(bench.fleet.fleet), dict[str, Any]()
    allowed = max(3, nodes // 20)
    bench.machines.begin()

    def roll() -> None:
        limits = ("--canary", str(CANARIES), "--max-unavailable", str(allowed), "--per-rack", "2")
        times = ("--bake", "0s", "--deadline", bench.deadline)
        _netboot(bench, "rollout", "start", CHANNEL, digest, *limits, *times, "--any-kubelet")
        began = time.monotonic()
        ended.update(_watch_over(bench, number, image.lost, lambda found: found["state"] != "running"))
        ended["seconds"] = time.monotonic() - began
        if ended["state"] == "paused":  # an order that was given is taken all the same
            ends = time.monotonic() + 1.25 * bench.look_seconds
            _watch_over(bench, number, image.lost, lambda _: time.monotonic() > ends)
        quiet(bench.fleet.world)

    with watched(bench.fleet.world.cluster) as found:
        span = spanned(bench.fleet.world, image.name, roll)
    counts = {state: count for state, count in ended["machines"].items() if count}
    how: tuple[str, str, float] = (ended["state"], ended["why"], ended["seconds"])
    return Rolled(*how, counts, allowed, found.most, bench.machines.rebooted, len(bench.machines.lost), span)


def _watch_over(bench: _Bench, number: int, lost: Lost, done: Callable[[Any], bool]) -> dict[str, Any]:
    """Machines do as they are ordered until this is true of the rollout, as it is then."""
    asked, began = 0.0, time.monotonic()
    while time.monotonic() < began + _LONGEST:
        bench.machines.look(lost)
        if time.monotonic() > asked + _ASK_SECONDS:
            found = bench.client.rollouts.get(number)
            if done(found):
                return dict(found)
            asked = time.monotonic()
        time.sleep(0.2)
    raise BenchError(f"rollout {number} goes on after {_LONGEST:.0f} s")


def _restore(bench: _Bench, number: int) -> None:
    """A rollout that is paused is undone, and somebody resets the machines that were lost: all are in service again."""
    if bench.client.rollouts.get(number)["state"] == "paused":
        _netboot(bench, "rollout", "undo", CHANNEL)
    with watched(bench.fleet.world.cluster) as found:
        bench.machines.switch_on()
        _watch_over(bench, number, lambda _, __: False, lambda each: _restored(found, each))
    quiet(bench.fleet.world)


def _restored(found: Watched, rollout: dict[str, Any]) -> bool:
    return not found.out and rollout["state"] in ("complete", "undone")


def _netboot(bench: _Bench, *arguments: str) -> None:
    config = bench.fleet.world.site.folder / "netboot.yaml"
    argv = [sys.executable, "-m", "netboot.cli.main", *arguments, "--config", str(config)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise BenchError(f"netboot {' '.join(arguments)}: status {done.returncode}: {done.stderr}")


def described(found: Rolling) -> str:
    """In words, some lines for each rollout."""
    lines = [f"rollouts of {found.nodes} Nodes on a real control plane; kubelets and reboots are simulated"]
    for each in found.rollouts:
        counts = ", ".join(f"{count} {state}" for state, count in sorted(each.machines.items()))
        ours = sum(count for who, count in each.span.writes.items() if who.startswith("netboot's"))
        ended = (
            f"    {each.state} after {each.seconds:.0f} s ({each.why}): {counts}; at most {each.most_out} Nodes out of "
            f"service at once, {each.allowed} allowed; {each.rebooted} rebooted, {each.lost} of them did not come "
            f"back; writes of netboot's accounts, Leases too: {ours} "
            f"({ours / max(1, each.rebooted):.1f} for each of these)"
        )
        lines += [said(each.span), ended]
    return "\n".join(lines)


def verdicts(found: Rolling) -> list[Verdict]:
    """Budgets are kept, and what a bad image harms."""
    judged = []
    for each in found.rollouts:
        about = f"of {found.nodes} Nodes, {each.span.name}"
        judged.append(Verdict(f"out of service at once, {about}", each.most_out, each.allowed, at_least=False))
        if each.state == "paused":
            harmed = CANARIES + each.allowed
            judged.append(Verdict(f"did not come back, {about}", each.lost, harmed, at_least=False))
    return judged
