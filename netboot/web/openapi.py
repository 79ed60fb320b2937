"""The API's document, in OpenAPI 3.1, from its routes and what their views' signatures say: there is no other source.

Errors are by rule: what any request may meet, what a path with a variable adds, what one with a body or an act adds.
"""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast, get_args, get_type_hints

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from netboot.web import idempotency, moments
from netboot.web.binding import View, signature
from netboot.web.errors import MEDIA_TYPE, Problem
from netboot.web.metrics_info import build
from netboot.web.operations import REFERENCE, VARIABLE, operation_id, renamed, tag
from netboot.web.preconditions import LONGEST, PATTERN, Tag

Schema = dict[str, Any]
Models = dict[tuple[type[BaseModel], JsonSchemaMode], Schema]

ANYWHERE = {
    400: "What was sent cannot be read, or is not there to be asked for",
    500: "A defect: the service's log has it",
    502: "What is stored is damaged",
    503: "It cannot be told right now: try again",
}
GUARDED = {401: "No token, or a wrong one", 403: "Not allowed"}
NAMED = {404: "Unknown"}
ACTS = {
    403: "Not allowed",
    404: "Unknown",
    409: "Not allowed, as things are",
    413: "Too large",
    415: "Not of the kind of content that is read here",
    422: "Not allowed, or with faults",
}
CHANGED = "It is not what If-Match was given for"


class Raw(NamedTuple):
    """A view that makes its answer by itself: of which kind it is, and with which statuses it comes. `kind`: of its
    schema, where no model is; `other`: of which kind it is, too, for who asks for that; `headers`: that it reads."""

    media_type: str
    statuses: tuple[int, ...] = (200,)
    model: type[BaseModel] | None = None
    kind: str = "string"
    other: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


class Route(NamedTuple):
    """One thing to ask for. `raw`: of a view that makes its `Response`; `takes`: of a body that is no JSON, its kind;
    `refuses`: statuses that the rules do not give it; `tag`: of what it shows; `on`: of what it acts on; `needs`: one
    of these headers; `named`: the field of the body that names what it acts on, where the path does not;
    `largest`: how many bytes its body may have, None: as many as others'."""

    method: str
    path: str
    view: View
    guarded: bool = True
    raw: Raw | None = None
    takes: str | None = None
    refuses: tuple[int, ...] = ()
    tag: Tag | None = None
    on: tuple[Tag, ...] = ()
    needs: tuple[str, ...] = ()
    named: str = ""
    largest: int | None = None

    @property
    def tagged(self) -> bool:
        """Whether its answer has a tag: of what counts of a thing, or of all of the answer."""
        return self.method == "GET" and self.guarded and self.raw is None


def document(routes: Iterable[Route]) -> Schema:
    """All of it."""
    routes = tuple(routes)
    models, definitions = _models(routes)
    paths: dict[str, Schema] = {}
    for route in routes:
        paths.setdefault(VARIABLE.sub(r"{\2}", route.path), {})[route.method.lower()] = _operation(route, models)
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "netboot",
            "version": build()[0] or "unknown",
            "summary": "The management API of netboot",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    return cast("Schema", moments.described(whole))


def _models(routes: tuple[Route, ...]) -> tuple[Models, Schema]:
    """Model → its schema, a reference; and what is referred to."""
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = [(Problem, "serialization")]
    for route in routes:
        said = signature(route.view)
        wanted += [(model, "serialization") for model in said.answers]
        wanted += [(model, "validation") for model in (said.body,) if model is not None]
        if route.raw is not None and route.raw.model is not None:
            wanted.append((route.raw.model, "serialization"))
    made, whole = models_json_schema(list(dict.fromkeys(wanted)), ref_template=REFERENCE + "{model}")
    schemas, definitions = cast("tuple[Models, Schema]", renamed((made, whole.get("$defs", {}))))
    for name, definition in definitions.items():
        definition["title"] = name  # generators name classes by it
        _close(definition)
    return schemas, definitions


def _close(schema: Schema) -> None:
    """What is not said there is not there, also where a model reads past what it does not know."""
    if "properties" in schema:
        schema.setdefault("additionalProperties", False)


