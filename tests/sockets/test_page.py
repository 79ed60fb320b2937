"""The page's door: who is let in, what a browser gets and keeps, and that a machine's words are only words."""

import re
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import requests
from flask.testing import FlaskClient

from images.store.store import Store
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import Reason
from netboot.lifecycle.rollout import MemberState
from netboot.lifecycle.state import Batch
from netboot.lifecycle.transitions import Trouble
from netboot.status import FRESH_MS, Condition
from netboot.web.page import live, views
from netboot.web.page.sessions import IDLE_SECONDS, LONGEST_SECONDS, MOST, MOST_OF_ONE, Sessions
from netboot.web.page.words import gravest
from tests.browser.world import CONSOLE, HOSTILE, HUNG, LATE, World
from tests.processes import wait_for
from tests.records import console, event
from tests.sites import TOKEN, add_image, make_site
from tests.sockets.api import LIFECYCLE, NOW, PROJECTION, UP_MS
from tests.sockets.service import serving

HOME = {"Origin": "http://localhost"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"), words=HOSTILE, places=4)


@pytest.fixture
def client(world: World) -> Iterator[FlaskClient]:
    yield world.api.client.application.test_client()


def log_in(client: FlaskClient, token: str = TOKEN, **headers: str) -> Any:
    return client.post("/page/login", data={"token": token}, headers=HOME | headers)


def form_token(client: FlaskClient) -> str:
    found = re.search(r'name="form" value="([0-9a-f]{64})"', client.get("/page/").text)
    assert found is not None
    return found[1]


def paths(world: World) -> list[str]:
    boots = [f"/page/boots/{boot}" for boot in world.boots.values()]
    lists = [
        "/page/",
        "/page/machines",
        "/page/rollouts",
        "/page/rollouts/1",
        "/page/discovered",
        "/page/discovered/b8:ce:f6:0a:11:01",
        "/page/images",
        f"/page/images/{world.new}",
        "/page/audit",
    ]
    return [*lists, f"/page/machines/{LATE}", "/page/machines/gpu-0001", *boots]


def test_who_has_no_session_is_led_to_the_login_and_on_from_there(client: FlaskClient, world: World) -> None:
    for path in paths(world):
        answer = client.get(path)
        assert (answer.status_code, answer.location) == (303, f"/page/login?next={path}")
    part = client.get("/page/", headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["HX-Redirect"], part.text) == (204, "/page/login?next=/page/", "")
    answer = client.get("/page/machines?status=late&rack=r01")
    assert answer.location == "/page/login?next=/page/machines?status%3Dlate%26rack%3Dr01"
    filtered = re.findall(r'name="next" value="([^"]+)"', client.get(answer.location).text)[-1]
    assert unescape(filtered) == "/page/machines?status=late&rack=r01"
    answer = client.post("/page/login", data={"token": TOKEN, "next": "/page/rollouts"}, headers=HOME)
    assert (answer.status_code, answer.location) == (303, "/page/rollouts")
    for away in ("https://example.net/", "//example.net/", "/page/\\example.net", "/page/\u2028x", "/v1/boots"):
        answer = client.post("/page/login", data={"token": TOKEN, "next": away}, headers=HOME)
        assert answer.location == "/page/"


def test_the_cookie_says_nothing_of_the_token_and_is_the_browser_s_alone(client: FlaskClient) -> None:
    cookie = log_in(client).headers["Set-Cookie"]
    assert re.fullmatch(
        r"netboot_session=[\w-]{43}; Max-Age=2592000; HttpOnly; Path=/page; SameSite=Strict",
        re.sub(r"Expires=[^;]+; ", "", cookie),
    )
    assert TOKEN not in cookie
    assert "; Secure;" in log_in(client, Origin="https://localhost").headers["Set-Cookie"]


@pytest.mark.parametrize("token", ["", "wrong-token-wrong-token", f"{TOKEN}x", "ü" * 20, "a\r\nb" * 9])
def test_another_token_opens_nothing(client: FlaskClient, token: str) -> None:
    answer = log_in(client, token)
    assert (answer.status_code, "Set-Cookie" in answer.headers) == (401, False)
    assert "That is no token of this site." in answer.text


def test_a_form_of_another_site_or_session_does_nothing(client: FlaskClient) -> None:
    names = ("null", "https://example.net", "http://localhost.example", "http://[")
    for origin in ({}, {"Host": ""}, *({"Origin": name} for name in names)):
        answer = client.post("/page/login", data={"token": TOKEN}, headers=origin)
        assert (answer.status_code, "Set-Cookie" in answer.headers) == (403, False)
    log_in(client)
    for form in ("", "0" * 64, "ü"):
        assert client.post("/page/logout", data={"form": form}, headers=HOME).status_code == 403
    assert client.get("/page/").status_code == 200
    left = client.post("/page/logout", data={"form": form_token(client)}, headers=HOME)
    assert (left.status_code, left.headers["Set-Cookie"].startswith("netboot_session=; Expires=Thu, 01 Jan 1970")) == (
        303,
        True,
    )
    assert client.get("/page/").status_code == 303


def test_a_login_ends_the_session_before_it_and_a_large_form_is_none(client: FlaskClient) -> None:
    log_in(client)
    before = client.get_cookie("netboot_session", path="/page")
    assert before is not None
    log_in(client)
    assert client.get("/page/").status_code == 200
    client.set_cookie("netboot_session", before.value, path="/page")
    assert client.get("/page/").status_code == 303
    assert log_in(client, "x" * 17_000).status_code == 413


def test_what_cannot_be_told_now_is_asked_for_again_and_is_no_wrong_token(tmp_path: Path) -> None:
    world = World(tmp_path, count=3)
    client = world.api.client
    log_in(client)
    (world.api.config.data / "conditions.db").unlink()
    whole, part = client.get("/page/"), client.get("/page/", headers={"HX-Request": "true"})
    assert "That cannot be told right now" in whole.text
    assert 'hx-trigger="sse:changed, every 15s"' in whole.text
    assert (whole.status_code, part.status_code) == (503, 204), "what is there stays there"
    assert part.headers["HX-Trigger"] == "untold"
    world.api.config.management.token_file.unlink()
    assert log_in(client).status_code == 503


def test_a_session_ends_with_its_token_at_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    client, file = world.api.client, world.api.config.management.token_file
    log_in(client)
    assert client.get("/page/machines").status_code == 200
    file.write_text("another-token-of-this-site\n")
    assert client.get("/page/machines").location == "/page/login?next=/page/machines"


def test_sessions_end_and_make_room() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    idle, busy = sessions.begin("one"), sessions.begin("two")
    now[0] = IDLE_SECONDS
    assert sessions.token(busy) == "two"
    now[0] = IDLE_SECONDS + 1
    assert (sessions.token(idle), sessions.token(busy), sessions.token("")) == (None, "two", None)
    while now[0] <= LONGEST_SECONDS:
        assert sessions.token(busy) == "two"
        now[0] += IDLE_SECONDS
    assert sessions.token(busy) is None
    first = sessions.begin("first")
    for number in range(MOST):
        now[0] += 1
        sessions.begin(f"more {number}")
    assert sessions.token(first) is None


def test_who_logs_in_again_and_again_ends_sessions_of_its_own_alone() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    other, mine = sessions.begin("other"), []
    for _ in range(MOST_OF_ONE + 1):
        now[0] += 1
        mine.append(sessions.begin("mine"))
    assert sessions.token(other) == "other"
    assert [sessions.token(each) for each in mine] == [None] + MOST_OF_ONE * ["mine"]


def test_every_answer_carries_the_policy(client: FlaskClient, world: World) -> None:
    log_in(client)
    for path in [*paths(world), "/page/login", "/page/none", "/page/static/page.css", "/page/static/none"]:
        with client.get(path) as answer:
            assert (path, answer.headers["Content-Security-Policy"]) == (path, POLICY)
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
            assert (answer.headers.get("Cache-Control") == "no-store") == ("static" not in path)
    assert "unsafe" not in POLICY


def test_scripts_and_styles_lie_under_addresses_of_their_content(client: FlaskClient) -> None:
    """An update is shown with its own; a page that was open before it is loaded again."""
    log_in(client)
    shown = client.get("/page/").text
    named = re.findall(r'(?:src|href)="(/page/static/[^"]+)"', shown)
    assert [re.sub("v=[0-9a-f]{16}$", "v=", each) for each in named] == [
        f"/page/static/{name}?v="
        for name in ("icon.svg", "page.css", "htmx.min.js", "htmx-sse.min.js", "idiomorph.min.js", "page.js")
    ]
    for path in named:
        for address, kept in ((path, "public, max-age=31536000, immutable"), (path[:-1] + "x", "no-cache")):
            with client.get(address) as answer:
                assert (answer.status_code, answer.headers["Cache-Control"]) == (200, kept)
    version = re.search(r"""hx-headers='{"Netboot-Page": "([0-9a-f]{16})"}'""", shown)
    assert version is not None
    exchanged = {"HX-Request": "true"}
    assert client.get("/page/", headers=exchanged | {"Netboot-Page": version[1]}).status_code == 200
    old = client.get("/page/", headers=exchanged | {"Netboot-Page": "0" * 16})
    assert (old.status_code, old.headers["HX-Refresh"], old.text) == (204, "true", "")


def test_what_a_machine_says_is_text_wherever_it_is_shown(client: FlaskClient, world: World) -> None:
    """Console, agent, serial number, checks, reasons: of a machine, of a stranger, of a rollout, in a filter."""
    log_in(client)
    shown = ""
    for path in [*paths(world), "/page/machines?text=" + HOSTILE.replace("&", "%26")]:
        for headers in ({}, {"HX-Request": "true"}):
            answer = client.get(path, headers=headers)
            assert answer.status_code == 200
            assert "<img" not in answer.text
            assert "<script>" not in answer.text
            assert " style=" not in answer.text
            assert not re.search(r"\son\w+=\"(?!document)", re.sub(r"&#?\w+;", "", answer.text))
            shown += answer.text
    assert shown.count("&lt;img src=x onerror=") > 10
    assert "49" not in re.findall(r"\{\{7\*7\}\}|(?<=title=1)49", shown)


def test_a_list_is_filtered_and_paged_by_the_service(client: FlaskClient) -> None:
    log_in(client)
    assert "2 machines" in client.get("/page/machines?status=late").text
    assert "1 machine<" in client.get("/page/machines?reason=BootLoop").text
    assert "32 machines" in client.get("/page/machines?rack=r01").text
    answer = client.get("/page/machines?status=tired")
    assert answer.status_code == 400
    assert "must be 'late', 'ill', 'held', 'coming', 'in-service', 'off' or 'unknown'" in unescape(answer.text)
    answer = client.get("/page/machines/gpu-00")
    assert answer.status_code == 404
    assert "the inventory has no machine of that name" in answer.text


def test_a_form_shows_every_filter_and_sends_it_again(client: FlaskClient) -> None:
    """Also those that links of the fleet alone set."""
    log_in(client)
    asked = {"step": "InitrdStarted", "class": "hgx-h200", "rack": "r01", "reason": "BootLoop", "cause": "0" * 16}
    shown = client.get("/page/machines", query_string=asked).text
    form = re.search(r'<form class="filters".*?</form>', shown, re.DOTALL)
    assert form is not None
    assert set(re.findall(r' name="([^"]+)"', form[0])) == set(views.FILTERS)
    assert '<option value="InitrdStarted" selected>Initrd started</option>' in form[0]
    assert '<option value="hgx-h200" selected>hgx-h200</option>' in form[0]
    assert '<option value="hgx-h100">hgx-h100</option>' in form[0]
    assert '<option value="BootLoop" selected>Boot loop</option>' in form[0]
    assert '<option value="0000000000000000" selected>this one</option>' in form[0]
    assert '<option value="&lt;b&gt;" selected>&lt;b&gt;</option>' in client.get("/page/machines?step=<b>").text


def test_a_rollout_tells_first_who_did_not_come_back_and_what_its_words_mean(client: FlaskClient) -> None:
    log_in(client)
    shown = client.get("/page/rollouts/1").text
    apart, racks, moving = (shown.index(f'<h2 id="{name}">') for name in ("apart", "progress", "moving"))
    assert apart < racks < moving
    failed, out = shown.index('title="did not come back with the image'), shown.rindex('<td data-label="Tries"')
    assert apart < shown.index('href="/page/machines/gpu-0006"') < racks
    assert (failed < racks, moving < out) == (True, True)
    legend = re.findall(r'<dt class="word [^"]+"><span[^>]*>.</span> (\w+)</dt><dd>[^<]+</dd>', shown)
    assert sorted(legend) == sorted(MemberState)


def test_the_gravest_check_and_all_grave_words_of_a_rack_are_said(client: FlaskClient) -> None:
    log_in(client)
    shown = client.get("/page/machines/gpu-0001").text
    assert shown.index('<th scope="row">links</th>') < shown.index('<th scope="row">gpu</th>'), "a warning"
    found = [{"name": name, "status": name} for name in ("absent", "fail", "pass", "unknown", "warn")]
    assert [each["name"] for each in gravest(found)] == ["fail", "unknown", "warn", "pass", "absent"]
    rack = re.search(r'<span class="name">r01</span> <span class="many">(.*?) of 32</span>', client.get("/page/").text)
    assert rack is not None
    assert re.sub(r"<[^>]+>", "", rack[1]) == "▲1 late ✖2 ill"


def test_events_come_while_places_are_free_and_later_where_none_is(client: FlaskClient, world: World) -> None:
    log_in(client)
    streams = [client.get("/page/live") for _ in range(3)]  # of the four places here one person has two
    assert [next(iter(each.response)) for each in streams[:2]] == [b"event: changed\ndata:\n\n"] * 2
    assert streams[2].data == b"retry: 5000\n\n"
    for each in streams:
        each.close()
    again = client.get("/page/live")
    assert next(iter(again.response)) == b"event: changed\ndata:\n\n"
    again.close()


def test_a_stream_ends_after_a_while_and_asks_for_the_session_again(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LONGEST_SECONDS", 0.0)
    log_in(client)
    with client.get("/page/live") as answer:
        assert answer.data == b"event: changed\ndata:\n\n"


def test_what_the_api_tells_without_an_end_is_no_boot(client: FlaskClient, world: World) -> None:
    """`/v1/boots/watch` would be waited for, with a thread and a place, until the service ends."""
    log_in(client)
    stop = threading.Timer(60.0, setattr, (world.api, "stopping", True))  # or this test would not end either
    stop.start()
    answer = client.get("/page/boots/watch")
    stop.cancel()
    assert (answer.status_code, "there is nothing of that name" in answer.text) == (404, True)
    for who in ("alice", "alice", "bob", "bob"):
        world.api.watchers.take(who)  # would raise, where a place were kept


def test_what_nobody_looks_at_any_more_is_not_in_order(tmp_path: Path) -> None:
    world = World(tmp_path, count=3)
    client = world.api.client
    log_in(client)
    shown = client.get("/page/").text
    assert ("Nothing is late, nothing is ill." in shown, "not-of-now" in shown) == (True, False)
    world.api.kept.keep([], [world.names[0]], {})
    shown = client.get("/page/").text
    assert "Nothing is late, nothing is ill." not in shown
    assert "Nothing is known to be late or ill; of 1 that cannot be told." in shown
    world.api.say(lifecycle=LIFECYCLE.model_copy(update={"up_ms": UP_MS - FRESH_MS - 1}))
    shown = client.get("/page/", headers={"HX-Request": "true"}).text
    assert "<title>? 0 late, 0 ill · netboot</title>" in shown
    assert "nobody looks at machines now: lifecycle: has said nothing for" in shown
    boot = f"/page/boots/{world.boots[world.names[0]]}"
    for path in ("/page/machines", f"/page/machines/{world.names[0]}", boot, "/page/rollouts/1"):
        assert "nobody looks at machines now: lifecycle: has said nothing for" in world.api.client.get(path).text
    world.api.say(projection=PROJECTION.model_copy(update={"problem": "the disk is full"}))
    assert world.api.get("/v1/fleet").json["problem"] == ("nobody looks at machines now: projection: the disk is full")


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            {"unseen": ("reports", "cluster/prod/")},
            "reports, cluster/prod cannot be looked at: nobody there is found late or lost meanwhile",
        ),
        ({"behind_seconds": 301.0, "waiting": 7}, "machines were looked at 301 s ago: 7 wait for it"),
        ({"behind_seconds": 300.0, "waiting": 7}, ""),
    ],
)
def test_who_cannot_be_found_late_is_not_in_order(said: dict[str, Any], problem: str, tmp_path: Path) -> None:
    world = World(tmp_path, count=3)
    log_in(world.api.client)
    world.api.say(lifecycle=LIFECYCLE.model_copy(update=said))
    shown = world.api.client.get("/page/").text
    assert world.api.get("/v1/fleet").json["problem"] == problem
    assert ("What is shown may not be so any more</b>: " + problem in shown) == bool(problem)
    assert ("Nothing is late, nothing is ill." in shown) == (not problem)


