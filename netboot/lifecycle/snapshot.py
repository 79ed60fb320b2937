"""The snapshot: everything that a boot decision needs, immutable, published whole and swapped whole.

The publisher is its only author; boot workers read it. It is a file, so that a restart without a usable inventory, an
API server or a network still boots machines from what was last accepted.
"""

from pydantic import Field

from images.artifact.manifest import Artifact
from images.values.kernel_arguments import RecipeArgument
from images.values.strict import Strict
from images.values.types import Architecture, HttpUrl, Name, Sha256
from netboot.machines.values import Inventory


class ImageFacts(Strict):
    """What the boot server must know of an image. Only images whose signature was verified get here."""

    digest: Sha256
    name: Name
    architecture: Architecture
    epoch: int
    kernel: Artifact
    initrd: Artifact
    kernel_arguments: tuple[RecipeArgument, ...] = ()
    ram_mib: int


class BootWindow(Strict):
    """An operator lets a machine without a TPM join once: whoever boots as it meanwhile is given a nonce."""

    id: str
    until_ms: int


class Assignment(Strict):
    """The image of one machine, over its channel's. `rollout`: the number of the one that assigned it."""

    image: Sha256
    rollout: int


class Revocations(Strict):
    """Images that nobody boots, by the bundle that was issued then (seconds since 1970)."""

    issued: int = 0
    images: tuple[Sha256, ...] = ()


NO_REVOCATIONS = Revocations()


class Snapshot(Strict):
    """One consistent view: inventory, where each channel points, the facts of the images pointed to."""

    site: Name
    published_ms: int
    inventory: Inventory
    channels: dict[str, Sha256 | None]
    """Every declared channel; None: nothing has been set yet, or what is set cannot be used (see `unusable`)."""
    unusable: dict[str, str]
    """Channel → why its image cannot be used, in words (missing, signature, below the site's minimum epoch)."""
    images: dict[Sha256, ImageFacts]
    url: HttpUrl
    """The provisioning address as machines see it, without a trailing slash."""
    origins: tuple[HttpUrl, ...]
    kernel_from_origins: bool = Field(False, exclude_if=lambda asked: not asked)
    """Whether one of a machine's first origins is asked for kernel and initrd before the service is. Not written where
    it is not so: versions before it read that."""
    windows: dict[Name, BootWindow] = Field(default_factory=dict)
    """Machine → its open boot window."""
    assigned: dict[Name, Assignment] = Field(default_factory=dict, exclude_if=lambda assigned: not assigned)
    """Machine → the image that a rollout assigned to it. Not written where there is none: versions before rollouts
    read that."""
    unusable_images: dict[Sha256, str] = Field(default_factory=dict, exclude_if=lambda unusable: not unusable)
    """Image that is assigned → why it cannot be used, in words. Not written, as `assigned`."""
    revocations: Revocations = Field(default_factory=Revocations, exclude_if=lambda known: not known.images)
    """Not written where there are none, as `assigned`."""
