"""TLS of the operators' listener by a whole service: a private authority, a new certificate, what failures say."""

import socket
import ssl
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from cryptography import x509

from netboot.cli.authority import new_authority, new_certificate
from netboot.client import Client, ClientError
from netboot.client import Service as Where
from netboot.config import load_config
from tests.processes import wait_for
from tests.sites import TOKEN, make_site
from tests.sockets.service import Service, serving


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    root = tmp_path_factory.mktemp("site")
    make_site(root, workers=1)
    file = root / "netboot.yaml"
    file.write_text(file.read_text() + "  tls: {authority: tls/ca.crt}\n")
    (root / "tls").mkdir()
    for name, pem in zip(("ca.crt", "ca.key"), new_authority("test"), strict=True):
        (root / "tls" / name).write_bytes(pem)
    certify(root, ["127.0.0.1"])
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("REQUESTS_CA_BUNDLE", str(root / "tls" / "ca.crt"))  # for what the suite itself asks
        with serving(load_config(file), file) as service:
            yield service


def certify(root: Path, names: list[str], now: datetime | None = None) -> None:
    folder = root / "tls"
    pair = new_certificate((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes(), names, now)
    for name, pem in zip(("management.crt", "management.key"), pair, strict=True):
        (folder / name).write_bytes(pem)


def client(service: Service, **others: object) -> Client:
    said = {"authority": service.file.parent / "tls" / "ca.crt", "hint": "a test"} | others
    return Client(Where(service.management, TOKEN, **said))  # type: ignore[arg-type] # paths and texts


def said(service: Service, **others: object) -> str:
    with pytest.raises(ClientError) as refused:
        client(service, **others).channels.list()
    return str(refused.value)


def test_with_a_private_authority(service: Service) -> None:
    assert service.management.startswith("https://127.0.0.1:")
    assert [each["name"] for each in client(service).channels.list()["channels"]] == ["stable"]


def test_tls_is_of_1_2_and_newer(service: Service) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.deprecated_call():
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    listen = service.config.management.listen
    with pytest.raises(ssl.SSLError), socket.create_connection(listen, 60) as raw, context.wrap_socket(raw):
        pass


def test_what_is_said_where_it_fails_and_that_a_new_certificate_is_taken(service: Service, tmp_path: Path) -> None:
    url, root = service.management, service.file.parent
    other, _ = new_authority("other")
    (tmp_path / "other.crt").write_bytes(other)
    assert said(service, authority=tmp_path / "other.crt") == (
        f"cannot reach the service at {url}: its certificate is by an authority that is not known here\n"
        "Remedy: name the authority that signed it: --certificate-authority, or `netboot context add`. "
        "The address is from a test"
    )
    assert said(service, authority=tmp_path / "none.crt").startswith(f"there is no file of authorities {tmp_path}")
    certify(root, ["192.0.2.1"])
    wait_for(lambda: not believed(service) and "for another name" in said(service))
    certify(root, ["127.0.0.1"])
    wait_for(lambda: believed(service))
    served = x509.load_pem_x509_certificate((root / "tls" / "management.crt").read_bytes())
    ends = f"netboot_management_certificate_expiry_timestamp_seconds {served.not_valid_after_utc.timestamp()!r}"
    wait_for(lambda: shown(ends, service.text("/metrics")))


def shown(line: str, text: str) -> bool:
    """Numbers alike, however they are written."""
    name, _, value = line.partition(" ")
    return any(each.split(" ")[0] == name and float(each.split(" ")[1]) == float(value) for each in text.splitlines())


def believed(service: Service) -> bool:
    try:
        client(service).channels.list()
    except ClientError:
        return False
    return True


def test_who_stalls_in_a_handshake_is_let_go(service: Service) -> None:
    begun = [socket.create_connection(service.config.management.listen, 60) for _ in range(40)]  # more than threads
    try:
        for each in begun:
            each.sendall(b"\x16\x03\x01\x02\x00")  # the head of a record that does not come
        wait_for(lambda: believed(service))
    finally:
        for each in begun:
            each.close()
    assert "Traceback" not in service.log


def test_plain_http_and_tls_where_the_other_is_spoken(service: Service) -> None:
    plain = Client(Where(service.management.replace("https:", "http:"), TOKEN, "a test"))
    with pytest.raises(ClientError) as refused:
        plain.channels.list()
    assert "where it speaks TLS, ask it as https://" in str(refused.value)
    tls = Client(Where(service.provisioning.replace("http:", "https:"), TOKEN, "a test"))
    with pytest.raises(ClientError) as refused:
        tls.channels.list()
    assert "it does not speak TLS" in str(refused.value)
