"""The artifact store as the service uses it."""

from images.artifact.keyring import KeyRing
from images.store.store import Store
from netboot.config import Config
from netboot.stores.image_repository import StoreImageRepository


def open_image_repository(config: Config) -> StoreImageRepository:
    """The store of a site, with the keys that are trusted there."""
    return StoreImageRepository(Store(config.store), KeyRing(config.keys))
