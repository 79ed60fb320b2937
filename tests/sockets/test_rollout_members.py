"""A rollout's machines in pages: by the API, on the page and by the command line."""

import re
from typing import Any

import pytest

from netboot.lifecycle.rollout import MemberState, Rollout, RolloutState
from netboot.lifecycle.rollout_store import Members
from netboot.web.page import shapes, views
from netboot.web.page.words import MEMBERS
from tests.browser.world import MIDDLE, World
from tests.commands import Run
from tests.drains import drain
from tests.sites import TOKEN
from tests.sockets.served import runner, served

MOVING = ("failed", "out", "assigned")
"""What machines of the world are that do not wait and are not done."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


def paged(world: World, query: str) -> list[Any]:
    """All pages of a list, each asked for by what the one before said."""
    found, after = list[Any](), ""
    while True:
        answer = world.api.get(f"/v1/rollouts/1/members?{query}{after}").json
        found += answer["members"]
        if answer["continue"] is None:
            return found
        after = f"&continue={answer['continue']}"


def test_pages_are_the_whole(world: World) -> None:
    whole = world.api.get("/v1/rollouts/1").json
    assert [each["machine"] for each in whole["members"]] == world.names
    for limit in (1, 7, 49, 50, 51):
        assert paged(world, f"limit={limit}") == whole["members"]
    assert paged(world, "") == whole["members"]
    for states in (MOVING, MOVING[::-1], ("done",), ("left",)):
        there = [each for state in states for each in whole["members"] if each["state"] == state]
        asked = ",".join((*states, states[0]))
        assert [paged(world, f"state={asked}&limit={limit}") for limit in (1, 2, 99)] == [there] * 3
    assert world.api.get("/v1/rollouts/1?members=false").json == whole | {"members": []}


def test_racks_are_drawn_as_their_machines_are(world: World) -> None:
    whole = world.api.get("/v1/rollouts/1").json
    by_rack: dict[str, list[dict[str, Any]]] = {}
    for each in whole["members"]:
        run = {"status": MEMBERS[each["state"]], "first": each["machine"], "count": 1, "position": each["position"]}
        run["gap"] = each["position"] == MIDDLE
        by_rack.setdefault(each["rack"], []).append(run)
    racks = [{"rack": rack, "machines": len(runs), "runs": shapes.merged(runs)} for rack, runs in by_rack.items()]
    assert shapes.racks([views.by_status(each) for each in whole["by_rack"]]) == shapes.racks(racks)


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("1/members?state=done&continue={}", 400, "continue: is of another question: begin again without it"),
        ("1/members?continue=Z3B1LTAwMDE=", 400, "continue: is of another question: begin again without it"),
        ("1/members?continue=x", 400, "continue: is not what an answer gave"),
        ("1/members?limit=0", 400, "limit: must be a whole number from 1 to 5000"),
        (
            "1/members?state=done,gone",
            400,
            "state: must be some of waiting, assigned, out, done, failed, skipped, kept, left, with commas between",
        ),
        ("9/members", 404, "there is no rollout 9"),
        ("9?members=false", 404, "there is no rollout 9"),
        ("1?members=perhaps", 400, "members: must be true or false"),
    ],
)
def test_what_is_no_page_is_refused(world: World, query: str, status: int, words: str) -> None:
    after = world.api.get("/v1/rollouts/1/members?state=out,assigned&limit=1").json["continue"]
    answer = world.api.get(f"/v1/rollouts/{query.format(after)}")
    assert (answer.status_code, answer.json["detail"]) == (status, words)


def test_the_page_tells_of_all_that_are_under_way(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    client = world.api.client.application.test_client()
    client.post("/page/login", data={"token": TOKEN}, headers={"Origin": "http://localhost"})
    wanted = [each["machine"] for each in paged(world, "state=failed,skipped,out,assigned")]
    monkeypatch.setattr(views, "MOST_TOLD", 2)
    path, found = "/page/rollouts/1", list[str]()
    while True:
        text = client.get(path).text
        found += re.findall(r'<a id="m-([\w-]+)"', text)
        assert ('rel="first"' in text) == (len(found) > 2)
        if (more := re.search(r'rel="next" href="([^"]+)"', text)) is None:
            break
        path = more[1]
    assert found == wanted
    assert len(wanted) > 2
    answer = client.get("/page/rollouts/1?continue=x")
    assert (answer.status_code, answer.location) == (303, "/page/rollouts/1")


def test_the_page_has_first_who_failed_then_who_was_skipped_and_rows_have_names(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it leads on from there, where nobody under way is on it."""
    client = world.api.client.application.test_client()
    client.post("/page/login", data={"token": TOKEN}, headers={"Origin": "http://localhost"})

    def to(state: MemberState) -> None:
        def change(begun: Rollout, those: Members) -> tuple[Rollout, Members]:
            return begun, {**those, "gpu-0001": those["gpu-0001"].model_copy(update={"state": state})}

        world.api.rollouts.change(1, change, lambda *_: None)

    to(MemberState.SKIPPED)
    try:
        found = re.findall(r'<tr id="row-([^"]+)"', client.get("/page/rollouts/1").text)
        assert found[:2] == ["gpu-0006", "gpu-0001"]
        assert found == [each["machine"] for each in paged(world, "state=failed,skipped,out,assigned")]
        monkeypatch.setattr(views, "MOST_TOLD", 2)
        shown = client.get("/page/rollouts/1").text
        apart = re.search(r'<section aria-labelledby="apart">.*?</section>', shown, re.DOTALL)
        assert apart is not None
        assert re.findall(r'<a id="next" rel="next" href="/page/rollouts/1\?continue=[^"]+">', apart[0])
    finally:
        to(MemberState.DONE)


def test_orders_are_of_rollouts_under_way_alone(world: World) -> None:
    """Who has ended one has nothing more to do with what is ordered of its machines."""
    world.api.drains.order(drain("gpu-0002", "a", "reboot"))

    def to(state: RolloutState) -> None:
        world.api.rollouts.change(
            1, lambda begun, those: (begun.model_copy(update={"state": state}), those), lambda *_: None
        )

    def ordered() -> list[bool]:
        members = [world.api.get(f"/v1/rollouts/1{path}").json["members"] for path in ("", "/members?limit=9")]
        return [bool(each["order"]) for of in members for each in of if each["machine"] == "gpu-0002"]

    assert ordered() == [True, True]
    to(RolloutState.COMPLETE)
    try:
        assert ordered() == [False, False]
    finally:
        to(RolloutState.RUNNING)


def test_the_command_shows_all_of_them(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(world.api) as address:
        run: Run = runner(address, world.api, capsys, monkeypatch)
        lines = run("rollout", "status", "stable").out.splitlines()
        told = [line.split()[0] for line in lines if line.startswith("gpu-")]
        assert told == sorted(each["machine"] for each in paged(world, f"state={','.join(MOVING)}"))
        said = run("rollout", "status", "stable", "--output", "json").json
        assert [each["machine"] for each in said["members"]] == world.names
        history = run("rollout", "history", "stable", "--output", "json").json
        assert not {"members", "by_rack"} & history["rollouts"][0].keys()
