"""A pydantic model as the structural schema of a custom resource: one truth for files and for objects.

https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/: each part has one
type, no `$ref`, and a maximum, so that the API server knows what its rules may cost. No default is in it: what is left
out stays left out, and means what the version that reads it takes it for. What cannot be said is refused here.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import AfterValidator, BaseModel, BeforeValidator, Strict, StringConstraints
from pydantic.fields import FieldInfo

from images.values.types import Matching
from netboot.kube.resources import descriptions
from netboot.kube.resources.cel import NotExpressibleError, Schema, literal, pattern, rule, with_rules
from netboot.kube.resources.forms import FIELDS, FORMS, MODELS, Bounds

LONGEST, MOST = 1024, 64
"""Of a text (characters), and of a list or a mapping, of which the model says none."""
_NUMBERS: Mapping[Any, Schema] = {int: {"type": "integer", "format": "int64"}, float: {"type": "number"}}
T = TypeVar("T")


def schema_of(model: type[BaseModel], without: frozenset[str] = frozenset()) -> Schema:
    """The schema of a model's documents; `without`: keys that stand elsewhere in an object.

    Raises:
        NotExpressibleError: says which field, or which validator, no schema can express as it stands.
    """
    fields = {info.alias or name: (name, info) for name, info in model.model_fields.items()}
    properties = {key: _field(model, *field) for key, field in fields.items() if key not in without}
    schema: Schema = {"type": "object", "description": descriptions.of_model(model), "properties": properties}
    if required := [key for key in properties if fields[key][1].is_required()]:
        schema["required"] = required
    rules = list(_rules(model))
    return with_rules(schema, *rules) if rules else schema


def _rules(model: type[BaseModel]) -> Iterator[Schema]:
    validators = model.__pydantic_decorators__
    for name in (*validators.field_validators, *validators.model_validators):
        yield _row(MODELS, f"{model.__name__}.{name}", "a validator of a model")


def _field(model: type[BaseModel], name: str, info: FieldInfo) -> Schema:
    where = f"{model.__name__}.{name}"
    schema = _value(info.annotation, info.metadata, where)
    if where in FIELDS:
        schema = FIELDS[where](schema, Bounds())
    description = descriptions.of_fields(model).get(name) or schema.get("description")
    if not description:
        raise NotExpressibleError(f"{where} has no docstring: nobody could be told what it is for")
    default = info.default if isinstance(info.default, str | int) and info.default != "" else None
    said = f" Default: {str(default).lower() if isinstance(default, bool) else default}." if default is not None else ""
    return {**schema, "description": f"{description}{said}"}


def _value(annotation: Any, metadata: Iterable[Any], where: str) -> Schema:
    """The schema of one value. `metadata`: what stands with its type, the outermost last."""
    parts = list(metadata)
    while get_origin(annotation) is Annotated:
        annotation, *inner = get_args(annotation)
        parts = [*inner, *parts]
    if get_origin(annotation) in (Union, UnionType):
        some = [each for each in get_args(annotation) if each is not NoneType]
        if len(some) != 1:
            raise NotExpressibleError(f"{where}: {annotation} has more than one type")
        return {**_value(some[0], parts, where), "nullable": True}
    parts = [each for part in parts for each in (part.metadata if isinstance(part, FieldInfo) else [part])]
    schema = _bounded(_typed(annotation, where), parts, where)
    bounds = Bounds(schema.get("minimum"), schema.get("maximum"))
    for part in parts:
        if isinstance(part, BeforeValidator | AfterValidator):
            name = f"{part.func.__module__}.{part.func.__qualname__}"
            schema = _row(FORMS, name, f"{where}: a validator")(schema, bounds)
    return schema


def _row(table: Mapping[str, T], name: str, what: str) -> T:
    if name not in table:
        raise NotExpressibleError(f"{what} without a row in netboot.kube.resources.forms: {name}")
    return table[name]


def _typed(annotation: Any, where: str) -> Schema:
    arguments, origin = get_args(annotation), get_origin(annotation)
    if annotation is str:
        return {"type": "string", "maxLength": LONGEST}
    if annotation is bool:
        return {"type": "boolean"}
    if annotation in _NUMBERS:
        return dict(_NUMBERS[annotation])
    if origin is Literal and all(isinstance(each, str) for each in arguments):
        return {"type": "string", "enum": list(arguments)}
    if origin is tuple and arguments[1:] == (...,):
        items = _value(arguments[0], (), f"{where}[]")
        return {"type": "array", "maxItems": MOST, "items": items, "x-kubernetes-list-type": "atomic"}
    if origin is dict:
        return _mapping(arguments[0], arguments[1], where)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return schema_of(annotation)
    raise NotExpressibleError(f"{where}: no schema has the type {annotation}")


def _mapping(key: Any, value: Any, where: str) -> Schema:
    keys = _value(key, (), f"{where} keys")
    schema = {"type": "object", "maxProperties": MOST, "additionalProperties": _value(value, (), f"{where} values")}
    if "pattern" not in keys:
        return schema
    form = keys["pattern"]
    return with_rules(schema, rule(f"self.all(key, key.matches({literal(form)}))", f"keys must match {form}"))


def _bounded(schema: Schema, parts: Iterable[Any], where: str) -> Schema:
    """With what stands beside the type: bounds, lengths, patterns."""
    bounded = dict(schema)
    for part in parts:
        for key, value in _said(part, schema, where):
            if key == "pattern" and "pattern" in bounded:
                raise NotExpressibleError(f"{where} has two patterns")
            bounded[key] = value
    return bounded


def _said(part: Any, schema: Schema, where: str) -> Iterator[tuple[str, Any]]:
    length = {"string": "Length", "array": "Items", "object": "Properties"}.get(schema["type"], "")
    if isinstance(part, Matching):
        yield "pattern", pattern(f"^({part.pattern})$")
    elif isinstance(part, StringConstraints):
        if part.pattern is not None:
            yield "pattern", pattern(str(part.pattern))
        lengths = {"minLength": part.min_length, "maxLength": part.max_length}
        yield from ((key, value) for key, value in lengths.items() if value is not None)
    elif isinstance(part, MinLen | MaxLen):
        yield (f"min{length}", part.min_length) if isinstance(part, MinLen) else (f"max{length}", part.max_length)
    elif isinstance(part, Ge | Le):
        yield ("minimum", part.ge) if isinstance(part, Ge) else ("maximum", part.le)
    elif isinstance(part, Gt | Lt):
        name, edge, step = ("minimum", part.gt, 1) if isinstance(part, Gt) else ("maximum", part.lt, -1)
        yield name, float(str(edge)) if schema["type"] == "number" else int(str(edge)) + step
        if schema["type"] == "number":
            yield f"exclusive{name.capitalize()}", True
    elif not isinstance(part, BeforeValidator | AfterValidator | Strict):
        raise NotExpressibleError(f"{where}: {part!r} has no counterpart in a schema")
