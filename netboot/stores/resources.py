"""`data/resources/objects.json`: custom resources of the inventory as the API server had them last, so that they are
there while it is not, over restarts, too. The process `resources` writes it; whoever reads the inventory reads it.
`data/resources/holds.json`, `orders.json`, `rollouts.json`: likewise of these, for the controllers; what is wrong with
one of them keeps none of the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from images.values import files
from images.values.strict import Document, Fault, FaultsError, Strict
from netboot.lifecycle.errors import NotReadyError, StateUnavailableError
from netboot.machines.declarations import Judged
from netboot.machines.joining import Joining
from netboot.machines.resources import MOST_BYTES, Resource, document_of, judged
from netboot.machines.values import Inventory, Machine
from netboot.reread import Look, look
from netboot.stores.removals import RemovalsFile
from netboot.stores.snapshot import read_snapshot

FOLDER = "resources"
HOLDS, ORDERS, ROLLOUTS = "holds", "orders", "rollouts"
"""Files of these, in the place of that of the inventory."""
MOST_BYTES_OF_HOLDS, MOST_BYTES_OF_ORDERS = 8 << 20, 64 << 20
MOST_HOLDS, MOST_ORDERS, MOST_ROLLOUTS = 10_000, 100_000, 1_000
"""Each step of the controllers looks at all holds; of orders there is one of each machine at most."""
_MOST: Mapping[str, tuple[int | None, int]] = {
    HOLDS: (MOST_HOLDS, MOST_BYTES_OF_HOLDS),
    ORDERS: (MOST_ORDERS, MOST_BYTES_OF_ORDERS),
    ROLLOUTS: (MOST_ROLLOUTS, MOST_BYTES_OF_ORDERS),
}
_MODE = 0o644


class _Kept(Strict):
    """`uid`: of the namespace, so of which cluster it is; "": not known. `at_ms`: when they were written."""

    namespace: str
    uid: str = ""
    at_ms: int = 0
    objects: tuple[Resource, ...]


class TooMuchError(ValueError):
    """They are more than are kept, whatever room there is."""


class KeptResources:
    """The file, of one namespace: what another had is none of it."""

    by_content = False  # it is only ever replaced whole
    called = "objects"

    def __init__(self, data: Path, namespace: str, file: str = "objects") -> None:
        self._path, self._namespace = data / FOLDER / f"{file}.json", namespace
        self._of, self._most_objects, self._most = file, *_MOST.get(file, (None, MOST_BYTES))
        self._snapshot, self._removals = data / "snapshot.json", RemovalsFile(data)
        self.where = f"namespace {namespace}"
        self._known: Look = None
        """Of the file that was read or written last."""
        self.uid, self.at_ms = "", 0
        """What that said of the namespace, and of when it is."""

    def paths(self) -> Iterable[Path]:
        return [self._path]

    def there(self) -> bool:
        """Whether they were ever read."""
        return files.look(self._path) is not None

    def read(self) -> tuple[Resource, ...]:
        """Raises FaultsError: it cannot be told what they are."""
        known = look(self._path)
        try:
            kept = _Kept.model_validate_json(files.bytes_of(self._path, self._most))
        except FileNotFoundError:
            raise self._unknown("have not been read yet: see `resources` of `netboot doctor`") from None
        except OSError as error:
            raise self._unknown(f"cannot be told: {self._path}: {error.strerror}") from None
        except ValidationError:
            raise self._unknown(f"cannot be told: {self._path} is not what this version writes") from None
        if kept.namespace != self._namespace:
            raise self._unknown(f"have not been read yet: {self._path} is of namespace {kept.namespace}")
        self._known, self.uid, self.at_ms = known, kept.uid, kept.at_ms
        return kept.objects

    def write(self, objects: Sequence[Resource], uid: str = "", at_ms: int = 0) -> None:
        """It is on the disk when this returns. `uid`: of the namespace; "": not known.

        Raises:
            StoreError: it cannot be written. TooMuchError: they are too many, or longer than is read.
        """
        if self._most_objects is not None and len(objects) > self._most_objects:
            what = self._of.capitalize()
            raise TooMuchError(f"there are {len(objects):,} {what}, and {self.where} may have {self._most_objects:,}")
        kept = _Kept(namespace=self._namespace, uid=uid, at_ms=at_ms, objects=tuple(objects))
        content = kept.model_dump_json(exclude_defaults=True).encode()
        if len(content) > self._most:
            what = f"{self._of} have" if self._of in _MOST else "an inventory has"
            raise TooMuchError(f"the objects have {len(content):,} bytes, and {what} at most {self._most:,}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise files.refused(f"cannot make {self._path.parent}", error) from error
        files.write(self._path, content, mode=_MODE)
        self._known, self.uid, self.at_ms = look(self._path), uid, at_ms

    def stands(self) -> bool:
        """Whether the file is the one that was read or written last."""
        return self._known is not None and look(self._path) == self._known

    def forget(self) -> None:
        """Files are the inventory: what objects said before must not count again before an API server has said it.

        Raises:
            OSError: it cannot be removed.
        """
        self._path.unlink(missing_ok=True)

    def documents(self) -> tuple[list[Document], list[Fault]]:
        try:
            return [document_of(resource) for resource in self.read()], []
        except FaultsError as error:
            return [], list(error.faults)

    def judged(self, joining: Joining | None) -> Judged:
        return judged(self.read(), self.where, joining, partial(_in_force, self._snapshot), self._removed)

    def _removed(self) -> Mapping[str, Machine]:
        """Machines that went lately; none where nobody can tell, which the publisher says."""
        try:
            return {name: each.machine for name, each in self._removals.read().went.items()}
        except StateUnavailableError:
            return {}

    def _unknown(self, message: str) -> FaultsError:
        return FaultsError([Fault(f"objects of {self.where}", 0, "", message)])


def _in_force(snapshot: Path) -> Inventory | None:
    """What machines boot by; None: nothing, or nobody can tell."""
    try:
        return read_snapshot(snapshot).inventory
    except NotReadyError:
        return None
