"""What ends with a key: images that it alone signed and that machines boot, and the site bundle."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from images.artifact.keyring import KeyRing
from images.artifact.signing import PublicKey
from images.errors import ImageError
from images.store import check
from images.store.store import Store
from images.values.faults import first_few
from images.values.strict import FaultsError
from netboot.cli.paths import Paths
from netboot.machines.values import Inventory


class Ended(NamedTuple):
    """An image that nobody would be served any more. `why`: who points to it; `machines`: whose boots that ends, as far
    as the inventory says."""

    image: str
    name: str
    why: tuple[str, ...]
    machines: tuple[str, ...]

    def __str__(self) -> str:
        whose = f"; boots of {first_few(self.machines)} end" if self.machines else ""
        return f"image {self.image[:12]} {self.name}: {', '.join(self.why)}{whose}"


class Ends(NamedTuple):
    """All that ends. `bundle`: the site bundle is signed by that key alone: every machine refuses it then. `untold`:
    why it cannot be told what the inventory has of channels and machines, so that more may end; "": it can."""

    images: tuple[Ended, ...] = ()
    bundle: bool = False
    untold: str = ""

    def lines(self) -> list[str]:
        """In words."""
        bundle = ["the site bundle, which every machine verifies"] if self.bundle else []
        return [*map(str, self.images), *bundle]


def ends_with(key: str, ring: KeyRing, paths: Paths) -> Ends:
    """What a key alone stands for here.

    Raises:
        NotFoundError: there is no configuration, so nobody can tell. StoreError, CorruptError: likewise.
        FaultsError: of the configuration, whose faults are not those of the inventory.
    """
    store, trusted = Store(paths.store), ring.trusted()
    rest = [each for each in trusted if each.id != key]
    inventory, untold = _declared(paths)
    wanted: dict[str, list[str]] = {}
    moved = {state.name: state.image for state in store.channels().values()}
    points = moved | {channel.name: channel.image for channel in inventory.channels if channel.image is not None}
    for name, image in points.items():
        wanted.setdefault(image, []).append(f"channel {name} points to it")
    for owner, images in store.references().items():
        for image in sorted(images):
            wanted.setdefault(image, []).append(f"{owner} refer to it")
    found = tuple(
        Ended(image, store.manifest(image).name, tuple(why), tuple(_machines(inventory, points, image)))
        for image, why in wanted.items()
        if _signed(store, image, trusted) and not _signed(store, image, rest)
    )
    return Ends(found, _bundled(store, trusted) and not _bundled(store, rest), untold)


def _declared(paths: Paths) -> tuple[Inventory, str]:
    """The inventory, and why it cannot be told. Of one with faults it is not known what it pins, nor which machines
    there are: that is not the same as none."""
    _ = paths.configured  # its own faults are raised
    try:
        return paths.declared() or Inventory(), ""
    except FaultsError as error:
        more = len(error.faults) - 1
        others = f" (and {more} more)" if more else ""
        return Inventory(), f"the inventory has faults: {error.faults[0]}{others}"


def _machines(inventory: Inventory, points: dict[str, str], image: str) -> Iterator[str]:
    channel_of = {profile.name: profile.channel for profile in inventory.profiles}
    for machine in inventory.machines:
        if machine.enabled and points.get(channel_of[machine.profile]) == image:
            yield machine.name


def _signed(store: Store, image: str, keys: Sequence[PublicKey]) -> bool:
    """Whether one of these did. An image that is not here, or damaged, boots nobody already."""
    try:
        check.check_signature(store, image, keys)
    except ImageError:
        return False
    return True


def _bundled(store: Store, keys: Sequence[PublicKey]) -> bool:
    try:
        check.check_bundle(*store.bundle(), keys)
    except ImageError:  # there is none, or it is damaged: nobody uses it
        return False
    return True