def test_a_service_that_is_not_in_order_and_what_stands_still_by_somebody_s_word_are_on_the_wall(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, count=3)
    client = world.api.client
    log_in(client)
    shown = client.get("/page/").text
    assert ("not-in-order" in shown, "by itself" in shown, "paused" in shown) == (False, False, False)
    for path in ("/v1/freeze", "/v1/remedies/pause"):
        assert world.api.post(path, {"reason": "a switch is moved"}).status_code == 200
    world.api.say(projection=PROJECTION.model_copy(update={"problem": "the disk is full"}))
    shown = client.get("/page/").text
    assert "<b>The service is not all in order</b>" in shown
    assert "<li>projection: the disk is full " in shown
    assert re.search(r"<b>Nothing begins by itself</b>: frozen by [^:<]+: a switch is moved", shown)
    assert re.search(r"<b>Remedies are paused</b> for <time [^>]+>[^<]+</time>, by [^:<]+: a switch is moved", shown)
    assert "nothing is ill" not in shown
    world.api.probe = Condition(ok=False, message="127.0.0.1:8080 does not answer: Connection refused")
    shown = client.get("/page/").text
    assert "<title>Machines cannot boot, ? 0 late, 0 ill · netboot</title>" in shown
    assert "<b>Machines cannot boot now</b>" in shown
    assert "<li>provisioning: 127.0.0.1:8080 does not answer: Connection refused " in shown


