"""`make pictures` takes the page's pictures in docs/page/ anew, of a made-up fleet of 5,000, in Chromium.

They are palettes of 256 colours, by Debian's `pngquant`: a third of the bytes. Nobody compares them: look at each.
"""

import logging
import subprocess
import tempfile
from pathlib import Path
from typing import Literal, NamedTuple

from playwright.sync_api import Browser, ViewportSize, sync_playwright

from tests.browser.conftest import CHROMIUM, log_in
from tests.browser.world import LATE, World
from tests.sockets.served import served

FOLDER = Path(__file__).parents[2] / "docs" / "page"
COUNT = 5_000
LAPTOP, WALL, PHONE = (1440, 1000), (3840, 2160), (390, 844)


class Picture(NamedTuple):
    """Of a page, as a screen of that size shows it without scrolling."""

    name: str
    path: str
    size: tuple[int, int] = LAPTOP
    scheme: Literal["light", "dark"] = "light"


def pictures(world: World) -> tuple[Picture, ...]:
    """All of them."""
    machine, boot = f"/page/machines/{LATE}", f"/page/boots/{world.boots[LATE]}"
    return (
        Picture("fleet", "/page/", (1920, 1080)),
        Picture("fleet-4k-dark", "/page/", WALL, "dark"),
        Picture("fleet-phone", "/page/", PHONE),
        Picture("machine", machine),
        Picture("machine-phone", machine, PHONE, "dark"),
        Picture("boot", boot),
        Picture("boot-phone", boot, PHONE),
        Picture("rollout-dark", "/page/rollouts/1", LAPTOP, "dark"),
    )


def take(browser: Browser, address: str, picture: Picture, folder: Path) -> Path:
    """One, as Chromium has it. Raises playwright's errors."""
    width, height = picture.size
    viewport, taken = ViewportSize(width=width, height=height), folder / f"{picture.name}.png"
    with browser.new_context(base_url=address, viewport=viewport, color_scheme=picture.scheme) as context:
        page = context.new_page()
        log_in(page)
        page.goto(picture.path)
        page.wait_for_load_state("load")
        page.screenshot(path=taken)
    return taken


def main() -> None:
    """Take all, and put them in their places."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as kept, sync_playwright() as playwright:
        world = World(Path(kept) / "site", COUNT)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        with served(world.api) as address:
            for picture in pictures(world):
                taken = take(browser, address, picture, Path(kept))
                to = FOLDER / f"{picture.name}.png"
                squeeze = [
                    "pngquant",
                    "--force",
                    "--speed",
                    "1",
                    "--strip",
                    "--output",
                    str(to),
                    "256",
                    "--",
                    str(taken),
                ]
                subprocess.run(squeeze, check=True)
                print(f"{to.relative_to(FOLDER.parents[1])}: {to.stat().st_size} bytes")
        browser.close()


if __name__ == "__main__":
    main()
