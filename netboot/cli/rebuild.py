"""The second build of `netboot image build --check`: a process of its own, in surroundings of its own."""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from images.artifact.keyring import KeyRing
from images.artifact.manifest import read_manifest
from images.build.cache import Cache
from images.build.pipeline import Built
from images.build.pipeline import build as build_image
from images.build.secureboot import read_key
from images.build.step import Product
from images.build.surroundings import Surroundings, seen
from images.errors import CommandError, ImageError
from images.recipe import inherit
from images.values import files
from netboot.cli.building import Building
from netboot.cli.recipes import load_recipe

_REQUEST, _RESULT = "request.json", "result.json"


@dataclass(frozen=True, slots=True)
class Request:
    """What to build, as the command line said it."""

    recipe: str
    profile: str | None
    keys: Path
    uki_key: Path | None
    uki_cert: Path | None

    def to_json(self) -> str:
        """With absolute paths: the other process begins in another folder."""
        facts = asdict(self) | {"recipe": inherit.find(self.recipe)}
        return json.dumps({name: str(v.absolute()) if isinstance(v, Path) else v for name, v in facts.items()})


def rebuilt(request: Request, there: Surroundings, progress: Building) -> tuple[Built, Surroundings]:
    """Build in other surroundings; its steps are shown as they come, and its products are read from here.

    The surroundings come back as that build has seen them: what did not become other is not called so.

    Raises:
        ImageError: it failed there, with what it said.
    """
    (there.place.parent / _REQUEST).write_text(request.to_json(), encoding="utf-8")
    command = [sys.executable, "-m", "netboot.cli.main", "image", "rebuild", str(there.place)]
    try:
        there.run(command, progress.relay)
    except CommandError as error:
        raise ImageError(
            f"the second build failed, and the first had not: another {', '.join(there.varied)}:\n{error.output}"
        ) from None
    result = json.loads(files.bytes_of(there.place.parent / _RESULT, files.LARGE))
    progress.steps.extend(result["steps"])
    products = {name: Product(key, there.files / path) for name, (key, path) in result["products"].items()}
    built = Built(read_manifest(result["manifest"].encode()), {}, products)
    return built, there.judged(seen(there.files), result["seen"])


@click.command(hidden=True)
@click.argument("place", type=click.Path(path_type=Path))
def rebuild(place: Path) -> None:
    """Build what the request beside PLACE says, with PLACE as the cache, and write there what came of it."""
    asked: dict[str, Any] = json.loads(files.small(place.parent / _REQUEST))
    key, certificate = asked["uki_key"], asked["uki_cert"]
    secure_boot = read_key(Path(key), Path(certificate)) if key else None
    keys = {path.name: files.small(path) for path in KeyRing(Path(asked["keys"])).public_files()}
    surroundings = seen(place)
    with Building() as progress, Cache(place) as cache:
        built = build_image(load_recipe(asked["recipe"], asked["profile"]), keys, cache, progress, secure_boot)
        products = {name: (made.key, str(made.path.relative_to(place))) for name, made in built.products.items()}
    value: dict[str, Any] = {"manifest": built.manifest.to_bytes().decode(), "products": products}
    value |= {"steps": progress.steps, "seen": surroundings}
    (place.parent / _RESULT).write_text(json.dumps(value), encoding="utf-8")
