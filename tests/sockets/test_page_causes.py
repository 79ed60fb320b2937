"""Machines that are late or ill, by their causes: each in one case, with a list of just those; and whose words are
whose."""

import re
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from netboot.lifecycle.reasons import Reason
from tests.browser.world import World
from tests.records import boot_id
from tests.sites import TOKEN

AT = "2023-11-14T21:{:02}:20Z"
LINK = "no <b>link</b> & 100% ü on eth0"
X = "x" * 210


@pytest.fixture
def world(tmp_path: Path) -> World:
    """All machines are well, and somebody is logged in."""
    world = World(tmp_path)
    world.keep(world.found(name, "InService") for name in world.names)
    world.api.client.post("/page/login", data={"token": TOKEN}, headers={"Origin": "http://localhost"})
    return world


@pytest.fixture
def client(world: World) -> Iterator[FlaskClient]:
    yield world.api.client


def late(world: World, number: int, words: str = "", step: str = "InitrdStarted", since: str = "") -> None:
    """One of them, the first the longest so."""
    name = world.names[number]
    said = f"boot {boot_id(name, 1)} reached InitrdStarted at {AT.format(number)} and nothing beyond in 15m (default): "
    said += f"the network; last heard: Failed at {AT.format(number)}{f', {words!r}' if words else ''}{since}"
    world.keep([world.found(name, step, 900 - number, said, words, BOOTED=Reason.STUCK)])


def cases(shown: str) -> list[tuple[str, str]]:
    """The first machine of each, and how its words are quoted."""
    found = re.findall(r'<li class="case.*?</li>', shown, re.DOTALL)
    names = [re.findall(r'id="first-m-([^"]+)"', each)[0] for each in found]
    return [
        (name, unescape("".join(re.findall("<q>(.*?)</q>", each, re.DOTALL))))
        for name, each in zip(names, found, strict=True)
    ]


def listed(world: World, cause: str) -> set[str]:
    return {each["name"] for each in world.api.get(f"/v1/fleet/machines?cause={cause}&limit=1000").json["machines"]}


@pytest.mark.parametrize(
    "plan",
    [
        [("link", "InitrdStarted")] * 2 + [("no link on eth0", "InitrdStarted")] * 10 + [(LINK, "InitrdStarted")] * 9,
        [("", "InitrdStarted")] * 3 + [("no link", "InitrdStarted")] * 9,
        [(" ", "InitrdStarted")] * 2 + [(f"unique {number}", "InitrdStarted") for number in range(12)],
        [("boom", "")] * 2 + [("boom", "Switched")] * 6 + [("boom", "InitrdStarted")] * 6,
        [(X + "A", "InitrdStarted")] * 2 + [(X + "B", "InitrdStarted")] * 3,
    ],
)
def test_each_machine_is_in_one_case_whose_list_is_just_those(world: World, plan: list[tuple[str, str]]) -> None:
    """Whatever words are a part of others, blank, or longer than what a list is asked for."""
    wanted: dict[tuple[str, str], set[str]] = {}
    for number, (words, step) in enumerate(plan):
        late(world, number, words, step)
        wanted.setdefault((words, step), set()).add(world.names[number])
    told = world.api.get("/v1/fleet").json
    assert [each["machines"] for each in told["cases"]] == [len(names) for names in wanted.values()]
    assert [listed(world, each["cause"]) for each in told["cases"]] == list(wanted.values())
    racks = {each["name"]: each["rack"] for each in world.api.get("/v1/fleet/machines?limit=1000").json["machines"]}
    assert [each["racks"] for each in told["cases"]] == [len({racks[n] for n in names}) for names in wanted.values()]
    shown = world.api.client.get("/page/").text
    assert cases(shown) == [(min(names), words) for (words, _), names in wanted.items()]
    assert "first-more" not in shown
    links = re.findall(r'<a id="alike-[^"]+" href="([^"]+)">(\d+) machines are like that</a>', shown)
    for (link, many), names in zip(links, [each for each in wanted.values() if len(each) > 1], strict=True):
        assert int(many) == len(names)
        assert set(re.findall(r'<tr id="row-([^"]+)"', world.api.client.get(unescape(link)).text)) == names


def test_cases_are_of_the_whole_fleet_and_the_rest_is_counted(world: World, client: FlaskClient) -> None:
    for number in range(25):
        late(world, number, "no link")
    late(world, 25, "the disk is gone")
    assert cases(client.get("/page/").text) == [("gpu-0001", "no link"), ("gpu-0026", "the disk is gone")]
    for number in range(26, 46):
        late(world, number, f"word {number}")
    shown = client.get("/page/").text
    assert len(cases(shown)) == 20
    assert '<a id="first-more" href="/page/machines">2 more</a>' in shown


