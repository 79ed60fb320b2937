"""The operators' listener behind nginx that brings TLS, and the command line's way through a proxy."""

import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from netboot.cli.authority import new_authority, new_certificate
from netboot.client import CannotTellError, Client, ClientError, Service
from tests.processes import wait_for
from tests.sites import TOKEN, free_ports
from tests.sockets.api import Api
from tests.sockets.served import served

NGINX = """\
daemon off; worker_processes 1; error_log stderr; pid {folder}/pid; user root;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port} ssl; ssl_certificate {folder}/crt; ssl_certificate_key {folder}/key;
    client_max_body_size 64m;
    location / {{ proxy_pass {behind}; proxy_buffering off; proxy_set_header Host $http_host; }}
  }}
}}
"""


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[str]:
    """The address of nginx before a management API, with a certificate by `ca`."""
    with served(Api(tmp_path)) as address, nginx(tmp_path, address) as found:
        yield found


@contextmanager
def nginx(folder: Path, address: str) -> Iterator[str]:
    """As docs/operations.md has it, before what is at `address`."""
    port, _ = free_ports()
    authority, key = new_authority("test")
    for name, pem in zip(("crt", "key"), new_certificate(authority, key, ["127.0.0.1"]), strict=True):
        (folder / name).write_bytes(pem)
    (folder / "ca").write_bytes(authority)
    (folder / "conf").write_text(NGINX.format(folder=folder, port=port, behind=address))
    process = subprocess.Popen(["nginx", "-p", folder, "-c", folder / "conf"], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: listens(port))
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def connecting(seen: list[bytes]) -> Iterator[str]:
    """A proxy that does what one connection asks it to CONNECT to; `seen`: the head of that, and what went through."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=tunnel, args=(listener, seen), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(60)


def tunnel(listener: socket.socket, seen: list[bytes]) -> None:
    client, _ = listener.accept()
    with client:
        head = client.recv(4096)
        seen.append(head)
        host, port = head.split()[1].decode().rsplit(":", 1)
        with socket.create_connection((host, int(port)), 60) as server:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=pump, args=(server, client, []), daemon=True)
            back.start()
            pump(client, server, seen)
            back.join(60)


def pump(source: socket.socket, target: socket.socket, seen: list[bytes]) -> None:
    while data := source.recv(65536):
        seen.append(data)
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)


def test_behind_nginx(behind: str, tmp_path: Path) -> None:
    client = Client(Service(behind, TOKEN, "a test", tmp_path / "ca"))
    assert [each["name"] for each in client.channels.list()["channels"]] == ["stable"]
    with pytest.raises(ClientError, match="its certificate is by an authority that is not known here"):
        Client(Service(behind, TOKEN, "a test")).channels.list()


def test_through_a_proxy_that_sees_no_token(behind: str, tmp_path: Path) -> None:
    seen: list[bytes] = []
    with connecting(seen) as proxy:
        found = Client(Service(behind, TOKEN, "a test", tmp_path / "ca", proxy)).channels.list()
    assert [each["name"] for each in found["channels"]] == ["stable"]
    assert seen[0].startswith(f"CONNECT {behind.removeprefix('https://')} HTTP/1.".encode())
    assert TOKEN.encode() not in b"".join(seen)


def test_a_person_logs_in_at_the_page_behind_nginx_and_acts(behind: str, tmp_path: Path) -> None:
    with requests.Session() as browser:
        browser.trust_env, browser.verify = False, str(tmp_path / "ca")
        there = browser.post(f"{behind}/page/login", {"token": TOKEN}, headers={"Origin": behind}, timeout=60)
        assert (there.url, there.status_code) == (f"{behind}/page/", 200)
        form = re.search(r'name="form" value="([^"]+)"', there.text)
        assert form is not None
        chosen = {"theme": "dark", "form": form[1]}
        assert browser.post(f"{behind}/page/theme", chosen, headers={"Origin": behind}, timeout=60).status_code == 200
        left = browser.post(f"{behind}/page/theme", chosen, headers={"Origin": "https://evil.example"}, timeout=60)
        assert left.status_code == 403


def test_behind_nginx_one_watches_and_a_service_that_is_away_is_cannot_tell(tmp_path: Path) -> None:
    """A watch that is cut goes on after that; nginx' own 502 says nothing of what was asked for."""
    port = free_ports()[0]
    with nginx(tmp_path, f"http://127.0.0.1:{port}") as behind:
        client = Client(Service(behind, TOKEN, "a test", tmp_path / "ca"))
        with served(Api(tmp_path), port), client.watch.watch() as watch:
            assert "heartbeat" in next(watch)
        with pytest.raises(CannotTellError) as away:
            client.channels.list()
    assert str(away.value) == (
        f"a proxy before the service at {behind} answers 502: it does not reach the service\n"
        "Remedy: try again; whether an act was done is told by `netboot audit`"
    )
