"""`netboot image build`: from a recipe to a signed image in the store; `netboot image lock`: its packages, pinned."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from images.artifact.keyring import KeyRing
from images.build import keyrings, resolve, surroundings
from images.build.cache import Cache
from images.build.compare import differences
from images.build.pipeline import Built, publish
from images.build.pipeline import build as build_image
from images.build.secureboot import SecureBootKey, read_key
from images.build.steps import gates
from images.errors import ImageError, RecipeError
from images.recipe import features, inherit
from images.recipe.recipe import Recipe
from images.store.store import Store
from images.values import files
from images.values.finding import GateError
from netboot.cli.building import Building
from netboot.cli.classes import chosen_classes, classes_option, require_memory, without_cards
from netboot.cli.given_files import NamedFile, NamedFolder
from netboot.cli.output import output_option, program
from netboot.cli.paths import Paths, paths_options
from netboot.cli.rebuild import Request, rebuilt
from netboot.cli.recipes import load_recipe


def default_cache() -> Path:
    """`$NETBOOT_CACHE`, else `netboot` in the user's cache folder (XDG)."""
    named = os.environ.get("NETBOOT_CACHE")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "netboot"


cache_option = click.option(
    "--cache", type=NamedFolder(made=True), help="Build cache.  [default: $NETBOOT_CACHE, then ~/.cache/netboot]"
)


@click.command("build", epilog=f"Features for recipes (docs/features.md): {', '.join(features.shipped())}")
@click.argument("recipe")
@paths_options(made=True)
@cache_option
@click.option(
    "--profile", type=click.Choice(["dev", "release"]), help="How hard to compress, in place of the recipe's."
)
@click.option("--uki-key", type=NamedFile(), help="Secure Boot key (PEM) for the image's UKI; needs --uki-cert.")
@click.option("--uki-cert", type=NamedFile(), help="Its certificate (PEM), which machines' firmware knows.")
@classes_option
@click.option("--yes", is_flag=True, help="Build a release image though the recipe says `debug`.")
@click.option("--check", is_flag=True, help="Build again in unlike surroundings, compare, and store nothing.")
@output_option
def build(
    recipe: str,
    paths: Paths,
    cache: Path | None,
    profile: str | None,
    uki_key: Path | None,
    uki_cert: Path | None,
    classes: tuple[str, ...],
    yes: bool,
    check: bool,
    output: str,
) -> None:
    """Build RECIPE, sign it and put it into the store.

    RECIPE is the name of a shipped recipe, or the path of a YAML file. Steps whose inputs did not change come from the
    cache; an interrupted build leaves the store as it was. Needs root; an image of another architecture than this
    machine's also needs qemu-user, which ./setup.sh installs and registers.

    Where the site's inventory declares classes of machines, an image that leaves too little of the memory of one of its
    architecture is refused (docs/gates.md#memory), and one without the driver of a network card of theirs is warned
    of; --class says which are to boot it.

    --check takes what the cache has for one build, and builds again from clean with another path, umask, locale, time
    zone, clock, host name, number of processors and order of files, as far as that can be had here (file order:
    disorderfs; clock: libfaketime).

    \b
      netboot image build debian-12-minimal
    """
    chosen = load_recipe(recipe, profile)
    _meant(chosen, yes)
    warnings = _warned(chosen)
    secure_boot = _secure_boot(chosen, uki_key, uki_cert)
    ring, store = KeyRing(paths.keys), paths.store
    machines = chosen_classes(paths, chosen.architecture, classes)
    baked = {path.name: files.small(path) for path in ring.public_files()}
    if not baked:
        raise ImageError(
            f"no public key in {paths.keys}: `netboot key create` makes one; machines boot only what it signed"
        )
    with _findings_as(output), Building() as progress, Cache(cache or default_cache()) as opened:
        if check:
            again = Request(recipe, profile, paths.keys.absolute(), uki_key, uki_cert)
            result = _check(chosen, baked, opened, progress, secure_boot, again)
        else:
            signing = ring.signing_key()  # before the work, not after it
            start = time.monotonic()
            built = build_image(chosen, baked, opened, progress, secure_boot)
            require_memory(built.manifest, chosen, machines)
            digest = publish(built, signing, baked, Store(store), progress)
            warnings += without_cards(built.manifest, Store(store), machines)
            result = _facts(built, digest) | {"steps": progress.steps, "seconds": round(time.monotonic() - start, 3)}
    _show(result | {"warnings": warnings}, output)
    if result.get("differences"):
        raise ImageError(f"the two builds differ: this recipe is not reproducible here{_of_cache(result)}")