def test_machines_whose_checks_failed_are_one_case(world: World, client: FlaskClient) -> None:
    """Though each is told by a command with its own name."""
    for name in world.names[:3]:
        said = f"its checks said fail: see `netboot machine health {name}`"
        world.keep([world.found(name, "InService", 9, said, HEALTHY=Reason.CHECKS_FAILED)])
    assert cases(client.get("/page/").text) == [("gpu-0001", "")]
    (case,) = world.api.get("/v1/fleet").json["cases"]
    assert listed(world, case["cause"]) == set(world.names[:3])


def test_a_case_has_the_id_of_its_cause(world: World, client: FlaskClient) -> None:
    """So that the focus stays, whichever machine is its first."""
    for number in range(3):
        late(world, number, "no link")
    before = re.findall(r'id="((?:case|alike)-[^"]+)"', client.get("/page/").text)
    world.keep([world.found(world.names[0], "InService")])
    assert re.findall(r'id="((?:case|alike)-[^"]+)"', client.get("/page/").text) == before
    assert len(before) == 2


def test_only_what_a_machine_said_is_quoted_as_it_said_it(world: World, client: FlaskClient) -> None:
    words = 'can\'t open "C:\\new" on /dev/sda'
    late(world, 0, words, since="; since then boot x, which only reports, reached InitrdStarted: 'not its word'")
    held = "mallory: ok; last heard: Ready at now, 'rm -rf / fixes it'"
    world.keep([world.found(world.names[1], "InService", 16, held, IN_SERVICE=Reason.HELD)])
    assert cases(client.get("/page/").text) == [("gpu-0001", words)]
    quoted = [client.get(path).text for path in ("/page/machines/gpu-0001", "/page/machines?name=gpu-0001")]
    for shown in quoted:
        assert [unescape(each) for each in re.findall(r'<q class="heard">(.*?)</q>', shown)] == [words]
        said = re.sub(r"<[^>]*>", "", shown)
        assert "; last heard: Failed at 2023-11-14T21:00:20Z; since then boot x" in said
    assert "<q" not in client.get("/page/machines/gpu-0002").text
    assert "<q" not in client.get("/page/machines?status=held").text
    told = world.api.get("/v1/machines/gpu-0001").json["conditions"]
    assert [each.get("said") for each in told] == [words, None, None, None, None, None]


def test_what_is_linked_is_called_by_what_it_is(world: World, client: FlaskClient) -> None:
    """A link by its place would become another under the focus."""
    shown = client.get("/page/").text
    named = ("step-InService", "reason-UpToDate-UpToDate", f"image-{world.new}", "rack-r01")
    for each in named:
        assert shown.count(f'id="{each}"') == 1
    shown = client.get("/page/images").text
    for each in ("channel-stable", f"image-{world.new}", f"stored-{world.old}"):
        assert shown.count(f'id="{each}"') == 1


def test_a_list_that_became_shorter_is_shown_from_its_last_page(world: World, client: FlaskClient) -> None:
    last = re.findall(r'<tr id="row-([^"]+)"', client.get("/page/machines").text)
    for page in ("2", "99999"):
        shown = client.get(f"/page/machines?page={page}").text
        assert re.findall(r'<tr id="row-([^"]+)"', shown) == last
        assert '<p class="found" role="status">50 machines</p>' in shown
    assert "No machine is like that" in client.get("/page/machines?page=7&rack=none").text


def test_an_image_is_found_by_the_beginning_of_its_digest(world: World) -> None:
    (image,) = (each["image"] for each in world.api.get("/v1/fleet").json["images"])
    late(world, 0)
    for text, of in ((image, 50), (image[:12], 50), (image[0], 50), (image[1:13], 0), (f"{image}0", 0)):
        assert world.api.get(f"/v1/fleet/machines?image={text}").json["of"] == of


def long_reasons(world: World) -> Sequence[str]:
    words = ["because " * 49, "y" * 400]
    for path, reason in zip(("/v1/freeze", "/v1/remedies/pause"), words, strict=True):
        assert world.api.post(path, {"reason": reason}).status_code == 200
    return words


def test_what_somebody_wrote_at_length_is_short_on_the_wall(world: World, client: FlaskClient) -> None:
    words = long_reasons(world)
    shown = client.get("/page/").text
    for name, reason in zip(("frozen", "paused"), words, strict=True):
        said = re.search(rf'<p class="cause w-held" id="{name}">.*?: <span title="([^"]+)">([^<]+)</span></p>', shown)
        assert said is not None
        assert said[1].strip().endswith(reason.strip())
        assert (len(said[2]), said[2][-1]) == (120, "…")
