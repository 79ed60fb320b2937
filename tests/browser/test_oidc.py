"""Logging in at an issuer in a browser: another site, from where a strict cookie is not sent, and back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from netboot.config_access import Oidc
from netboot.oidc.logins import CALLBACK
from tests.browser.conftest import opened
from tests.issuers import PAGE, PAGE_SECRET, ROLES, provider
from tests.sites import free_ports
from tests.sockets.api import Api
from tests.sockets.served import served


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The page, whose issuer is of another site: `localhost`, and not 127.0.0.1."""
    secret, [port] = tmp_path / "oidc.secret", free_ports(1)
    secret.write_text(PAGE_SECRET)
    secret.chmod(0o600)
    here = f"http://127.0.0.1:{port}"
    with provider(here + CALLBACK) as (issuer, _):
        said = {"issuer": issuer, "client_id": PAGE, "client_secret_file": secret, "scopes": ["openid", "groups"]}
        api = Api(tmp_path, oidc=Oidc.model_validate({**said, "roles": ROLES}), here=here)
        with served(api, port) as address:
            yield address


def test_a_login_at_the_issuer_and_back_to_where_one_was(browser: Browser, address: str) -> None:
    with opened(browser, base_url=address) as context:
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text) if page.url.startswith(address) else None)
        page.goto("/page/machines")
        page.get_by_role("link", name="Log in with localhost").click()
        page.wait_for_url("http://localhost:*/interaction/*")
        page.fill("input[name=login]", "viewer")
        page.fill("input[name=password]", "any")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Continue").click()
        page.wait_for_url(f"{address}/page/machines")
        expect(page.get_by_role("button", name="Log out")).to_be_visible()
        cookies = {each["name"]: (each["sameSite"], each["httpOnly"]) for each in context.cookies(f"{address}/page/")}
        assert cookies["netboot_session"] == ("Strict", True)
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/page/login")
        page.goto("/page/machines")
        page.wait_for_url("**/page/login?next=/page/machines")
        assert said == []
