"""A whole service and a real registry: what the local store has lost comes back from upstream, verified."""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from images.store.store import Store
from lab.registry import Registry
from netboot.config import Config, load_config
from tests.processes import wait_for
from tests.registries import Proxy, faulty
from tests.sites import INVENTORY, WRITING_SECONDS, add_image, make_site
from tests.sockets.service import Service, serving

MAC = "52:54:00:00:00:01"


class Scene:
    """A site whose image is in a registry and whose service is not started yet."""

    def __init__(self, folder: Path, real: Registry, before: Proxy) -> None:
        self.real, self.before = real, before
        self.config = make_site(folder / "site")
        self.file = folder / "site" / "netboot.yaml"
        self.place = f"{before.address}/site/images"
        self.digest = add_image(self.config)
        self.manifest = Store(self.config.store).manifest(self.digest)

    def configured(self, place: str) -> Config:
        with self.file.open("a") as file:
            file.write(f"upstream: {{place: {place!r}}}\n")
        self.config = load_config(self.file)
        return self.config

    def push(self, service: Service) -> None:
        done = service.netboot("image", "push", self.digest, f"{self.place}:stable")
        assert done.returncode == 0, done.stderr

    def wipe(self) -> None:
        """All that is of images; channels stay."""
        for name in ("images", "blobs"):
            shutil.rmtree(self.config.store / name)

    def script(self, service: Service) -> str:
        return service.machines.get(f"{service.provisioning}/v1/boot", params={"mac": MAC}, timeout=60).text


def fetcher(service: Service) -> tuple[bool, str]:
    """What it says: it may say so later than what came of it can be seen."""
    said = service.readyz()["details"]["fetcher"]
    return said["ok"], said["message"]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with faulty(tmp_path / "registry") as (real, before):
        yield Scene(tmp_path, real, before)


def test_push_wipe_the_store_pull_through_and_serve(scene: Scene) -> None:
    """The registry answers 500 at first: that is said in words, and the service stays ready."""
    with serving(scene.configured(scene.place), scene.file) as service:
        Store(scene.config.store, wait=WRITING_SECONDS).set_channel("stable", scene.digest)
        scene.push(service)
        wait_for(lambda: service.outcome(MAC) == "boot")
        here = (True, f"every image of a channel is here; others come from {scene.place}")
        wait_for(lambda: fetcher(service) == here)

        scene.before.fault = lambda _method, _path: 500
        scene.wipe()
        problem = f"{scene.place} cannot answer right now: status 500 for image {scene.digest[:12]} (tried 5 times)"
        unusable = f"it is not here yet, tried again: {problem}"
        wait_for(lambda: service.api("/v1/channels/stable")["unusable"] == unusable)
        wait_for(lambda: service.outcome(MAC) == "unavailable")
        wait_for(lambda: f"the image of channel stable cannot be used: {unusable}\n" in scene.script(service))
        wait_for(lambda: fetcher(service) == (False, problem))
        said = service.readyz()
        assert said["ready"]
        assert said["degraded"]
        shown = service.netboot("channel", "show", "stable")
        assert f"cannot be used: {unusable}" in shown.stdout
        assert f"service: fetcher: {problem}\n" in service.netboot("doctor").stdout

        scene.before.fault = lambda _method, _path: None
        wait_for(lambda: service.outcome(MAC) == "boot")
        for _, artifact in scene.manifest.artifacts:
            blob = service.machines.get(f"{service.provisioning}/v1/blobs/{artifact.sha256}", timeout=60)
            assert hashlib.sha256(blob.content).hexdigest() == artifact.sha256
        wait_for(lambda: "netboot_upstream_fetched_images_total 1.0" in service.text("/metrics"))
        wait_for(lambda: fetcher(service) == here)
        wait_for(lambda: "netboot_upstream_missing_images 0.0" in service.text("/metrics"))
        assert list((scene.config.store / "incoming").iterdir()) == []


def test_a_new_replica_fetches_what_its_inventory_pins(scene: Scene, tmp_path: Path) -> None:
    """Nothing but keys, site bundle and inventory is copied to it."""
    scene.push(Service(scene.config, scene.file))
    pinned = INVENTORY.replace("{name: stable,", f"{{name: stable, image: {scene.digest},")
    scene.before.fault = lambda _method, _path: 503
    replica = make_site(tmp_path / "replica", inventory=pinned)
    shutil.rmtree(replica.keys)
    shutil.copytree(scene.config.keys, replica.keys)
    file = tmp_path / "replica" / "netboot.yaml"
    with file.open("a") as text:
        text.write(f"upstream: {{place: {scene.place!r}}}\n")
    config = load_config(file)
    with serving(config, file) as service:
        wait_for(lambda: service.outcome(MAC) == "unavailable")
        scene.before.fault = lambda _method, _path: None
        wait_for(lambda: service.outcome(MAC) == "boot")
        assert Store(config.store).digests() == (scene.digest,)
        assert [one["name"] for one in service.api("/v1/channels")["channels"] if one["in_force"]] == ["stable"]


def test_from_a_plain_origin(scene: Scene, tmp_path: Path) -> None:
    """A replica that is itself the upstream of another: the provisioning listener is such an origin."""
    Store(scene.config.store).set_channel("stable", scene.digest)
    with serving(scene.config, scene.file) as first:
        pinned = INVENTORY.replace("{name: stable,", f"{{name: stable, image: {scene.digest},")
        wait_for(lambda: first.outcome(MAC) == "boot")
        replica = make_site(tmp_path / "replica", inventory=pinned)
        shutil.rmtree(replica.keys)
        shutil.copytree(scene.config.keys, replica.keys)
        file = tmp_path / "replica" / "netboot.yaml"
        with file.open("a") as text:
            text.write(f"upstream: {{place: '{first.provisioning}/v1'}}\n")
        with serving(load_config(file), file) as second:
            wait_for(lambda: second.outcome(MAC) == "boot")
            assert Store(replica.store).digests() == (scene.digest,)
