"""Whether a recipe's packages are to be had, before anything is built: each source, each package, and all they come to.

Three outcomes are kept apart: `there`, `missing` (who should have it answers, and has it not) and `unknown` (somebody
who may have it does not answer). `refused` is what is there and not signed by whom the recipe believes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from images.build.apt import Apt, Versions
from images.build.context import Context
from images.build.graph import Progress
from images.build.pipeline import timed
from images.build.plan import plan
from images.build.sources import Mirror, Silence, ask, have
from images.build.steps import bootstrap
from images.errors import CommandError
from images.recipe.recipe import Recipe, Source

State = Literal["there", "missing", "refused", "unknown"]
WORST: tuple[State, ...] = ("refused", "missing", "unknown", "there")
"""Of several outcomes the first of these is the whole's: what is certain is said before what may be."""

_UNSIGNED = re.compile(r"NO_PUBKEY|EXPKEYSIG|REVKEYSIG|BADSIG|signatures? (?:were|was) invalid|is not signed")
_KERNEL = re.compile(r"linux-image-(?:unsigned-)?(\d\S*)")
THE_KERNELS = ", which is the kernel's: `kernel: {package: linux-image-VERSION}` of one for which it is there"
"""Added to what a package of the kernel's version lacks: the recipe cannot name a version of it by itself."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """One of the recipe's sources. `words`: what is wrong, with the remedy. `published`: seconds since 1970."""

    source: Source
    state: State
    words: str = ""
    published: int | None = None


@dataclass(frozen=True, slots=True)
class PackageState:
    """One package that the recipe asks for: the version that would be installed, or what is wrong."""

    name: str
    """As the recipe has it."""
    state: State
    version: str = ""
    words: str = ""
    real: str = ""
    """The package's own name: without a version, and with the kernel's in the place of `{kernel}`."""

    @property
    def wanted(self) -> str:
        """As apt is asked for it."""
        return f"{self.real}={self.version}" if "=" in self.name else self.real


@dataclass(frozen=True, slots=True)
class Availability:
    """What was found. `packages`: those that are asked for; `installs`: all that they come to, if that can be told."""

    sources: tuple[SourceState, ...]
    packages: tuple[PackageState, ...]
    installs: tuple[tuple[str, str, str], ...] | None
    problem: str = ""
    """Why a build would fail though each package by itself is there."""

    @property
    def state(self) -> State:
        """The whole's: there only if everything is."""
        states = {source.state for source in self.sources} | {package.state for package in self.packages}
        return next(state for state in WORST if state in states | ({"missing"} if self.problem else set()))


def look(recipe: Recipe, folder: Path, progress: Progress) -> tuple[Availability, Apt]:
    """Ask every mirror, fetch the lists of those that answer into `folder`, and look for every package in them.

    Raises:
        CommandError: apt is not installed.
    """
    answers = timed(progress, "mirrors", lambda: (ask(recipe.sources), False))
    apt = Apt(folder / "apt", recipe.architecture)
    fetched: tuple[tuple[SourceState, ...], tuple[Mirror, ...]]
    fetched = timed(progress, "lists", lambda: (_fetch(recipe, answers, apt, folder), False))
    sources, mirrors = fetched
    available: Availability = timed(progress, "packages", lambda: (_available(recipe, sources, mirrors, apt), False))
    return available, apt


def _available(recipe: Recipe, sources: tuple[SourceState, ...], mirrors: tuple[Mirror, ...], apt: Apt) -> Availability:
    """Each package, then its file, then all that they come to together."""
    silent = [state.source for state in sources if state.state in ("unknown", "refused")]
    listed = _packages(recipe, mirrors, apt, silent)
    places = apt.places(f"{package.real}={package.version}" for package in listed if package.version)
    answers = dict(zip(places, have(tuple(places.values())), strict=True))
    packages = tuple(_with_file(package, answers.get(package.real)) for package in listed)
    if any(package.state != "there" for package in packages):
        return Availability(sources, packages, None)
    try:
        wanted = (package.wanted for package in packages if package.name not in recipe.drivers)
        return Availability(sources, packages, apt.installs(wanted))
    except CommandError as error:
        return Availability(sources, packages, None, f"apt cannot install them together: {error.output}")


def _fetch(
    recipe: Recipe, answers: Sequence[Mirror | tuple[Silence, ...]], apt: Apt, folder: Path
) -> tuple[tuple[SourceState, ...], tuple[Mirror, ...]]:
    """Fetch all lists at once; where that fails, those of each source alone, to tell which of them it was."""
    mirrors = [answer for answer in answers if isinstance(answer, Mirror)]
    faults: dict[Mirror, str] = {}
    if _update(apt, mirrors, folder, locked=recipe.lock is not None):
        for mirror in mirrors:
            if words := _update(apt, [mirror], folder, locked=recipe.lock is not None):
                faults[mirror] = words
        _update(apt, [mirror for mirror in mirrors if mirror not in faults], folder, locked=recipe.lock is not None)
    states = (_state(source, answer, faults) for source, answer in zip(recipe.sources, answers, strict=True))
    return tuple(states), tuple(mirror for mirror in mirrors if mirror not in faults)


