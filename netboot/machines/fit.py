"""Whether the machines of a channel can boot an image, by their class: architecture, memory, drivers.

One rule for `channel set`, `config check` and `doctor`; the service judges architectures by it. Pure.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from images.node.health.cards import CARDS, driver_of
from images.values.faults import first_few
from images.values.types import Architecture
from netboot.machines.classes import Class
from netboot.machines.values import Inventory

DISKS = ("nvme", "ahci", "virtio_blk", "virtio_scsi", "megaraid_sas", "mpt3sas", "smartpqi")
NICS = tuple(sorted({card.driver for card in CARDS.values()}))
"""Of servers' network cards, of all that are known by name."""
VIRTUAL_NICS = ("virtio_net", "vmxnet3", "ena")
GPUS = ("nvidia", "amdgpu", "xe", "habanalabs")
"""Drivers of which a class with disks, with GPUs, wants one at least: it does not say on which bus or of whom."""
Outcome = Literal["refuse", "warn"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What of an image decides. `too_little`: why machines with so much memory (MiB, as installed) have not enough,
    "" where they have; None: not judged. `drivers`: kernel modules in its root or kernel; None: not known."""

    name: str
    architecture: Architecture
    too_little: Callable[[int], str] | None = None
    drivers: frozenset[str] | None = None


def boots(drivers: frozenset[str]) -> str:
    """On which hardware an image with these modules finds a network and disks, in one line."""
    servers, virtual = ([name for name in names if name in drivers] for names in (NICS, VIRTUAL_NICS))
    disks = ", ".join(name for name in DISKS if name in drivers)
    kinds = [
        f"{kind} ({', '.join(nics)})" for kind, nics in (("servers", servers), ("virtual machines", virtual)) if nics
    ]
    alone = " alone: no server's network card has a driver" if virtual and not servers else ""
    where = " and ".join(kinds) or "nothing whose network card is known by name"
    return f"{where}{alone}; disks: {disks or 'none'}"


class Misfit(NamedTuple):
    """What is wrong for the machines of one class. `refuse`: they cannot boot it, or have no room for work then."""

    outcome: Outcome
    channel: str
    machines: int
    class_name: str | None
    some: str
    """The first few of them by name."""
    cause: str
    remedy: str

    def __str__(self) -> str:
        of = f"of class {self.class_name}" if self.class_name is not None else f"of no class ({self.some})"
        count = f"{self.machines} machine{'' if self.machines == 1 else 's'}"
        return f"channel {self.channel}, {count} {of}: {self.cause}; {self.remedy}"


def misfits(inventory: Inventory, channel: str, image: Candidate) -> list[Misfit]:
    """Of each class of machines of this channel; those without a class are judged by their architecture alone."""
    profiles = {profile.name for profile in inventory.profiles if profile.channel == channel}
    machines = [machine for machine in inventory.machines if machine.profile in profiles]
    groups: dict[tuple[str | None, Architecture], list[str]] = {}
    for machine in machines:
        groups.setdefault((machine.class_name, machine.architecture), []).append(machine.name)
    classes = {one.name: one for one in inventory.classes}
    found = []
    for (name, architecture), names in sorted(groups.items(), key=lambda group: (group[0][0] or "", group[0][1])):
        judged: list[tuple[Outcome, str, str]] = []
        if architecture != image.architecture:
            cause = f"{architecture}, and {image.name} is for {image.architecture}"
            judged = [("refuse", cause, "give their profile a channel of their own architecture")]
        elif name is not None:
            judged = list(_of_class(classes[name], image))
        found += [
            Misfit(outcome, channel, len(names), name, first_few(names), cause, remedy)
            for outcome, cause, remedy in judged
        ]
    return found


def _of_class(one: Class, image: Candidate) -> Iterator[tuple[Outcome, str, str]]:
    if image.too_little is not None and one.memory_mib is not None:
        cause = image.too_little(one.memory_mib)
        if cause:
            yield "refuse", cause, "choose a smaller image, or correct `memory_gib` of the class"
    if image.drivers is None:
        if one.nics or one.disks or one.gpus:
            yield (
                "warn",
                f"which drivers {image.name} has cannot be told: it has no list of its files",
                "build it again",
            )
        return
    for cause, remedy in _without_drivers(one, image.name, image.drivers):
        yield "warn", cause, remedy
    if one.disks and not image.drivers.intersection(DISKS):
        count = sum(disks.count for disks in one.disks)
        yield "warn", f"{image.name} has no driver for any of {count} disks", "add it, as the feature `server` does"
    if one.gpus is not None and one.gpus.count and not image.drivers.intersection(GPUS):
        yield "warn", f"{image.name} has no driver for {one.gpus.count} GPUs", "take an image with the feature `gpu`"


def without_drivers(one: Class, image: Candidate) -> list[str]:
    """Of a class's network cards, as far as it is known which drivers the image has."""
    found = _without_drivers(one, image.name, image.drivers) if image.drivers is not None else ()
    return [f"{cause}; {remedy}" for cause, remedy in found]


def _without_drivers(one: Class, image: str, drivers: frozenset[str]) -> Iterator[tuple[str, str]]:
    for nics in one.nics:
        driver = driver_of(nics.model)
        if driver is not None and driver not in drivers:
            cause = f"{image} has no driver for {nics.count} × {nics.model} ({driver})"
            yield cause, f"add `{driver}` to `modules` of its recipe, as the feature `server` does"
