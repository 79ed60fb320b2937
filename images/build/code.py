"""Which code decides what a step writes: its own module and all of ours that it imports, and that they import.

A hand-kept list forgets: a helper changes, the step writes other bytes, and the cache knows the old ones by the same
key. So the list is what is really imported, read from the source (`ast`), wherever in a module the import stands.
"""

import ast
import functools
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from images.values.digests import digest

OURS = ("images", "tokens")
"""Packages that are walked. Of libraries that shape bytes a step names the version (`images.build.tools`)."""

EXCEPTIONS = {
    "images.errors": "words of failures: a step that fails leaves nothing",
    "images.cancel": "ends a step from outside: one that was ended leaves nothing",
    "images.build.step": "the frame in which all steps stand; a change of it that counts is a new `version`",
    "images.build.context": "what it finds out reaches a step as inputs, and those are hashed",
    "images.recipe.recipe": "what a recipe says reaches a step as inputs, and those are hashed",
}
"""Modules that are imported and do not count, nor what only they import; each with the reason."""


def code_digest(function: Callable[..., Any], loads: Iterable[str] = ()) -> str:
    """Hash of all code of ours behind a function: by module names and contents, wherever they lie.

    Args:
        loads: packages whose modules are imported by name, which no import statement shows.
    """
    module = function.__module__
    if module.partition(".")[0] not in OURS:  # a test's
        file = Path(function.__code__.co_filename)
        return sha256(file.read_bytes() if file.is_file() else function.__code__.co_code).hexdigest()
    loaded = (f"{package}.{info.name}" for package in loads for info in pkgutil.iter_modules(_folders(package)))
    return digest({name: sha256(data).hexdigest() for name, data in sources((module, *loads, *loaded)).items()})


def sources(modules: Iterable[str]) -> dict[str, bytes]:
    """The modules, all of ours that they import, directly or through others, and the packages around: their sources."""
    walked: dict[str, bytes] = {}
    pending = list(modules)
    while pending:
        name = pending.pop()
        if name in walked or name in EXCEPTIONS:
            continue
        path = _file(name)
        if path is None:
            continue  # `from module import name`: what is no module is in one
        walked[name] = path.read_bytes()
        pending += [name.rpartition(".")[0], *_imports(name, path.name == "__init__.py", walked[name])]
    return walked


def _file(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module) if module else None
    except ModuleNotFoundError:  # what is before the last dot is no package
        return None
    return Path(spec.origin) if spec and spec.origin else None


def _folders(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec else []


@functools.cache
def _imports(module: str, is_package: bool, source: bytes) -> tuple[str, ...]:
    """Names of ours that a source imports: modules, and what may be modules or names in them."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            names += [whole, *(f"{whole}.{alias.name}" for alias in node.names)]
    return tuple(name for name in names if name.partition(".")[0] in OURS)
