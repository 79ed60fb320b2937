"""Which secrets there were in a run, and where they must not be."""

import base64
import contextlib
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import requests

from lab.kube.cluster import Cluster
from lab.site import Site

WATCH = "/api/v1/namespaces/kube-system/secrets?watch=true&fieldSelector=type%3Dbootstrap.kubernetes.io/token"
WATCH_SECONDS = 900


class TokenWatch:
    """The very values of the bootstrap tokens that were there, however short; and the host's command lines then."""

    def __init__(self) -> None:
        self.values: set[str] = set()
        self.command_lines: set[str] = set()

    def take(self, line: bytes) -> None:
        """One event of the watch."""
        data = json.loads(line).get("object", {}).get("data", {})
        if "token-secret" in data:
            self.values.add(base64.b64decode(data["token-secret"]).decode())
            self.command_lines |= command_lines()


@contextlib.contextmanager
def watching_tokens(control: Cluster) -> Iterator[TokenWatch]:
    """Watch the token Secrets, as the administrator, for the length of a block."""
    seen = TokenWatch()
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(control.folder / "ca.crt")
        session.cert = (str(control.folder / "admin.crt"), str(control.folder / "admin.key"))
        url = f"{control.url}{WATCH}&timeoutSeconds={WATCH_SECONDS}"
        answer = session.get(url, stream=True, timeout=(10, WATCH_SECONDS + 10))
        answer.raise_for_status()

        def follow() -> None:
            with contextlib.suppress(requests.RequestException, ValueError, AttributeError):
                for line in answer.iter_lines(chunk_size=1):
                    seen.take(line)

        thread = threading.Thread(target=follow, name="watch of tokens", daemon=True)
        thread.start()
        try:
            yield seen
        finally:
            answer.close()


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
    found |= {line.strip() for line in lines if line.strip() and not line.startswith("#")}
    for role in ("issuer", "approver", "nodes"):
        text = (site.folder / "secrets" / f"{role}.kubeconfig").read_text()
        found |= set(re.findall(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", text))
    return found
