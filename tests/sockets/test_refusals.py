"""Who is refused leaves a line with the request's id, a few a minute, and a count, at the API and at the page."""

import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netboot.lifecycle.roles import Role
from netboot.logs import Lines
from netboot.web.refusals import MOST_LINES, WINDOW_SECONDS, Refusals
from tests.sites import TOKEN
from tests.sockets.api import HERE, Api, given

HOME = {"Origin": HERE}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path)


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """The log of who was refused."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(Lines("management"))
    log = logging.getLogger("netboot.web.refusals")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield written
    log.setLevel(logging.NOTSET)
    log.removeHandler(handler)


def said(lines: io.StringIO) -> list[str]:
    return [line.partition("msg=")[2] for line in lines.getvalue().splitlines()]


def counted(api: Api) -> dict[tuple[str, str], float]:
    found = re.findall(
        r'^netboot_management_refused_total\{code="(\d+)",route="([^"]*)"\} ([\d.]+)$',
        api.get("/metrics").text,
        re.MULTILINE,
    )
    return {(code, route): float(count) for code, route, count in found}


def test_who_is_refused_is_counted_by_status_and_route_and_in_the_log(api: Api, lines: io.StringIO) -> None:
    def ask(path: str, token: str, method: str = "GET", **more: Any) -> int:
        headers = {"Authorization": f"Bearer {token}", "X-Request-ID": "mine"}
        return int(api.client.open(path, method=method, headers=headers, **more).status_code)

    viewer = given(api, "wall", Role.VIEWER)
    assert ask("/v1/machines?limit=1", "a-token-of-nobody-at-all") == 401
    assert ask("/v1/machines/no-such", TOKEN) == 404
    assert ask("/v1/machines/nor-this", TOKEN) == 404
    assert ask("/no/such/path", TOKEN) == 404
    assert ask("/v1/machines/gpu-001/hold", viewer, "POST", json={"reason": "x"}) == 403
    assert ask("/v1/whoami", viewer) == 200
    assert said(lines) == [
        "refused request_id=mine status=401 method=GET path=/v1/machines peer=127.0.0.1",
        "refused request_id=mine machine=no-such status=404 method=GET path=/v1/machines/no-such peer=127.0.0.1",
        "refused request_id=mine machine=nor-this status=404 method=GET path=/v1/machines/nor-this peer=127.0.0.1",
        "refused request_id=mine status=404 method=GET path=/no/such/path peer=127.0.0.1",
    ], "what the audit has is not said twice, and no query is said at all"
    assert counted(api) == {
        ("401", "/v1/machines"): 1,
        ("403", "/v1/machines/<name>/hold"): 1,
        ("404", ""): 1,
        ("404", "/v1/machines/<name>"): 2,
    }


def test_the_page_s_requests_have_an_id_and_are_counted_once(api: Api, lines: io.StringIO) -> None:
    client = api.client.application.test_client()
    wrong = client.post("/page/login", data={"token": "x" * 30}, headers=HOME | {"X-Request-ID": "mine"})
    assert (wrong.status_code, wrong.headers["X-Request-ID"]) == (401, "mine")
    assert client.post("/page/login", data={"token": TOKEN}, headers=HOME).status_code == 303
    absent = client.get("/page/machines/no-such", headers={"X-Request-ID": "next"})
    assert (absent.status_code, absent.headers["X-Request-ID"]) == (404, "next")
    part = client.get("/page/machines/no-such", headers={"X-Request-ID": "part", "HX-Request": "true"})
    assert (part.status_code, part.headers["X-Request-ID"]) == (200, "part")
    assert len(client.get("/page/machines").headers["X-Request-ID"]) == 16
    machine = "machine=no-such status=404 method=GET path=/page/machines/no-such peer=127.0.0.1"
    assert said(lines) == [
        "refused request_id=mine status=401 method=POST path=/page/login peer=127.0.0.1",
        f"refused request_id=next {machine}",
        f"refused request_id=part {machine}",
    ]
    assert counted(api) == {("401", "/page/login"): 1, ("404", "/page/machines/<name>"): 2}


def test_a_session_whose_token_was_taken_back_is_counted(api: Api, lines: io.StringIO) -> None:
    client = api.client.application.test_client()
    token = given(api, "wall", Role.VIEWER)
    assert client.post("/page/login", data={"token": token}, headers=HOME).status_code == 303
    api.config.management.tokens.unlink()
    assert client.get("/page/machines", headers={"X-Request-ID": "gone"}).status_code == 303
    assert client.get("/page/machines", headers={"HX-Request": "true"}).status_code == 204
    assert said(lines)[0] == "refused request_id=gone status=401 method=GET path=/page/machines peer=127.0.0.1"
    assert counted(api) == {("401", "/page/machines"): 2}


def test_what_the_page_asks_of_the_api_is_in_the_log_with_the_page_s_id(api: Api) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(Lines("management"))
    log = logging.getLogger("netboot.web.errors")
    client = api.client.application.test_client()
    assert client.post("/page/login", data={"token": TOKEN}, headers=HOME).status_code == 303
    (api.config.data / "audit.db").unlink()
    log.addHandler(handler)
    try:
        assert client.get("/page/audit", headers={"X-Request-ID": "of-the-page"}).status_code == 503
    finally:
        log.removeHandler(handler)
    assert " request_id=of-the-page " in written.getvalue()


def test_a_flood_fills_no_log_hides_no_other_status_and_is_counted_whole() -> None:
    now = [0.0]
    refusals = Refusals(lambda: now[0])
    logged = [refusals.count(401, "/v1/whoami") for _ in range(MOST_LINES + 7)]
    assert logged == [0] * MOST_LINES + [None] * 7
    assert refusals.count(403, "/v1/whoami") == 0
    now[0] = WINDOW_SECONDS
    assert [refusals.count(401, "/v1/login") for _ in range(2)] == [7, 0]
    assert [refusals.count(403, "/v1/hold", audited=True) for _ in range(MOST_LINES)] == [None] * MOST_LINES
    assert refusals.count(403, "/v1/whoami") == 0, "what the audit has takes no line from others"
    assert refusals.counts() == {
        (401, "/v1/whoami"): MOST_LINES + 7,
        (403, "/v1/hold"): MOST_LINES,
        (403, "/v1/whoami"): 2,
        (401, "/v1/login"): 2,
    }
    assert refusals.by_status() == {"401": MOST_LINES + 9, "403": MOST_LINES + 2}
