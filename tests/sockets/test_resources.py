"""Custom resources are the inventory: what the API and commands say of it, and do not write."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.config_outside import InKubernetes
from netboot.machines.resources import Resource
from netboot.stores.resources import KeptResources
from tests.commands import Run
from tests.sites import INVENTORY
from tests.sockets.api import NOW, UP_MS, Api
from tests.sockets.served import runner, served

WINDOW = 'maintenance: [{name: nights, start: "22:00", end: "05:00"}]\n'
WORDS = (
    "this site's inventory is custom resources of namespace netboot: `kubectl apply` there (`netboot cluster "
    "inventory` prints files of an inventory as objects)"
)


class Site(Api):
    """A service whose publisher looks when it is told to."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, inventory=INVENTORY + WINDOW, kubernetes=InKubernetes())
        self.objects = KeptResources(self.config.data, "netboot")
        self.look()

    def look(self) -> None:
        self.publisher.step(now=True)
        self.say(publisher=self.publisher.status().model_copy(update={"at_ms": NOW, "up_ms": UP_MS}))

    def has(self, *resources: Resource) -> None:
        self.objects.write(resources)
        self.look()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def run(site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    with served(site) as address:
        yield runner(address, site, capsys, monkeypatch)


def test_it_is_shown_and_not_written(site: Site) -> None:
    shown = site.get("/v1/inventory").json
    assert (shown["folder"], shown["read_only"], shown["profiles"]) == ("namespace netboot", WORDS, ["compute"])
    answer = site.get("/v1/inventory/machines/gpu-001")
    machine, seen = answer.json, site.authorised | {"If-Match": answer.headers["ETag"]}
    path = "/v1/inventory/machines/gpu-001"
    assert (machine["file"], machine["line"], machine["read_only"]) == ("machine/gpu-001", 0, WORDS)
    declared = {"name": "gpu-001", "match": {"serial": "S1"}, "profile": "compute"}
    before = self_of(site)
    asked = [
        site.client.put(path, json={"declared": declared}, headers=seen),
        site.client.put(path, json={"declared": declared, "dry_run": True}, headers=seen),
        site.client.delete(path, headers=seen),
        site.post("/v1/inventory/machines", {"machines": [{"declared": declared | {"name": "gpu-009"}}]}),
        site.post("/v1/inventory/machines/gpu-001/rename", {"name": "gpu-100"}),
        site.post("/v1/discovered/52:54:00:00:00:09/declare", {"name": "gpu-009", "profile": "compute"}),
    ]
    assert [(each.status_code, each.json["detail"]) for each in asked] == [(409, WORDS)] * 6
    assert self_of(site) == before


def self_of(site: Site) -> tuple[object, list[Path]]:
    return site.objects.read(), sorted(site.config.inventory.iterdir())


def test_commands_say_where_it_is_written(site: Site, run: Run) -> None:
    renamed = run("machine", "rename", "gpu-001", "gpu-100", "--config", str(site.config.keys.parent / "netboot.yaml"))
    remedy = "delete that object and apply one of the new name, with the old one in its `former_names`"
    assert (renamed.status, renamed.err) == (4, f"Error: {WORDS}\nRemedy: {remedy}\n")
    refused = run("machine", "undeclare", "gpu-001")
    assert (refused.status, refused.err.splitlines()[0]) == (4, f"Error: {WORDS}")


def test_a_channel_that_is_pinned_is_said_to_be_so_in_its_object(site: Site) -> None:
    pinned = [each for each in site.objects.read() if each.kind != "channel"]
    spec = {"image": "a" * 64}
    site.has(*pinned, Resource(kind="channel", name="stable", shown="channel/stable", spec=spec))
    refused = site.put("/v1/channels/stable", {"image": "b" * 64})
    assert refused.status_code == 409
    assert "channel/stable" in refused.json["detail"]


def test_of_a_kind_that_is_gone_whole_a_person_is_asked(site: Site, run: Run) -> None:
    site.has(*(each for each in site.objects.read() if each.kind != "window"))
    assert run("config", "accept", "--dry-run").out == (
        "- window nights\n"
        f"maintenance: 0 added, 0 changed, 1 removed\n"
        f"inventory {site.get('/v1/inventory/diff').json['digest'][:12]}: waits until an operator accepts it: "
        "`netboot config accept`\n"
        "would be accepted: 0 machines would go; nothing was changed\n"
    )
    assert run("config", "accept", "--yes").status == 0
    site.look()
    assert site.live.view().snapshot.inventory.maintenance == ()
