"""A browser, and a page that somebody is logged in to; whatever its console says is a failure."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.world import World
from tests.sites import TOKEN
from tests.sockets.served import served

CHROMIUM = "/usr/bin/chromium"
SECONDS = 60
expect.set_options(timeout=SECONDS * 1000)  # in place of five seconds: there against hanging alone


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of one file: until it ends, Playwright's loop runs in this thread, and no test after it could run its own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"], timeout=3 * SECONDS * 1000
        )
        yield browser
        browser.close()


def opened(browser: Browser, **options: Any) -> BrowserContext:
    """A fresh context, which waits for a minute: Playwright's own limit is half a minute."""
    context = browser.new_context(**options)
    context.set_default_timeout(SECONDS * 1000)
    return context


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("world"))
    world.api.post("/v1/machines/gpu-0004/hold", {"reason": "a fan is to be replaced " * 9})
    return world


@pytest.fixture(scope="session")
def address(world: World) -> Iterator[str]:
    with served(world.api) as address:
        yield address


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """Logged in, at the fleet."""
    with opened(browser, base_url=address) as context:
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        log_in(page)
        yield page
        assert said == []


def log_in(page: Page) -> None:
    page.goto("/page/login")
    page.fill("#token", TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_url("**/page/")


def paths(world: World) -> list[str]:
    """Every page."""
    boots = [f"/page/boots/{boot}" for boot in world.boots.values()]
    machines = [f"/page/machines/{name}" for name in ("gpu-0001", "gpu-0017")]
    lists = ["/page/", "/page/machines", "/page/rollouts", "/page/rollouts/1"]
    found = ["/page/discovered", "/page/discovered/b8:ce:f6:0a:11:01"]
    more = [*found, "/page/images", f"/page/images/{world.new}?with={world.old}", "/page/audit"]
    return [*lists, *more, "/page/machines/nobody", *machines, boots[0]]


AXE = Path(__file__).parent / "axe" / "axe.min.js"
