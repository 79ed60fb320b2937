"""A lock: every package that a recipe's image has, with its version and its .deb's digest. Pure; form: docs/recipes.md.

With a lock the mirrors only say where packages are: which ones, the lock says, and each is compared with its digest.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from images.errors import LockError
from images.formats.debian import Identity, Origin
from images.values.faults import first_fault, first_few
from images.values.strict import Strict
from images.values.types import Architecture, Name, Sha256

_MOST = 10
"""Packages that a message names; more are counted."""
_SNAPSHOT = (
    "take them from a mirror of that day (a snapshot service's address as the source's url), "
    "or lock anew: `netboot image lock`"
)


class Locked(Strict):
    """One package. `sha256` of its .deb is None where no list told it."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$")]
    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9.+~:-]+$")]
    architecture: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    sha256: Sha256 | None = None

    @property
    def identity(self) -> Identity:
        """Name, version and architecture: what dpkg's status and apt's lists call it by."""
        return self.name, self.version, self.architecture

    def __str__(self) -> str:
        return f"{self.name}={self.version}:{self.architecture}"


class LockedSource(Strict):
    """What a source had when the lock was made: for people, and for finding that day's mirror."""

    url: str
    suite: str
    inrelease: Sha256


class Lock(Strict):
    """The packages that a recipe came to when it was locked, each with its digest: builds install exactly these."""

    schema_: Annotated[Literal["netboot.dev/lock/v1"], Field(alias="schema")] = "netboot.dev/lock/v1"
    recipe: Name
    suite: Name
    architecture: Architecture
    created: Annotated[int, Field(ge=0)]
    """Seconds since 1970 of the newest source then: the time of every image that is built with this lock."""
    wanted: tuple[str, ...]
    """What the recipe asked for."""
    packages: Annotated[tuple[Locked, ...], Field(min_length=1)]
    """All that was installed for that, sorted."""
    build_wanted: tuple[str, ...] = ()
    """What modules are compiled from, and for which kernel's package; empty where none are."""
    build_packages: tuple[Locked, ...] = ()
    """All that was installed to compile them: compiler, headers, sources."""
    sources: tuple[LockedSource, ...] = ()

    def of_build(self) -> "Lock":
        """The lock of the root in which modules are compiled."""
        update = {"wanted": self.build_wanted, "packages": self.build_packages}
        return self.model_copy(update=update | {"build_wanted": (), "build_packages": ()})

    def to_bytes(self) -> bytes:
        """As a file: a line for each package, so that a change of one is one line of a commit."""
        value = self.model_dump(mode="json", by_alias=True)
        lines = []
        for key in sorted(key for key in value if value[key] or not key.startswith("build_")):
            if isinstance(value[key], list):
                items = ",\n  ".join(json.dumps(item, sort_keys=True) for item in value[key])
                lines.append(f' "{key}": [\n  {items}\n ]' if items else f' "{key}": []')
            else:
                lines.append(f' "{key}": {json.dumps(value[key])}')
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def read(path: Path) -> Lock:
    """The lock in a file.

    Raises:
        LockError: it cannot be read, or is none.
    """
    try:
        return Lock.model_validate_json(path.read_bytes())
    except OSError as error:
        raise LockError(f"lock {path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise LockError(f"{path} is not a lock as `netboot image lock` writes it: {first_fault(error)}") from None


def check_recipe(
    lock: Lock, suite: str, architecture: str, wanted: Iterable[str], build_wanted: Iterable[str] = ()
) -> None:
    """Whether a lock is one of this recipe.

    Raises:
        LockError: it was made for another suite or architecture, or for other packages.
    """
    if (lock.suite, lock.architecture) != (suite, architecture):
        raise LockError(
            f"the lock is for {lock.suite} {lock.architecture}, the recipe says {suite} {architecture}; "
            "lock anew: `netboot image lock`"
        )
    faults = _differences("", set(wanted), set(lock.wanted))
    faults += _differences("to compile ", set(build_wanted), set(lock.build_wanted))
    if faults:
        raise LockError(f"the lock does not fit the recipe: {'; '.join(faults)}. Lock anew: `netboot image lock`")


def _differences(what: str, now: set[str], then: set[str]) -> list[str]:
    faults = [f"the recipe has {what}{', '.join(sorted(now - then))}, which the lock does not know"]
    others = [f"the lock has {what}{', '.join(sorted(then - now))}, which the recipe has not"]
    return (faults if now - then else []) + (others if then - now else [])


def include(lock: Lock) -> tuple[str, ...]:
    """What apt is asked to install: each package in its version."""
    return tuple(f"{_apt_name(lock, package)}={package.version}" for package in lock.packages)


def preferences(lock: Lock) -> str:
    """apt_preferences(5) that let apt choose no other version of a locked package, where that one is to be had."""
    return "\n".join(
        f"Package: {_apt_name(lock, package)}\nPin: version {package.version}\nPin-Priority: 1001\n"
        for package in lock.packages
    )


def _apt_name(lock: Lock, package: Locked) -> str:
    """Another architecture than the image's is named; what is for all is the image's own to apt."""
    native = package.architecture in {"all", lock.architecture}
    return package.name if native else f"{package.name}:{package.architecture}"


def check_lists(lock: Lock, there: Mapping[Identity, tuple[Origin, ...]]) -> None:
    """Whether the mirrors have every locked package still, with the same content.

    Raises:
        LockError: they have not, with the packages' names and the remedy.
    """
    gone = [str(package) for package in lock.packages if package.identity not in there]
    if gone:
        raise LockError(
            f"the mirrors do not have any more what the lock asks for: {first_few(gone, _MOST)}; {_SNAPSHOT}"
        )
    other = [
        str(package)
        for package in lock.packages
        if package.sha256 is not None and {origin.sha256 for origin in there[package.identity]} != {package.sha256}
    ]
    if other:
        raise LockError(
            f"the mirrors have other files of the same versions than were locked: {first_few(other, _MOST)}; "
            "whoever publishes them has replaced them: find out why before you lock anew (`netboot image lock`)"
        )


def check_installed(lock: Lock, installed: Iterable[Identity]) -> None:
    """Whether exactly what is locked was installed.

    Raises:
        LockError: with what is too much and what is not there.
    """
    want, have = {package.identity for package in lock.packages}, set(installed)
    if want == have:
        return
    missing = first_few([_text(identity) for identity in sorted(want - have)], _MOST) or "nothing"
    more = first_few([_text(identity) for identity in sorted(have - want)], _MOST) or "nothing"
    raise LockError(
        f"what was installed is not what the lock says: missing {missing}, and beyond it {more}; {_SNAPSHOT}"
    )


def locked(installed: Iterable[Identity], there: Mapping[Identity, tuple[Origin, ...]]) -> tuple[Locked, ...]:
    """Installed packages as a lock has them, with the digests that apt's lists tell."""
    return tuple(
        Locked(name=identity[0], version=identity[1], architecture=identity[2], sha256=_sha256(there.get(identity, ())))
        for identity in sorted(installed)
    )


def _sha256(origins: tuple[Origin, ...]) -> str | None:
    digests = {origin.sha256 for origin in origins}
    return digests.pop() if len(digests) == 1 else None


def _text(identity: Identity) -> str:
    name, version, architecture = identity
    return f"{name}={version}:{architecture}"
