"""`netboot image sources`: package mirrors of a recipe, looked at before anything is built."""

import dataclasses
import tempfile
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from images.artifact.diff import Diff, Packages, package_changes, read_packages
from images.artifact.measure import blocks
from images.build import availability, keyrings
from images.build.apt import Apt
from images.build.availability import Availability, State
from images.errors import LockError, NotFoundError, RecipeError
from images.recipe import lockfile, pinning
from images.recipe.lockfile import Lock
from images.recipe.recipe import Recipe, Source
from images.store.lookup import resolve
from images.store.store import Store
from netboot.cli.building import Building
from netboot.cli.client import CANNOT_TELL, NOT_ALLOWED, UNKNOWN
from netboot.cli.output import output_option, show
from netboot.cli.paths import Paths, paths_options
from netboot.cli.recipes import load_recipe

_EXIT: dict[State, int] = {"there": 0, "missing": UNKNOWN, "refused": NOT_ALLOWED, "unknown": CANNOT_TELL}
_WORDS: dict[State, str] = {
    "there": "there",
    "missing": "NOT THERE",
    "refused": "REFUSED",
    "unknown": "cannot tell now",
}
_SUMMARIES: dict[State, str] = {
    "there": "everything is there: `netboot image build {recipe}` finds what it asks for",
    "missing": "a build would fail: something is not there",
    "refused": "a build would fail: a source is not believed",
    "unknown": "cannot be told right now: try again, or name another mirror",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Beside:
    """What the packages of today are compared with: a lock or an image, in words, and its packages."""

    name: str
    packages: Packages


@click.group()
def group() -> None:
    """Look at the package mirrors of a recipe.

    \b
    Example:  netboot image sources check debian-12-node
    """


@group.command("check")
@click.argument("recipe")
@paths_options(keys=False)
@output_option
def check(recipe: str, paths: Paths, output: str) -> None:
    """Ask whether RECIPE could be built today: does each mirror answer, is each package there, in which version.

    Nothing is built, installed or kept, and no root is needed. The signatures of the mirrors are verified, and the
    keys' days of expiry are told. If all is there, all packages that it comes to are compared with the recipe's lock,
    else with the newest image of its name in the store.

    \b
    Exit status: 0 everything is there, 1 failed, 2 wrong usage, 3 something is not there,
    4 refused (a signature, or a key that expired), 5 cannot tell right now (a mirror does not answer).

    \b
    Example:
      netboot image sources check debian-12-node
      netboot image sources check ./gpu.yaml --output json | jq .changes
    """
    chosen = load_recipe(recipe, None)
    with Building() as progress, tempfile.TemporaryDirectory(prefix="netboot-sources-") as scratch:
        found, apt = availability.look(chosen, Path(scratch), progress)
        lock_words = _lock_kept(chosen, apt, found)
    warnings, expired = _keys(chosen)
    state = _state(found, lock_words, expired)
    beside = _beside(chosen, paths)
    changes = package_changes(beside.packages, _named(found.installs)) if beside and found.installs else None
    value = _value(chosen, found, state) | {
        "warnings": list(warnings),
        "problems": [words for words in (*expired, lock_words, found.problem) if words],
        "against": beside.name if beside else None,
        "changes": _facts(changes) if changes else None,
    }
    if output == "json":
        show(output, value, (), ())
    else:
        _tell(value, found, changes)
    if _EXIT[state]:
        raise click.exceptions.Exit(_EXIT[state])


def _keys(recipe: Recipe) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Keys that expire soon, and those that have."""
    try:
        return keyrings.check(recipe, time.time()), ()
    except RecipeError as error:
        return (), tuple(str(error).splitlines())


def _state(found: Availability, lock_words: str, expired: tuple[str, ...]) -> State:
    states = {found.state, *(["missing"] if lock_words else []), *(["refused"] if expired else [])}
    return next(state for state in availability.WORST if state in states)


def _lock_kept(recipe: Recipe, apt: Apt, found: Availability) -> str:
    """Why the recipe's lock cannot be kept today; nothing where it can, where there is none, or nobody can tell.

    Raises:
        LockError: the lock is not one of this recipe.
    """
    lock = pinning.lock_of(recipe)
    if lock is None or any(source.state != "there" for source in found.sources):
        return ""
    try:
        pinning.check_origins(lock, apt.lists)
    except LockError as error:
        return str(error)
    return ""


def _beside(recipe: Recipe, paths: Paths) -> Beside | None:
    """The recipe's lock, else the newest image of its name; None where there is neither, or no site."""
    if recipe.lock is not None:
        return Beside(f"lock {recipe.lock.name}", _locked(lockfile.read(recipe.lock)))
    try:
        store = Store(paths.store)
        digest = resolve(store, recipe.name)
    except NotFoundError:
        return None
    packages = store.manifest(digest).artifacts.packages
    return Beside(f"image {digest[:12]}", read_packages(b"".join(blocks(store.blob_path(packages.sha256)))))


def _locked(lock: Lock) -> Packages:
    return _named(package.identity for package in lock.packages)


def _named(packages: Iterable[tuple[str, str, str]]) -> Packages:
    return {f"{name}:{architecture}": version for name, version, architecture in packages}


def _value(recipe: Recipe, found: Availability, state: State) -> dict[str, Any]:
    return {
        "recipe": recipe.name,
        "architecture": recipe.architecture,
        "outcome": state,
        "sources": [
            {
                "name": item.source.name,
                "url": item.source.url,
                "suites": list(item.source.suites),
                "state": item.state,
                "words": item.words,
                "published": item.published,
                "keys": [dataclasses.asdict(key) for key in _of(item.source)],
            }
            for item in found.sources
        ],
        "packages": [dataclasses.asdict(item) for item in found.packages],
        "installs": None if found.installs is None else len(found.installs),
    }


def _of(source: Source) -> tuple[keyrings.ArchiveKey, ...]:
    """Nothing where it has no key that can be read: that is among the problems."""
    try:
        return keyrings.read(source.signed_by)
    except RecipeError:
        return ()


def _facts(changes: Diff) -> dict[str, Any]:
    return {"added": changes.added, "removed": changes.removed, "changed": changes.changed}


def _tell(value: dict[str, Any], found: Availability, changes: Diff | None) -> None:
    rows = [
        (f"{item.source.url} {' '.join(item.source.suites)}", _WORDS[item.state], _published(item.published))
        for item in found.sources
    ]
    rows += [
        (item.name, _WORDS[item.state], ": ".join(filter(None, (item.version, item.words)))) for item in found.packages
    ]
    show("table", None, ("source or package", "", "published, version"), rows)
    for item in found.sources:
        if item.words:
            click.echo(f"\n{item.words}")
    for words in (*value["warnings"], *value["problems"]):
        click.echo(f"\n{words}")
    if changes is not None:
        _tell_changes(value["against"], changes)
    elif found.installs is not None:
        click.echo(f"\n{len(found.installs)} packages in all; no lock and no image of this name to compare them with")
    click.echo(f"\n{_SUMMARIES[value['outcome']].format(recipe=value['recipe'])}")


def _tell_changes(against: str, changes: Diff) -> None:
    rows = [(name, "", version) for name, version in changes.added.items()]
    rows += [(name, version, "") for name, version in changes.removed.items()]
    rows += [(name, old, new) for name, (old, new) in changes.changed.items()]
    click.echo("")
    show("table", None, ("package", against, "today"), rows, f"no package is newer or other than in {against}")


def _published(at: int | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