def test_the_wall_stays_where_marks_cannot_be_read(tmp_path: Path) -> None:
    world = World(tmp_path, count=3)
    log_in(world.api.client)
    for path in world.api.config.data.glob("intents.db*"):
        path.unlink()
    (world.api.config.data / "intents.db").write_bytes(b"damaged" * 1000)
    assert world.api.get("/v1/remedies/pause").status_code == 503
    shown = world.api.client.get("/page/")
    assert (shown.status_code, "Look here first" in shown.text) == (200, True)
    assert "<b>Whether remedies are paused cannot be told</b>: " in shown.text
    told = r'<b>Nothing begins by itself</b>: <span title="[^"]+">whether the fleet is frozen cannot be told: '
    assert re.search(told, shown.text)
    assert "nothing is ill" not in shown.text


def test_a_machine_is_found_by_its_whole_name(client: FlaskClient, world: World) -> None:
    names = [each["name"] for each in world.api.get(f"/v1/fleet/machines?name={LATE}").json["machines"]]
    assert names == [LATE]
    assert world.api.get("/v1/fleet/machines?name=gpu-001").json["of"] == 0
    log_in(client)
    assert '<p class="state"><span class="word w-late">' in re.sub(
        r">\s+<", "><", client.get(f"/page/machines/{LATE}").text
    )


