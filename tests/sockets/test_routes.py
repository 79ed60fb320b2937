"""docs/http-*.md list the routes of each listener: each that there is, and none that is not."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from flask import Flask

from netboot.web import app
from netboot.web.join import app as join
from tests.journeys import ROOT
from tests.sockets.api import Api
from tests.sockets.boot_server import RunningBootServer, serve

Routes = set[tuple[str, str]]


def documented(page: str) -> Routes:
    """Method and path, from the first cells of tables: `GET, HEAD /v1/blobs/<sha256>?boot=`; `<…>` without its name."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    cells = [line.split(" | ")[0] for line in lines if line.startswith("| `")]
    spans = [span for cell in cells for span in re.findall(r"`([A-Z]+(?:, [A-Z]+)* /[^` ?]*)[^`]*`", cell)]
    return {(method, unnamed(path)) for methods, path in map(split, spans) for method in methods.split(", ")}


def split(span: str) -> tuple[str, str]:
    methods, _, path = span.rpartition(" ")
    return methods, path


def unnamed(path: str) -> str:
    return re.sub(r"<[^>]*>", "<>", path)


def declared(table: Iterable[tuple[str, str, object]]) -> Routes:
    return {(method, unnamed(path)) for method, path, _ in table}


def served(app: Flask) -> Routes:
    """What Flask answers, but for what it adds to each by itself."""
    return {
        (method, unnamed(rule.rule))
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }


def test_the_management_server(tmp_path: Path) -> None:
    routes = declared((each.method, each.path, each.view) for each in app.ROUTES)
    assert documented("http-management.md") == routes
    assert served(Api(tmp_path).client.application) == routes
    assert len(routes) == len(app.ROUTES)


def test_the_boot_server(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        routes = server.internals.app.routes
        assert documented("http-provisioning.md") == {
            (method, unnamed(route.path)) for route in routes for method in route.handlers
        }
        for route in routes:  # each path of the table leads to its own entry, and no other
            path = route.path.replace("<", "").replace(">", "")
            answer = await server.ask(path, "PATCH")
            assert (answer.status, answer.headers["allow"]) == (405, ", ".join(route.handlers))

    serve(tmp_path, use)


def test_the_join_server() -> None:
    assert documented("http-join.md") == declared(join.ROUTES)


@pytest.mark.parametrize(
    ("row", "routes"),
    [
        ("| `GET, HEAD /v1/a/<b>?c=` | x |", {("GET", "/v1/a/<>"), ("HEAD", "/v1/a/<>")}),
        ("| `POST /v1/a` `{}`, `POST /v1/b` (≤ 16 KiB) | `GET /v1/c` |", {("POST", "/v1/a"), ("POST", "/v1/b")}),
        ("`GET /v1/prose`", set()),
    ],
)
def test_the_reading_of_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, routes: Routes) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(row)
    monkeypatch.setattr("tests.sockets.test_routes.ROOT", tmp_path)
    assert documented("page.md") == routes
