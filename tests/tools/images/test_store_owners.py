"""One store, two accounts: root builds, the service's serves and collects; under the umask of the unit."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from images.errors import StoreError
from images.store.gc import collect
from images.store.store import Store
from tests.unit.images.samples import add

pytestmark = pytest.mark.tools
SERVICE = 4242


def as_service(act: Callable[[], None]) -> int:
    """Do it as another account, in a process of its own; 0: it went well."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(SERVICE)
            os.setuid(SERVICE)
            os.umask(0o027)
            act()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def folder(open_path: Path) -> Path:
    open_path.chmod(0o777)
    return open_path


def test_what_root_builds_into_the_services_store_is_the_services(folder: Path) -> None:
    root = folder / "store"
    root.mkdir()
    os.chown(root, SERVICE, SERVICE)
    digest = add(Store(root), folder, "one")

    def serve() -> None:
        store = Store(root)
        store.set_channel("stable", digest)
        store.set_references("boots", frozenset({digest}))
        own = folder / "own"
        own.mkdir()
        assert add(store, own, "one") == digest, "blobs of root's are replaced"
        add(store, own, "two")
        collect(store, now=int(time.time()))

    assert as_service(serve) == 0
    add(Store(root), folder, "three")
    assert as_service(lambda: Store(root).set_references("boots", frozenset())) == 0


def test_a_store_that_is_roots_is_read_and_refused_with_the_remedy(folder: Path) -> None:
    root = folder / "store"
    digest = add(Store(root), folder, "one")

    def refused() -> None:
        assert Store(root).digests() == (digest,)
        with pytest.raises(StoreError) as caught:
            Store(root).set_channel("stable", digest)
        assert str(caught.value) == (
            f"cannot write to the store {root}: Permission denied; it is of the account root: use that one "
            "(docs/store.md, Whose it is)"
        )

    assert as_service(refused) == 0


@pytest.mark.parametrize("name", ["lock", "refs", "tmp"])
def test_root_follows_no_link_that_the_stores_owner_put_there(folder: Path, name: str) -> None:
    root, secret = folder / "store", folder / "roots"
    root.mkdir()
    os.chown(root, SERVICE, SERVICE)
    add(Store(root), folder, "one")
    if name == "lock":
        secret.write_text("root's own\n")
        (root / name).unlink()
    else:
        secret.mkdir()
        (secret / "shadow").write_text("root's own\n")
        (root / name).rmdir()
    secret.chmod(0o700)
    (root / name).symlink_to(secret)
    with pytest.raises(StoreError) as caught:
        Store(root).set_channel("stable", Store(root).digests()[0])
    assert str(caught.value).startswith(f"cannot write to the store {root}: ")
    status = secret.stat()
    assert (status.st_uid, status.st_mode & 0o777) == (0, 0o700)
    assert (secret if name == "lock" else secret / "shadow").read_text() == "root's own\n"


def test_what_another_account_owns_in_a_store_of_roots_stays_its_own(folder: Path) -> None:
    root = folder / "store"
    add(Store(root), folder, "one")
    os.chown(root / "refs", SERVICE, SERVICE)
    add(Store(root), folder, "two")
    assert (root / "refs").stat().st_uid == SERVICE
