"""What the page shows the beginning of can be had whole: values of the audit, an image's bill of materials."""

import json
import re
from html import unescape

import pytest
from flask.testing import FlaskClient

from netboot.lifecycle.roles import Role
from netboot.web.page import words
from tests.browser.world import HOSTILE, World, documents
from tests.sites import TOKEN, add_image
from tests.sockets.api import given

HOME = {"Origin": "http://localhost"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"), count=3)


def logged_in(world: World, token: str = TOKEN) -> FlaskClient:
    client: FlaskClient = world.api.client.application.test_client()
    client.post("/page/login", data={"token": token}, headers=HOME)
    return client


def test_a_long_value_of_the_audit_is_there_whole_behind_its_beginning(world: World) -> None:
    reason = HOSTILE + "a fan is to be replaced" * 6
    assert world.api.post("/v1/machines/gpu-0001/hold", {"reason": reason}).status_code == 200
    shown = logged_in(world).get("/page/audit").text
    assert "<img" not in shown
    (found,) = re.findall(
        r"<details><summary>(.*?)</summary><pre tabindex=\"0\"[^>]*>(.*?)</pre></details>", shown, re.DOTALL
    )
    beginning, whole = map(unescape, found)
    assert (len(beginning), beginning[-1]) == (100, "…")
    assert json.loads(whole)["intents"][0]["reason"] == reason
    assert json.loads(whole) == world.api.get("/v1/audit").json["audit"][0]["after"]


def test_what_an_act_was_on_is_beside_it(world: World) -> None:
    api = world.api
    assert api.post("/v1/rollouts/1/pause", {}).status_code == 200
    assert api.put("/v1/channels/stable", {"image": world.old, "force": True}).status_code == 200
    new = {"path": "/v1/inventory/racks/r77", "json": {"declared": {"name": "r77"}}}
    assert api.client.put(**new, headers=api.authorised | {"If-None-Match": "*"}).status_code == 200
    api.put("/v1/channels/none", {"image": HOSTILE}, given(api, "vera", Role.VIEWER))
    api.post("/v1/machines/gpu-0002/hold", {"reason": "x"})
    shown = logged_in(world).get("/page/audit").text
    cells = re.findall(r'<td data-label="What" class="what">(.*?)</td>', shown, re.DOTALL)
    words_of = [unescape(re.sub(r"<[^>]*>", "", each)).strip() for each in cells[:5]]
    assert words_of == [
        "gpu-0002",
        json.dumps(f"channel none, image {HOSTILE[:64]}")[1:-1],
        "racks/r77",
        "channel stable",
        "channel stable, rollout 1",
    ]
    assert "<img" not in shown


def test_a_value_beyond_what_a_page_can_show_says_where_the_rest_is() -> None:
    said = words.whole({"x": "y" * 20_000})
    assert (len(said.partition("…")[0]), said.partition("…")[2]) == (16_000, "\nand 4,013 characters more: /v1/audit")
    assert (words.whole({"image": "a" * 64}), words.whole(None)) == ("", "")


def test_a_viewer_gets_the_bill_of_materials_of_an_image_as_a_file(world: World) -> None:
    client = logged_in(world, given(world.api, "carol", Role.VIEWER))
    link = re.search(r'<a id="sbom" href="([^"]+)" download>', client.get(f"/page/images/{world.new}").text)
    assert link is not None
    answer = client.get(link[1])
    assert (answer.status_code, answer.data) == (200, documents("")["sbom"])
    assert answer.headers["Content-Type"] == "application/vnd.cyclonedx+json"
    said = f"attachment; filename=compute-2026.11-{world.new[:12]}.cdx.json"
    assert (answer.headers["Content-Disposition"], answer.headers["Cache-Control"]) == (said, "no-store")
    stranger = world.api.client.application.test_client().get(link[1])
    assert (stranger.status_code, stranger.location) == (303, f"/page/login?next={link[1]}")


def test_an_image_without_one_says_so(world: World) -> None:
    client, bare = logged_in(world), add_image(world.api.config, name="bare")
    answer = client.get(f"/page/images/{bare}/sbom")
    assert (answer.status_code, "sbom" in answer.text) == (404, True)
    assert client.get("/page/images/nothing/sbom").status_code in (400, 404)
