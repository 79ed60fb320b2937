"""What `netboot.machines.fit` judges an image by, from the local store: the rule of the gate *memory*, and drivers."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from images.artifact.manifest import Artifact, Manifest
from images.build.documents import listing
from images.build.gates import budget
from images.build.node_files import HOME
from images.errors import ImageError
from images.formats.modules import SUFFIXES, module_name
from images.store.store import Store
from images.values import files
from images.values.strict import FaultsError
from netboot.cli.paths import config_path, find_config
from netboot.config import Config
from netboot.lifecycle.channels import resolve
from netboot.lifecycle.errors import LifecycleError
from netboot.machines.fit import JOURNALS, SERVICES, TOOLS, Candidate, Misfit, misfits
from netboot.machines.values import Inventory
from netboot.stores.image_repository import open_image_repository
from netboot.stores.inventory import declarations_of

BUILT_IN = {
    "MLX5_CORE": "mlx5_core",
    "ICE": "ice",
    "I40E": "i40e",
    "IXGBE": "ixgbe",
    "IGB": "igb",
    "BNXT": "bnxt_en",
    "BLK_DEV_NVME": "nvme",
    "SATA_AHCI": "ahci",
    "VIRTIO_BLK": "virtio_blk",
    "SCSI_VIRTIO": "virtio_scsi",
    "MEGARAID_SAS": "megaraid_sas",
    "SCSI_MPT3SAS": "mpt3sas",
    "SCSI_SMARTPQI": "smartpqi",
}
"""Kernel configuration (Kconfig of these drivers) → the module, for kernels that have it built in."""


class Judged(NamedTuple):
    """What is wrong with an image for a channel's machines; `image` None: not judged, and `why`."""

    misfits: tuple[Misfit, ...] = ()
    image: str | None = None
    why: str = ""

    @property
    def refused(self) -> bool:
        """Whether machines could not boot it, or would have no room for work."""
        return any(misfit.outcome == "refuse" for misfit in self.misfits)


def judge(config: Path | None, channel: str, image: str) -> Judged:
    """An image of this site's store, as an operator names it, for the machines of a channel by the inventory's files.

    What has faults, or is not here, is not judged: whoever sets the channel says what is wrong with it.
    """
    try:
        if files.look(config_path(config)) is None:
            return Judged(why="no configuration of the site is here (--config)")
        settings = find_config(config)
        repository = open_image_repository(settings)
        digest = resolve(repository.images(), image).digest
        found = candidate(Store(settings.store), repository.verified(digest))
        inventory = declarations_of(settings).judged(None).inventory
        return Judged(tuple(misfits(inventory, channel, found, told(settings))), digest)
    except FaultsError:
        return Judged(why="the site has faults, see `netboot config check`")
    except (ImageError, LifecycleError, OSError) as error:
        return Judged(why=str(error))


def told(config: Config) -> tuple[str, ...]:
    """Features that the site speaks to in its bundle, whatever profiles say."""
    return (JOURNALS,) if config.journal is not None else ()


def of_channels(inventory: Inventory, config: Config) -> list[Misfit]:
    """Of each channel that names an image of this store; what is wrong with others is said elsewhere."""
    known: dict[str, Candidate] = {}
    store, found = Store(config.store), []
    for channel in inventory.channels:
        try:
            state = None if channel.image is not None else store.channel(channel.name)
            digest = channel.image or (state.image if state is not None else None)
            if digest is not None and digest not in known:
                known[digest] = candidate(store, store.manifest(digest))
        except (ImageError, OSError):
            continue
        found += misfits(inventory, channel.name, known[digest], told(config)) if digest is not None else []
    return found


def candidate(store: Store, manifest: Manifest) -> Candidate:
    """What of an image decides; an image without a list of its files joins a cluster where it has a kubelet.

    Raises:
        ImageError: its documents cannot be read. CommandError: there is no shell.
    """
    artifacts = manifest.artifacts
    if artifacts.files is None:
        drivers, parts, join = None, None, '"kubelet"' in _text(store, artifacts.packages)
    else:
        built_in = _text(store, artifacts.config) if artifacts.config is not None else ""
        paths = list(_paths(store, artifacts.files))
        join = f"{HOME}/node" in paths
        modules = (module_name(path) for path in paths if path.endswith(SUFFIXES))
        drivers = frozenset((*modules, *(BUILT_IN[name] for name in BUILT_IN if f"\nCONFIG_{name}=y\n" in built_in)))
        names = {path.rpartition("/")[2] for path in paths if "/bin/" in path or "/sbin/" in path}
        parts = frozenset(
            {feature for path, feature in SERVICES.items() if path in paths} | names & set(TOOLS.values())
        )
    containers = sum(one.size for one in manifest.container_images)
    image = budget.Image(manifest.name, artifacts.root.size, containers, join)
    return Candidate(manifest.name, manifest.architecture, partial(budget.too_little, image), drivers, parts)


def drivers(store: Store, manifest: Manifest) -> frozenset[str] | None:
    """Of an image; None: it has no list of its files, or one that cannot be read: `netboot image verify` says why."""
    try:
        return candidate(store, manifest).drivers
    except (ImageError, OSError):
        return None


def _paths(store: Store, artifact: Artifact) -> Iterator[str]:
    with files.opened(store.blob_path(artifact.sha256)) as file:
        yield from (entry["path"] for entry in listing.read(file))


def _text(store: Store, artifact: Artifact) -> str:
    return files.bytes_of(store.blob_path(artifact.sha256), files.LARGE).decode(errors="replace")
