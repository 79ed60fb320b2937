"""The values that a boot decision can have. `explain` prints the very value that was served."""

from typing import Annotated, Literal

from pydantic import Field

from images.values.strict import Strict
from images.values.types import Architecture, Name
from netboot.lifecycle.snapshot import ImageFacts
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
    because: tuple[str, ...]


class Unknown(Strict):
    """No machine of the inventory matches: it waits, is listed as discovered, and asks again."""

    outcome: Literal["unknown"] = "unknown"
    because: tuple[str, ...]


class Refused(Strict):
    """Not allowed: the machine says why on its console and asks again, slowly."""

    outcome: Literal["refused"] = "refused"
    reason: Literal["ambiguous", "disabled", "architecture"]
    machines: tuple[Name, ...]
    because: tuple[str, ...]


class Unavailable(Strict):
    """Cannot tell right now: the machine tries again, with jitter."""

    outcome: Literal["unavailable"] = "unavailable"
    reason: Literal["no-inventory", "no-image", "image-unusable", "journal", "busy"]
    because: tuple[str, ...]


Decision = Annotated[Boot | Unknown | Refused | Unavailable, Field(discriminator="outcome")]
