"""The custom resources `netboot.dev/v1alpha1`: their definitions, and an inventory as objects."""

from collections.abc import Iterable
from typing import Any

from images.values.types import NAME
from netboot.kube.resources.cel import Schema, literal, pattern, rule, with_rules
from netboot.kube.resources.kinds import ALL, ENROLMENT, GROUP, KINDS, VERSION, Kind
from netboot.kube.resources.schema import schema_of
from netboot.machines.declared import Declared

_NAMED = frozenset({"name"})
"""What an object has in its metadata."""


def definitions() -> list[dict[str, Any]]:
    """A CustomResourceDefinition for each kind.

    Raises:
        netboot.kube.resources.cel.NotExpressibleError: a model says what no schema can: a defect of ours.
    """
    return [_definition(kind) for kind in (*ALL.values(), ENROLMENT)]


def _definition(kind: Kind) -> dict[str, Any]:
    columns = [{"name": name, "jsonPath": path, "type": type_} for name, (path, type_) in kind.columns.items()]
    wide = [{"name": name, "jsonPath": path, "type": type_, "priority": 1} for name, (path, type_) in kind.wide.items()]
    age = {"name": "Age", "jsonPath": ".metadata.creationTimestamp", "type": "date"}
    names = {"kind": kind.kind, "listKind": f"{kind.kind}List", "plural": kind.plural, "singular": kind.kind.lower()}
    schema = _object(kind)
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [*columns, age, *wide],
    }
    if kind.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in kind.selectable]
    if kind.status is not None:
        schema["properties"]["status"] = schema_of(kind.status)
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}", "labels": {"app.kubernetes.io/part-of": "netboot"}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {**names, "shortNames": [kind.short], "categories": ["netboot"]},
            "versions": [version],
        },
    }


def _object(kind: Kind) -> Schema:
    spec = schema_of(kind.model, without=_NAMED)
    schema = {"type": "object", "description": spec["description"], "required": ["spec"], "properties": {"spec": spec}}
    form = literal(pattern(f"^({NAME.pattern})$"))
    return with_rules(schema, *kind.rules, rule(f"self.metadata.name.matches({form})", f"metadata.name {NAME.message}"))


def objects_of(items: Iterable[Declared], namespace: str) -> list[dict[str, Any]]:
    """What an inventory's files declare, as objects: the same keys and spellings, but for the name, which is in the
    metadata, and `pcrs: none`, which is `{none: []}`."""
    return [_declared(item, KINDS[item.kind], namespace) for item in items]


def _declared(item: Declared, kind: Kind, namespace: str) -> dict[str, Any]:
    spec = {key: value for key, value in item.value.items() if key not in _NAMED}
    if spec.get("pcrs") == "none":
        spec["pcrs"] = {"none": []}
    metadata = {"name": item.name, "namespace": namespace}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind.kind, "metadata": metadata, "spec": spec}
