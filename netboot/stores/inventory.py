"""The inventory of a site as it is declared, held against what the configuration says of those who join."""

from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from pathlib import Path

from images.values import strict
from images.values.strict import Document, Fault
from netboot.config import Config
from netboot.machines.declarations import Declarations, Judged
from netboot.machines.declared import NO_EDIT, Edit, Read, documents_of, items_of
from netboot.machines.inventory import load_inventory
from netboot.machines.joining import Joining
from netboot.machines.values import Inventory
from netboot.stores.resources import HOLDS, ORDERS, ROLLOUTS, KeptResources


class Folder:
    """Files, taken whole or not at all."""

    by_content = True
    called = "files"

    def __init__(self, folder: Path, read: Read = strict.read) -> None:
        self._folder, self._read, self.where = folder, read, str(folder)

    def paths(self) -> Iterable[Path]:
        """The folder itself where there are none: not there and empty are two things."""
        return list(self._folder.glob("*.yaml")) or [self._folder]

    def documents(self) -> tuple[list[Document], list[Fault]]:
        return documents_of(self._folder, read=self._read)

    def judged(self, joining: Joining | None) -> Judged:
        return Judged(load_inventory(self._folder, joining))


def declarations_of(config: Config, read: Read = strict.read) -> Declarations:
    """Where this site's inventory is declared. `read`: what reads its files."""
    if config.inventory_kubernetes is not None:
        return KeptResources(config.data, config.inventory_kubernetes.namespace)
    return Folder(config.inventory, read)


def forget_objects(config: Config) -> None:
    """Where files are in force: what was kept of custom resources before must not count when those are the inventory
    again, before an API server has said it anew. Likewise of holds, of orders, and of what is shared with these.

    Raises:
        OSError: it cannot be removed.
    """
    if config.inventory_kubernetes is None:
        KeptResources(config.data, "").forget()
    if holds_in(config) is None:
        KeptResources(config.data, "", HOLDS).forget()
    if config.inventory_kubernetes is None or config.inventory_kubernetes.orders is None:
        for file in (ORDERS, ROLLOUTS):
            KeptResources(config.data, "", file).forget()


def holds_in(config: Config) -> str | None:
    """The namespace whose objects hold machines; None: none do."""
    place = config.inventory_kubernetes
    return place.namespace if place is not None and place.holds else None


def place_of(config: Config, kind: str, name: str) -> str:
    """Where a machine, profile, channel or class is declared: `file:line`, or an object; else where all are."""
    place = declarations_of(config)
    items = (item for document in place.documents()[0] for item in items_of(document))
    return next((item.place("name") for item in items if (item.kind, item.name) == (kind, name)), place.where)


def judged_inventory(config: Config) -> Judged:
    """What is declared now, and what was left out of it.

    Raises:
        images.values.strict.FaultsError: nothing of it can be used.
    """
    return declarations_of(config).judged(joining_of(config))


def read_inventory(config: Config, edit: Edit = NO_EDIT, sent: Sequence[Document] = ()) -> Inventory:
    """What is declared now; of files with `edit` and what was `sent`, what would be.

    Raises:
        images.values.strict.FaultsError: with every fault of every file; nothing of it can be used.
    """
    if edit or sent:
        return load_inventory(config.inventory, joining_of(config), edit, sent)
    return judged_inventory(config).inventory


def joining_of(config: Config) -> Joining | None:
    """What is asked of machines that join; None: none do."""
    if config.join is None:
        return None
    services = {name: cluster.service_cidrs for name, cluster in config.clusters.items()}
    return Joining(services, local=ip_address(config.join.listen.host).is_loopback)
