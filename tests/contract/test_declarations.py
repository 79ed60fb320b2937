"""Places where an inventory is declared: files, and objects as they are kept on the disk. The same suite as over a real
API server (`tests/cluster/test_resources.py`)."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from netboot.kube.resources.kinds import KINDS
from netboot.machines.declarations import Declarations
from netboot.machines.declared import KINDS as LISTS
from netboot.machines.resources import Resource
from netboot.stores.inventory import Folder
from netboot.stores.resources import KeptResources
from tests.declared_contract import CASES, Key, Spec, World


class Files:
    """A file for each item: JSON is YAML."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.declarations = folder, Folder(folder)

    def declare(self, items: Mapping[Key, Spec]) -> None:
        for (kind, name), spec in items.items():
            listed = next(key for key, each in LISTS.items() if each == kind)
            (self._folder / f"{kind}-{name}.yaml").write_text(json.dumps({listed: [{"name": name, **spec}]}))

    def remove(self, *keys: Key) -> None:
        for kind, name in keys:
            (self._folder / f"{kind}-{name}.yaml").unlink()

    def lose(self) -> None:
        for path in self.declarations.paths():
            path.unlink()


class Kept:
    """What an API server had."""

    def __init__(self, data: Path) -> None:
        self._kept, self._there = KeptResources(data, "netboot"), dict[Key, Resource]()
        self.declarations: Declarations = self._kept

    def declare(self, items: Mapping[Key, Spec]) -> None:
        for (kind, name), spec in items.items():
            shown = f"{KINDS[kind].kind.lower()}/{name}"
            self._there[kind, name] = Resource(kind=kind, name=name, shown=shown, spec=dict(spec))
        self._kept.write(list(self._there.values()))

    def remove(self, *keys: Key) -> None:
        for key in keys:
            del self._there[key]
        self._kept.write(list(self._there.values()))

    def lose(self) -> None:
        for path in self.declarations.paths():
            Path(path).unlink()


@pytest.mark.parametrize("place", [Files, Kept])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_place(case: Callable[[World], None], place: Callable[[Path], World], tmp_path: Path) -> None:
    case(place(tmp_path))
