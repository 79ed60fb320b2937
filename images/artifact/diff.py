"""What differs between two images: pure, from their manifests and package lists."""

import json
from dataclasses import dataclass, field, replace

from images.artifact.manifest import Artifact, Manifest
from images.errors import CorruptError

Packages = dict[str, str]
"""`name:architecture` → version."""


@dataclass(frozen=True, slots=True)
class Diff:
    """Facts as old → new; sizes in bytes (None: not in that image); packages added, removed and changed."""

    facts: dict[str, tuple[str, str]] = field(default_factory=dict)
    sizes: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)
    added: Packages = field(default_factory=dict)
    removed: Packages = field(default_factory=dict)
    changed: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing differs that is compared here."""
        return not (self.facts or self.sizes or self.added or self.removed or self.changed)


def read_packages(data: bytes) -> Packages:
    """The packages artifact: `[[name, version, architecture], …]`.

    Raises:
        CorruptError: not one.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list) or not all(map(_is_package, value)):
        raise CorruptError("not a list of packages, which is [[name, version, architecture], …]: build the image again")
    return {f"{name}:{architecture}": version for name, version, architecture in value}


def _is_package(value: object) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(isinstance(part, str) for part in value)


def _size(artifact: Artifact | None) -> int | None:
    return None if artifact is None else artifact.size


def _containers(manifest: Manifest) -> str:
    return " ".join(f"{image.name}@{image.digest[:12]}" for image in manifest.container_images)


def diff(old: Manifest, new: Manifest, old_packages: Packages, new_packages: Packages) -> Diff:
    """Everything about `new` that is not as in `old`."""
    names = ("name", "distribution", "suite", "architecture", "epoch", "kernel_version", "ram_mib", "recipe")
    facts = {name: (str(getattr(old, name)), str(getattr(new, name))) for name in names}
    facts["root_format"] = (old.root_format, new.root_format)
    facts["kernel_arguments"] = (" ".join(old.kernel_arguments), " ".join(new.kernel_arguments))
    facts["container_images"] = (_containers(old), _containers(new))
    was, now = dict(old.artifacts), dict(new.artifacts)
    differing = [name for name in now | was if was.get(name) != now.get(name)]
    return replace(
        package_changes(old_packages, new_packages),
        facts={name: pair for name, pair in facts.items() if pair[0] != pair[1]},
        sizes={name: (_size(was.get(name)), _size(now.get(name))) for name in differing},
    )


def package_changes(old: Packages, new: Packages) -> Diff:
    """What differs between two lists of packages."""
    both = old.keys() & new.keys()
    return Diff(
        added={name: new[name] for name in sorted(new.keys() - both)},
        removed={name: old[name] for name in sorted(old.keys() - both)},
        changed={name: (old[name], new[name]) for name in sorted(both) if old[name] != new[name]},
    )
