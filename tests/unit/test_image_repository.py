"""The store as the service sees it: what was not signed here in the one form is not served."""

import json
from pathlib import Path

import pytest

from images.artifact.bundle import SiteBundle
from images.artifact.keyring import KeyRing
from images.errors import CorruptError, UnknownSignerError
from images.store.store import Store
from netboot.stores.image_repository import StoreImageRepository

BUNDLE = SiteBundle(site="lab", issued=1, minimum_epoch=0, origins=("http://192.0.2.1",), report="http://192.0.2.1")


@pytest.fixture
def ring(tmp_path: Path) -> KeyRing:
    ring = KeyRing(tmp_path / "keys")
    ring.create()
    return ring


def put_bundle(store: Store, data: bytes, ring: KeyRing) -> None:
    """As somebody's rsync would."""
    (store.root / "site").mkdir(parents=True)
    (store.root / "site" / "bundle.json").write_bytes(data)
    (store.root / "site" / "bundle.sig").write_bytes(ring.signing_key().sign(data))


def test_a_bundle_signed_by_a_trusted_key(tmp_path: Path, ring: KeyRing) -> None:
    store = Store(tmp_path / "store")
    assert StoreImageRepository(store, ring).bundle() is None
    put_bundle(store, BUNDLE.to_bytes(), ring)
    assert StoreImageRepository(store, ring).bundle() == BUNDLE


def test_a_bundle_by_a_stranger(tmp_path: Path, ring: KeyRing) -> None:
    stranger = KeyRing(tmp_path / "stranger")
    stranger.create()
    store = Store(tmp_path / "store")
    put_bundle(store, BUNDLE.to_bytes(), stranger)
    with pytest.raises(UnknownSignerError):
        StoreImageRepository(store, ring).bundle()


def test_a_signed_bundle_that_no_initrd_could_read(tmp_path: Path, ring: KeyRing) -> None:
    store = Store(tmp_path / "store")
    put_bundle(store, json.dumps(json.loads(BUNDLE.to_bytes()), indent=1).encode(), ring)
    with pytest.raises(CorruptError) as caught:
        StoreImageRepository(store, ring).bundle()
    assert str(caught.value) == "not a site bundle: its bytes are not in canonical form"
