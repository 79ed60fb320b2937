"""Mirrors are asked first, and one that does not answer is named, with the reason and the remedy."""

import hashlib
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from images.build import sources
from images.errors import SourceUnavailableError
from images.recipe.recipe import Source
from lab.kube.authority import Authority
from tests.handshakes import failing

RELEASE = b"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nSuite: x\nDate: Fri, 20 Nov 2026  1:29:49 UTC\n"
OLDER = RELEASE.replace(b"20 Nov", b"19 Nov")
REMEDY = (
    "Check the network, set http_proxy (or apt's Acquire::http::Proxy) where a proxy is needed, "
    "or name another mirror under 'sources' in the recipe"
)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(sources, "_apt_option", lambda option: None)


@contextmanager
def mirror(answers: Mapping[str, tuple[int, bytes]]) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, body = answers.get(self.path, (404, b""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def source(tmp_path: Path, url: str, *suites: str) -> Source:
    key = tmp_path / "key.asc"
    key.write_bytes(b"a key")
    return Source(url=url, suites=suites, components=("main",), signed_by=key)


def local(tmp_path: Path, folder: Path) -> Source:
    key = tmp_path / "key.asc"
    key.write_bytes(b"a key")
    return Source(url=f"file://{folder}", suites=("/",), signed_by=key)


def test_flat_suites_lie_at_the_address_itself(tmp_path: Path) -> None:
    with mirror({"/core:/deb/InRelease": (200, RELEASE), "/core:/deb/more/InRelease": (200, OLDER)}) as (url, asked):
        key = tmp_path / "key.asc"
        key.write_bytes(b"a key")
        flat = Source(url=f"{url}/core:/deb", suites=("/", "more/"), signed_by=key)
        (found,) = sources.probe((flat,))
    assert found.releases == (hashlib.sha256(RELEASE).hexdigest(), hashlib.sha256(OLDER).hexdigest())
    assert (found.suites, found.components) == (("/", "more/"), ())
    assert sorted(asked) == ["/core:/deb/InRelease", "/core:/deb/more/InRelease"]


def test_a_folder_of_this_machine_is_read(tmp_path: Path) -> None:
    (tmp_path / "InRelease").write_bytes(RELEASE)
    (found,) = sources.probe((local(tmp_path, tmp_path),))
    assert found.releases == (hashlib.sha256(RELEASE).hexdigest(),)


def test_a_folder_without_a_release(tmp_path: Path) -> None:
    assert unavailable(local(tmp_path, tmp_path / "none")) == (
        f"the repository file://{tmp_path}/none cannot be used: {tmp_path}/none/InRelease cannot be read "
        "(No such file or directory). Make it (apt-ftparchive release, signed by gpg --clearsign), "
        "or name another place under 'sources'"
    )


def test_a_folder_whose_release_nobody_signed(tmp_path: Path) -> None:
    (tmp_path / "InRelease").write_bytes(b"Date: Fri, 20 Nov 2026  1:29:49 UTC\n")
    assert unavailable(local(tmp_path, tmp_path)) == (
        f"the repository file://{tmp_path} cannot be used: its InRelease is not a signed file with a date; "
        "sign it (gpg --clearsign): there is no way to use packages that nobody signed"
    )


def unavailable(*wanted: Source) -> str:
    with pytest.raises(SourceUnavailableError) as caught:
        sources.probe(wanted)
    return str(caught.value)


def test_what_the_mirrors_have_is_an_input_of_the_build(tmp_path: Path) -> None:
    with mirror({"/d/dists/a/InRelease": (200, OLDER), "/d/dists/b/InRelease": (200, RELEASE)}) as (url, asked):
        (found,) = sources.probe((source(tmp_path, f"{url}/d/", "a", "b"),))
    assert found.releases == (hashlib.sha256(OLDER).hexdigest(), hashlib.sha256(RELEASE).hexdigest())
    assert found.newest == 1795138189
    assert (found.keyring, found.keyring_suffix) == (b"a key", ".asc")
    assert sorted(asked) == ["/d/dists/a/InRelease", "/d/dists/b/InRelease"]


def test_a_mirror_that_refuses(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/ubuntu"
        assert unavailable(source(tmp_path, url, "noble")) == (
            f"the mirror {url} does not answer for suite noble: connection refused. {REMEDY}"
        )


def test_a_mirror_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "READ_SECONDS", 0.5)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/ubuntu"
        assert unavailable(source(tmp_path, url, "noble")) == (
            f"the mirror {url} does not answer for suite noble: no answer in time. {REMEDY}"
        )


def test_a_mirror_with_which_tls_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "CONNECT_SECONDS", 60.0)
    pair, stranger = Authority("other").issue("server", server=("127.0.0.1",)), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    stranger.load_cert_chain(tmp_path / "pair.pem")
    for context, words in (
        (stranger, "its TLS certificate cannot be verified"),
        (None, "TLS with it failed: tlsv1 alert decode error"),
    ):
        with failing(context) as place:
            assert unavailable(source(tmp_path, f"https://{place}", "noble")) == (
                f"the mirror https://{place} does not answer for suite noble: {words}. {REMEDY}"
            )


def test_a_name_that_cannot_be_resolved(tmp_path: Path) -> None:
    found = unavailable(source(tmp_path, "http://mirror.invalid/ubuntu", "noble"))
    assert found == (
        "the mirror http://mirror.invalid/ubuntu does not answer for suite noble: "
        f"its name cannot be resolved. {REMEDY}"
    )


def test_every_fault_of_every_mirror_is_named(tmp_path: Path) -> None:
    answers = {
        "/dists/a/InRelease": (200, b"<html>please log in</html>"),
        "/dists/b/InRelease": (503, b""),
        "/dists/c/InRelease": (200, RELEASE.replace(b"Nov 2026", b"Foo")),
    }
    with mirror(answers) as (url, _):
        found = unavailable(source(tmp_path, url, "a", "b", "c"), source(tmp_path, url, "d"))
    assert found.splitlines() == [
        (
            f"the mirror {url} does not answer for suite a: what it answers is not a signed InRelease file "
            f"(a captive portal, or a proxy's page?). {REMEDY}"
        ),
        f"the mirror {url} does not answer for suite b: it answers 503 Service Unavailable. {REMEDY}",
        f"the mirror {url} does not answer for suite c: its InRelease file has no date that can be read. {REMEDY}",
        (
            f"the mirror {url} has no suite d (404 for {url}/dists/d/InRelease); "
            "check the suite's name and the mirror's address in the recipe's sources"
        ),
    ]


def test_a_proxy_is_asked_in_place_of_the_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mirror({"http://mirror.invalid/dists/a/InRelease": (200, RELEASE)}) as (url, asked):
        monkeypatch.setenv("http_proxy", url)
        sources.probe((source(tmp_path, "http://mirror.invalid", "a"),))
        assert asked == ["http://mirror.invalid/dists/a/InRelease"]
        monkeypatch.setenv("no_proxy", "mirror.invalid")
        assert "its name cannot be resolved" in unavailable(source(tmp_path, "http://mirror.invalid", "a"))


def test_apts_own_proxy_counts_where_the_environment_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_apt_option", {"Acquire::http::Proxy": "http://apt.example:3142"}.get)
    assert sources.proxy_environment() == {"http_proxy": "http://apt.example:3142"}
    monkeypatch.setenv("HTTP_PROXY", "http://mine.example")
    assert sources.proxy_environment() == {"http_proxy": "http://mine.example"}
