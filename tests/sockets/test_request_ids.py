"""Ids of requests: taken over where they are well-formed, answered, and in each line of the log about the request."""

import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.logs import Lines
from tests.sites import TOKEN
from tests.sockets.api import Api
from tests.sockets.boot_server import MAC1, RunningBootServer, serve


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What the log says, as it is written."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(Lines("management"))
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.setLevel(level)
    root.removeHandler(handler)


def test_an_act_has_the_id_of_its_request_and_the_machine_in_the_log(api: Api, lines: io.StringIO) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Request-ID": "ci-42.a"}
    body = {"reason": "a fan"}
    answer = api.client.post("/v1/machines/gpu-001/hold", json=body, headers=headers)
    assert (answer.status_code, answer.headers["X-Request-ID"]) == (200, "ci-42.a")
    [audit] = [line for line in lines.getvalue().splitlines() if "msg=audit" in line]
    assert " request_id=ci-42.a machine=gpu-001 " in audit


@pytest.mark.parametrize("given", ["", "two words", "x" * 65, "a;b"])
def test_another_is_made_in_the_place_of_one_that_is_not_well_formed(api: Api, given: str) -> None:
    made = api.client.get("/healthz", headers={"X-Request-ID": given}).headers["X-Request-ID"]
    assert made != given
    assert len(made) == 16
    assert api.client.get("/healthz").headers["X-Request-ID"] != made


def test_who_is_not_let_in_or_asks_for_what_there_is_not_has_one_too(api: Api) -> None:
    for path, status in (("/v1/machines", 401), ("/nowhere", 404)):
        answer = api.client.get(path, headers={"X-Request-ID": "mine"})
        assert (answer.status_code, answer.headers["X-Request-ID"]) == (status, "mine")


def test_a_boot_server_gives_one_to_what_fails(tmp_path: Path, lines: io.StringIO) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = server.boot_of("gpu-001")
        answer = await server.ask(f"/v1/boots/{boot}/events", "POST", b"{", **{"X-Request-ID": "mine"})
        assert (answer.status, answer.headers["x-request-id"]) == (400, "mine")
        body = f'{{"mac": "{MAC1}", "phase": "Booted"}}'.encode()
        answer = await server.ask(f"/v1/boots/{boot}/events", "POST", body)
        assert (answer.status, "x-request-id" in answer.headers) == (204, False)

    serve(tmp_path, use)
    [said] = [line for line in lines.getvalue().splitlines() if "bad-request" in line]
    assert "request_id=mine peer=127.0.0.1 boot=0" in said
