"""Whether machines and nodes will believe a TLS server: tried as they do it."""

import socket
import ssl
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from images.values import files

CONNECT_SECONDS = 3.0


def endpoint_fault(url: str, authority: Path) -> tuple[str, bool]:
    """What is wrong with a server when it is believed by `authority` only, "" for nothing; whether it answered.

    Raises:
        OSError, ssl.SSLError: the authority cannot be read.
    """
    context = ssl.create_default_context(cafile=str(authority))
    target = urlsplit(url)
    try:
        with (
            socket.create_connection((target.hostname or "", target.port or 443), CONNECT_SECONDS) as raw,
            context.wrap_socket(raw, server_hostname=target.hostname),
        ):
            return "", True
    except ssl.SSLCertVerificationError as error:
        return error.verify_message, True
    except OSError as error:
        return error.strerror or str(error), False


def pair_fault(url: str, certificate: Path, key: Path, authority: Path) -> str:
    """What a machine that believes `authority` would object to when a server at `url` has this certificate; or "".

    The handshake is made in memory: nothing listens, and nothing is connected to.
    """
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for path in (certificate, key, authority):
        try:
            files.small(path)
        except OSError as error:
            return f"{path} cannot be read: {error.strerror}"
    try:
        server.load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError):
        return f"{certificate} and {key} are not a certificate and its key, in PEM and without a password"
    try:
        client.load_verify_locations(cafile=str(authority))
    except ssl.SSLError:
        return f"{authority} holds no certificates in PEM"
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=urlsplit(url).hostname),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    try:
        for _ in range(4):  # TLS 1.3 is through after two turns
            for end in ends:
                with suppress(ssl.SSLWantReadError):
                    end.do_handshake()
    except ssl.SSLCertVerificationError as error:
        return f"{certificate} is not believed by machines that have {authority}, at {url}: {error.verify_message}"
    except ssl.SSLError as error:
        return f"{certificate} cannot be used: {error.reason}"
    return ""
