"""The inventory of a site as it is in its files, held against what the configuration says of those who join."""

from collections.abc import Sequence
from ipaddress import ip_address

from images.values.strict import Document
from netboot.config import Config
from netboot.machines.declared import NO_EDIT, Edit
from netboot.machines.inventory import load_inventory
from netboot.machines.joining import Joining
from netboot.machines.values import Inventory


def read_inventory(config: Config, edit: Edit = NO_EDIT, sent: Sequence[Document] = ()) -> Inventory:
    """All that the files of `config.inventory` declare; with `edit` and what was `sent`, would declare.

    Raises:
        images.values.strict.FaultsError: with every fault of every file.
    """
    return load_inventory(config.inventory, joining_of(config), edit, sent)


def joining_of(config: Config) -> Joining | None:
    """What is asked of machines that join; None: none do."""
    if config.join is None:
        return None
    services = {name: cluster.service_cidrs for name, cluster in config.clusters.items()}
    return Joining(services, local=ip_address(config.join.listen.host).is_loopback)
