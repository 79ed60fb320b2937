"""Features: fragments of recipes. `x` is `features/x.yaml`, then `features/x.<distribution>.yaml`, each where it is.

A fragment is a recipe with holes: what only a whole recipe can say (`RECIPES_OWN`) it must not say. `only` in it says
for which architectures and suites it has something.
"""

import difflib
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from images.values import strict
from images.values.files import is_file
from images.values.strict import Document, Fault, FaultsError, Strict
from images.values.types import Architecture, Name

SHIPPED = Path(str(files("images") / "recipes" / "features"))
"""The folder of the features that come with netboot."""
RECIPES_OWN = ("name", "base", "features", "distribution", "suite", "architecture", "profile", "epoch")
"""Keys that only a recipe may have."""


class Only(Strict):
    """What a fragment is for; nothing said: for all."""

    architectures: tuple[Architecture, ...] = ()
    suites: tuple[Name, ...] = ()


class _Head(Strict):
    """What a fragment says of itself, and not of the recipe that it becomes a part of."""

    only: Only = Only()
    description: str = ""


HEAD = tuple(_Head.model_fields)


def shipped() -> tuple[str, ...]:
    """Names of the features that come with netboot."""
    return tuple(sorted({path.name.partition(".")[0] for path in SHIPPED.glob("*.yaml")}))


def description(name: str) -> str:
    """The one line for people that a shipped feature says of itself."""
    for path in sorted(SHIPPED.glob(f"{name}.*yaml"), key=lambda path: path.name != f"{name}.yaml"):
        description = strict.read(path).value.get("description")
        if isinstance(description, str):
            return description
    return ""


def is_path(name: str) -> bool:
    """Whether a feature is a file beside the recipe and not one of netboot's."""
    return name.endswith(".yaml")


def read(name: str, folder: Path, target: Mapping[str, Any]) -> tuple[list[Document], list[str], list[Fault]]:
    """A feature's fragments, without their `only`, for a recipe that lies in `folder`.

    Args:
        target: the merged recipe's `distribution`, `suite` and `architecture`.

    Returns:
        The fragments in their order; what is wrong with asking for it here; what is wrong in its files.
    """
    common = folder / name if is_path(name) else SHIPPED / f"{name}.yaml"
    distribution = target.get("distribution")
    there = {path.name.split(".")[1]: path for path in sorted(common.parent.glob(f"{common.stem}.*.yaml"))}
    paths = [path for path in (common, there.get(str(distribution))) if path is not None and is_file(path)]
    if not paths and not there:
        return [], [_unknown(name)], []
    if there and distribution not in there:
        return [], [f"feature {name!r} has nothing for distribution {distribution!r}, only for {_listed(there)}"], []
    documents: list[Document] = []
    asked: list[str] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            document, only = _fragment(strict.read(path))
        except FaultsError as error:
            faults += error.faults
            continue
        asked += _unfit(name, only, target)
        documents.append(document)
    return documents, asked, faults


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, shipped(), n=1, cutoff=0.5)
    what = f"there is no feature file {name} beside the recipe" if is_path(name) else f"there is no feature {name!r}"
    return f"{what};{f' did you mean {near[0]!r}?' if near else ''} shipped are {', '.join(shipped())}"


def _unfit(name: str, only: Only, target: Mapping[str, Any]) -> list[str]:
    allowed = {"architecture": only.architectures, "suite": only.suites}
    return [
        f"feature {name!r} has nothing for {key} {target[key]!r}, only for {_listed(values)}"
        for key, values in allowed.items()
        if values and target.get(key) is not None and target[key] not in values
    ]


def _listed(values: Any) -> str:
    return ", ".join(sorted(values))


def _fragment(document: Document) -> tuple[Document, Only]:
    """A fragment's document as a partial recipe, and what it is for.

    Raises:
        FaultsError: it is no mapping, says what only a recipe may say, or `only` is not well formed.
    """
    if not isinstance(document.value, dict):
        raise FaultsError([Fault(document.file, 1, "", "the file must hold a mapping of keys to values")])
    faults = [
        Fault(document.file, document.line((key,)), key, "a feature cannot say this; it is for the recipe to say")
        for key in RECIPES_OWN
        if key in document.value
    ]
    only = Only()
    try:
        only = _Head.model_validate({key: item for key, item in document.value.items() if key in HEAD}).only
    except ValidationError as error:
        faults += strict.faults_of(error, document, _Head)
    if faults:
        raise FaultsError(faults)
    return replace(document, value={key: item for key, item in document.value.items() if key not in HEAD}), only
