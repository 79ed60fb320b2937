"""`make client` writes `netboot/client/models.py` and `api.py` from the API's document; a test
compares them (`tests/unit/test_client_source.py`)."""

import re
import subprocess
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from keyword import iskeyword
from pathlib import Path
from typing import Any

from netboot.web.app import api_document

Schema = dict[str, Any]

FOLDER = Path(__file__).parents[1] / "netboot" / "client"
REFERENCE = "#/components/schemas/"
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
PAGE = 500
"""Items that are asked for at once where all are wanted."""
HEAD = "Made from the API's document by `make client`: alter nothing here."


def made() -> dict[Path, str]:
    """What each file should hold."""
    document = api_document()
    files = {
        FOLDER / "models.py": "\n\n".join(_models(document["components"]["schemas"])),
        FOLDER / "api.py": "\n\n".join(_apis(document)),
    }
    return {path: _formatted(text) for path, text in files.items()}


def _formatted(text: str) -> str:
    ruff = Path(sys.executable).parent / "ruff"
    return subprocess.run([ruff, "format", "-"], input=text, capture_output=True, text=True, check=True).stdout


def _models(schemas: dict[str, Schema]) -> Iterator[str]:
    yield _words(f"What the API is sent and answers, as JSON has it. {HEAD}")
    yield "from __future__ import annotations"
    yield "from typing import Any, Literal, NotRequired, TypedDict"
    values = {name: schema for name, schema in schemas.items() if "properties" not in schema}
    for name, schema in values.items():
        yield f"{name} = {_type(schema)}\n" + _words(schema.get("description"))
    for name in sorted(schemas.keys() - values.keys()):
        yield _dictionary(name, schemas[name])


def _dictionary(name: str, schema: Schema) -> str:
    fields = {
        field: _type(each) if field in schema.get("required", ()) else f"NotRequired[{_type(each)}]"
        for field, each in schema["properties"].items()
    }
    words = _words(schema.get("description") or f"What the document calls `{name}`.")
    if any(map(iskeyword, fields)):
        whole = ", ".join(f'"{field}": "{kind}"' for field, kind in fields.items())
        return f'{name} = TypedDict("{name}", {{{whole}}})\n{words}'
    lines = "\n".join(f"{field}: {kind}" for field, kind in fields.items()) or "pass"
    return f"class {name}(TypedDict):\n" + textwrap.indent("\n\n".join(filter(None, (words, lines))), "    ")


