"""`netboot image build`: from a recipe to a signed image in the store."""

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
from images.values.finding import GateError
from netboot.cli.building import Building
from netboot.cli.output import output_option
from netboot.cli.paths import config_option, find_paths, keys_option, store_option


def default_cache() -> Path:
    """`$NETBOOT_CACHE`, else `netboot` in the user's cache folder (XDG)."""
    named = os.environ.get("NETBOOT_CACHE")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "netboot"


@click.command("build", epilog=f"Features for recipes (docs/features.md): {', '.join(features.shipped())}")
@click.argument("recipe")
@config_option
@store_option
@keys_option
@click.option(
    "--cache", type=click.Path(path_type=Path), help="Build cache.  [default: $NETBOOT_CACHE, then ~/.cache/netboot]"
)
@click.option(
    "--profile", type=click.Choice(["dev", "release"]), help="How hard to compress, in place of the recipe's."
)
@click.option(
    "--uki-key", type=click.Path(path_type=Path), help="Secure Boot key (PEM) for the image's UKI; needs --uki-cert."
)
@click.option(
    "--uki-cert", type=click.Path(path_type=Path), help="Its certificate (PEM), which machines' firmware knows."
)
@click.option("--check", is_flag=True, help="Build twice from clean, compare, and store nothing.")
@output_option
def build(
    recipe: str,
    config: Path | None,
    store: Path | None,
    keys: Path | None,
    cache: Path | None,
    profile: str | None,
    uki_key: Path | None,
    uki_cert: Path | None,
    check: bool,
    output: str,
) -> None:
    """Build RECIPE, sign it and put it into the store.

    RECIPE is the name of a shipped recipe, or the path of a YAML file. Steps whose inputs did not change come from the
    cache; an interrupted build leaves the store as it was. Needs root; an image of another architecture than this
    machine's also needs qemu-user, which ./setup.sh installs and registers.

    \b
      netboot image build debian-12-minimal
    """
    chosen = load_recipe(recipe, profile)
    secure_boot = _secure_boot(chosen, uki_key, uki_cert)
    paths = find_paths(config, store, keys)
    ring = KeyRing(paths.keys)
    baked = {path.name: path.read_bytes() for path in ring.public_files()}
    if not baked:
        raise ImageError(
            f"no public key in {paths.keys}: `netboot key create` makes one; machines boot only what it signed"
        )
    with _findings_as(output), Building() as progress, Cache(cache or default_cache()) as opened:
        if check:
            result = _check(chosen, baked, opened, progress, secure_boot)
        else:
            signing = ring.signing_key()  # before the work, not after it
            start = time.monotonic()
            made = build_image(chosen, baked, opened, progress, secure_boot)
            digest = publish(made, signing, baked, Store(paths.store), progress)
            result = _facts(made, digest) | {"steps": progress.steps, "seconds": round(time.monotonic() - start, 3)}
    _show(result, output)
    if result.get("differences"):
        raise ImageError("the two builds differ: this recipe is not reproducible here")


@contextmanager
def _findings_as(output: str) -> Iterator[None]:
    """Findings of gates are an answer too: for programs they go to stdout, as JSON; the message follows for people."""
    try:
        yield
    except GateError as error:
        if output == "json":
            findings = [asdict(finding) for finding in error.findings]
            click.echo(json.dumps({"findings": findings}, indent=2, sort_keys=True))
        raise


def load_recipe(name: str, profile: str | None) -> Recipe:
    """The recipe of that name or path, with another profile if one is given.

    Raises:
        RecipeError: no such recipe. images.values.strict.FaultsError: with all its faults.
    """
    path = inherit.find(name)
    if not path.is_file():
        raise RecipeError(
            f"there is no recipe {name}: shipped are {', '.join(inherit.shipped())}; "
            "a recipe of your own is the path of its file, like ./mine.yaml"
        )
    found = inherit.load(path)
    return found.model_copy(update={"profile": profile}) if profile else found


def _secure_boot(recipe: Recipe, key: Path | None, certificate: Path | None) -> SecureBootKey | None:
    if key is None and certificate is None:
        return None
    if key is None or certificate is None:
        raise ImageError("--uki-key and --uki-cert go together: a key and its certificate")
    if not recipe.uki:
        raise RecipeError(f"{recipe.name} has no UKI to sign; put `uki: true` into the recipe")
    return read_key(key, certificate)


def _check(
    recipe: Recipe, keys: dict[str, bytes], cache: Cache, progress: Building, secure_boot: SecureBootKey | None
) -> dict[str, Any]:
    """Build twice, each time in an empty cache beside the real one."""
    with cache.scratch() as scratch, Cache(scratch / "1") as one, Cache(scratch / "2") as two:
        progress.heading("first build, from clean")
        first = build_image(recipe, keys, one, progress, secure_boot)
        progress.heading("second build, from clean")
        second = build_image(recipe, keys, two, progress, secure_boot)
        found = differences(first, second)
        facts = _facts(first, first.manifest.digest)
    return facts | {"steps": progress.steps, "reproducible": not found, "differences": found}


def _facts(built: Built, digest: str) -> dict[str, Any]:
    manifest = built.manifest
    return {
        "image": digest,
        "name": manifest.name,
        "kernel_version": manifest.kernel_version,
        "ram_mib": manifest.ram_mib,
        "gates": json.loads((built.products[gates.STEP.name] / "gates.json").read_bytes()),
        "bytes": {name: artifact.size for name, artifact in manifest.artifacts},
    }


def _show(result: dict[str, Any], output: str) -> None:
    if output == "json":
        click.echo(json.dumps(result, indent=2, sort_keys=True))
        return
    fetched = {name: size for name, size in result["bytes"].items() if name in ("kernel", "initrd", "root", "uki")}
    sizes = ", ".join(f"{name} {size / 2**20:.1f}" for name, size in fetched.items())
    click.echo(f"{result['image']}  {result['name']}")
    click.echo(f"kernel {result['kernel_version']}; MiB: {sizes}; needs {result['ram_mib']} MiB of memory")
    click.echo(f"{len(result['gates'])} gates passed")
    if "reproducible" in result:
        click.echo("\n".join(result["differences"]) or "built twice from clean: the same bytes")
    else:
        click.echo(f"built in {result['seconds']:.1f} s")
        click.echo(f"next: netboot channel set CHANNEL {result['image'][:12]}")
