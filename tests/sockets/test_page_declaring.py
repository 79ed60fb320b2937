"""The page's form that declares a machine which asked and may not boot."""

import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from netboot.lifecycle.roles import Role
from netboot.lifecycle.state import Batch
from netboot.stores.inventory import read_inventory
from netboot.web.pages import written
from tests.records import START, made_of, sighted
from tests.sites import TOKEN
from tests.sockets.api import Api, given, of_alice

MAC = "52:54:00:12:34:99"
AT = f"/page/discovered/{MAC}"
HOME = {"Origin": "http://localhost"}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return asked(of_alice(Api(tmp_path, writable=True)))


def asked(api: Api) -> Api:
    api.states.take(Batch("boot-0.db", 1, 1, [sighted(MAC)]))
    return api


def browser(api: Api, token: str = TOKEN) -> FlaskClient:
    client = api.client.application.test_client()
    assert client.post("/page/login", data={"token": token}, headers=HOME).status_code == 303
    return client


def form(text: str) -> str:
    found = re.search(r'name="form" value="([0-9a-f]{64})"', text)
    assert found is not None
    return found[1]


def test_it_is_declared_by_a_form(api: Api) -> None:
    client = browser(api)
    assert f'href="{AT}"' in client.get("/page/discovered").text
    shown = client.get(AT).text
    assert "<option>compute</option>" in shown and 'name="rack"' not in shown
    said = {"form": form(shown), "name": "gpu-009", "profile": "compute", "reason": "arrived"}
    answer = client.post(AT, data=said, headers=HOME)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/page/discovered?declared=gpu-009")
    assert "gpu-009 is declared" in client.get(answer.headers["Location"]).text
    (machine,) = [each for each in read_inventory(api.config).machines if each.name == "gpu-009"]
    assert machine.match.macs == (MAC,)
    (row,) = api.get("/v1/audit").json["audit"]
    assert (row["act"], row["who"], row["machine"], row["reason"]) == ("declare", "alice", "gpu-009", "arrived")


def test_all_that_it_would_be_declared_by_is_shown_and_who_said_so(api: Api) -> None:
    """The serial number is the report's, whatever the question said; both may be another machine's."""
    record = made_of(MAC, api.clock.now_ms(), tpm={"ek_sha256": "ab" * 32}).model_copy(update={"peer": "192.0.2.66"})
    api.states.take(Batch("boot-0.db", 1, 2, [record]))
    client, by = browser(api), f"serial LAB-0001, ek_sha256 {'ab' * 32}"
    assert f"TPM abababababababab; {by}, said by 192.0.2.66</td>" in client.get("/page/discovered").text
    shown = client.get(AT).text
    assert f'<span id="by">macs {MAC}, {by}</span>' in shown
    assert "Said by 192.0.2.66, which is not who asked: QEMU Standard PC, " in shown
    assert "is this machine, too" not in shown
    api.states.take(Batch("boot-0.db", 1, 3, [record.model_copy(update={"peer": "192.0.2.9"})]))
    assert "192.0.2.66 said within the hour that it is this machine, too" in client.get(AT).text
    assert "192.0.2.66 says that it is this machine, too</td>" in client.get("/page/discovered").text


def test_of_more_than_a_page_of_them_all_are_found(api: Api) -> None:
    """The latest first, and a link to those before."""
    more = [sighted(f"52:54:00:77:{n // 256:02x}:{n % 256:02x}", START + 1 + n) for n in range(200)]
    api.states.take(Batch("boot-0.db", 1, 2, more))
    client, row = browser(api), re.compile(r'<th scope="row"><code>([0-9a-f:]{17})</code>')
    first = client.get("/page/discovered").text
    assert row.findall(first) == [each.mac for each in reversed(more)]
    (older,) = re.findall(r'<a id="next" rel="next" href="([^"]+)">Older ›</a>', first)
    last = client.get(older).text
    assert (row.findall(last), "Older" in last) == ([MAC], False)
    behind = client.get("/page/discovered", query_string={"continue": written(MAC)}).text
    assert row.findall(behind) == []
    assert "None before those." in behind and "every machine that asked is in the inventory" not in behind
    gone = client.get("/page/discovered?continue=x")
    assert (gone.status_code, gone.headers["Location"]) == (303, "/page/discovered")


def test_where_nobody_asked_it_says_so(tmp_path: Path) -> None:
    shown = browser(of_alice(Api(tmp_path))).get("/page/discovered").text
    assert "None: every machine that asked is in the inventory." in shown and "None before those." not in shown


def test_another_site_s_form_declares_nothing(api: Api) -> None:
    client = browser(api)
    said = {"name": "gpu-009", "profile": "compute"}
    assert client.post(AT, data=said, headers=HOME).status_code == 403
    own = said | {"form": form(client.get(AT).text)}
    assert client.post(AT, data=own, headers={"Origin": "http://elsewhere"}).status_code == 403
    assert [path.name for path in api.config.inventory.glob("machine-*")] == []


def test_what_is_refused_is_said_and_nothing_typed_is_lost(api: Api) -> None:
    client = browser(api)
    said = {"form": form(client.get(AT).text), "name": "gpu-001", "profile": "compute", "reason": "it's <new>"}
    answer = client.post(AT, data=said, headers=HOME)
    assert answer.status_code == 409
    assert "gpu-001 is declared already, at " in answer.text
    assert 'value="gpu-001"' in answer.text and 'value="it&#39;s &lt;new&gt;"' in answer.text
    faulty = client.post(AT, data=said | {"name": "x", "profile": "nothing"}, headers=HOME)
    assert (faulty.status_code, "no profile is named &#39;nothing&#39;" in faulty.text) == (422, True)
    assert [path.name for path in api.config.inventory.glob("machine-*")] == []


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_who_may_not_copies_the_yaml(api: Api, role: Role) -> None:
    client = browser(api, given(api, "olga", role))
    shown = client.get(AT).text
    assert f"that needs the role admin, and you are {role}" in shown
    assert "machines:\n- name: NAME\n  match:\n    macs:\n    - 52:54:00:12:34:99\n  profile: compute\n" in shown
    answer = client.post(AT, data={"form": form(shown), "name": "gpu-009", "profile": "compute"}, headers=HOME)
    assert answer.status_code == 403
    assert [path.name for path in api.config.inventory.glob("machine-*")] == []


def test_where_it_is_kept_in_git_the_yaml_is_copied(api: Api) -> None:
    (api.config.inventory / ".git").mkdir()
    shown = browser(api).get(AT).text
    assert "is kept in git: edit it in a clone of" in shown and "- name: NAME" in shown and "<select" not in shown
    assert browser(api).get("/page/discovered/52:54:00:00:00:00").status_code == 404
