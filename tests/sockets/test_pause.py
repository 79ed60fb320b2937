"""Asking outside whether anything may begin: a real server over TLS, all that it may do wrong, and a whole service."""

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from lab.kube.authority import Authority
from netboot.config import load_config
from netboot.config_outside import PauseSignal
from netboot.credentials import PUT_IT_THERE
from netboot.lifecycle.errors import CannotTellError
from netboot.machines.maintenance import Signal
from netboot.stores.pause_asker import Asker
from tests.handshakes import failing
from tests.processes import wait_for
from tests.sites import free_ports, make_site
from tests.sockets.service import serving

AUTHORITY = Authority("change")
TOKEN = "t0ken-of-nobody-else"


class Outside:
    """A server that answers as the test says, and remembers what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.status, self.body, self.headers = 200, b'{"pause": false}', dict[str, str]()
        self.asked: list[tuple[str, str | None]] = []
        """Path and `Authorization`."""
        self.gone = threading.Event()
        self.slowly: Callable[[Any, bytes], None] = lambda file, body: file.write(body)
        pair = AUTHORITY.issue("server", server=("127.0.0.1",))
        (folder / "pair.pem").write_bytes(pair.certificate + pair.key)
        self.authority = folder / "authority.pem"
        self.authority.write_bytes(AUTHORITY.pair.certificate)
        self.token = folder / "token"
        self.token.write_text(f"{TOKEN}\n")
        self.token.chmod(0o600)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "pair.pem")
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.http.daemon_threads = True
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                assert self.headers["Cache-Control"] == "no-cache"
                outer.asked.append((self.path, self.headers["Authorization"]))
                self.send_response(outer.status)
                for name, value in {"Content-Length": str(len(outer.body)), **outer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                outer.slowly(self.wfile, outer.body)

            def log_message(self, *_anything: object) -> None:
                """Nowhere."""

        return Handler

    def says(self, pause: bool, reason: str = "") -> None:
        self.body = json.dumps({"pause": pause, "reason": reason}).encode()

    def end(self) -> None:
        self.gone.set()
        self.http.shutdown()
        self.http.server_close()

    def asker(self, **more: Any) -> Asker:
        place = {"hook": f"{self.url}/may", "authority": self.authority, "deadline_seconds": 30.0, **more}
        return Asker(PauseSignal.model_validate(place))


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    made = Outside(tmp_path)
    yield made
    made.end()


def words(asker: Asker) -> str:
    with pytest.raises(CannotTellError) as caught:
        asker.ask()
    return str(caught.value)


def test_a_hook_is_asked_with_the_token_of_now(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    [nobody] = free_ports(1)
    for name in ("HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{nobody}")
    asker = outside.asker(token_file=outside.token)
    where = f"{outside.url}/may"
    assert asker.ask() == Signal(True, f"{where} lets things begin")
    outside.says(True, "deploy freeze")
    outside.token.write_text("another-token")
    assert asker.ask() == Signal(False, f"{where} says: deploy freeze")
    assert outside.asked == [("/may", f"Bearer {TOKEN}"), ("/may", "Bearer another-token")]
    outside.says(False)
    assert outside.asker().ask().may
    assert outside.asked[-1] == ("/may", None)


def test_prometheus_is_asked_for_one_number(outside: Outside) -> None:
    query = 'count(ALERTS{alertstate="firing"}) or vector(0)'
    result = [{"metric": {}, "value": [time.time(), "0"]}]
    outside.body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
    asker = outside.asker(hook=None, prometheus=outside.url, query=query)
    assert asker.ask() == Signal(True, f"the query of {outside.url} is 0, which lets things begin")
    [(path, _)] = outside.asked
    assert urlsplit(path).path == "/api/v1/query"
    assert parse_qs(urlsplit(path).query) == {"query": [query], "timeout": ["30s"]}


def test_an_answer_that_leads_elsewhere_or_is_none_is_not_followed(outside: Outside) -> None:
    asker = outside.asker(token_file=outside.token)
    for status in (302, 307, 204, 401, 500):
        outside.status, outside.headers = status, {"Location": f"{outside.url}/elsewhere"}
        assert words(asker) == f"it answers {status}, and not 200"
    assert {path for path, _ in outside.asked} == {"/may"}
    outside.status, outside.headers = 200, {"Content-Length": "100"}
    assert words(asker).startswith("it cannot be reached: ")
    outside.headers, outside.body = {}, b" " * 65_537
    assert words(asker) == "it answers with more than 65536 bytes"
    outside.body = b"<html>"
    assert words(asker) == "it answers something else: no JSON"


def test_who_answers_late_has_not_answered(outside: Outside) -> None:
    asker = outside.asker(deadline_seconds=0.5)
    late = "it did not answer within 0.5 s"

    def nothing(_file: Any, _body: bytes) -> None:
        outside.gone.wait(60)

    outside.slowly = nothing
    assert words(asker) == late

    def dribble(file: Any, body: bytes) -> None:
        for byte in body:
            if outside.gone.wait(0.1):
                return
            file.write(bytes([byte]))

    outside.slowly, outside.body = dribble, b" " * 3_000
    begun = time.monotonic()
    assert words(asker) == late
    assert time.monotonic() - begun < 150, "whoever sends a byte now and then for five minutes is not heard to the end"


def test_whom_we_cannot_reach_or_believe(outside: Outside, tmp_path: Path) -> None:
    [nobody] = free_ports(1)
    assert words(outside.asker(hook=f"https://127.0.0.1:{nobody}")) == "it cannot be reached: Connection refused"
    other = tmp_path / "other.pem"
    other.write_bytes(Authority("another").pair.certificate)
    for authority in (other, None):
        assert words(outside.asker(authority=authority)) == (
            "its certificate is not believed: unable to get local issuer certificate; see pause.authority"
        )
    none = tmp_path / "none.pem"
    assert (
        words(outside.asker(authority=none))
        == f"pause.authority: {none} cannot be read: No such file or directory: {PUT_IT_THERE}"
    )
    with failing() as address:
        assert words(outside.asker(hook=f"https://{address}")).startswith("TLS failed, not for its certificate: ")
    assert outside.asked == []


def test_a_token_that_others_can_read_is_not_sent(outside: Outside) -> None:
    token, asker = outside.token, outside.asker(token_file=outside.token)
    token.chmod(0o640)
    assert words(asker) == f"others can read pause.token_file {token} (mode 0640): `chmod 600 {token}`"
    token.chmod(0o600)
    for text in ("", "\n", "two words", "two\nlines", "\x1b[2J"):
        token.write_text(text)
        assert words(asker) == f"pause.token_file: {token} holds no token: write one line without spaces"
    token.unlink()
    assert words(asker) == f"pause.token_file: {token} cannot be read: No such file or directory: {PUT_IT_THERE}"
    assert outside.asked == []


def test_a_service_asks_and_says_so_everywhere(outside: Outside, tmp_path: Path) -> None:
    root = tmp_path / "site"
    make_site(root, workers=1)
    file = root / "netboot.yaml"
    section = {"hook": f"{outside.url}/may", "token_file": str(outside.token), "authority": str(outside.authority)}
    file.write_text(f"{file.read_text()}pause: {json.dumps({**section, 'every_seconds': 5, 'deadline_seconds': 30})}\n")
    where, last = f"{outside.url}/may", ""
    with serving(load_config(file), file) as service:

        def reason() -> str:
            found: str = service.api("/v1/freeze")["may_act"]["reason"]
            return found

        wait_for(lambda: reason() == "no maintenance window is declared: at any time")
        told = service.netboot("freeze", "status").stdout.splitlines()
        assert told[1] == "What acts by itself may begin: no maintenance window is declared: at any time."
        assert told[2].startswith("From outside, ")
        assert told[2].endswith(f" s ago: {where} lets things begin.")
        outside.says(True, "deploy freeze")
        # metrics and /readyz read another file than whoever acts: it is written a moment later
        wait_for(lambda: reason() == f"{where} says: deploy freeze")
        assert f"What acts by itself may not begin: {where} says: deploy freeze.\n" in (
            service.netboot("freeze", "status").stdout
        )
        wait_for(lambda: 'netboot_pause_signal{says="pause"} 1.0\n' in service.text("/metrics"))
        assert service.readyz()["details"]["pause"]["ok"], "a pause that was said is in order"
        outside.end()
        last = f"whether {where} lets anything begin cannot be told: it cannot be reached: Connection refused"
        wait_for(lambda: reason() == last)
        wait_for(lambda: 'netboot_pause_signal{says="unknown"} 1.0\n' in service.text("/metrics"))
        detail = wait_for(lambda: (found := service.readyz()["details"]["pause"])["message"] == last and found)
        assert detail["ok"] is False
        assert service.stop() == 0
    assert TOKEN not in service.log + json.dumps(told)
    assert {token for _, token in outside.asked} == {f"Bearer {TOKEN}"}
