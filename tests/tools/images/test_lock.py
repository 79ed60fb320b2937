"""A locked recipe gives the same tree when the mirror has moved on, and says so when the mirror forgot."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from images.build import resolve
from images.build.cache import Cache
from images.build.compare import tree_differences
from images.build.context import Context
from images.build.sources import probe
from images.build.steps import bootstrap, configure
from images.errors import LockError
from images.recipe.inherit import load
from images.recipe.lockfile import Lock, read
from images.recipe.pinning import lock_of
from tests.tools.images.apt_repository import AptRepository, repository

pytestmark = pytest.mark.tools

KEYS = Path(__file__).parents[3] / "images/recipes/keys"
DAY = 1_700_000_000
"""Seconds since 1970: in the past, for apt believes no release of tomorrow."""
RECIPE = """\
distribution: debian
suite: bookworm
architecture: amd64
sources:
  - url: http://deb.debian.org/debian
    suites: [bookworm]
    components: [main]
    signed_by: debian-12-archive.asc
  - url: file://{flat}
    suites: [/]
    signed_by: flat.asc
kernel: {{package: sample-kernel}}
packages: [usr-is-merged, passwd, sample, hostname]
budget_mib: 100
"""
ONE = ("sample", "1.0", "one"), ("sample-kernel", "1.0", "kernel")
NEWER = ("sample", "2.0", "two"), ("sample-kernel", "2.0", "kernel two"), ("hostname", "9.0", "essential, and newer")


class Quiet:
    """Nobody wants to know how a build goes."""

    def begin(self, step: str) -> None: ...
    def line(self, step: str, text: str) -> None: ...
    def end(self, step: str, seconds: float, *, cached: bool) -> None: ...


@dataclass(frozen=True)
class World:
    folder: Path
    flat: AptRepository
    cache: Cache
    lock: Lock

    def tree(self, name: str) -> Path:
        """What a recipe comes to now, configured: as it goes into an image."""
        recipe = load(self.folder / name)
        inputs = bootstrap.STEP.inputs(Context(recipe, {}, probe(recipe.sources), lock=lock_of(recipe)), {})
        base, _ = self.cache.obtain(bootstrap.STEP, inputs, lambda line: None)
        done = configure.Inputs(base, (), (), (), {}, (), self.lock.created)
        return self.cache.obtain(configure.STEP, done, lambda line: None)[0] / "root"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("lock")
    with repository(folder / "flat") as flat, Cache(folder / "cache") as cache:
        for key in (KEYS / "debian-12-archive.asc", flat.key):
            shutil.copy(key, folder)
        (folder / "sample.yaml").write_text(RECIPE.format(flat=flat.folder))
        (folder / "locked.yaml").write_text(RECIPE.format(flat=flat.folder) + "lock: sample.lock\n")
        flat.publish(DAY, *ONE)
        lock = resolve.resolve(load(folder / "sample.yaml"), cache, Quiet())
        (folder / "sample.lock").write_bytes(lock.to_bytes())
        yield World(folder, flat, cache, lock)


def test_a_lock_has_every_package_with_its_digest(world: World) -> None:
    assert read(world.folder / "sample.lock") == world.lock
    assert world.lock.created > DAY, "Debian's own release is newer"
    assert world.lock.wanted == ("hostname", "passwd", "sample", "sample-kernel", "usr-is-merged")
    names = {package.name: package for package in world.lock.packages}
    assert {"sample", "sample-kernel", "libc6", "dpkg", "hostname"} <= names.keys()
    assert [str(package) for package in world.lock.packages if package.sha256 is None] == []
    assert str(names["sample"]) == "sample=1.0:amd64"
    assert [(source.url, source.suite) for source in world.lock.sources] == [
        ("http://deb.debian.org/debian", "bookworm"),
        ("file:", "/"),
    ]
    value = json.loads((world.folder / "sample.lock").read_text())
    assert value["schema"] == "netboot.dev/lock/v1"


def test_the_mirror_moves_on_and_forgets(world: World) -> None:
    """One test, because each state of the mirror follows from the one before."""
    unlocked = world.tree("sample.yaml")  # which was made for the lock

    world.flat.publish(DAY + 86_400, *NEWER, *ONE)
    locked = world.tree("locked.yaml")
    assert (locked / "usr/share/netboot/sample").read_text() == "one"
    assert not (locked / "usr/share/netboot/hostname").exists(), "of an essential package, too, the locked version"
    assert list(tree_differences(unlocked, locked)) == [], "next month's build is the same"

    world.flat.publish(DAY + 2 * 86_400, *NEWER)
    with pytest.raises(LockError) as caught:
        world.tree("locked.yaml")
    assert str(caught.value) == (
        "the mirrors do not have any more what the lock asks for: sample=1.0:amd64, sample-kernel=1.0:amd64; "
        "take them from a mirror of that day (a snapshot service's address as the source's url), "
        "or lock anew: `netboot image lock`"
    )
