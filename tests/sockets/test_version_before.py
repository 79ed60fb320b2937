"""A service of the last version whose state was its own folder alone, and this one on that folder, and the way back."""

from pathlib import Path
from typing import Any

from images.store.store import Store
from lab.work import ROOT
from netboot.config import load_config
from netboot.stores.intents import VERSION, SqliteIntents
from tests.processes import environment, wait_for
from tests.sites import add_image, make_site
from tests.sockets.service import Service, serving
from tests.versions import EMBEDDED, packages_of

MAC, HELD = "52:54:00:00:00:01", "gpu-002"
NEWER = "has schema {}, and this netboot knows 4: restart the service"
"""As that version says it."""


def becomes(service: Service, packages: Path) -> None:
    assert service.stop() == 0
    service.packages, service.environment = packages, environment(packages)


def reached(service: Service, boot: str, *phases: str) -> bool:
    return [one["phase"] for one in service.api(f"/v1/boots/{boot}").get("reached", ())] == list(phases)


def held(service: Service) -> list[Any]:
    return [one["reason"] for one in service.api(f"/v1/machines/{HELD}")["intents"]]


def test_a_folder_of_the_version_before_is_gone_on_with_and_its_backup_is_the_way_back(open_path: Path) -> None:
    before = packages_of(EMBEDDED, open_path / "before")
    config = make_site(open_path / "site", workers=1)
    Store(config.store).set_channel("stable", add_image(config))
    file, backup = open_path / "site" / "netboot.yaml", open_path / "before.tar.gz"
    service = Service(load_config(file), file, packages=before)
    with serving(config, file, service=service):
        boot = service.boot(MAC)
        assert service.post(boot, MAC, "InitrdStarted") == 204
        done = [service.netboot("machine", "hold", HELD, "--reason", "DIMM 4"), service.netboot("backup", str(backup))]
        assert [each.returncode for each in done] == [0, 0], done
        wait_for(lambda: reached(service, boot, "ScriptServed", "InitrdStarted"))
        becomes(service, ROOT)
        service.start()
        assert held(service) == ["DIMM 4"]
        assert service.post(boot, MAC, "ImageVerified") == 204
        wait_for(lambda: reached(service, boot, "ScriptServed", "InitrdStarted", "ImageVerified"))
        becomes(service, before)
        service.start()
        details = service.readyz()["details"]
        path = config.data / "intents.db"
        assert details["intents"]["message"] == f"{path} {NEWER.format(VERSION)}"
        assert service.outcome(MAC) == "boot", "machines boot all the same"
        assert reached(service, boot, "ScriptServed", "InitrdStarted", "ImageVerified")
        [kept] = SqliteIntents(path).of(HELD, 0)
        assert kept.reason == "DIMM 4", "nothing is lost"
        becomes(service, before)
        restored = service.netboot("restore", str(backup), "--force")
        assert restored.returncode == 0, restored.stderr
        service.start()
        wait_for(lambda: all(each["ok"] for each in service.readyz()["details"].values()))
        assert held(service) == ["DIMM 4"]
        assert service.post(boot, MAC, "ImageVerified") == 204