def _words(description: str | None) -> str:
    """A docstring."""
    if not description:
        return ""
    text = textwrap.fill(" ".join(description.split()), 104).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}"""' if not text.endswith('"') else f'"""{text} """'


def _type(schema: Schema, prefix: str = "") -> str:
    """A JSON Schema, as pydantic makes them, as a type."""
    several = schema.get("anyOf", schema.get("oneOf"))
    if several is not None:
        return " | ".join(dict.fromkeys(_type(each, prefix) for each in several))
    if "$ref" in schema:
        return prefix + str(schema["$ref"]).removeprefix(REFERENCE)
    if "enum" in schema or "const" in schema:
        return f"Literal[{', '.join(map(repr, schema.get('enum', [schema.get('const')])))}]"
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("prefixItems") or [schema.get("items", {})]
        return f"list[{_type({'anyOf': items}, prefix)}]"
    if kind == "object":
        of = schema.get("additionalProperties")
        return f"dict[str, {_type(of, prefix) if isinstance(of, dict) else 'Any'}]"
    return PLAIN[kind] if kind is not None else "Any"


def _apis(document: Schema) -> Iterator[str]:
    yield _words(f"What the API can be asked, by its parts. {HEAD}")
    yield "from __future__ import annotations"
    yield "from collections.abc import Iterator\nfrom typing import TYPE_CHECKING, Any, Literal"
    yield "from netboot.client.base import Api, Asker, pages, segment\nfrom netboot.client.watch import Watch"
    yield "if TYPE_CHECKING:\n    from netboot.client import models"
    apis: dict[str, list[str]] = defaultdict(list)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = operation["tags"][0]
            name = _name(operation["operationId"].removeprefix(f"{tag}_"))
            apis[tag].append(_operation(name, method.upper(), path, operation))
            if any(each["name"] == "continue" for each in operation["parameters"]):
                apis[tag].append(_each(name, path, operation, document["components"]["schemas"]))
    for tag, methods in sorted(apis.items()):
        yield f'class {_class(tag)}(Api):\n    """Of `{tag}`."""\n\n' + textwrap.indent("\n\n".join(methods), "    ")
    attributes = "\n".join(f"        self.{tag} = {_class(tag)}(asker)" for tag in sorted(apis))
    yield f'class Apis:\n    """All of it."""\n\n    def __init__(self, asker: Asker) -> None:\n{attributes}'


def _class(tag: str) -> str:
    return f"{tag.title().replace('_', '')}Api"


def _name(wire: str) -> str:
    """Of a parameter, as Python may have it."""
    name = re.sub(r"\W|(?<=[a-z])(?=[A-Z])", "_", wire).lower()
    return f"{name}_" if iskeyword(name) else name


def _operation(name: str, method: str, path: str, operation: Schema) -> str:
    """A method that asks."""
    problem = "application/problem+json"
    contents = {int(at): one.get("content", {problem: {}}) for at, one in operation["responses"].items()}
    done = {at: content for at, content in contents.items() if problem not in content}
    stream = any("text/event-stream" in kinds for kinds in done.values())
    variables = _of(operation, "path")
    asked = [*_of(operation, "query"), *(() if stream else _of(operation, "header"))]  # a watch knows where it was
    body = [_type(each["schema"], "models.") for each in operation.get("requestBody", {}).get("content", {}).values()]
    plain = [f"{_name(each['name'])}: {_type(each['schema'])}" for each in variables]
    signature = ", ".join(["self", *plain, *(f"body: {kind}" for kind in body), *_keywords(asked)])
    types = dict.fromkeys(_type(each["schema"], "models.") for kinds in done.values() for each in kinds.values())
    answers = "Watch" if stream else " | ".join(types)
    arguments = [_target(path, variables), *_sent(operation, stream), *(["body=body"] if body else [])]
    arguments += ["text=True"] if any("text/plain" in kinds for kinds in done.values()) else []
    also = [status for status in done if status >= 300]
    arguments += [f"also={tuple(also)!r}"] if also else []
    head = f"def {name}({signature}) -> {answers}:\n{textwrap.indent(_words(operation['summary']), '    ')}\n"
    if stream:
        return f"{head}    return self._asker.follow({', '.join(arguments)})"
    return f"{head}    answer: {answers} = self._asker.ask({method!r}, {', '.join(arguments)})\n    return answer"


def _each(name: str, path: str, operation: Schema, schemas: dict[str, Schema]) -> str:
    """A method that goes through all pages of another."""
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].removeprefix(REFERENCE)
    fields = schemas[answer]["properties"].items()
    listed = {field: each for field, each in fields if each.get("type") == "array" and "$ref" in each["items"]}
    if len(listed) > 1:  # the one by whose name it is asked for
        listed = {field: each for field, each in listed.items() if field == path.rpartition("/")[2]}
    assert len(listed) == 1, (name, answer, list(listed))
    (items, of), others = next(iter(listed.items())), _of(operation, "query")
    most = next(each["schema"]["maximum"] for each in others if each["name"] == "limit")
    asked = [each for each in others if each["name"] != "continue"]
    variables = {_name(each["name"]): _type(each["schema"]) for each in _of(operation, "path")}
    signature = ", ".join(
        ["self", *(f"{each}: {kind}" for each, kind in variables.items()), *_keywords(asked)]
    ).replace("limit: int | None = None", f"limit: int = {min(PAGE, most)}")
    given = [f"{_name(each['name'])}={_name(each['name'])}" for each in asked]
    arguments = ", ".join([*variables, *given, "continue_=after"])
    each_name = "each" if name == "list" else f"each_{name.removeprefix('list_')}"
    words = f"All that `{name}` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."
    words = textwrap.indent(_words(words), "    ")
    return (
        f"def {each_name}({signature}) -> Iterator[{_type(of['items'], 'models.')}]:\n{words}\n"
        f"    return pages(lambda after: self.{name}({arguments}), {items!r})"
    )


def _of(operation: Schema, where: str) -> list[Schema]:
    """But for If-None-Match of who looks: what has not changed is no answer of an operation here."""
    there = [each for each in operation["parameters"] if each["in"] == where]
    return [each for each in there if each["name"] != "If-None-Match" or "304" not in operation["responses"]]


def _keywords(parameters: list[Schema]) -> list[str]:
    """Those that must be there first."""
    kinds = [(_name(each["name"]), _type(each["schema"]), each["required"]) for each in parameters]
    said = [f"{name}: {kind}" for name, kind, required in kinds if required]
    said += [f"{name}: {kind} | None = None" for name, kind, required in kinds if not required]
    return ["*", *said] if said else []


def _target(path: str, variables: list[Schema]) -> str:
    for each in variables:
        path = path.replace(f"{{{each['name']}}}", f"{{segment({_name(each['name'])})}}")
    return f"f{path!r}" if variables else repr(path)


def _sent(operation: Schema, stream: bool) -> list[str]:
    """Its query and headers, as arguments."""
    said = []
    for argument, where in (("query", "query"), ("headers", "header")):
        pairs = ", ".join(f"{each['name']!r}: {_name(each['name'])}" for each in _of(operation, where))
        said += [f"{argument}={{{pairs}}}"] if pairs and not (stream and where == "header") else []
    return said


if __name__ == "__main__":
    for file, text in made().items():
        file.write_text(text)
