"""Requests that two readers could take for two things, or that want to be sent elsewhere, of whoever may ask."""

from pathlib import Path
from typing import Any

import pytest

from tests.sites import TOKEN
from tests.sockets.api import Api

HOLD = "/v1/machines/gpu-001/hold"
NO_CODING = "a body is read as it is sent, and in no coding"


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path)


def ask(api: Api, method: str, path: str, body: Any = None, **headers: str) -> Any:
    sent = api.authorised | {name.replace("_", "-"): value for name, value in headers.items()}
    return api.client.open(path, method=method, json=body, headers=sent)


@pytest.mark.parametrize("path", ["/v1//machines", "//v1/machines", "/v1/machines//gpu-001", "/v1//freeze"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_second_slash_leads_nowhere_and_to_no_other_host(api: Api, path: str, method: str) -> None:
    answer = ask(api, method, path, {"reason": "x"} if method == "POST" else None, Host="elsewhere.example")
    assert (answer.status_code, answer.json["code"]) == (404, "not-found")
    assert "Location" not in answer.headers
    assert "elsewhere.example" not in answer.text


@pytest.mark.parametrize("path", ["/page//machines", "/page/machines//gpu-001", "/page//login", "/page//"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nor_does_one_of_the_page(api: Api, path: str, method: str) -> None:
    answer = ask(api, method, path, Host="elsewhere.example")
    assert (answer.status_code, answer.headers.get("Location")) == (404 if method == "GET" else 403, None)
    assert "elsewhere.example" not in answer.text


@pytest.mark.parametrize("number", ["٧", "７", "07", "+7", "-7", "7.0", "1" + "0" * 18, "9" * 5000])
def test_a_number_of_a_path_has_one_spelling(api: Api, number: str) -> None:
    for path in (f"/v1/rollouts/{number}", f"/v1/remedies/{number}"):
        assert (ask(api, "GET", path).status_code, ask(api, "GET", path).json["code"]) == (404, "not-found")
    assert ask(api, "POST", f"/v1/rollouts/{number}/pause", {}).json["code"] == "not-found"
    assert ask(api, "GET", "/v1/rollouts/7").json["detail"] == "there is no rollout 7"


@pytest.mark.parametrize(
    ("name", "coding"),
    [
        ("Content-Encoding", "gzip"),
        ("Content-Encoding", "br"),
        ("Content-Encoding", "identity, gzip"),
        ("Transfer-Encoding", "gzip, chunked"),
        ("Transfer-Encoding", "chunked, chunked"),
    ],
)
def test_a_body_that_is_said_to_be_compressed_is_not_read(api: Api, name: str, coding: str) -> None:
    refused = ask(api, "POST", HOLD, {"reason": "x"}, **{name: coding})
    assert (refused.status_code, refused.json["detail"]) == (400, f"{name}: {NO_CODING}")
    csv = {"Content-Type": "text/csv", name: coding}
    listed: Any = api.client.post("/v1/enrolments", data=b"machine,ek_sha256\n", headers=api.authorised | csv)
    assert (listed.status_code, listed.json["detail"]) == (400, f"{name}: {NO_CODING}")
    assert api.get("/v1/machines/gpu-001/intents").json["intents"] == []
    assert ask(api, "POST", HOLD, {"reason": "x"}, Content_Encoding=" Identity").status_code == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", TOKEN, f"Basic {TOKEN}", f"Bearer\t{TOKEN}", f"Bearer {TOKEN},", f"Bearer no,Bearer {TOKEN}"],
)
def test_no_other_form_of_a_token_opens_anything(api: Api, method: str, authorization: str) -> None:
    query = f"?access_token={TOKEN}"
    for path in ("/v1/machines", f"/v1/machines{query}", "/v1/boots/watch", "/v1/openapi.json"):
        headers = {"Authorization": authorization, "Cookie": f"token={TOKEN}", "X-HTTP-Method-Override": "GET"}
        assert api.client.open(path, method=method, headers=headers).status_code == 401


def test_what_only_looks_does_nothing_whatever_method_it_names(api: Api) -> None:
    for method in ("GET", "PATCH", "TRACE", "QUERY"):
        answer = ask(api, method, HOLD, {"reason": "x"}, X_HTTP_Method_Override="POST")
        assert (answer.status_code, "POST" in answer.headers["Allow"]) == (405, True)
    told = ask(api, "OPTIONS", HOLD, Origin="http://elsewhere.example").headers
    assert not [name for name, _ in told if name.startswith("Access-Control-")]
    assert api.get("/v1/machines/gpu-001/intents").json["intents"] == []
