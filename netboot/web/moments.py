"""Moments as the API has them: RFC 3339 in UTC with milliseconds (`since`), where inside they are milliseconds since
1970 (`since_ms`). The one place where one becomes the other: in answers, in the document, in what is sent."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from netboot.clock import moment_ms, rfc3339

_BARE = ("at", "since", "until", "window_until", "deadline")
_AT = (
    *("added", "begin", "closes", "console", "crashed", "created", "end", "ended", "expires", "first", "in_service"),
    *("issued", "kernel", "last", "now", "opens", "started", "taken"),
)
NAMES: Mapping[str, str] = {f"{name}_ms": name for name in _BARE} | {f"{name}_ms": f"{name}_at" for name in _AT}
"""As it is called inside → on the wire. What else ends in `_ms` is a duration (`uptime_ms`, `clock_ms`)."""
SCHEMA: Mapping[str, str] = {"type": "string", "format": "date-time"}
_NAMED = re.compile(rf"\b({'|'.join(NAMES)})\b")


class Moment:
    """Of what is sent: RFC 3339 with any zone; the view has milliseconds since 1970."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(moment_ms, core_schema.str_schema(max_length=40))

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return dict(SCHEMA)


def on_wire(value: Any) -> Any:
    """JSON values of the service as the API has them."""
    if isinstance(value, dict):
        return dict(_named(key, each) for key, each in value.items())
    return [on_wire(each) for each in value] if isinstance(value, list) else value


def _named(key: str, value: Any) -> tuple[str, Any]:
    """A moment is a number, or null; what else is called like one has a name that somebody gave, a label's key."""
    if key not in NAMES or isinstance(value, bool) or not (value is None or isinstance(value, int)):
        return key, on_wire(value)
    return NAMES[key], rfc3339(value) if value is not None else None


def described(schema: Any) -> Any:
    """A part of the API's document, with the names and types of the wire."""
    if isinstance(schema, list):
        return [described(each) for each in schema]
    if isinstance(schema, str):
        return _NAMED.sub(lambda found: NAMES[found[1]], schema)
    if not isinstance(schema, dict):
        return schema
    said = {key: described(each) for key, each in schema.items()}
    if isinstance(properties := schema.get("properties"), dict):
        said["properties"] = {NAMES.get(name, name): _property(name, each) for name, each in properties.items()}
    return said


def _property(name: str, schema: Any) -> Any:
    if name not in NAMES:
        return described(schema)
    kinds = schema.get("anyOf", ())
    more = {"anyOf": [dict(SCHEMA), {"type": "null"}]} if {"type": "null"} in kinds else SCHEMA
    default = {"default": None} if kinds and "default" in schema else {}
    return {**more, **default, "title": NAMES[name].replace("_", " ").title()}
