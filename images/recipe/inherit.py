"""Recipes from YAML: `base:` followed, layers merged, every fault of every file at once."""

from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from images.recipe import arguments, features, fields
from images.recipe.recipe import Recipe
from images.values import strict
from images.values.files import is_file
from images.values.strict import Document, Fault, FaultsError

SHIPPED = Path(str(files("images") / "recipes"))
"""The folder of the recipes that come with netboot."""


def shipped() -> tuple[str, ...]:
    """Names of the recipes that come with netboot."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))


def find(name: str) -> Path:
    """The file of a recipe: a shipped recipe's name, or a path (with a slash, or ending in .yaml or .yml)."""
    return Path(name) if _is_path(name) else SHIPPED / f"{name}.yaml"


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith((".yaml", ".yml"))


def load(path: Path) -> Recipe:
    """Read a recipe, what it is based on, and the features of all of them.

    Raises:
        FaultsError: with all faults of all files: form, missing files, unknown features, unknown or circular bases.
    """
    documents, faults = _chain(path.absolute())
    layers, unknown = _with_features(documents)
    faults += [*unknown, *arguments.not_inherited(layers)]
    values: list[dict[str, Any]] = []
    for document in layers:
        if isinstance(document.value, dict):
            faults += _form(document)
            values.append(document.value)
        else:
            faults.append(Fault(document.file, 1, "", "the file must hold a mapping of keys to values"))
    faults += _missing(documents[0], _merged(values))
    if faults:
        raise FaultsError(set(faults))
    located = [_located(document) for document in layers]
    return Recipe.model_validate(_merged(located) | {"name": _name(documents[0])})


def merge(base: Any, child: Any, at: tuple[str, ...] = ()) -> Any:
    """What a recipe's value becomes under an heir's.

    Mappings merge key by key; lists append what is not there yet; all else is replaced, and so is each file of `files`,
    each of `sources` that has a name, and the kernel's arguments by name.
    """
    if at == ("kernel",) and isinstance(child, dict):
        return arguments.merged(base, child)
    if isinstance(child, dict) and not (at[:1] == ("files",) and len(at) > 1):
        old = base if isinstance(base, dict) else {}
        return old | {key: merge(old.get(key), value, (*at, str(key))) for key, value in child.items()}
    if isinstance(child, list):
        before = base if isinstance(base, list) else []
        return _unique(_replaced(before, child) if at == ("sources",) else [*before, *child])
    return child


def _replaced(old: list[Any], new: list[Any]) -> list[Any]:
    """Both lists as one; what has a name of the old list's stands where that stood."""
    named = {name: item for item in new if (name := _source_name(item))}
    return [*(named.get(_source_name(item) or "", item) for item in old), *new]


def _source_name(item: Any) -> str | None:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


def _unique(items: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        if item not in kept:
            kept.append(item)
    return kept


def _merged(values: list[dict[str, Any]]) -> dict[str, Any]:
    """Layers, the recipe itself last, as one. A name and a base belong to one file and are not inherited."""
    result: dict[str, Any] = {}
    for value in values:
        result = merge(result, {key: item for key, item in value.items() if key not in {"name", "base"}})
    return result


def _with_features(documents: list[Document]) -> tuple[list[Document], list[Fault]]:
    """All layers, the furthest base first and the recipe (first of `documents`) last, each after its own features.

    A feature that a base has already is not merged again.
    """
    target = _merged([document.value for document in reversed(documents) if isinstance(document.value, dict)])
    layers: list[Document] = []
    faults: list[Fault] = []
    seen: set[str] = set()
    for document in reversed(documents):
        for index, name in _named(document):
            folder = Path(document.file).parent
            feature = str(folder / name) if features.is_path(name) else name
            if feature not in seen:
                fragments, asked, inside = features.read(name, folder, target)
                line = document.line(("features", index))
                faults += [Fault(document.file, line, f"features[{index}]", message) for message in asked] + inside
                layers += fragments
            seen.add(feature)
        layers.append(document)
    return layers, faults


def _named(document: Document) -> list[tuple[int, str]]:
    """A document's features that are well formed, with their places; faults of the others are `_form`'s to tell."""
    named = document.value.get("features") if isinstance(document.value, dict) else None
    listed = named if isinstance(named, list) else []
    return [(index, name) for index, name in enumerate(listed) if fields.is_feature(name)]


def _chain(path: Path) -> tuple[list[Document], list[Fault]]:
    """The recipe's document and those of its bases, the recipe itself first; a base that cannot be had is a fault."""
    documents, seen = [strict.read(path)], [path.resolve()]
    while True:
        last = documents[-1]
        base = last.value.get("base") if isinstance(last.value, dict) else None
        if not isinstance(base, str) or not base:
            return documents, []
        base_file = Path(last.file).parent / base if _is_path(base) else find(base)
        message = ""
        if base_file.resolve() in seen:
            circle = [*seen[seen.index(base_file.resolve()) :], base_file]
            message = f"recipes are based on each other in a circle: {' → '.join(item.name for item in circle)}"
        elif not is_file(base_file):
            message = (
                f"there is no recipe {base_file if _is_path(base) else repr(base)}; shipped are {', '.join(shipped())}"
            )
        if message:
            return documents, [Fault(last.file, last.line(("base",)), "base", message)]
        seen.append(base_file.resolve())
        try:
            documents.append(strict.read(base_file))
        except FaultsError as error:
            return documents, list(error.faults)


def _name(document: Document) -> str:
    given = document.value.get("name") if isinstance(document.value, dict) else None
    return given if isinstance(given, str) else Path(document.file).stem


def _form(document: Document) -> list[Fault]:
    """Faults of one file by itself; what it lacks may come from its base."""
    context = {"folder": Path(document.file).parent}
    try:
        Recipe.model_validate({"name": _name(document)} | document.value, context=context)
    except ValidationError as error:
        faults = zip(error.errors(), strict.faults_of(error, document, Recipe), strict=True)
        return [fault for item, fault in faults if not _inheritable(item["type"], item["loc"])]
    return []


def _missing(document: Document, merged: dict[str, Any]) -> list[Fault]:
    """Faults of keys that neither the recipe nor its bases have."""
    try:
        Recipe.model_validate({"name": "any"} | merged)
    except ValidationError as error:
        return [
            Fault(document.file, document.line(item["loc"]), ".".join(map(str, item["loc"])), "this key is required")
            for item in error.errors()
            if _inheritable(item["type"], item["loc"])
        ]
    return []


def _inheritable(kind: str, location: tuple[int | str, ...]) -> bool:
    """Whether an error is the lack of a key of a mapping that is merged."""
    return kind == "missing" and (len(location) == 1 or location[0] not in {"files", "sources"})


def _located(document: Document) -> dict[str, Any]:
    """A sound layer with the paths of its files absolute, so that it can be merged with layers of other folders."""
    folder, value = Path(document.file).parent, dict(document.value)
    if "overlay" in value:
        value["overlay"] = [str(folder / item) for item in value["overlay"]]
    for key in ("container_images", "driver_patches"):
        if key in value:
            value[key] = [str(folder / item) for item in value[key]]
    if value.get("lock") is not None:
        value["lock"] = str(folder / value["lock"])
    if "sources" in value:
        value["sources"] = [source | {"signed_by": str(folder / source["signed_by"])} for source in value["sources"]]
    if "files" in value:
        value["files"] = {
            path: file | ({"source": str(folder / file["source"])} if "source" in file else {})
            for path, file in value["files"].items()
        }
    return value