def _with_file(package: PackageState, silence: Silence | None) -> PackageState:
    if silence is None:
        return package
    state: State = "missing" if silence.definite else "unknown"
    remedy = THE_KERNELS if silence.definite and bootstrap.OF_KERNEL in package.name else ""
    return replace(package, state=state, words=f"{silence.message}{remedy}")


def _update(apt: Apt, mirrors: Sequence[Mirror], folder: Path, *, locked: bool) -> str:
    """What apt says where it fails; nothing where it does not."""
    for mirror in mirrors:
        bootstrap.write_keyring(mirror, folder)
    try:
        apt.update(bootstrap.sources_file(tuple(mirrors), folder, locked=locked))
    except CommandError as error:
        if error.status == 127:
            raise
        return error.output
    return ""


def _state(source: Source, answer: Mirror | tuple[Silence, ...], faults: Mapping[Mirror, str]) -> SourceState:
    if not isinstance(answer, Mirror):
        state: State = "missing" if all(silence.definite for silence in answer) else "unknown"
        return SourceState(source, state, "\n".join(silence.message for silence in answer))
    if answer not in faults:
        return SourceState(source, "there", "", answer.newest)
    words = faults[answer]
    if not _UNSIGNED.search(words):
        return SourceState(source, "unknown", f"its lists cannot be fetched now: {words}", answer.newest)
    return SourceState(
        source,
        "refused",
        f"{source.url} is not signed as {source.signed_by.name} wants it; compare the key's fingerprint with the "
        f'archive\'s own word (docs/recipes.md, "Keys of archives"). apt says: {words}',
        answer.newest,
    )


def _packages(
    recipe: Recipe, mirrors: tuple[Mirror, ...], apt: Apt, silent: Sequence[Source]
) -> tuple[PackageState, ...]:
    """What the lists have of each package; those of the kernel's version once that is known."""
    _, context = plan(Context(recipe, {}, mirrors))
    asked = sorted({*recipe.installs(), *recipe.drivers, *context.installs})
    names = [name for name in asked if bootstrap.OF_KERNEL not in name]
    known = apt.versions(name.partition("=")[0] for name in names)
    found = {name: _package(name, known, apt, silent) for name in names}
    of_kernel = sorted(set(asked) - set(names))
    if of_kernel:
        wanted = [name for name in names if found[name].state == "there" and name not in recipe.drivers]
        kernels = sorted({match[1] for match in map(_KERNEL.fullmatch, _together(apt, wanted) or ()) if match})
        found |= {name: _of_kernel(name, kernels, apt, silent) for name in of_kernel}
    return tuple(found[name] for name in asked)


def _package(name: str, known: Mapping[str, Versions], apt: Apt, silent: Sequence[Source]) -> PackageState:
    real, _, version = name.partition("=")
    state = PackageState(name, "there", version, real=real)
    versions = known.get(real, Versions("", ()))
    if versions.every and (version or versions.candidate) in versions.every:
        return replace(state, version=version or versions.candidate)
    if not version and not versions.every and real in known and _together(apt, [real]):
        return replace(state, words="another package provides it")
    state = replace(state, state="missing", version="")
    if silent:
        return replace(state, state="unknown", words=f"{_listed(silent)} may have it, and cannot be asked")
    if not versions.every:
        return replace(state, words="none of the recipe's sources has it")
    return replace(state, words=f"the recipe's sources have it in other versions: {', '.join(versions.every)}")


def _of_kernel(name: str, kernels: Sequence[str], apt: Apt, silent: Sequence[Source]) -> PackageState:
    if len(kernels) != 1:
        words = "which kernel it would be for cannot be told, while other packages are not there"
        return PackageState(name, "unknown", words=words)
    real = name.replace(bootstrap.OF_KERNEL, kernels[0])
    return replace(_package(real, apt.versions([real]), apt, silent), name=name, real=real)


def _together(apt: Apt, wanted: Iterable[str]) -> list[str] | None:
    """Names of all that would be installed; None: apt cannot install these packages together."""
    try:
        return [name for name, _, _ in apt.installs(wanted)]
    except CommandError:
        return None


def _listed(sources: Sequence[Source]) -> str:
    return ", ".join(dict.fromkeys(source.url for source in sources))
