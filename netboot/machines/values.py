"""What the operator declares: machines, profiles, channels; validated, frozen, normalised."""

from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from images.manifest import Architecture, KernelArgument, Name, Sha256
from images.strict import Strict
from netboot.machines.identity import parse_mac, parse_serial, parse_uuid

Mac = Annotated[str, BeforeValidator(parse_mac)]
"""Lower-case with colons, however it was spelt."""
Uuid = Annotated[str, BeforeValidator(parse_uuid)]
Serial = Annotated[str, BeforeValidator(parse_serial)]


class Match(Strict):
    """How a machine is recognised. Any one of them suffices; two machines may not share any."""

    macs: tuple[Mac, ...] = ()
    uuid: Uuid | None = None
    serial: Serial | None = None

    @model_validator(mode="after")
    def _recognisable(self) -> Self:
        if not self.macs and self.uuid is None and self.serial is None:
            raise ValueError("needs at least one of macs, uuid and serial: nothing could be recognised by this")
        return self


_OURS = (
    "netboot.boot=",
    "netboot.image=",
    "netboot.report=",
    "netboot.origins=",
    "BOOTIF=",
    "systemd.hostname=",
    "initrd=",
)


def _not_ours(argument: str) -> str:
    if argument.startswith(_OURS):
        raise ValueError("is set by the service itself for every boot; leave it out")
    return argument


ProfileArgument = Annotated[KernelArgument, AfterValidator(_not_ours)]


class Machine(Strict):
    """One piece of hardware."""

    name: Name
    cluster: Name = "default"
    match: Match
    profile: Name
    architecture: Architecture = "amd64"
    enabled: bool = True
    """False: the machine is told, on its console, that it may not boot."""


class Profile(Strict):
    """How a kind of machine boots: the channel that names its image, and arguments of its kernel."""

    name: Name
    channel: Name
    kernel_arguments: Annotated[tuple[ProfileArgument, ...], Field(max_length=32)] = ()


class Channel(Strict):
    """A name that points to an image. With `image` it is pinned here; without, `netboot channel set` moves it."""

    name: Name
    description: str = ""
    image: Sha256 | None = None


class Inventory(Strict):
    """All that is declared, from all files together; cross-references have been checked."""

    machines: tuple[Machine, ...] = ()
    profiles: tuple[Profile, ...] = ()
    channels: tuple[Channel, ...] = ()
