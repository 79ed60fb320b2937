"""JSON schemas for kubeconform, one for each kind, of what an API server says of itself (`/openapi/v2`)."""

import json
from pathlib import Path
from typing import Any

PATTERN = "{{.ResourceKind}}{{.KindSuffix}}.json"
"""How kubeconform names them."""


def write(openapi: dict[str, Any], folder: Path) -> int:
    """Strict ones, in which no key is unknown; how many."""
    definitions, written = openapi["definitions"], 0
    for name, definition in definitions.items():
        for kind in definition.get("x-kubernetes-group-version-kind", ()):
            schema = _whole(definition, definitions, (name,))
            if "kind" not in schema.get("properties", {}):
                continue
            schema["properties"]["kind"] = {"type": "string", "enum": [kind["kind"]]}
            parts = (kind["kind"].lower(), kind["group"].partition(".")[0], kind["version"])
            (folder / f"{'-'.join(filter(None, parts))}.json").write_text(json.dumps(schema), encoding="utf-8")
            written += 1
    return written


def _whole(schema: Any, definitions: dict[str, Any], seen: tuple[str, ...]) -> Any:
    """With what it refers to in its place; what is within itself may be anything."""
    if isinstance(schema, list):
        return [_whole(each, definitions, seen) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("$ref"), str):
        name = schema["$ref"].rpartition("/")[2]
        if name.endswith(("intstr.IntOrString", "resource.Quantity")):
            return {"oneOf": [{"type": "string"}, {"type": "number"}]}
        return {} if name in seen else _whole(definitions[name], definitions, (*seen, name))
    made = {key: _whole(each, definitions, seen) for key, each in schema.items() if not key.startswith("x-kubernetes")}
    if "properties" in made and "additionalProperties" not in made:
        made["additionalProperties"] = False
    return made
