"""A hold that an object of Kubernetes declares: shown as any other, and let go by who deletes the object."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.config_outside import InKubernetes
from netboot.lifecycle.intents import PutOn
from netboot.lifecycle.transitions import Mark
from tests.commands import Run
from tests.sockets.api import NOW, Api
from tests.sockets.served import runner, served

ALONE = (
    "gpu-001 is held by an object of Kubernetes, for as long as that is there: `kubectl delete -n netboot hold/dimm` "
    "(where there is none any more, apply it again first)"
)


def site_of(root: Path, *, holds: bool = True, owner: str = "kubernetes/netboot/dimm") -> Api:
    api = Api(root, kubernetes=InKubernetes(holds=holds))
    order = PutOn(Mark.HELD, "DIMM 4", owner=owner, exactly=True)
    api.intents.order("gpu-001", order, "alice (hold/dimm)", NOW)
    return api


@pytest.fixture
def site(tmp_path: Path) -> Api:
    return site_of(tmp_path)


@pytest.fixture
def run(site: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    with served(site) as address:
        yield runner(address, site, capsys, monkeypatch)


def test_it_is_shown_as_any_other(site: Api, run: Run) -> None:
    [shown] = site.get("/v1/machines/gpu-001/intents").json["intents"]
    assert (shown["owner"], shown["who"], shown["reason"]) == ("kubernetes/netboot/dimm", "alice (hold/dimm)", "DIMM 4")
    assert "alice (hold/dimm)" in run("machine", "holds").out
    assert "by alice (hold/dimm): DIMM 4" in run("machine", "show", "gpu-001").out
    again = site.post("/v1/machines/gpu-001/hold", {"reason": "fan"}).json
    assert again["did"] == "put-on", "a person's own stands beside it"


def test_who_lets_it_go_is_told_to_delete_the_object(site: Api, run: Run) -> None:
    before = site.intents.all(NOW)
    for dry_run in (True, False):
        refused = site.post("/v1/machines/gpu-001/unhold", {"dry_run": dry_run})
        assert (refused.status_code, refused.json["detail"]) == (409, ALONE)
    told = run("machine", "unhold", "gpu-001")
    assert (told.status, told.err.splitlines()[0]) == (4, f"Error: {ALONE}")
    assert site.intents.all(NOW) == before


def test_beside_a_person_s_that_one_alone_is_let_go_and_it_is_said(site: Api, run: Run) -> None:
    site.post("/v1/machines/gpu-001/hold", {"reason": "fan"})
    still = (
        "it is held still, by an object of Kubernetes: `kubectl delete -n netboot hold/dimm` (where there is none any "
        "more, apply it again first)"
    )
    tried = site.post("/v1/machines/gpu-001/unhold", {"dry_run": True}).json
    assert (tried["did"], tried["consequence"]) == ("taken-off", still)
    said = run("machine", "unhold", "gpu-001").out
    assert said.startswith(f"gpu-001 is held still. {still[0].upper()}{still[1:]}. It was held, too, since ")
    assert [each.owner for each in site.intents.all(NOW)] == ["kubernetes/netboot/dimm"]


def test_what_objects_held_is_a_person_s_to_let_go_where_they_are_not_followed_any_more(tmp_path: Path) -> None:
    site = site_of(tmp_path, holds=False)
    answer = site.post("/v1/machines/gpu-001/unhold", {}).json
    assert (answer["did"], answer["intents"]) == ("taken-off", [])


@pytest.mark.parametrize("owner", ["kubernetes/net/dimm", "kubernetes/netboot-2/dimm", "kubernetes/dimm"])
def test_what_objects_of_a_namespace_held_that_is_not_followed_is_a_person_s_to_let_go(
    tmp_path: Path, owner: str
) -> None:
    site = site_of(tmp_path, owner=owner)
    answer = site.post("/v1/machines/gpu-001/unhold", {}).json
    assert (answer["did"], answer["intents"]) == ("taken-off", [])