def test_who_is_long_behind_the_gate_is_late_though_nothing_is_found_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, count=3)
    name = world.names[0]
    world.keep([world.found(name, "HealthGated", 50, "its Node may not take work", IN_SERVICE=Reason.HEALTH_GATED)])

    def status() -> tuple[str, str]:
        (each,) = world.api.get(f"/v1/fleet/machines?name={name}").json["machines"]
        return each["status"], each["reason"]

    assert status() == ("coming", "HealthGated")
    monkeypatch.setattr(world.api.clock, "now_ms", lambda: NOW + 10 * 60_000)
    assert status() == ("late", "HealthGated")
    assert world.api.get("/v1/fleet").json["first"][0]["name"] == name
    log_in(world.api.client)
    assert '<p class="state"><span class="word w-late">' in re.sub(
        r">\s+<", "><", world.api.client.get(f"/page/machines/{name}").text
    )


def test_a_boot_that_is_late_is_drawn_until_now(tmp_path: Path) -> None:
    world = World(tmp_path)
    log_in(world.api.client)
    stuck = world.found(LATE, "InitrdStarted", 24, BOOTED=Reason.STUCK)

    def row() -> str:
        shown = world.api.client.get(f"/page/boots/{world.boots[LATE]}").text
        return next((line for line in shown.split("<tr ") if '<rect class="open"' in line), "")

    world.keep([stuck.model_copy(update={"trouble": Trouble.STUCK})])
    assert '<th scope="row">Initrd started</th><td data-label="to">now <b class="tag w-late">goes on, late</b>' in row()
    assert '<span class="quiet">for 23m 19s</span></td><td class="n">38m 19s' in row()
    assert row().count('<rect class="due"') == 1
    world.keep([world.found(LATE, "ImageFetched", 24, BOOTED=Reason.BOOTING)])
    assert 'now <b class="tag">goes on</b> <span class="quiet">its deadline stood still meanwhile</span>' in row()
    world.keep([world.found(LATE, "InService", 24)])
    assert row() == "", "it is over"
    world.keep([stuck.model_copy(update={"boot": world.boots[HUNG]})])
    assert row() == "", "another boot counts"


