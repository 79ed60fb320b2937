"""`netboot image lock`: pin every package version of a recipe."""

from pathlib import Path

import click

from images.build import resolve
from images.build.cache import Cache
from images.recipe.inherit import find
from images.values import files
from netboot.cli.build import default_cache, load_recipe
from netboot.cli.building import Building


@click.command("lock")
@click.argument("recipe")
@click.option("--output", "-o", "target", type=click.Path(path_type=Path), help="File.  [default: RECIPE.lock]")
@click.option(
    "--cache", type=click.Path(path_type=Path), help="Build cache.  [default: $NETBOOT_CACHE, then ~/.cache/netboot]"
)
def lock(recipe: str, target: Path | None, cache: Path | None) -> None:
    """Write a lock of RECIPE: every package that it comes to today, with version and digest.

    A recipe with `lock: FILE` installs exactly these, or fails and says what the mirrors do not have any more. The
    packages are installed once for it, in the build's own cache. Needs root.

    \b
    Example:  netboot image lock ./gpu.yaml --output gpu.lock
    """
    chosen = load_recipe(recipe, None)
    path = target or Path(f"{find(recipe).stem}.lock")
    with Building() as progress, Cache(cache or default_cache()) as opened:
        made = resolve.resolve(chosen, opened, progress)
    files.write(path.absolute(), made.to_bytes())
    click.echo(f"{path}: {len(made.packages)} packages of {made.recipe}, {made.suite} {made.architecture}")
    click.echo(f"next: `lock: {path.name}` in the recipe, with the file beside it")
