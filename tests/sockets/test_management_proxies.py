"""The operators' listener behind nginx that brings TLS, and the command line's way through a proxy."""

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from netboot.cli.authority import new_authority, new_certificate
from netboot.client import Client, ClientError, Service
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
    location / {{ proxy_pass {behind}; proxy_buffering off; }}
  }}
}}
"""


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[str]:
    """The address of nginx before a management API, with a certificate by `ca`."""
    api, (port, _) = Api(tmp_path), free_ports()
    authority, key = new_authority("test")
    for name, pem in zip(("crt", "key"), new_certificate(authority, key, ["127.0.0.1"]), strict=True):
        (tmp_path / name).write_bytes(pem)
    (tmp_path / "ca").write_bytes(authority)
    with served(api) as address:
        (tmp_path / "conf").write_text(NGINX.format(folder=tmp_path, port=port, behind=address))
        nginx = subprocess.Popen(["nginx", "-p", tmp_path, "-c", tmp_path / "conf"], stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: listens(port), 20)
            yield f"https://127.0.0.1:{port}"
        finally:
            nginx.terminate()
            nginx.wait(20)


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
        thread.join(20)


def tunnel(listener: socket.socket, seen: list[bytes]) -> None:
    client, _ = listener.accept()
    with client:
        head = client.recv(4096)
        seen.append(head)
        host, port = head.split()[1].decode().rsplit(":", 1)
        with socket.create_connection((host, int(port)), 20) as server:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=pump, args=(server, client, []), daemon=True)
            back.start()
            pump(client, server, seen)
            back.join(20)


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