def test_what_a_late_boot_said_last_is_there_and_its_machine_leads_to_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    client, boot = world.api.client, world.boots[LATE]
    log_in(client)
    shown = client.get(f"/page/boots/{boot}").text
    words = re.sub(r"<[^>]+>", "", shown)
    assert "\nSent 5m ago, 34m after its kernel started, from 192.0.2.7: its own words, which nothing" in words
    lines = CONSOLE.rstrip()
    assert f'<pre id="said-last" tabindex="0" aria-label="What it said last">{lines}</pre>' in shown
    ready = client.get(f"/page/boots/{world.boots[world.names[0]]}").text
    for text, first in ((shown, "console"), (ready, "waterfall")):
        assert re.findall(r'<h2 id="(console|waterfall)">', text)[0] == first, "the console, where it is not Ready"
    link = f'<a id="console-{boot}" href="/page/boots/{boot}#console">'
    assert link in client.get(f"/page/machines/{LATE}").text
    assert 'id="console-' not in client.get(f"/page/machines/{HUNG}").text, "it sent none"
    proven, newer = event(LATE, 2, Phase.ATTESTED).model_copy(update={"boot": boot}), console(LATE, 3)
    world.api.states.take(Batch("boot-0.db", 1, 9_000, [proven, newer], [8_999, 9_000]))
    for booted, led in ((Reason.BOOTING, True), (Reason.BOOTED, False)):
        world.keep([world.found(LATE, BOOTED=booted, JOINED=Reason.NO_CLUSTER, IN_SERVICE=Reason.NO_CLUSTER)])
        shown = client.get(f"/page/machines/{LATE}").text
        assert (link in shown) == led, "the current boot of one that joins nothing is over when it is up"
        assert f'<a id="console-{newer.boot}"' in shown
    world.api.states.consoles.clear()
    shown = client.get(f"/page/boots/{boot}").text
    assert '<p class="problem">They are longer ago than is kept, or cannot be read.</p>' in shown


