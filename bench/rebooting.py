"""Simulated machines that look for orders on their own Nodes, by the shipped program's rule, and reboot in no time."""

import random
import time
from collections.abc import Callable, Sequence

from bench.kubelets import Kubelet
from bench.lifecycle import Joined
from bench.members import booted
from images.node.orders.order import Here, judged

Lost = Callable[[int, int], bool]
"""Whether a machine does not come back: by its number, and how many have rebooted before it."""


class Machines:
    """All of a fleet. `rebooted`: how many took an order; `lost`: those of them that did not come back."""

    def __init__(self, joined: Joined, look_seconds: float) -> None:
        self._joined, self._every = joined, look_seconds
        self._members = {member.name: member for member in joined.fleet}
        self._numbers = {member.name: number for number, member in enumerate(joined.fleet)}
        self._kubelets = {kubelet.name: kubelet for kubelet in joined.simulated.each}
        self._due = {name: time.monotonic() + look_seconds * random.random() for name in self._kubelets}
        self.rebooted = 0
        self.lost = set[str]()

    def begin(self) -> None:
        """Another rollout: nobody has rebooted yet."""
        self.rebooted = 0

    def look(self, lost: Lost) -> None:
        """Whose time it is reads its own Node, and reboots where it is ordered to.

        Raises:
            BenchError: a machine that should come back does not.
        """
        told = [kubelet for kubelet in self._kubelets.values() if not kubelet.off and self._ordered(kubelet)]
        gone = set[str]()
        for kubelet in told:
            kubelet.off = True
            if lost(self._numbers[kubelet.name], self.rebooted):
                gone.add(kubelet.name)
            self.rebooted += 1
        self.lost |= gone
        self._boot(told, gone)
        self._joined.simulated.check()

    def switch_on(self) -> None:
        """Somebody resets those that did not come back, and now they do."""
        self._boot([self._kubelets[name] for name in sorted(self.lost)], set())
        self.lost.clear()

    def _ordered(self, kubelet: Kubelet) -> bool:
        now = time.monotonic()
        if self._due[kubelet.name] > now:
            return False
        self._due[kubelet.name] = now + self._every * (0.75 + random.random() / 2)
        verdict = judged(kubelet.node(), Here(kubelet.name, self._members[kubelet.name].boot, time.time()))
        return verdict is not None and not verdict.dead

    def _boot(self, kubelets: Sequence[Kubelet], gone: set[str]) -> None:
        """Each has its script; who is not gone joins by the shipped agent, registers, and says that it is well."""
        site, before = self._joined.world.site, [self._members[kubelet.name] for kubelet in kubelets]
        after = booted(before, site.port, [site.machines[self._numbers[member.name]] for member in before])
        self._members |= {member.name: member for member in after}
        back = [kubelet for kubelet in kubelets if kubelet.name not in gone]
        if not back:
            return
        pairs = self._joined.pairs
        self._joined.processes.join([self._members[kubelet.name] for kubelet in back], self._joined.world.door, pairs)
        for kubelet in back:
            kubelet.come_back(pairs / f"{kubelet.name}.pem")
            kubelet.say("pass")
