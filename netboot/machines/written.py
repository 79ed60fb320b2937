"""Items of the inventory as text that a program writes: whole files, which hold one kind and read as what was given."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import yaml
from pydantic import BaseModel

from images.values import strict
from images.values.strict import FaultsError
from netboot.machines.declared import KINDS, LISTS
from netboot.machines.values import Inventory

MODELS: Mapping[str, type[BaseModel]] = {
    kind: get_args(Inventory.model_fields[listed].annotation)[0] for listed, kind in KINDS.items()
}
_ORDER = {
    kind: {field.alias or name: place for place, (name, field) in enumerate(model.model_fields.items())}
    for kind, model in MODELS.items()
}


def text_of(kind: str, *values: Mapping[str, Any]) -> str:
    """A file with those items alone. `kind`: what one is called.

    Raises:
        FaultsError: they cannot be written so that the inventory's reader reads the same.
    """
    try:
        text = as_written(kind, values)
    except RecursionError:
        raise FaultsError([strict.Fault("what was sent", 0, "", "is nested too deep")]) from None
    if strict.parse(text, "what was sent").value != {LISTS[kind]: list(values)}:
        raise FaultsError([strict.Fault("what was sent", 0, "", "has values that YAML has no words for")])
    return text


def as_written(kind: str, values: Sequence[Mapping[str, Any]]) -> str:
    """The same, whether or not it reads so. Keys are in the order of the models'."""
    order = _ORDER[kind]
    items = [dict(sorted(value.items(), key=lambda item: order.get(item[0], len(order)))) for value in values]
    return yaml.safe_dump({LISTS[kind]: items}, sort_keys=False, allow_unicode=True, width=10_000)


def is_json(value: Mapping[str, Any]) -> bool:
    """Whether JSON has words for it. Not so: keys that are no text, bytes, dates, which YAML has."""
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False
