"""Whether the machines of a channel can boot an image, by their class: architecture, memory, drivers.

One rule for `channel set`, `config check` and `doctor`; the service judges architectures by it. Pure.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from images.node.health.cards import CARDS, driver_of
from images.values.faults import first_few
from images.values.types import Architecture
from netboot.machines.classes import Class
from netboot.machines.values import Inventory, Profile

JOURNALS = "journal-upload"
DISKS = ("nvme", "ahci", "virtio_blk", "virtio_scsi", "megaraid_sas", "mpt3sas", "smartpqi")
NICS = tuple(sorted({card.driver for card in CARDS.values()}))
"""Of servers' network cards, of all that are known by name."""
VIRTUAL_NICS = ("virtio_net", "vmxnet3", "ena")
GPUS = ("nvidia", "amdgpu", "xe", "habanalabs")
"""Drivers of which a class with disks, with GPUs, wants one at least: it does not say on which bus or of whom."""
SERVICES = {
    "/usr/lib/systemd/system/netboot-ssh.service": "ssh",
    "/usr/lib/systemd/system/netboot-netconsole.service": "netconsole",
    "/usr/lib/systemd/system/netboot-journal.service": JOURNALS,
}
"""File of an image → the feature (docs/features.md) that it is of."""
TOOLS = {"disk": "fio", "dcgm": "dcgmi", "gpu-copy": "nvbandwidth", "nccl": "all_reduce_perf", "nic": "ib_write_bw"}
"""Test under load (docs/health.md) → the program that it runs; those of memory and processors bring their own."""
_ASKED = {"netboot.ssh": "ssh", "netboot.netconsole": "netconsole"}
"""Kernel argument of a profile → the feature that it speaks to."""
_GPUS_TESTS = frozenset({"dcgm", "gpu-copy", "nccl"})
Outcome = Literal["refuse", "warn"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What of an image decides. `too_little`: why machines with so much memory (MiB, as installed) have not enough,
    "" where they have; None: not judged. `drivers`: kernel modules in its root or kernel; `parts`: which of `SERVICES`'
    features, and of `TOOLS`' programs, it has; None: not known."""

    name: str
    architecture: Architecture
    too_little: Callable[[int], str] | None = None
    drivers: frozenset[str] | None = None
    parts: frozenset[str] | None = None


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


def misfits(inventory: Inventory, channel: str, image: Candidate, told: Collection[str] = ()) -> list[Misfit]:
    """Of each class of machines of this channel; those without a class are judged by their architecture alone, and by
    what their profile asks for. `told`: features that the site speaks to in its bundle."""
    profiles = {profile.name: profile for profile in inventory.profiles if profile.channel == channel}
    machines = [machine for machine in inventory.machines if machine.profile in profiles]
    groups: dict[tuple[str | None, Architecture], list[str]] = {}
    asking: dict[tuple[str | None, Architecture], dict[str, Profile]] = {}
    for machine in machines:
        group = machine.class_name, machine.architecture
        groups.setdefault(group, []).append(machine.name)
        asking.setdefault(group, {})[machine.profile] = profiles[machine.profile]
    classes = {one.name: one for one in inventory.classes}
    found = []
    for (name, architecture), names in sorted(groups.items(), key=lambda group: (group[0][0] or "", group[0][1])):
        judged: list[tuple[Outcome, str, str]] = []
        if architecture != image.architecture:
            cause = f"{architecture}, and {image.name} is for {image.architecture}"
            judged = [("refuse", cause, "give their profile a channel of their own architecture")]
        else:
            judged = list(_of_class(classes[name], image)) if name is not None else []
            judged += _in_vain(asking[name, architecture].values(), classes.get(name or ""), image, told)
        found += [
            Misfit(outcome, channel, len(names), name, first_few(names), cause, remedy)
            for outcome, cause, remedy in judged
        ]
    return found


def _in_vain(
    profiles: Iterable[Profile], one: Class | None, image: Candidate, told: Collection[str]
) -> Iterator[tuple[Outcome, str, str]]:
    """What is asked of an image that has no part for it: nothing says so on the machine."""
    if image.parts is None:
        return
    remedy = "build it with that feature (docs/features.md)"
    for feature in told:
        if feature not in image.parts:
            yield "warn", f"the site's bundle speaks to the feature `{feature}`, which {image.name} has not", remedy
    for profile in profiles:
        said = {key: value for key, _, value in (each.partition("=") for each in profile.kernel_arguments)}
        for argument, feature in _ASKED.items():
            if argument in said and feature not in image.parts:
                said_to = f"profile {profile.name} says {argument}, to the feature `{feature}`"
                yield "warn", f"{said_to}, which {image.name} has not", f"{remedy}, or take the argument out"
        wanted = said.get("netboot.active", "").split(",")
        without = [
            f"{test} ({tool})"
            for test, tool in TOOLS.items()
            if (test in wanted or "all" in wanted) and tool not in image.parts and _has_what_is_tested(test, one)
        ]
        if without:
            cause = f"profile {profile.name} asks for tests under load whose tool {image.name} has not: "
            skip = "add the tools to its recipe, or name the tests in `active: {skip: […]}` of the class"
            why = "what is asked for and not measured keeps a Node from work"
            yield "warn", f"{cause}{', '.join(without)}", f"{skip}: {why}"


def _has_what_is_tested(test: str, one: Class | None) -> bool:
    if one is None:
        return test not in _GPUS_TESTS
    if one.active is not None and test in one.active.skip:
        return False
    if test in _GPUS_TESTS:
        return one.gpus is not None and one.gpus.count > 0
    return bool(one.disks) if test == "disk" else bool(one.nics)


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
