"""Objects of a site that has state in a cluster, read by the accounts that its configuration names, as files."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from images.values import strict
from images.values.strict import FaultsError
from netboot.cli.outcomes import CANNOT_TELL, NOT_ALLOWED, ApiError
from netboot.join.errors import ClusterUnavailableError

if TYPE_CHECKING:
    from netboot.config import Config
    from netboot.kube.errors import Manifests
    from netboot.kube.moved import Document


Unread = Mapping[str, ClusterUnavailableError]
"""Kinds, by the names that manifests have, of which it could not be told what there is, and why."""


class Source(NamedTuple):
    """`kinds`, by the names that manifests have, are read by this account, whose rights `manifests` give."""

    kubeconfig: Path
    namespace: str
    kinds: tuple[str, ...]
    manifests: "Manifests" = ""


def sources_of(config: "Config") -> Iterator[Source]:
    """What is in objects by the configuration."""
    from netboot.kube.resources.kinds import ENROLMENT, HOLD, KINDS, ORDER, ROLLOUT

    inventory, enrolments = config.inventory_kubernetes, config.enrolments_kubernetes
    if inventory is not None:
        kinds = (*(kind.kind for kind in KINDS.values()), *([HOLD.kind] if inventory.holds else []))
        yield Source(inventory.kubeconfig, inventory.namespace, kinds, "inventory")
        if inventory.orders is not None:
            yield Source(inventory.orders, inventory.namespace, (ROLLOUT.kind, ORDER.kind), "inventory")
    if enrolments is not None:
        yield Source(enrolments.reader, enrolments.namespace, (ENROLMENT.kind,), "enrolments")


def read_each(source: Source) -> "Iterator[tuple[str, list[Document] | ClusterUnavailableError]]":
    """Each kind, and what there is of it, or why that cannot be told: of an API server that does not answer no other
    kind is asked for."""
    from netboot.kube.connection import connect
    from netboot.kube.errors import ClusterRefusedError
    from netboot.kube.exported import read
    from netboot.kube.moved import BY_KIND

    away: ClusterUnavailableError | None = None
    connection = None
    try:
        for kind in source.kinds:
            try:
                if away is None:
                    connection = connection or connect(source.kubeconfig, manifests=source.manifests)
                    found: list[Document] | ClusterUnavailableError = read(connection, source.namespace, BY_KIND[kind])
                else:
                    found = away
            except ClusterUnavailableError as error:
                found = error
                away = error if connection is None or not isinstance(error, ClusterRefusedError) else None
            yield kind, found
    finally:
        if connection is not None:
            connection.close()


def read_all(source: Source) -> "Iterator[tuple[str, list[Document]]]":
    """Each kind, and what there is of it.

    Raises:
        ClusterUnavailableError.
    """
    for kind, found in read_each(source):
        if isinstance(found, ClusterUnavailableError):
            raise found
        yield kind, found


def kept_of(config: "Config") -> "tuple[dict[str, bytes], dict[str, ClusterUnavailableError]]":
    """What a backup has of objects: files by name; and why kinds are not in it."""
    from netboot.kube.moved import BY_KIND

    contents, unread = dict[str, bytes](), dict[str, ClusterUnavailableError]()
    for source in sources_of(config):
        for kind, found in read_each(source):
            if isinstance(found, ClusterUnavailableError):
                unread[kind] = found
            else:
                contents[f"{BY_KIND[kind].plural}.yaml"] = text_of(found).encode()
    return contents, unread


def require_all(unread: Unread, what: str) -> None:
    """Raises ApiError: there are kinds that could not be read. `what`: what lacks them."""
    from netboot.kube.errors import ClusterRefusedError

    if not unread:
        return
    refused = all(isinstance(error, ClusterRefusedError) for error in unread.values())
    why = "; ".join(dict.fromkeys(map(str, unread.values())))
    raise ApiError(
        f"{what} is made, and lacks objects of the kinds {', '.join(unread)}: {why}",
        "put that right, then make another: `netboot doctor` says what the accounts may",
        NOT_ALLOWED if refused else CANNOT_TELL,
    )


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
