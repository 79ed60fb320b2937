"""What a site has on its disk, held against the objects that there are: what is to be made, and what stands in the way.
Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from images.values.faults import first_fault
from netboot.join.enrolment import short
from netboot.kube.resources.kinds import ENROLMENT, HOLD, KINDS, ORDER, ROLLOUT, Kind

Document = Mapping[str, Any]
"""An object as a manifest has it."""
BY_KIND: Mapping[str, Kind] = {kind.kind: kind for kind in (*KINDS.values(), HOLD, ENROLMENT, ROLLOUT, ORDER)}
"""Kinds by the names that manifests have."""
IN_ORDER = (
    *("Channel", "MachineClass", "Rack", "MaintenanceWindow", "Profile", "Machine"),
    *("Hold", "Enrolment", "Rollout", "Order"),
)
"""Kinds, first what others refer to."""


class Plan(NamedTuple):
    """`missing`: are to be made; `there`: say the same already; `statuses`: of those, which have no status yet and are
    to have one, each with the object as it was read; `faults`: objects that are in the way, in words."""

    missing: tuple[Document, ...]
    there: tuple[Document, ...]
    statuses: tuple[tuple[Document, Document], ...]
    faults: tuple[str, ...]


def shown(kind: str, name: str) -> str:
    """As kubectl takes it."""
    return f"{kind.lower()}/{name}"


def named(document: Document) -> str:
    """Likewise, of one."""
    return shown(document["kind"], document["metadata"]["name"])


def plan(
    documents: Sequence[Document], there: Mapping[str, Mapping[str, Document]], whole: frozenset[str] = frozenset()
) -> Plan:
    """What is to be done so that all `documents` are `there` (kind → name → object). `whole`: kinds of which nothing
    else may be there, for it would be part of the inventory."""
    missing, same, statuses, faults = list[Document](), list[Document](), list[tuple[Document, Document]](), list[str]()
    for document in documents:
        kind, name = document["kind"], document["metadata"]["name"]
        thing = there.get(kind, {}).get(name)
        if thing is None:
            missing.append(document)
        elif wrong := difference(document, thing):
            faults.append(f"{named(document)}: {wrong}")
        else:
            same.append(document)
            if document.get("status") and not thing.get("status"):
                statuses.append((document, thing))
    ours = {(document["kind"], document["metadata"]["name"]) for document in documents}
    for kind in IN_ORDER:
        others = sorted(name for name in there.get(kind, {}) if (kind, name) not in ours)
        if kind in whole:
            faults += [f"{shown(kind, name)}: is there, and is declared by no file" for name in others]
    faults += _shared(documents, there.get("Enrolment", {}))
    faults += _numbered(documents, there.get("Rollout", {}))
    return Plan(tuple(missing), tuple(same), tuple(statuses), tuple(faults))


def difference(document: Document, thing: Document) -> str:
    """What an object says otherwise than a document, in words with the key; "": nothing. What its reader takes for the
    same is the same, however it is spelled. A status that is not there yet is no difference."""
    kind = BY_KIND[document["kind"]]
    name = document["metadata"]["name"]
    if "deletionTimestamp" in thing.get("metadata", {}):
        return "is being deleted"
    try:
        ours, theirs = _read(kind.model, name, document["spec"]), _read(kind.model, name, thing.get("spec"))
    except ValidationError as error:
        fault = first_fault(error)
        return f"spec.{fault.key}: {fault.message}" if fault.location else f"spec: {fault.message}"
    if key := _apart(ours, theirs):
        return f"spec.{key} says another thing there"
    said, status = document.get("status"), thing.get("status")
    if not said or not status or kind.status is None:
        return ""
    try:
        key = _apart(kind.status.model_validate(said), kind.status.model_validate(status))
    except ValidationError as error:
        return f"status.{first_fault(error).key}: {first_fault(error).message}"
    return f"status.{key} says another thing there" if key else ""


def _read(model: type[BaseModel], name: str, spec: Any) -> BaseModel:
    """As the reader of that kind has it: an inventory's item has its name within."""
    named = isinstance(spec, Mapping) and "name" in model.model_fields
    return model.model_validate({**spec, "name": name} if named else spec)


def _apart(ours: BaseModel, theirs: BaseModel) -> str:
    """The first key in which they differ, as it is written; "": none."""
    fields = type(ours).model_fields.items()
    return next((field.alias or key for key, field in fields if getattr(ours, key) != getattr(theirs, key)), "")


def _shared(documents: Sequence[Document], there: Mapping[str, Document]) -> Iterator[str]:
    """TPMs that would be approved for two machines, of which none could join."""
    for ek, names in _of_two(ENROLMENT, ("ek_sha256",), documents, there):
        yield f"{names}: spec.ek_sha256: the TPM {short(str(ek))} would be approved for both, and neither could join"


def _numbered(documents: Sequence[Document], there: Mapping[str, Document]) -> Iterator[str]:
    """Rollouts of two hosts with one number, of which one would be taken for a copy."""
    for number, names in _of_two(ROLLOUT, ("rollout", "number"), documents, there):
        yield f"{names}: spec.rollout.number: both would be rollout {number}: move those of one host alone"


def _of_two(
    kind: Kind, key: Sequence[str], documents: Sequence[Document], there: Mapping[str, Document]
) -> Iterator[tuple[object, str]]:
    """What more than one object of a kind says of a key of `spec`, with the names of these."""
    holders: dict[object, set[str]] = {}
    ours = ((each["metadata"]["name"], each) for each in documents if each["kind"] == kind.kind)
    for name, thing in (*ours, *there.items()):
        value = thing.get("spec")
        for part in key:
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, str | int):
            holders.setdefault(value, set()).add(name)
    for value, names in holders.items():
        if len(names) > 1:
            yield value, " and ".join(shown(kind.kind, name) for name in sorted(names))
