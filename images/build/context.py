"""What is known before the first step of a build: what the recipe says, and what was found out about the world."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from images.artifact.manifest import ContainerImage
from images.build.containers import Archive
from images.build.secureboot import SecureBootKey
from images.build.sources import Mirror
from images.recipe.lockfile import Lock
from images.recipe.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Context:
    """One build. A step takes from it what it needs into its inputs, and nothing else of it is looked at later."""

    recipe: Recipe
    keys: dict[str, bytes]
    """Public keys that the image trusts: signify's, by file name."""
    mirrors: tuple[Mirror, ...]
    archives: tuple[Archive, ...] = ()
    """The recipe's container images."""
    lock: Lock | None = None
    packages: Path | None = None
    """Where packages are kept between builds; None: nowhere."""
    secure_boot: SecureBootKey | None = None
    steps: tuple[tuple[str, int, str], ...] = ()
    """Name, version and identity of each step that there is."""
    installs: tuple[str, ...] = ()
    """Packages that steps of this build want in the tree, besides the recipe's."""
    removes: tuple[str, ...] = ()
    """Paths that only steps need: they do not stay in the root."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """What each tool of this build says of its version; "" where it is not installed."""

    @property
    def created(self) -> int:
        """The image's time, in seconds since 1970: of its newest source, or of its lock."""
        return self.lock.created if self.lock else max(mirror.newest for mirror in self.mirrors)

    @property
    def containers(self) -> tuple[ContainerImage, ...]:
        """Every container image that the root brings."""
        return tuple(image for archive in self.archives for image in archive.images)

    @property
    def identity(self) -> str:
        """The recipe's identity: all that it says, all steps, the keys that are baked in."""
        keys = tuple(self.keys[name] for name in sorted(self.keys))
        return self.recipe.identity(tuple(identity for _, _, identity in self.steps), keys)
