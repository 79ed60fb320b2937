"""A lock in force: what mmdebstrap is told of it, and whether it was kept."""

import shlex
from pathlib import Path

from images.errors import LockError
from images.formats import debian
from images.recipe import lockfile
from images.recipe.lockfile import Lock
from images.recipe.recipe import Recipe

PREFERENCES = "etc/apt/preferences.d/netboot-lock"
"""Where apt_preferences(5) lie in the tree while it is made."""


def lock_of(recipe: Recipe) -> Lock | None:
    """The lock that a recipe names, if it fits; None: it names none.

    Raises:
        LockError: it cannot be read, or was made for another recipe.
    """
    if recipe.lock is None:
        return None
    if recipe.dracut is not None:
        raise LockError("a lock does not have the packages that dracut's initrd is made of: no lock, or no dracut")
    lock = lockfile.read(recipe.lock)
    lockfile.check_recipe(lock, recipe.suite, recipe.architecture, recipe.installs(), recipe.compiles())
    return lock


def arguments(preferences: Path) -> list[str]:
    """For mmdebstrap: apt sees the locked versions before it chooses any, those of essential packages too."""
    return [f'--setup-hook=install -D -m 0644 {shlex.quote(str(preferences))} "$1/{PREFERENCES}"']


def check_lists(lock: Lock, tree: Path) -> None:
    """Whether the mirrors, by the lists that apt read, have all that is locked. Without lists nothing can be told.

    Raises:
        LockError: they have not.
    """
    check_origins(lock, tree / "var/lib/apt/lists")


def check_origins(lock: Lock, lists: Path) -> None:
    """The same, by apt's folder of lists."""
    if any(lists.glob("*_Packages")):
        identities = frozenset(package.identity for package in lock.packages)
        lockfile.check_lists(lock, debian.origins(lists, identities))


def settle(lock: Lock, tree: Path) -> None:
    """Take the preferences out of a made tree, and look whether exactly what is locked is in it.

    Raises:
        LockError: it is not.
    """
    (tree / PREFERENCES).unlink()
    check_lists(lock, tree)
    status = (tree / "var/lib/dpkg/status").read_text(encoding="utf-8")
    lockfile.check_installed(lock, (package.identity for package in debian.installed(status)))