def _operation(route: Route, models: Models) -> Schema:
    said = signature(route.view)
    lines = inspect.cleandoc(route.view.__doc__ or "").split("\n\n", 1)[0]
    operation: Schema = {
        "operationId": operation_id(route.view),
        "tags": [tag(route.view)],
        "summary": " ".join(lines.split()),
        "parameters": [*_variables(route), *_parameters(said.query), *_headers(route)],
        "responses": _responses(route, models),
    }
    if not route.guarded:
        operation["security"] = []
    if said.body is not None:
        operation["requestBody"] = _content("application/json", models[said.body, "validation"], required=True)
    elif route.takes is not None:
        operation["requestBody"] = _content(route.takes, {"type": "string"}, required=True)
    return operation


def _variables(route: Route) -> Iterable[Schema]:
    hints = get_type_hints(route.view)
    for kind, name in VARIABLE.findall(route.path):
        text = {"enum": list(of)} if (of := get_args(hints.get(name))) else {"minLength": 1}  # of a Literal
        schema = {"type": "integer", "minimum": 0} if kind == "int" else {"type": "string", **text}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _parameters(query: type[BaseModel] | None) -> Iterable[Schema]:
    if query is None:
        return
    whole = query.model_json_schema()
    for name, schema in whole.get("properties", {}).items():
        bare = _bare(schema, whole.get("$defs", {}))
        yield {"name": name, "in": "query", "required": name in whole.get("required", ()), "schema": bare}


def _headers(route: Route) -> Iterable[Schema]:
    for name in route.raw.headers if route.raw is not None else ():
        yield _header(name, {"type": "string"})
    tags = {"type": "string", "pattern": PATTERN, "maxLength": LONGEST}
    if route.tagged:
        yield _header("If-None-Match", tags)
    if route.on:
        yield _header("If-Match", tags)
    if "If-None-Match" in route.needs:
        yield _header("If-None-Match", {"type": "string", "pattern": r"^\*$"})
    if route.method != "GET":
        yield _header(idempotency.HEADER, {"type": "string", "pattern": idempotency.PATTERN})


def _header(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "header", "required": False, "schema": schema}


def _bare(schema: Schema, definitions: Schema) -> Schema:
    """A parameter is there or it is not: none is null. What it is stands there, for it is short."""
    given = [each for each in schema.pop("anyOf", ()) if each != {"type": "null"}]
    schema = {**schema, **(given[0] if given else {})}
    schema |= definitions.get(schema.pop("$ref", "").rpartition("/")[2], {})
    if schema.get("default", "") is None:
        del schema["default"]
    return schema


def _responses(route: Route, models: Models) -> Schema:
    answers: dict[int, Schema] = {}
    by_status: dict[int, list[Schema]] = {}
    for model in signature(route.view).answers:
        by_status.setdefault(getattr(model, "http_status", 200), []).append(models[model, "serialization"])
    for status, schemas in by_status.items():
        schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        answers[status] = {"description": "Done", **_content("application/json", schema)}
    if route.on:
        words = "Of what it acted on, as that is now; not where it is gone, or the answer is given again"
        for answer in answers.values():
            answer["headers"] = {"ETag": {"description": words, "schema": {"type": "string"}}}
    if route.tagged:
        words = "Of what counts as seen of it" if route.tag is not None else "Of all of the answer"
        header = {"ETag": {"description": words, "schema": {"type": "string"}}}
        answers[200]["headers"] = header
        answers[304] = {"description": "It is as it was", "headers": header}
    if route.raw is not None:
        made = route.raw.model
        schema = models[made, "serialization"] if made is not None else {"type": route.raw.kind}
        for status in route.raw.statuses:
            content = {kind: {"schema": schema} for kind in (route.raw.media_type, *route.raw.other)}
            answers[status] = {"description": "As it is", "content": content}
    problem = _content(MEDIA_TYPE, models[Problem, "serialization"])
    for status, words in _errors(route).items():
        answers.setdefault(status, {"description": words, **problem})
    return {str(status): answers[status] for status in sorted(answers)}


def _errors(route: Route) -> Mapping[int, str]:
    more = {status: (ACTS | ANYWHERE | {412: "It is not what was shown"})[status] for status in route.refuses}
    if not route.guarded:
        return {500: ANYWHERE[500]} | more
    acts = ACTS if route.method != "GET" else {}
    acts = acts | ({412: CHANGED} if route.on else {})
    return ANYWHERE | GUARDED | (NAMED if "<" in route.path else {}) | acts | more


def _content(media_type: str, schema: Schema, **more: object) -> Schema:
    return {**more, "content": {media_type: {"schema": schema}}}
