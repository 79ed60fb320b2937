"""People of real issuers: by the command line (npm's oidc-provider, a whole service behind its walls) and by the page
(oidc-provider-mock), what they may do, and how that ends."""

import base64
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from flask.testing import FlaskClient

from netboot.cli import login
from netboot.client import contexts
from netboot.config import load_config
from netboot.config_access import Oidc
from netboot.oidc.issuer import Granted
from netboot.oidc.tokens import expires_of
from netboot.stores import access_tokens
from netboot.web import roles
from tests.commands import Run
from tests.issuers import CLI, PAGE, PAGE_SECRET, ROLES, approve, mock, provider
from tests.sites import TOKEN, make_site
from tests.sockets.api import HERE, Api, Going
from tests.sockets.service import Service, serving
from tests.sockets.test_access import ADMINS, OPERATORS

REFUSED = "it cannot be reached: Connection refused"
HOME = {"Origin": "http://localhost"}


class Site(NamedTuple):
    """A service that knows an issuer, and the issuer's process."""

    service: Service
    issuer: str
    process: "subprocess.Popen[bytes]"

    def status(self, token: str, path: str = "/v1/whoami") -> tuple[int, Any]:
        answer = requests.get(
            f"{self.service.management}{path}", headers={"Authorization": f"Bearer {token}"}, timeout=60
        )
        return answer.status_code, answer.json()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("site")
    make_site(root, workers=1)
    file, secret = root / "netboot.yaml", root / "secrets" / "oidc.secret"
    secret.write_text(PAGE_SECRET + "\n")
    secret.chmod(0o600)
    with provider("http://127.0.0.1:1/page/login/oidc/callback") as (issuer, process):
        said = {
            "issuer": issuer,
            "client_id": PAGE,
            "cli_client_id": CLI,
            "client_secret_file": "secrets/oidc.secret",
            "scopes": ["openid", "groups"],
            "roles": ROLES,
        }
        file.write_text(f"{file.read_text()}  oidc: {json.dumps(said)}\n")
        access_tokens.change(root / "secrets" / "access.json", lambda there: there)
        with serving(load_config(file), file) as service:
            yield Site(service, issuer, process)