def test_the_service_itself_serves_it(tmp_path: Path) -> None:
    """Behind its walls, by gunicorn: templates, files, a login, and what happens as it happens."""
    config = make_site(tmp_path / "site", workers=1)
    Store(config.store).set_channel("stable", add_image(config))
    address = f"http://{config.management.listen}"
    with serving(config, tmp_path / "site" / "netboot.yaml") as service, requests.Session() as browser:
        browser.trust_env = False
        shown = browser.get(f"{address}/", timeout=60)
        assert (shown.url, shown.status_code) == (f"{address}/page/login?next=/", 200)
        assert browser.get(f"{address}/page/static/htmx.min.js", timeout=60).text.startswith("var htmx=")
        shown = browser.post(f"{address}/page/login", {"token": TOKEN}, headers={"Origin": address}, timeout=60)
        assert shown.url == f"{address}/page/"  # it may not be known yet how machines are
        wait_for(lambda: browser.get(f"{address}/page/", timeout=60).status_code == 200)
        wait_for(lambda: "NeverBooted" in str(service.api("/v1/machines/gpu-001")["conditions"]))
        wait_for(lambda: "off</span>" in browser.get(f"{address}/page/machines/gpu-001", timeout=60).text)
        with browser.get(f"{address}/page/live", stream=True, timeout=60) as live:
            assert live.headers["Content-Type"] == "text/event-stream; charset=utf-8", live.text
            assert next(live.iter_lines()) == b"event: changed"


def test_the_cause_of_a_late_machine_is_said_once_and_above_all_else(tmp_path: Path) -> None:
    world = World(tmp_path, words="<b>no link</b> since 2023-11-14T22:11:03Z")
    log_in(world.api.client)
    shown = world.api.client.get(f"/page/machines/{LATE}").text
    cause, rest = shown[shown.index('<div class="cause">') :].split("</div>", 1)
    assert "<b>Stuck</b> after Initrd started, for " in cause
    assert '<q class="heard">&lt;b&gt;no link&lt;/b&gt; since 2023-11-14T22:11:03Z</q>' in cause
    assert (
        '<p class="message">reached InitrdStarted at <span class="n">2023-11-14T21:35:20Z</span> and nothing' in cause
    )
    conditions = rest.partition("<tbody>")[2].partition("</tbody>")[0]
    assert (conditions.count('<span class="quiet">as above</span>'), "reached InitrdStarted" in conditions) == (
        5,
        False,
    )
