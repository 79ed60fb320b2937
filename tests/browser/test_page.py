"""The page in Chromium: everybody can read it, with whatever they have; and it changes by itself."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from netboot.lifecycle.reasons import Reason
from tests.browser.conftest import AXE, log_in, opened, paths
from tests.browser.world import HUNG, LATE, World
from tests.processes import wait_for
from tests.sites import TOKEN
from tests.sockets.served import served

RULES = {"light": "axe.run()", "dark": "axe.run({runOnly: ['color-contrast', 'link-in-text-block']})"}
"""In the dark nothing but colours is another."""


@pytest.mark.parametrize("scheme", list(RULES))
def test_no_page_has_a_fault_that_axe_finds(browser: Browser, address: str, world: World, scheme: str) -> None:
    found: list[tuple[str, str, str]] = []
    with opened(browser, base_url=address, color_scheme=scheme, bypass_csp=True) as context:
        page = context.new_page()
        log_in(page)
        for path in [*paths(world), "/page/login"]:
            page.goto(path)
            page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            page.add_script_tag(path=AXE)
            for each in page.evaluate(RULES[scheme])["violations"]:
                found += [(path, each["id"], node["html"][:120]) for node in each["nodes"]]
    assert found == []


def test_nothing_is_wider_than_a_phone_or_said_on_the_console(page: Page, world: World) -> None:
    page.set_viewport_size({"width": 360, "height": 780})
    for path in paths(world):
        if "nobody" in path:
            continue  # a browser says on its console that there is none
        page.goto(path)
        assert (path, page.evaluate("document.documentElement.scrollWidth")) == (path, 360)


def test_words_without_a_space_widen_no_phone_and_long_reasons_hide_no_cause(browser: Browser, tmp_path: Path) -> None:
    """Whatever machines and operators say."""
    world = World(tmp_path, words="w" * 200)
    for path in ("/v1/freeze", "/v1/remedies/pause"):
        assert world.api.post(path, {"reason": "because " * 49}).status_code == 200
    assert world.api.put(f"/v1/channels/{'w' * 64}", {"image": "w" * 64}).status_code == 404
    with served(world.api) as address, opened(browser, base_url=address) as context:
        page = context.new_page()
        page.set_viewport_size({"width": 1280, "height": 720})
        log_in(page)
        expect(page.locator(".case q").first).to_be_in_viewport(ratio=1)
        page.set_viewport_size({"width": 360, "height": 780})
        for path in paths(world):
            page.goto(path)
            assert (path, page.evaluate("document.documentElement.scrollWidth")) == (path, 360)
        for width in (1280, 1920):
            page.set_viewport_size({"width": width, "height": 720})
            page.goto("/page/audit")
            expect(page.get_by_text(f"channel {'w' * 64}")).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_boot_is_drawn_on_a_phone_as_wide_as_that(page: Page, world: World) -> None:
    page.set_viewport_size({"width": 360, "height": 780})
    page.goto(f"/page/boots/{world.boots[LATE]}")
    drawn = [each.bounding_box() for each in page.locator(".waterfall svg").all()]
    assert len(drawn) > 2
    assert all(box is not None and box["width"] > 280 for box in drawn)


def test_a_stranger_sees_first_what_is_late_its_rack_and_its_cause(page: Page) -> None:
    first = page.locator(".case").first
    expect(first).to_contain_text(re.compile(rf"late\s+{LATE}\s+rack r01"))
    expect(first).to_contain_text("Stuck after Initrd started")
    expect(first).to_contain_text("the root image does not come")
    expect(page).to_have_title("2 late, 2 ill · netboot")
    for width, height in ((1920, 1080), (1440, 900), (1280, 720), (360, 780)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto("/page/")
        cause = first.locator("q")
        expect(cause).to_have_text("no link on enp65s0f0 after 60 s")
        if width > 360:
            expect(cause).to_be_in_viewport(ratio=1)
        cause.scroll_into_view_if_needed()
        expect(cause).to_be_in_viewport(ratio=1)
        assert (width, page.evaluate(CUT)) == (width, [])


def test_three_late_machines_are_seen_without_scrolling_and_reached_by_keys(page: Page, world: World) -> None:
    """Each with its rack, its unit and its cause, on a wall and on a phone."""
    said = "boot b: reached Booted at 2023-11-14T21:35:20Z and nothing beyond in 15m (default): it does not join"
    down = {"BOOTED": Reason.STUCK, "JOINED": Reason.STUCK, "IN_SERVICE": Reason.NOT_JOINED}
    world.keep([world.found("gpu-0033", "Booted", 20, said, "no time server answers", **down)])
    try:
        for width, height in ((1920, 1080), (360, 780)):
            page.set_viewport_size({"width": width, "height": height})
            page.goto("/page/")
            for name, place, cause in (
                (LATE, "r01 U16", "no link on enp65s0f0 after 60 s"),
                (HUNG, "r02 U27", "Boot loop after Switched"),
                ("gpu-0033", "r02 U36", "no time server answers"),
            ):
                case = page.locator(".case.w-late").filter(has=page.get_by_role("link", name=name, exact=True))
                expect(case.locator(".where")).to_have_text(re.compile(place.replace(" ", r"\s+")))
                for part in (case.get_by_role("link", name=name), case.locator(".where"), case.get_by_text(cause)):
                    expect(part.first).to_be_in_viewport(ratio=1)
        page.goto("/page/")
        reached = []
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.id"))
        assert [f"first-m-{name}" in reached for name in (LATE, HUNG, "gpu-0033")] == [True] * 3
    finally:
        world.keep([world.found("gpu-0033", "InService", 4000 - 33)])


CUT = """[...document.querySelectorAll(".case p")].filter(
  (each) => each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth + 1,
).map((each) => each.textContent)"""
"""What of the cases is cut off; a pixel comes from rounding, a line has fifteen."""


def test_a_rack_says_how_its_machines_are_and_which_are_not_in_order(page: Page, world: World) -> None:
    drawn = page.get_by_role("link", name=re.compile(rf"^r01 .*late.*in service.*{LATE} in unit 16: late"))
    expect(drawn).to_have_attribute("title", re.compile(f"{LATE} in unit 16: late"))


def test_what_is_not_exchanged_does_not_say_that_it_is_live(page: Page, world: World) -> None:
    page.goto(f"/page/images/{world.new}")
    expect(page.locator("#liveness")).to_have_text(re.compile("^(Live|Asked)"))
    with page.expect_response(lambda answer: answer.url.endswith("/page/live")):
        page.goto("/page/discovered/b8:ce:f6:0a:11:01")
    expect(page.locator("#liveness")).to_have_text("Load again for news.")


def test_what_changes_is_shown_without_anybody_s_doing_and_where_one_is_stays(page: Page, world: World) -> None:
    expect(page.locator("#liveness")).to_have_text("Live.")  # tests before this one hold places still
    page.locator(f"#first-m-{LATE}").focus()
    world.keep([world.found(HUNG, "InService")])
    try:
        expect(page.locator("#count-late .number")).to_have_text("1")
        expect(page.locator(f"#first-m-{LATE}")).to_be_focused()
    finally:
        world.keep([world.found(HUNG, "Switched", BOOTED=Reason.BOOT_LOOP, JOINED=Reason.BOOT_LOOP)])


NEXT = "new Promise((done) => document.addEventListener('htmx:{}', (event) => done({}), {{once: true}}))"
EXCHANGED = """window.moved = [];
new MutationObserver((found) => moved.push(...found.filter((each) => each.type === "childList").map(String)))
  .observe(document.getElementById("main"), {childList: true, subtree: true});"""


def test_what_is_as_before_is_not_exchanged(page: Page, world: World) -> None:
    """A screen reader stays where it is."""
    for path in ("/page/", "/page/machines", f"/page/machines/{LATE}", "/page/rollouts/1", f"/page/images/{world.new}"):
        page.goto(path)
        page.evaluate(EXCHANGED)
        page.evaluate(f"answer = {NEXT.format('afterSwap', 'true')}; htmx.trigger('main', 'sse:changed'); answer")
        assert (path, page.evaluate("moved")) == (path, [])


LISTENERS = """window.listeners = window.came = window.heard = 0;
const listen = EventSource.prototype.addEventListener;
EventSource.prototype.addEventListener = function (name, ...more) {
  if (name === "changed" && listeners++ === 0) listen.call(this, name, () => came++);
  return listen.call(this, name, ...more);
};
document.addEventListener("htmx:sseMessage", () => heard++);"""
EXCHANGE = f"answer = {NEXT.format('afterSettle', 'true')}; htmx.trigger('main', 'sse:changed'); answer"


def test_what_is_opened_of_the_audit_by_keys_stays_open_when_something_changes(page: Page, world: World) -> None:
    assert world.api.post("/v1/machines/gpu-0002/hold", {"reason": "a fan " * 30}).status_code == 200
    try:
        page.goto("/page/audit")
        page.locator("summary").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("details[open] pre")).to_contain_text('"reason": "a fan a fan')
        assert world.api.post("/v1/machines/gpu-0003/hold", {"reason": "a disk " * 30}).status_code == 200
        page.evaluate(f"answer = {NEXT.format('afterSwap', 'true')}; htmx.trigger('main', 'sse:changed'); answer")
        expect(page.locator("summary")).to_have_count(3)
        expect(page.locator("details[open] pre")).to_contain_text('"reason": "a fan a fan')
    finally:
        for name in ("gpu-0002", "gpu-0003"):
            world.api.post(f"/v1/machines/{name}/unhold", {"reason": "done"})


def test_each_event_is_heard_once_however_long_the_page_was_open(page: Page, world: World) -> None:
    page.add_init_script(LISTENERS)
    page.goto("/page/")
    expect(page.locator("#liveness")).to_have_text("Live.")
    first = page.evaluate("listeners")
    for _ in range(20):
        page.evaluate(EXCHANGE)
    world.keep([world.found(HUNG, "InService")])
    try:
        expect(page.locator("#count-late .number")).to_have_text("1")
    finally:
        world.keep([world.found(HUNG, "Switched", BOOTED=Reason.BOOT_LOOP, JOINED=Reason.BOOT_LOOP)])
    listeners, came, heard = page.evaluate("[listeners, came, heard]")
    assert (listeners, heard) == (first, came)
    assert came > 0


def test_nothing_changes_while_text_is_marked(page: Page) -> None:
    page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
    refused = f"answer = {NEXT.format('beforeRequest', 'event.defaultPrevented')}; htmx.trigger('main', 'sse:changed')"
    assert page.evaluate(f"{refused}; answer") is True
    page.evaluate("getSelection().removeAllRanges()")
    assert page.evaluate(f"{refused}; answer") is False


def test_an_answer_that_was_under_way_is_not_shown_after_a_pause(page: Page, world: World) -> None:
    expect(page.locator("#liveness")).to_have_text(re.compile("^(Live|Asked)"))
    held: list[Route] = []
    page.route("**/page/", lambda route: held.append(route))
    with page.expect_request("**/page/"):
        page.evaluate("htmx.trigger('main', 'sse:changed')")
    page.locator("#pause").click()
    done = f"answer = {NEXT.format('afterRequest', 'true')}; 0"
    page.evaluate(f"{EXCHANGED}; {done}")
    world.keep([world.found(HUNG, "InService")])
    try:
        for route in held:
            route.continue_()
        page.evaluate("answer")
        assert page.evaluate("moved") == []
        expect(page.locator("#count-late .number")).to_have_text("2")
        assert page.evaluate("document.getElementById('now').dataset.asOf") in page.locator("#old").inner_text()
        page.unroute("**/page/")
        asked = "asked = 0; main.addEventListener('sse:changed', () => { asked += 1; })"
        assert page.evaluate(f"{asked}; document.getElementById('pause').click(); asked") == 1
        expect(page.locator("#count-late .number")).to_have_text("1")
    finally:
        world.keep([world.found(HUNG, "Switched", BOOTED=Reason.BOOT_LOOP, JOINED=Reason.BOOT_LOOP)])


def test_what_has_gone_or_cannot_be_told_comes_back_by_itself(page: Page, world: World) -> None:
    boot = page.locator(f"#b-{world.boots[LATE]}")
    page.goto(f"/page/machines/{LATE}")
    expect(page.locator("h1")).to_have_text(LATE)
    gone = "**/page/machines/*"
    page.route(gone, lambda route: route.continue_(url=f"{page.url.removesuffix(LATE)}nobody"))
    page.evaluate(EXCHANGE)
    expect(page.locator("h1")).to_have_text("There is none")
    page.locator("#pause").click()
    page.locator("#pause").click()
    page.unroute(gone)
    page.evaluate(EXCHANGE)
    expect(page.locator("h1")).to_have_text(LATE)
    boot.focus()
    page.route(gone, lambda route: route.fulfill(status=204, headers={"HX-Trigger": "untold"}))
    page.evaluate("htmx.trigger('main', 'sse:changed')")
    expect(page.locator("#liveness")).to_have_text("The service could not tell; what is shown is old.")
    expect(boot).to_be_focused()


def test_a_page_of_which_nothing_is_exchanged_says_so(page: Page) -> None:
    page.goto("/page/discovered/b8:ce:f6:0a:11:01")
    expect(page.locator("#liveness")).to_have_text("Load again for news.")
    expect(page.locator("#pause")).to_be_hidden()


def test_a_row_that_goes_or_comes_leaves_its_neighbours_alone(page: Page, world: World) -> None:
    page.goto("/page/machines?status=late")
    rows, stays = page.locator("tbody tr"), page.locator(f"tr:has(#m-{LATE})").element_handle()
    expect(rows).to_have_count(2)
    world.keep([world.found(HUNG, "InService")])
    try:
        expect(rows).to_have_count(1)
    finally:
        world.keep([world.found(HUNG, "Switched", BOOTED=Reason.BOOT_LOOP, JOINED=Reason.BOOT_LOOP)])
    expect(rows).to_have_count(2)
    assert stays.evaluate("row => row.isConnected")


def test_nothing_changes_while_somebody_paused_it(page: Page, world: World) -> None:
    expect(page.locator("#liveness")).to_have_text(re.compile("^(Live|Asked)"))
    press_until(page, "pause")
    page.keyboard.press("Enter")
    expect(page.locator("#old")).to_have_text(re.compile(r"^Updates are paused: this is how it was at 20\S+Z\.$"))
    expect(page.locator("#pause")).to_have_text("Resume updates")
    world.keep([world.found(HUNG, "InService")])
    try:
        assert page.evaluate(NEXT.format("beforeRequest", "event.defaultPrevented")) is True
        expect(page.locator("#count-late .number")).to_have_text("2")
        page.goto("/page/machines")
        expect(page.locator("#old")).to_have_text(re.compile("^Updates are paused: this is how it was at 20"))
        page.goto("/page/")
        expect(page.locator("#count-late .number")).to_have_text("1")
        world.keep([world.found(HUNG, "Switched", BOOTED=Reason.BOOT_LOOP, JOINED=Reason.BOOT_LOOP)])
        asked = f"answer = {NEXT.format('beforeRequest', 'event.defaultPrevented')}"
        assert page.evaluate(f"{asked}; htmx.trigger('main', 'sse:changed'); answer") is True
        page.locator("#pause").focus()
        world.keep([world.found(HUNG, "InService")])
        page.keyboard.press("Enter")
        expect(page.locator("#count-late .number")).to_have_text("1")
        expect(page.locator("#old")).to_have_text("")
        expect(page.locator("#pause")).to_be_focused()
    finally:
        world.keep([world.found(HUNG, "Switched", BOOTED=Reason.BOOT_LOOP, JOINED=Reason.BOOT_LOOP)])


def test_a_page_whose_service_does_not_answer_says_so_until_it_does(browser: Browser, address: str) -> None:
    """Whether it refuses or hangs with its stream open: an hour passes in a moment."""
    with opened(browser, base_url=address) as context:
        page = context.new_page()
        page.clock.install()
        log_in(page)
        expect(page.locator("#old")).to_have_text("")
        page.route("**/page/", lambda _: None)  # nobody answers, and nobody says so
        said_in_time(page, "html.is-old #old", "What is shown is old: the service has not answered")
        page.unroute("**/page/")
        page.route("**/page/", lambda route: route.abort())
        said_in_time(page, "#liveness", "The service does not answer; what is shown is old.")
        page.unroute("**/page/")
        page.clock.fast_forward(20_000)
        expect(page.locator("#old")).to_have_text("")
        expect(page.locator("#liveness")).to_have_text(re.compile("^(Live|Asked)"))


def said_in_time(page: Page, place: str, text: str) -> None:
    """A minute passes at each look: what was asked before the service fell silent may be answered yet."""

    def said() -> bool:
        page.clock.fast_forward(60_000)
        return any(found.startswith(text) for found in page.locator(place).all_text_contents())

    wait_for(said, pause=0.2)  # what nobody answers ends after 15 s, by no clock of ours


def test_a_walk_by_keyboard_alone_from_login_to_the_cause(browser: Browser, address: str) -> None:
    with opened(browser, base_url=address) as context:
        page = context.new_page()
        page.goto("/")
        press_until(page, "token")
        page.keyboard.type(TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_url("**/page/")
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        expect(page.locator(".skip")).to_be_in_viewport()
        page.keyboard.press("Enter")
        press_until(page, f"first-m-{LATE}")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/page/machines/{LATE}")
        expect(page.get_by_role("heading", level=1)).to_have_text(LATE)
        boot = page.locator("a[id^=b-]").first.get_attribute("id")
        assert boot is not None
        press_until(page, boot)
        page.keyboard.press("Enter")
        page.wait_for_url("**/page/boots/*")
        said, crashed = page.locator("pre").all()
        expect(said).to_contain_text("no link on enp65s0f0")
        expect(crashed).to_contain_text("Kernel panic - not syncing")
        for each, name in ((said, "said-last"), (crashed, "log-1")):
            press_until(page, name, "pre")
            expect(each).to_be_focused()


def press_until(page: Page, wanted: str, tag: str = "") -> None:
    """Tab, until that has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        there = page.evaluate("[document.activeElement.id, document.activeElement.tagName.toLowerCase()]")
        if there[0] == wanted and tag in ("", there[1]):
            return
    raise AssertionError(f"{wanted or tag} cannot be reached by the keyboard")


def test_it_is_read_without_javascript_and_colours_are_chosen(browser: Browser, address: str) -> None:
    with opened(browser, base_url=address, java_script_enabled=False) as context:
        page = context.new_page()
        log_in(page)
        page.click(f"#first-m-{LATE}")
        expect(page.locator(".cause")).to_contain_text("the root image does not come")
        page.get_by_role("button", name="dark").click()
        page.wait_for_url(f"**/page/machines/{LATE}")
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.goto("/page/machines")
        page.fill("input[name=text]", "gpu-0042")
        page.get_by_role("button", name="Show").click()
        expect(page.locator(".found")).to_have_text("1 machine")
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/page/login")  # before it is answered, the next page would be asked for in its place
        page.goto("/page/machines")
        expect(page).to_have_url(re.compile("/page/login"))
