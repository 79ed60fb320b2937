"""The boot decision: a pure function of what was published and what was claimed. `explain` prints its very value."""

from typing import Annotated, Literal

from pydantic import Field

from images.values.strict import Strict
from images.values.types import Architecture, Name
from netboot.lifecycle.published import View, image_of
from netboot.lifecycle.snapshot import ImageFacts, Snapshot
from netboot.machines.match import Found
from netboot.machines.values import Machine, Profile


class Claim(Strict):
    """What somebody on the wire says of itself, after the allow-list: hints, never identity.

    `ignored` says, field by field, what was left out and why (a placeholder serial, a malformed UUID).
    """

    mac: str | None = None
    uuid: str | None = None
    serial: str | None = None
    architecture: Architecture | None = None
    platform: Literal["pcbios", "efi"] | None = None
    ignored: tuple[str, ...] = ()


class Boot(Strict):
    """The machine is known and may boot this image."""

    outcome: Literal["boot"] = "boot"
    machine: Machine
    profile: Profile
    channel: Name
    image: ImageFacts
    kernel_arguments: tuple[str, ...]
    origins: tuple[tuple[str, ...], ...]
    """Where the machine fetches from: groups, of which those of one are preferred alike; the service itself last."""
    because: tuple[str, ...]


class Unknown(Strict):
    """No machine of the inventory matches: it waits, is listed as discovered, and asks again."""

    outcome: Literal["unknown"] = "unknown"
    because: tuple[str, ...]


class Refused(Strict):
    """Not allowed: the machine says why on its console and asks again, slowly."""

    outcome: Literal["refused"] = "refused"
    reason: Literal["ambiguous", "disabled", "architecture", "command-line"]
    machines: tuple[Name, ...]
    because: tuple[str, ...]


class Unavailable(Strict):
    """Cannot tell right now: the machine tries again, with jitter. `machines`: which it is, where that is known."""

    outcome: Literal["unavailable"] = "unavailable"
    reason: Literal["no-inventory", "no-image", "image-unusable", "journal", "busy"]
    machines: tuple[Name, ...] = ()
    because: tuple[str, ...]


Decision = Annotated[Boot | Unknown | Refused | Unavailable, Field(discriminator="outcome")]


def decide(view: View | None, claim: Claim) -> Decision:
    """What the machine that makes this claim gets, and why, in sentences."""
    if view is None:
        return Unavailable(
            reason="no-inventory",
            because=("no inventory has been published yet; see `netboot config check` and the log of the service",),
        )
    left_out = tuple(f"left out {reason}" for reason in claim.ignored)
    matches = view.index.find(claim.mac, claim.uuid, claim.serial)
    if not matches:
        return Unknown(because=(*left_out, _nobody(claim)))
    because = (*left_out, *map(_matched, matches))
    if len(matches) > 1:
        names = tuple(sorted(match.machine.name for match in matches))
        last = f"one machine cannot be {' and '.join(names)}: correct the inventory, or the part that was moved"
        return Refused(reason="ambiguous", machines=names, because=(*because, last))
    return _known(view, matches[0].machine, claim, because)


def decide_machine(view: View, machine: Machine) -> Decision:
    """What this machine gets however it is recognised: what boot servers render ahead, `explain <machine>` shows."""
    return _known(view, machine, Claim(), (f"machine {machine.name} (inventory)",))


def _known(view: View, machine: Machine, claim: Claim, because: tuple[str, ...]) -> Decision:
    name = machine.name
    if not machine.enabled:
        because = (*because, f"machine {name} is disabled: set `enabled: true` in the inventory to let it boot")
        return Refused(reason="disabled", machines=(name,), because=because)
    if claim.architecture is not None and claim.architecture != machine.architecture:
        because = (
            *because,
            f"its firmware is {claim.architecture}, the inventory declares {name} as {machine.architecture}",
        )
        return Refused(reason="architecture", machines=(name,), because=because)
    profile = view.profiles[machine.profile]
    return _image(view, machine, profile, (*because, f"profile {profile.name} uses channel {profile.channel}"))


def _image(view: View, machine: Machine, profile: Profile, because: tuple[str, ...]) -> Decision:
    channel = profile.channel
    image = _chosen(view.snapshot, machine.name, channel)
    if isinstance(image, Unavailable):
        return image.model_copy(update={"machines": (machine.name,), "because": (*because, *image.because)})
    assigned = view.snapshot.assigned.get(machine.name)
    by = f"channel {channel} is" if assigned is None else f"rollout {assigned.rollout} of channel {channel} assigned"
    because = (*because, f"{by} image {image.name} {image.digest[:12]}")
    near = view.near(machine).items()
    because = (*because, *(f"{who} has origins of its own: {', '.join(urls)}" for who, urls in near))
    if image.architecture != machine.architecture:
        last = (
            f"that image is for {image.architecture} and {machine.name} is {machine.architecture}: "
            "give its profile a channel of its own architecture"
        )
        return Unavailable(reason="image-unusable", machines=(machine.name,), because=(*because, last))
    if cut := view.cut(machine, image):
        return Refused(reason="command-line", machines=(machine.name,), because=(*because, *cut))
    return Boot(
        machine=machine,
        profile=profile,
        channel=channel,
        image=image,
        kernel_arguments=view.kernel_arguments(machine, image),
        origins=view.origins(machine),
        because=because,
    )


def _chosen(snapshot: Snapshot, machine: str, channel: str) -> ImageFacts | Unavailable:
    """The image that was assigned to it, else its channel's."""
    assigned = snapshot.assigned.get(machine)
    why, whose = snapshot.unusable.get(channel), f"of channel {channel}"
    if assigned is not None:
        why = snapshot.unusable_images.get(assigned.image)
        whose = f"{assigned.image[:12]} that rollout {assigned.rollout} of channel {channel} assigned"
    if why is not None:
        return Unavailable(reason="image-unusable", because=(f"the image {whose} cannot be used: {why}",))
    image = snapshot.images.get(image_of(snapshot, machine, channel) or "")
    if image is not None:
        return image
    last = f"channel {channel} has no image yet: run `netboot channel set {channel} <image>`"
    return Unavailable(reason="no-image", because=(last,))


def _matched(match: Found) -> str:
    return f"{' and '.join(match.by)} {'is' if len(match.by) == 1 else 'are'} machine {match.machine.name} (inventory)"


def _nobody(claim: Claim) -> str:
    identifiers = [
        f"{kind} {value}"
        for kind, value in (("MAC", claim.mac), ("UUID", claim.uuid), ("serial", claim.serial))
        if value is not None
    ]
    if not identifiers:
        return "the claim names no machine: it has no usable MAC, UUID or serial"
    return f"no machine of the inventory has {' or '.join(identifiers)}"