@click.command("lock")
@click.argument("recipe")
@click.option("--output", "-o", "target", type=click.Path(path_type=Path), help="File.  [default: RECIPE.lock]")
@cache_option
def lock(recipe: str, target: Path | None, cache: Path | None) -> None:
    """Write a lock of RECIPE: every package that it comes to today, with version and digest.

    A recipe with `lock: FILE` installs exactly these, or fails and says what the mirrors do not have any more. The
    packages are installed once for it, in the build's own cache. Needs root.

    \b
    Example:  netboot image lock ./gpu.yaml --output gpu.lock
    """
    chosen = load_recipe(recipe, None)
    _warned(chosen)
    path = target or Path(f"{inherit.find(recipe).stem}.lock")
    with Building() as progress, Cache(cache or default_cache()) as opened:
        locked = resolve.resolve(chosen, opened, progress)
    files.write(path.absolute(), locked.to_bytes())
    click.echo(f"{path}: {len(locked.packages)} packages of {locked.recipe}, {locked.suite} {locked.architecture}")
    click.echo(f"next: `lock: {path.name}` in the recipe, with the file beside it")


def _warned(recipe: Recipe) -> tuple[str, ...]:
    """Archive keys that expire soon, told on stderr; with one that has expired nothing is begun (RecipeError)."""
    warnings = keyrings.check(recipe, time.time())
    for warning in warnings:
        click.secho(f"warning: {warning}", fg="yellow", err=True)
    return warnings


@contextmanager
def _findings_as(output: str) -> Iterator[None]:
    """Findings of gates are an answer too: for programs they go to stdout, as JSON; the message follows for people."""
    try:
        yield
    except GateError as error:
        if output == "json":
            findings = [asdict(finding) for finding in error.findings]
            program(output, {"findings": findings})
        raise


def _meant(recipe: Recipe, yes: bool) -> None:
    """That a release image lets in whoever has its console is said twice, or it is a mistake."""
    if recipe.debug and recipe.profile == "release" and not yes:
        raise RecipeError(
            f"{recipe.name} says `debug: [{', '.join(recipe.debug)}]`, and is to be a release image: whoever has the "
            "console of a machine would be root on it; take `debug` out, build with --profile dev, or say --yes"
        )


def _secure_boot(recipe: Recipe, key: Path | None, certificate: Path | None) -> SecureBootKey | None:
    if key is None and certificate is None:
        return None
    if key is None or certificate is None:
        raise ImageError("--uki-key and --uki-cert go together: a key and its certificate")
    if not recipe.uki:
        raise RecipeError(f"{recipe.name} has no UKI to sign; put `uki: true` into the recipe")
    return read_key(key, certificate)


def _check(
    recipe: Recipe,
    keys: dict[str, bytes],
    cache: Cache,
    progress: Building,
    secure_boot: SecureBootKey | None,
    again: Request,
) -> dict[str, Any]:
    """Build with what the cache has, and again in an empty one and in other surroundings."""
    with cache.scratch() as scratch:
        progress.heading("first build, with what the cache has")
        first = build_image(recipe, keys, cache, progress, secure_boot)
        kept = sum(bool(step["cached"]) for step in progress.steps)
        there = surroundings.other(scratch / "again")
        progress.heading(f"second build, from clean, with another {', '.join(there.varied)}")
        second, there = rebuilt(again, there, progress)
        unlike = differences(first, second)
        facts = _facts(first, first.manifest.digest)
    facts |= {"from_cache": kept, "varied": there.varied, "not_varied": there.same}
    return facts | {"steps": progress.steps, "reproducible": not unlike, "differences": unlike}


def _of_cache(result: dict[str, Any]) -> str:
    words = "; steps of the first that came from the cache: {}; with an empty --cache FOLDER both are from clean"
    return words.format(result["from_cache"]) if result["from_cache"] else ""


def _facts(built: Built, digest: str) -> dict[str, Any]:
    manifest = built.manifest
    return {
        "image": digest,
        "name": manifest.name,
        "kernel_version": manifest.kernel_version,
        "ram_mib": manifest.ram_mib,
        "gates": json.loads(files.bytes_of(built.products[gates.STEP.name] / "gates.json", files.LARGE)),
        "bytes": {name: artifact.size for name, artifact in manifest.artifacts},
    }


def _show(result: dict[str, Any], output: str) -> None:
    if output == "json":
        program(output, result)
        return
    fetched = {name: size for name, size in result["bytes"].items() if name in ("kernel", "initrd", "root", "uki")}
    sizes = ", ".join(f"{name} {size / 2**20:.1f}" for name, size in fetched.items())
    click.echo(f"{result['image']}  {result['name']}")
    click.echo(f"kernel {result['kernel_version']}; MiB: {sizes}; needs {result['ram_mib']} MiB of memory")
    click.echo(f"{len(result['gates'])} gates passed")
    for gate in result["gates"]:
        for what in gate.get("passed_over", ()):
            click.echo(f"gate {gate['gate']} passed over: {what}")
    if "reproducible" in result:
        click.echo("\n".join(result["differences"]) or "built twice: the same bytes")
        click.echo(f"varied: {', '.join(result['varied'])}")
        for what, why in result["not_varied"].items():
            click.echo(f"not varied: {what}: {why}")
    else:
        click.echo(f"built in {result['seconds']:.1f} s")
        click.echo(f"next: netboot channel set CHANNEL {result['image'][:12]}")
