"""Which secrets there were in a run, and where they must not be."""

import base64
import contextlib
import http.client
import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from lab.kube.cluster import Cluster
from lab.site import Site

WATCH = (
    "/api/v1/namespaces/kube-system/secrets?watch=true&resourceVersion=0"
    "&fieldSelector=type%3Dbootstrap.kubernetes.io/token"
)
"""From what the apiserver's cache has: without a version it may answer that the cache is behind, and end."""
WATCH_SECONDS = 1_800
"""As long as a test may last (`tests.plugins.hangs`): one that ends before does not see the second boot's token."""


class TokenWatch:
    """The very values of the bootstrap tokens that were there, however short; and the host's command lines then."""

    def __init__(self) -> None:
        self.values: set[str] = set()
        self.command_lines: set[str] = set()

    def take(self, line: bytes) -> None:
        """One event of the watch."""
        event = json.loads(line)
        assert event["type"] != "ERROR", event
        data = event["object"].get("data", {})
        if "token-secret" in data:
            self.values.add(base64.b64decode(data["token-secret"]).decode())
            self.command_lines |= command_lines()


@contextlib.contextmanager
def watching_tokens(control: Cluster) -> Iterator[TokenWatch]:
    """Watch the token Secrets, as the administrator, for the length of a block."""
    seen, address = TokenWatch(), urlsplit(control.url)
    context = ssl.create_default_context(cafile=str(control.folder / "ca.crt"))
    context.load_cert_chain(control.folder / "admin.crt", control.folder / "admin.key")
    connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=context, timeout=60)
    connection.request("GET", f"{WATCH}&timeoutSeconds={WATCH_SECONDS}")
    answer, channel = connection.getresponse(), connection.sock
    assert answer.status == 200
    channel.settimeout(WATCH_SECONDS + 10)

    def follow() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            for line in answer:
                seen.take(line)

    thread = threading.Thread(target=follow, name="watch of tokens", daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        with contextlib.suppress(OSError):  # what is blocked in a read hears this, and not a close
            socket.socket.shutdown(channel, socket.SHUT_RDWR)
        thread.join()
        connection.close()


def command_lines() -> set[str]:
    """Of every process of this host, as anybody may read them."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.add(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def lasting_secrets(site: Site) -> set[str]:
    """What lies in a site's `secrets`: the operator's token, sealing keys, the accounts' tokens."""
    found = set((site.folder / "secrets" / "operator.token").read_text().split())
    lines = (site.folder / "secrets" / "sealing.keys").read_text().splitlines()
    found |= {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}
    for role in ("issuer", "approver", "nodes"):
        text = (site.folder / "secrets" / f"{role}.kubeconfig").read_text()
        found |= set(re.findall(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", text))
    return found
