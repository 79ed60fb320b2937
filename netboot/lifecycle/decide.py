"""The boot decision: a pure function of what was published and what was claimed. `explain` prints its very value."""

from dataclasses import dataclass

from netboot.lifecycle.decision import Boot, Claim, Decision, Refused, Unavailable, Unknown
from netboot.lifecycle.snapshot import Snapshot
from netboot.machines.match import Found, Index
from netboot.machines.values import Machine, Profile


@dataclass(frozen=True, slots=True)
class View:
    """A snapshot with what makes look-ups cheap; built once for each published snapshot."""

    snapshot: Snapshot
    index: Index
    profiles: dict[str, Profile]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "View":
        """The view of a snapshot."""
        profiles = {profile.name: profile for profile in snapshot.inventory.profiles}
        return cls(snapshot, Index(snapshot.inventory.machines), profiles)


def decide(view: View | None, claim: Claim) -> Decision:
    """What the machine that makes this claim gets, and why, in sentences."""
    if view is None:
        return Unavailable(
            reason="no-inventory",
            because=("no inventory has been published yet; see `netboot config check` and the log of the service",),
        )
    left_out = tuple(f"left out {reason}" for reason in claim.ignored)
    found = view.index.find(claim.mac, claim.uuid, claim.serial)
    if not found:
        return Unknown(because=(*left_out, _nobody(claim)))
    because = (*left_out, *(_found(one) for one in found))
    if len(found) > 1:
        names = tuple(sorted(one.machine.name for one in found))
        last = f"one machine cannot be {' and '.join(names)}: correct the inventory, or the part that was moved"
        return Refused(reason="ambiguous", machines=names, because=(*because, last))
    return _known(view, found[0].machine, claim, because)


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
    why = view.snapshot.unusable.get(channel)
    if why is not None:
        return Unavailable(
            reason="image-unusable", because=(*because, f"the image of channel {channel} cannot be used: {why}")
        )
    digest = view.snapshot.channels.get(channel)
    image = view.snapshot.images.get(digest) if digest is not None else None
    if image is None:
        last = f"channel {channel} has no image yet: run `netboot channel set {channel} <image>`"
        return Unavailable(reason="no-image", because=(*because, last))
    because = (*because, f"channel {channel} is image {image.name} {image.digest[:12]}")
    if image.architecture != machine.architecture:
        last = (
            f"that image is for {image.architecture} and {machine.name} is {machine.architecture}: "
            "give its profile a channel of its own architecture"
        )
        return Unavailable(reason="image-unusable", because=(*because, last))
    return Boot(
        machine=machine,
        profile=profile,
        channel=channel,
        image=image,
        kernel_arguments=(*image.kernel_arguments, *profile.kernel_arguments),
        because=because,
    )


def _found(one: Found) -> str:
    return f"{' and '.join(one.by)} {'is' if len(one.by) == 1 else 'are'} machine {one.machine.name} (inventory)"


def _nobody(claim: Claim) -> str:
    said = [
        f"{kind} {value}"
        for kind, value in (("MAC", claim.mac), ("UUID", claim.uuid), ("serial", claim.serial))
        if value is not None
    ]
    if not said:
        return "the claim names no machine: it has no usable MAC, UUID or serial"
    return f"no machine of the inventory has {' or '.join(said)}"
