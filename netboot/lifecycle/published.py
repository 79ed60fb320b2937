"""What was published, looked up: of a machine its class, deadlines, origins, kernel arguments, and which image it is to
boot. Pure; what it gets, and why, is `netboot.lifecycle.decide`."""

from dataclasses import dataclass
from typing import Any

from images.values.kernel_arguments import command_line, replaced
from ipxe.command_line import CommandLine
from netboot.lifecycle.snapshot import ImageFacts, Snapshot
from netboot.machines.classes import Class
from netboot.machines.deadlines import Deadline
from netboot.machines.match import Index
from netboot.machines.topology import NOWHERE, Topology
from netboot.machines.values import Machine, Profile, Rack, deadlines_of


@dataclass(frozen=True, slots=True)
class View:
    """A snapshot with what makes look-ups cheap; built once for each published snapshot."""

    snapshot: Snapshot
    index: Index
    profiles: dict[str, Profile]
    classes: dict[str, Class]
    racks: dict[str, Rack]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "View":
        """Index a snapshot: machines by identifier, the rest by name."""
        declared = snapshot.inventory
        profiles = {profile.name: profile for profile in declared.profiles}
        classes = {one.name: one for one in declared.classes}
        racks = {rack.name: rack for rack in declared.racks}
        return cls(snapshot, Index(declared.machines), profiles, classes, racks)

    def hardware(self, machine: Machine) -> dict[str, Any] | None:
        """The document of the machine's class; None: it names none."""
        return self.classes[machine.class_name].document() if machine.class_name is not None else None

    def deadlines(self, machine: Machine) -> dict[str, Deadline]:
        """How long its boots may stay at each phase."""
        hardware = self.classes[machine.class_name] if machine.class_name is not None else None
        return deadlines_of(self.profiles[machine.profile], hardware)

    def stands(self, machine: Machine) -> Topology:
        """Where it stands: as itself says, and what it leaves out as its rack has it."""
        rack = self.racks[machine.rack].topology if machine.rack is not None else NOWHERE
        return (machine.topology or NOWHERE).over(rack)

    def near(self, machine: Machine) -> dict[str, tuple[str, ...]]:
        """Origins of its rack, then of its class, by the words for who declares them; the service itself is none."""
        found = {}
        if machine.rack is not None:
            found[f"rack {machine.rack}"] = self.racks[machine.rack].origins
        if machine.class_name is not None:
            found[f"class {machine.class_name}"] = self.classes[machine.class_name].origins
        others = {who: tuple(url for url in urls if url != self.snapshot.url) for who, urls in found.items()}
        return {who: urls for who, urls in others.items() if urls}

    def origins(self, machine: Machine) -> tuple[tuple[str, ...], ...]:
        """Where it fetches from, in groups, the most preferred first; each origin once. The service itself is the last
        of the last group."""
        groups, seen = [], set[str]()
        for urls in (*self.near(machine).values(), self.snapshot.origins):
            groups.append(tuple(url for url in dict.fromkeys(urls) if url not in seen))
            seen.update(urls)
        return tuple(group for group in groups if group)

    def kernel_arguments(self, machine: Machine, image: ImageFacts | None) -> tuple[str, ...]:
        """The image's under those of the machine's class, and these under its profile's; None: any image."""
        of_profile, of_class, of_image = (*self._said(machine, image).values(), ())[:3]
        return command_line(of_image, replaced(of_class, of_profile), machine.architecture)

    def cut(self, machine: Machine, image: ImageFacts | None) -> tuple[str, ...]:
        """Why the command line of its kernel would be cut, in sentences; empty: it would not. None: any image."""
        words = self.kernel_arguments(machine, image)
        digest = image.digest if image is not None else "0" * 64
        line = CommandLine(self.snapshot.url, machine.name, digest, self.origins(machine), words)
        left, said = set(words), dict[str, tuple[str, ...]]()
        for who, arguments in self._said(machine, image).items():
            said[who] = tuple(word for word in arguments if word in left)
            left -= set(arguments)
        return line.too_long(said)

    def _said(self, machine: Machine, image: ImageFacts | None) -> dict[str, tuple[str, ...]]:
        """By the words for who says them, in the order in which one takes another's place."""
        of_class = self.classes[machine.class_name].kernel_arguments if machine.class_name is not None else ()
        said = {
            f"profile {machine.profile}": self.profiles[machine.profile].kernel_arguments,
            f"class {machine.class_name}": of_class,
        }
        return said if image is None else said | {f"image {image.name}": image.kernel_arguments}


def image_of(snapshot: Snapshot, machine: str, channel: str) -> str | None:
    """Digest of the image that a machine is to boot: what was assigned to it, else what its channel points to."""
    assigned = snapshot.assigned.get(machine)
    return assigned.image if assigned is not None else snapshot.channels.get(channel)
