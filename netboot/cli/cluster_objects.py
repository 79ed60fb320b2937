"""Objects of a site that has state in a cluster, read by the accounts that its configuration names, as files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from images.values import strict
from images.values.strict import FaultsError

if TYPE_CHECKING:
    from netboot.config import Config
    from netboot.kube.errors import Manifests
    from netboot.kube.moved import Document


class Source(NamedTuple):
    """`kinds`, by the names that manifests have, are read by this account, whose rights `manifests` give."""

    kubeconfig: Path
    namespace: str
    kinds: tuple[str, ...]
    manifests: "Manifests" = ""


def sources_of(config: "Config") -> Iterator[Source]:
    """What is in objects by the configuration."""
    from netboot.kube.resources.definitions import ENROLMENT, HOLD, KINDS

    inventory, enrolments = config.inventory_kubernetes, config.enrolments_kubernetes
    if inventory is not None:
        kinds = (*(kind.kind for kind in KINDS.values()), HOLD.kind)
        yield Source(inventory.kubeconfig, inventory.namespace, kinds, "inventory")
    if enrolments is not None:
        yield Source(enrolments.reader, enrolments.namespace, (ENROLMENT.kind,), "enrolments")


def read_all(source: Source) -> "Iterator[tuple[str, list[Document]]]":
    """Each kind, and what there is of it.

    Raises:
        ClusterUnavailableError.
    """
    from netboot.kube.connection import connect
    from netboot.kube.exported import read
    from netboot.kube.moved import BY_KIND

    connection = connect(source.kubeconfig, manifests=source.manifests)
    try:
        for kind in source.kinds:
            yield kind, read(connection, source.namespace, BY_KIND[kind])
    finally:
        connection.close()


def text_of(documents: "Sequence[Document]") -> str:
    """As one YAML document, which kubectl takes.

    Raises:
        FaultsError: they cannot be written so that our reader reads the same.
    """
    from netboot.cli.forms import Output
    from netboot.kube.exported import listed

    value = listed(documents)
    text = Output("yaml").text(value, None) + "\n"
    if strict.parse(text, "objects").value != value:
        raise FaultsError([strict.Fault("objects", 0, "", "have values that YAML has no words for: edit them there")])
    return text
