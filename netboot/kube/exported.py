"""Objects as manifests that can be made anew: what an API server has, without what it keeps for itself."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from netboot.kube.admin_objects import AllObjects
from netboot.kube.connection import Connection
from netboot.kube.enrolment_objects import KubeEnrolmentObjects
from netboot.kube.moved import Document
from netboot.kube.resources.kinds import ENROLMENT, Kind

_KEPT = ("name", "namespace", "labels", "annotations")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def read(connection: Connection, namespace: str, kind: Kind) -> list[Document]:
    """All of a kind, by name. An Enrolment has its status, for it says which TPM waits for approval; and no window that
    was used, which a cluster that is built anew would not know.

    Raises:
        ClusterUnavailableError.
    """
    things = AllObjects(connection, namespace).things(kind)
    documents = [_clean(things[name], status=kind is ENROLMENT) for name in sorted(things)]
    if kind is not ENROLMENT:
        return documents
    used = KubeEnrolmentObjects(lambda: connection, namespace).used().keys()
    return [_without_used(each, used) for each in documents]


def listed(documents: Sequence[Document]) -> dict[str, Any]:
    """As one document, which kubectl takes."""
    return {"apiVersion": "v1", "kind": "List", "items": list(documents)}


def _clean(thing: Mapping[str, Any], *, status: bool) -> Document:
    metadata = {key: thing["metadata"][key] for key in _KEPT if thing["metadata"].get(key)}
    said = {key: text for key, text in metadata.pop("annotations", {}).items() if key != _LAST_APPLIED}
    metadata |= {"annotations": said} if said else {}
    parts = ("spec", "status") if status and thing.get("status") else ("spec",)
    return {
        "apiVersion": thing["apiVersion"],
        "kind": thing["kind"],
        "metadata": metadata,
        **{part: thing.get(part) or {} for part in parts},
    }


def _without_used(document: Document, used: Collection[tuple[str, str]]) -> Document:
    spec = document["spec"]
    window = spec.get("window")
    if not isinstance(window, dict) or (document["metadata"]["name"], str(window.get("id"))) not in used:
        return document
    return {**document, "spec": {key: value for key, value in spec.items() if key != "window"}}