@pytest.fixture
def at_home(site: Site, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`netboot …` of somebody whose context is the service."""
    for name in ("SERVER", "TOKEN_FILE", "CONTEXT", "CERTIFICATE_AUTHORITY", "PROXY"):
        monkeypatch.delenv(f"NETBOOT_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)
    assert run("context", "add", "fra", "--server", site.service.management).status == 0
    return run


def as_(who: str, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """`netboot login`, while `who` enters the code in a browser. What was said, and what was logged."""
    shown: list[str] = []

    def entered(_seconds: float) -> None:
        shown.append(capsys.readouterr().err)
        found = re.search(r"or open (\S+), and", shown[-1])
        assert found is not None
        approve(found[1], who)

    monkeypatch.setattr(login, "wait", entered)
    ran = run("login")
    return shown[0], f"{ran.status} {ran.out}{ran.err}"


def kept() -> contexts.Login:
    context = contexts.read().named("fra")
    assert context is not None
    assert context.login is not None
    return context.login


def test_who_logs_in_by_the_command_line_acts_as_themselves(
    site: Site, at_home: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, said = as_("operator", at_home, capsys, monkeypatch)
    assert re.fullmatch(
        rf"At {site.issuer}, for the client {CLI}: scopes openid groups\n"
        rf"Open {site.issuer}/device in a browser, on any machine, and enter the code\n\n    [A-Z]{{4}}-[A-Z]{{4}}\n\n"
        rf"or open {site.issuer}/device\?user_code=[A-Z-]{{9}}, and compare the code\.\n"
        r"Waiting until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d); Ctrl-C gives up, and changes nothing\.\n",
        shown,
    )
    assert said == "0 logged in to fra as oidc:operator, operator\n"
    file = contexts.file()
    assert (oct(file.stat().st_mode)[-3:], kept().token in file.read_text()) == ("600", True)
    listed = at_home("context", "list", "-o", "json").out
    assert not any(secret in listed for secret in (kept().token, kept().refresh_token))
    first = kept()
    who = at_home("whoami", "-o", "json").json
    assert (who["name"], who["role"], who["issuer"]) == ("oidc:operator", "operator", site.issuer)
    assert kept().refresh_token != first.refresh_token, "it ended within half a minute, and was renewed"
    assert at_home("machine", "hold", "gpu-001", "--reason", "DIMM 4").status == 0
    refused = at_home("token", "revoke", "ab12cd")
    assert (refused.status, "needs the role admin, and oidc:operator has the role operator" in refused.err) == (4, True)
    records = site.service.api("/v1/audit")["audit"]
    assert [(each["act"], each["who"], each["role"], each["facts"]["issuer"], each["result"]) for each in records] == [
        (
            "DELETE /v1/tokens/<token_id>",
            "oidc:operator",
            "operator",
            site.issuer,
            "not-allowed",
        ),
        ("hold", "oidc:operator", "operator", site.issuer, "done"),
    ]
    assert kept().token not in site.service.log


def test_who_is_blocked_or_logs_out_gets_in_no_more(
    site: Site, at_home: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    as_("viewer", at_home, capsys, monkeypatch)
    token, config = kept().token, ("--config", site.service.file)
    assert site.status(token)[0] == 200
    assert at_home("access", "block", "oidc:viewer", *config).out == "oidc:viewer is blocked\n"
    status, refused = site.status(token)
    assert (status, refused["code"], refused["detail"], refused["remedy"]) == (
        403,
        "blocked",
        "oidc:viewer is blocked here",
        "an admin lifts it, at the site: `netboot access unblock`",
    )
    assert [each["name"] for each in at_home("access", "blocked", "-o", "json", *config).json["blocked"]] == [
        "oidc:viewer"
    ]
    assert at_home("access", "unblock", "oidc:viewer", *config).out == "oidc:viewer is not blocked any more\n"
    assert site.status(token)[0] == 200
    assert at_home("access", "unblock", "oidc:viewer", *config).status == 3
    before = kept()
    assert at_home("logout").out == "logged out of fra\n"
    contexts.change(lambda there: contexts.with_login(there, "fra", before))
    ended = at_home("machine", "list")
    assert (ended.status, ended.err) == (
        4,
        "Error: the login of context fra has ended\nRemedy: log in again: `netboot login`\n",
    ), "the issuer has taken it back"


@pytest.mark.parametrize("by", ["add", "remove"])
def test_a_login_that_goes_with_its_context_is_taken_back(
    by: str, site: Site, at_home: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    as_("viewer", at_home, capsys, monkeypatch)
    before, again = kept(), ("context", "add", "fra", "--server", site.service.management)
    if by == "add":
        assert at_home(*again).err == "logged out of fra\n"
    else:
        assert at_home("context", "remove", "fra").out == "context fra is forgotten; none is in use\n"
        assert at_home(*again).status == 0
    contexts.change(lambda there: contexts.with_login(there, "fra", before.model_copy(update={"expires_ms": 0})))
    ended = at_home("machine", "list")
    assert (ended.status, ended.err.splitlines()[0]) == (4, "Error: the login of context fra has ended")


def test_who_has_no_role_is_told_and_keeps_nothing(
    site: Site, at_home: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = as_("stranger", at_home, capsys, monkeypatch)[1]
    assert said == (
        f"4 Error: oidc:stranger of {site.issuer} has no role here: management.oidc.roles names nobody of theirs\n"
        "Remedy: ask an admin of the service for one: `roles` in netboot.yaml\n"
    )
    assert contexts.read().contexts[0].login is None

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(login, "wait", interrupted)
    assert at_home("login").status == 130
    assert contexts.read().contexts[0].login is None


def test_where_the_issuer_is_away_a_token_of_the_site_opens_and_a_known_key_too(
    site: Site, at_home: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of this file's with the command line: the issuer does not come back."""
    as_("viewer", at_home, capsys, monkeypatch)
    site.process.kill()
    site.process.wait()
    assert site.status(TOKEN)[0] == 200
    assert site.status(kept().token)[0] == 200
    later = kept().model_copy(update={"expires_ms": 0})
    contexts.change(lambda there: contexts.with_login(there, "fra", later))
    away = at_home("whoami")
    assert (away.status, away.err) == (
        5,
        f"Error: the issuer {site.issuer} cannot be asked: {REFUSED}\nRemedy: try again\n",
    )
    assert at_home("logout").out == "logged out of fra; its token opens things until it ends\n"


@pytest.fixture(scope="module")
def mocked() -> Iterator[str]:
    with mock() as url:
        for who in ("viewer", "operator", "stranger"):
            requests.put(f"{url}/users/{who}", json={"groups": [f"netboot-{who}s"]}, timeout=60).raise_for_status()
        yield url


def oidc_of(issuer: str, folder: Path, **others: Any) -> Oidc:
    secret = folder / "oidc.secret"
    secret.write_text(PAGE_SECRET)
    secret.chmod(0o600)
    return Oidc.model_validate(
        {"issuer": issuer, "client_id": PAGE, "client_secret_file": secret, "roles": ROLES, **others}
    )


@pytest.fixture
def api(tmp_path: Path, mocked: str) -> Api:
    return Api(tmp_path, oidc=oidc_of(mocked, tmp_path))


@pytest.fixture
def client(api: Api) -> FlaskClient:
    return api.client


def ahead(api: Api, milliseconds: int) -> None:
    """So much later."""
    assert isinstance(api.clock, Going)
    api.clock.ahead_ms += milliseconds


def begun(client: FlaskClient, following: str = "/page/machines") -> str:
    """The address to which a browser is sent."""
    answer = client.get(f"/page/login/oidc?next={following}")
    assert answer.status_code == 303, answer.text
    assert isinstance(answer.location, str)
    return answer.location


def allowed(where: str, who: str) -> str:
    """What the issuer sends back with, once `who` has said yes there."""
    answer = requests.post(where, {"sub": who}, timeout=60, allow_redirects=False)
    assert answer.status_code == 302, answer.text
    return str(answer.headers["Location"]).removeprefix("http://localhost")


def entered(client: FlaskClient, who: str, following: str = "/page/machines") -> Any:
    return client.get(allowed(begun(client, following), who))


def bearer(api: Api, who: str) -> str:
    """A token of that person."""
    assert api.client.application is not None
    logins = api.client.application.extensions["netboot"].logins
    where, kept = logins.begin()
    query = parse_qs(urlsplit(allowed(where, who)).query)
    return str(logins.finish(kept, {name: each[0] for name, each in query.items()}).bearer(None))


def test_a_browser_goes_to_the_issuer_and_comes_back_to_where_it_was(client: FlaskClient, mocked: str) -> None:
    assert f"Log in with {mocked.removeprefix('http://')}</a>" in client.get("/page/login").text
    where = begun(client)
    query = {name: value for name, [value] in parse_qs(urlsplit(where).query).items()}
    assert where.startswith(f"{mocked}/oauth2/authorize?")
    assert query.keys() == {
        "response_type",
        "client_id",
        "redirect_uri",
        "scope",
        "state",
        "nonce",
        "code_challenge",
        "code_challenge_method",
    }
    assert query["redirect_uri"] == "http://localhost/page/login/oidc/callback"
    elsewhere = client.get("/page/login/oidc", headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example"})
    assert "evil" not in str(elsewhere.location)
    back = entered(client, "viewer")
    assert (back.status_code, '<meta http-equiv="refresh" content="0;url=/page/machines">' in back.text) == (200, True)
    session, begun_here = back.headers.getlist("Set-Cookie")
    assert re.search(r"^netboot_session=[\w-]{43};.* HttpOnly; Path=/page; SameSite=Strict$", session)
    assert begun_here.startswith("netboot_login=; Expires=Thu, 01 Jan 1970")
    assert client.get("/page/machines").status_code == 200


def test_what_comes_back_and_is_not_of_this_login_lets_nobody_in(client: FlaskClient, mocked: str) -> None:
    first = allowed(begun(client), "operator")
    other = client.application.test_client()
    assert "That login was not begun here, or too long ago." in other.get(first).text
    begun(client)
    stolen = client.get(first)
    assert (stolen.status_code, "that login was begun elsewhere (state): begin again" in stolen.text) == (401, True)
    state = parse_qs(urlsplit(begun(client)).query)["state"][0]
    callback = f"/page/login/oidc/callback?state={state}"
    code = parse_qs(urlsplit(first).query)["code"][0]
    for query, words in (
        (f"&code={code}&iss=https://other.example", "another issuer answered than the one that was asked (iss)"),
        ("&error=access_denied&error_description=no%0Away", "the issuer refused: access_denied: no way"),
        ("", "the issuer refused: it gave no code"),
        ("&code=forged", "the issuer refused: invalid_grant"),
        (f"&code={code}", "the token is of another login than this one (nonce)"),
    ):
        answer = client.get(callback + query)
        assert (answer.status_code, words in answer.text, "netboot_session" in str(answer.headers)) == (
            401,
            True,
            False,
        )
    stranger = entered(client, "stranger")
    assert (stranger.status_code, "oidc:stranger of" in stranger.text, "has no role here" in stranger.text) == (
        403,
        True,
        True,
    )


def test_a_viewer_of_the_issuer_who_tries_every_act_is_refused_each(api: Api) -> None:
    token = bearer(api, "viewer")
    for method, path in sorted(OPERATORS | ADMINS):
        asked = path.replace("<int:number>", "1").replace("<kind:kind>", "racks").replace("<name>", "none")
        written = path.replace("<int:", "<").replace("<kind:", "<")
        answer = api.client.open(asked, method=method, headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code, answer.get_json()["detail"]) == (
            403,
            f"{method} {written} needs the role {roles.needed(method, path)}, and oidc:viewer has the role viewer",
        )
    assert api.get("/v1/whoami", token).json["name"] == "oidc:viewer"
    assert api.get("/v1/whoami", bearer(api, "stranger")).status_code == 403
    assert "403" in api.get("/v1/openapi.json").json["paths"]["/v1/whoami"]["get"]["responses"]
    assert api.get("/v1/whoami").json == {
        "name": "token 9d913f87",
        "role": "admin",
        "issuer": None,
        "token": "9d913f87",
        "expires_at": None,
    }


def test_a_session_is_renewed_before_its_token_ends_and_ends_when_that_is_taken_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of npm's oidc-provider, which wants the verifier of PKCE, too."""
    caplog.set_level("INFO")
    with provider(f"{HERE}/page/login/oidc/callback") as (issuer, process):
        api = Api(tmp_path, oidc=oidc_of(issuer, tmp_path, scopes=["openid", "groups"]))
        client = api.client
        back = approve(begun(client), "viewer", f"{HERE}/").removeprefix(HERE)
        assert client.get(back).status_code == 200
        for _ in range(2):
            ahead(api, 20_000)
            assert client.get("/page/machines").status_code == 200
        assert "is not renewed" not in caplog.text
        process.kill()
        process.wait()
        assert client.get("/page/machines").status_code == 200, "its token has not ended"
        assert f"a session at the page is not renewed: {REFUSED}" in caplog.text
        ahead(api, 91_000)
        answer = client.get("/page/machines")
        assert (answer.status_code, answer.location) == (303, "/page/login?next=/page/machines")


@pytest.mark.parametrize("later", ["viewer", "operator"])
def test_a_session_that_is_renewed_with_somebody_else_s_token_ends(
    later: str, api: Api, client: FlaskClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.application is not None
    logins = client.application.extensions["netboot"].logins
    ahead(api, expires_of(bearer(api, "viewer")) - api.clock.now_ms() - 30_000)
    finish, ended = logins.finish, list[str]()
    monkeypatch.setattr(logins, "finish", lambda *sent: replace(finish(*sent), refresh_token="first"))
    assert entered(client, "viewer").status_code == 200
    monkeypatch.setattr(logins, "refreshed", lambda _: Granted(bearer(api, later), "", "second"))
    monkeypatch.setattr(logins, "end", ended.append)
    answer = client.get("/page/machines")
    assert (answer.status_code, ended) == ((200, []) if later == "viewer" else (303, ["second"]))
    said = "a session at the page has ended: its issuer renewed it with a token of oidc:operator"
    assert (said in caplog.messages) == (later == "operator")


def test_where_the_issuer_does_not_answer_the_form_says_so_and_a_token_opens(tmp_path: Path) -> None:
    client = Api(tmp_path, oidc=oidc_of("http://127.0.0.1:1", tmp_path)).client
    answer = client.get("/page/login/oidc")
    assert (answer.status_code, "127.0.0.1:1 cannot be asked right now: it cannot be reached" in answer.text) == (
        503,
        True,
    )
    assert client.post("/page/login", data={"token": TOKEN}, headers=HOME).status_code == 303


def test_a_token_that_cannot_be_judged_now_begins_no_session(api: Api, mocked: str) -> None:
    """A stranger's own, of a key that the issuer is not asked for again at once."""
    assert api.get("/v1/whoami", bearer(api, "viewer")).status_code == 200
    head, claims = {"alg": "RS256", "kid": "nobody's"}, {"iss": mocked, "sub": "x", "aud": PAGE, "exp": 1 << 33}
    parts = (base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in (head, claims))
    token = ".".join([*parts, "AAAA"])
    codes = set()
    for _ in range(2):
        answer = api.client.post("/page/login", data={"token": token}, headers=HOME)
        codes.add(answer.status_code)
        assert "Set-Cookie" not in answer.headers
    assert codes <= {401, 503} and 503 in codes
    assert api.client.post("/page/login", data={"token": bearer(api, "stranger")}, headers=HOME).status_code == 403
    assert api.client.get("/page/machines").status_code == 303, "nobody is in"


def test_a_blocked_list_that_cannot_be_read_lets_nobody_of_the_issuer_in(api: Api) -> None:
    token = bearer(api, "viewer")
    assert api.get("/v1/whoami", token).status_code == 200
    file = api.config.management.tokens
    access_tokens.change(file, lambda there: there)
    file.write_text("{")
    assert api.get("/v1/whoami", token).json["code"] == "no-tokens"
    assert api.get("/v1/whoami").status_code == 200


def test_where_the_blocked_list_is_lost_nobody_can_tell_who_is_blocked_until_it_is_begun_anew(api: Api) -> None:
    token, file = bearer(api, "viewer"), api.config.management.tokens
    file.unlink()
    answer = api.get("/v1/whoami", token)
    assert (answer.status_code, answer.json["code"]) == (503, "no-tokens")
    assert api.get("/v1/whoami").status_code == 200, "this site's own tokens open what they did"
    lost = (
        f"the file of tokens {file}, which says who is blocked, is not there; restore it from a backup; `(umask 077; "
        f"echo '{{}}' > {file})` begins it anew, which revokes its tokens and lets everybody in again who was blocked"
    )
    assert api.get("/readyz").json["details"]["token"]["message"] == lost
    file.write_text("{}\n")
    file.chmod(0o600)
    assert api.get("/v1/whoami", token).status_code == 200
    assert api.get("/readyz").json["details"]["token"]["ok"] is True
