"""The page of a large fleet beside that of a small one, in Chromium, turn about in the same rounds."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from bench.stats import Verdict
from tests.browser.world import World
from tests.sites import TOKEN
from tests.sockets.served import served

SMALL, LARGE = 50, 5_000
VISITS = 20
"""Of each page in a round."""
TARGET = 3.0
PATHS: Mapping[str, Callable[[World], str]] = {
    "/page/": lambda _: "/page/",
    "/page/machines": lambda _: "/page/machines",
    "/page/machines/NAME": lambda world: f"/page/machines/{world.names[0]}",
    "/page/boots/ID": lambda world: f"/page/boots/{world.boots[world.names[0]]}",
    "/page/rollouts": lambda _: "/page/rollouts",
    "/page/rollouts/1": lambda _: "/page/rollouts/1",
    "/page/images": lambda _: "/page/images",
    "/page/images/DIGEST": lambda world: f"/page/images/{world.new}",
    "/page/discovered": lambda _: "/page/discovered",
    "/page/discovered/MAC": lambda _: "/page/discovered/b8:ce:f6:0a:11:01",
    "/page/audit": lambda _: "/page/audit",
}
"""As they are called here, and what they are of a fleet."""
EXCHANGED = tuple(path for path in PATHS if path != "/page/discovered/MAC")
"""Whose part that is live is asked for again, every few seconds, while somebody looks."""
_TIMES = """() => {
  const [visit] = performance.getEntriesByType("navigation");
  return [visit.responseEnd - visit.requestStart, visit.loadEventEnd];
}"""
_EXCHANGE = """() => new Promise((done) => {
  const begun = performance.now();
  let answered = 0;
  document.addEventListener("htmx:beforeSwap", () => { answered = performance.now() - begun; }, {once: true});
  document.addEventListener("htmx:afterSwap", () => {
    document.body.getBoundingClientRect();  // laid out anew
    done([answered, performance.now() - begun]);
  }, {once: true});
  htmx.trigger("#main", "sse:changed");
})"""
"""As an open page does: only what differs is exchanged."""


class Visit(NamedTuple):
    """Milliseconds: until the whole answer had come; until the page, or its live part, was there."""

    answered: float
    loaded: float


@dataclass(frozen=True)
class Pages:
    """By path, then by number of machines: visits, round by round. `changed`: visits of the fleet just after something
    was found of one machine, so that all are looked at anew."""

    visits: dict[str, dict[int, list[Visit]]]
    changed: dict[int, list[Visit]]


def measure(folder: Path, rounds: int, *, quick: bool) -> Pages:
    """`rounds` with both fleets, one visit each in turn."""
    sizes = (SMALL, 500) if quick else (SMALL, LARGE)
    rows = (*PATHS, *map(exchanged, EXCHANGED))
    found: dict[str, dict[int, list[Visit]]] = {row: {size: [] for size in sizes} for row in rows}
    changed: dict[int, list[Visit]] = {size: [] for size in sizes}
    with ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        stack.callback(browser.close)
        worlds = {size: World(folder / f"page-{size}", size) for size in sizes}
        pages = {size: stack.enter_context(_page(browser, world)) for size, world in worlds.items()}
        for _ in range(rounds):
            for path, of in PATHS.items():
                for _ in range(VISITS):
                    for size, page in pages.items():
                        found[path][size].append(_visit(page, of(worlds[size])))
                        if path in EXCHANGED:
                            found[exchanged(path)][size].append(Visit(*page.evaluate(_EXCHANGE)))
            for number in range(VISITS):
                for size, page in pages.items():
                    worlds[size].keep([worlds[size].found("gpu-0003", minutes=number)])
                    changed[size].append(_visit(page, "/page/"))
    return Pages(found, changed)


@contextmanager
def _page(browser: Browser, world: World) -> Iterator[Page]:
    with served(world.api) as address, browser.new_context(base_url=address) as context:
        page = context.new_page()
        page.set_viewport_size({"width": 1920, "height": 1080})
        page.goto("/page/login")
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_url("**/page/")
        yield page


def _visit(page: Page, path: str) -> Visit:
    page.goto(path)
    answered, loaded = page.evaluate(_TIMES)
    return Visit(answered, loaded)


def exchanged(path: str) -> str:
    """What the live part of a page is called here."""
    return f"{path}, live part"


def p95(figures: list[float]) -> float:
    """The figure that 95 of 100 do not exceed."""
    return sorted(figures)[max(0, -(-len(figures) * 95 // 100) - 1)]


def _rows(found: Pages) -> dict[str, dict[int, list[Visit]]]:
    """All that was measured, by what it is called; of each the visits by size of fleet."""
    return {**found.visits, "/page/ after a change": found.changed}


def described(found: Pages) -> str:
    """A line for each page and fleet."""
    lines = ["the page in Chromium, p95 in ms: answered, loaded"]
    for path, sizes in _rows(found).items():
        for size, visits in sizes.items():
            answered, loaded = (p95(list(each)) for each in zip(*visits, strict=True))
            lines.append(f"    {path}, {size} machines: {answered:.0f}, {loaded:.0f}")
    return "\n".join(lines)


def verdicts(found: Pages) -> list[Verdict]:
    """A page of many costs not much more than one of few."""
    judged = []
    for path, sizes in _rows(found).items():
        few, many = sorted(sizes)
        ratio = p95([each.loaded for each in sizes[many]]) / p95([each.loaded for each in sizes[few]])
        judged.append(Verdict(f"p95 of {path} with {many} machines ÷ with {few}", ratio, TARGET, at_least=False))
    return judged
