"""Each operation of the API's document keeps what docs/http-management.md says of all: pages, tags, keys, watches."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netboot.web.app import api_document

DOCUMENT = api_document()
PAGE = (Path(__file__).parents[2] / "docs/http-management.md").read_text()
LISTS, STREAM = {"array", "map"}, "text/event-stream"
WHOLE = {
    "/v1/fleet": "counts",
    "/v1/machines/{name}": "of one machine",
    "/v1/machines/{name}/enrolment": "of one machine",
    "/v1/machines/{name}/intents": "of one machine",
    "/v1/machines/{name}/drains": "of one machine",
    "/v1/boots/{boot}": "of one boot",
    "/v1/images/{digest}": "of one image",
    "/v1/images/{digest}/diff": "of two images",
    "/v1/images/{digest}/uses": "names",
    "/v1/rollouts/{number}": "its machines are in pages of their own",
    "/v1/inventory": "names",
    "/v1/inventory/diff": "names, of machines of one inventory",
    "/v1/freeze": "windows of the inventory",
}
"""Answers with lists that come whole: why they are bounded, as the section *Pages* says it."""
UNTAGGED = {
    ("post", "/v1/enrolments"): "many machines",
    ("post", "/v1/inventory/machines"): "many machines",
    ("post", "/v1/discovered/{mac}/declare"): "has `seen` for it",
    ("post", "/v1/tokens"): "on tokens",
    ("delete", "/v1/tokens/{token_id}"): "on tokens",
}
"""Acts on what has no tag, as the section *What was seen* says it."""
WATCHED = {
    "/v1/audit": "/v1/audit/watch",
    "/v1/boots": "/v1/boots/watch",
    "/v1/discovered": "/v1/discovered/watch",
    "/v1/drains": "/v1/drains/watch",
    "/v1/fleet/machines": "/v1/fleet/watch",
    "/v1/machines": "/v1/fleet/watch",
    "/v1/machines/{name}/events": "/v1/machines/{name}/events/watch",
    "/v1/rollouts/{number}/members": "/v1/rollouts/{number}/watch",
    "/v1/rollouts": "/v1/fleet/watch",
    "/v1/channels": "/v1/audit/watch",
    "/v1/intents": "/v1/audit/watch",
    "/v1/inventory/machines": "/v1/audit/watch",
    "/v1/inventory/{kind}": "/v1/audit/watch",
}
"""What tells that a list is otherwise. Others change by a command on files, or seldom: their tag (304) is asked for."""
ASKED_FOR = {
    "/v1/drift",
    "/v1/enrolments",
    "/v1/images",
    "/v1/images/{digest}/packages",
    "/v1/remedies",
    "/v1/tokens",
}


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, there in DOCUMENT["paths"].items():
        for method, operation in there.items():
            if operation.get("security") != []:  # what anybody may ask is for probes
                yield method, path, operation


def kinds(schema: dict[str, Any]) -> set[str]:
    if "anyOf" in schema:
        return set().union(*map(kinds, schema["anyOf"]))
    return {"map" if isinstance(schema.get("additionalProperties"), dict) else schema.get("type", "")}


def headers(operation: dict[str, Any]) -> set[str]:
    return {each["name"] for each in operation["parameters"] if each["in"] == "header"}


def lists_of(operation: dict[str, Any]) -> tuple[set[str], bool]:
    """Fields of its answer that are lists, and whether it goes on."""
    schema = operation["responses"]["200"]["content"].get("application/json", {}).get("schema", {})
    fields = DOCUMENT["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {}).get("properties", {})
    return {name for name, each in fields.items() if kinds(each) & LISTS}, "continue" in fields


LOOKS = [(path, operation) for method, path, operation in operations() if method == "get"]
ACTS = [(method, path, operation) for method, path, operation in operations() if method != "get"]


@pytest.mark.parametrize(("path", "operation"), LOOKS, ids=[path for path, _ in LOOKS])
def test_a_list_comes_in_pages_or_is_bounded_by_what_it_is_of(path: str, operation: dict[str, Any]) -> None:
    found, goes_on = lists_of(operation)
    asked = {each["name"] for each in operation["parameters"] if each["in"] == "query"}
    assert goes_on == ({"limit", "continue"} <= asked), path
    assert bool(found) == (goes_on or path in WHOLE), f"{path}: {found}: in pages, or in WHOLE with its bound"
    if path in WHOLE:
        assert f"`{path}`" in section("Pages"), path


@pytest.mark.parametrize(("path", "operation"), LOOKS, ids=[path for path, _ in LOOKS])
def test_an_answer_has_a_tag_by_which_it_is_asked_for_again(path: str, operation: dict[str, Any]) -> None:
    kinds_of = operation["responses"]["200"]["content"]
    raw = STREAM in kinds_of or path in ("/v1/openapi.json", "/v1/images/{digest}/sbom")
    assert ("304" in operation["responses"], "If-None-Match" in headers(operation)) == (not raw, not raw), path
    said = f"`{path.replace('{', '<').replace('}', '>')}`" in section("What was seen")
    assert STREAM in kinds_of or said or not raw, f"{path} has no tag, and the page says that it has one"


@pytest.mark.parametrize(("method", "path", "operation"), ACTS, ids=[f"{method} {path}" for method, path, _ in ACTS])
def test_an_act_takes_a_key_and_the_tag_of_what_it_acts_on(method: str, path: str, operation: dict[str, Any]) -> None:
    assert "Idempotency-Key" in headers(operation)
    assert ("If-Match" in headers(operation)) == ((method, path) not in UNTAGGED)
    answers = [each for status, each in operation["responses"].items() if status[0] == "2"]
    assert all(("ETag" in each.get("headers", {})) == ((method, path) not in UNTAGGED) for each in answers)
    if (method, path) in UNTAGGED:
        assert UNTAGGED[method, path] in section("What was seen")


def test_what_one_leaves_open_can_be_watched() -> None:
    streams = {path for path, operation in LOOKS if STREAM in operation["responses"]["200"]["content"]}
    assert set(WATCHED.values()) == streams
    assert {path for path, operation in LOOKS if lists_of(operation)[1]} == WATCHED.keys() | ASKED_FOR
    for path in ASKED_FOR:
        assert f"`{path}`" in section("Watching"), path
