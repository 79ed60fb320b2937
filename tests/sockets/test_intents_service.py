"""Held, in quarantine, by `netboot serve`, whole: conditions, a killed service, a file that is gone, a restore."""

import os
import signal
from pathlib import Path
from typing import Any

from images.store.store import Store
from tests.processes import runs, wait_for
from tests.sites import TOKEN, add_image, make_site
from tests.sockets.service import Service, serving


def netboot(service: Service, *arguments: str, status: int = 0) -> str:
    done = service.netboot(*arguments)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def in_service(service: Service, machine: str = "gpu-001") -> tuple[str, str] | None:
    """Reason and message of its condition InService."""
    found: list[dict[str, Any]] = service.api(f"/v1/machines/{machine}")["conditions"] or []
    return next(((one["reason"], one["message"]) for one in found if one["type"] == "InService"), None)


def test_what_is_wanted_of_machines_outlives_everything(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site", workers=1)
    Store(config.store).set_channel("stable", add_image(config))
    config.management.token_file.write_text(f"# alice\n{TOKEN}\n")
    file, backup = config.data / "intents.db", tmp_path / "b.tar.gz"
    with serving(config, tmp_path / "site" / "netboot.yaml") as service:
        wait_for(lambda: in_service(service) is not None)
        netboot(service, "machine", "hold", "gpu-001", "--reason", "DIMM 4")
        wait_for(lambda: in_service(service) == ("Held", "it is held, whatever it boots"))
        netboot(service, "machine", "quarantine", "gpu-001", "--reason", "breach", "--until", "1h")
        wait_for(lambda: in_service(service) == ("Quarantined", "it is quarantined, whatever it boots"))
        assert service.outcome("52:54:00:00:00:01") == "boot"  # it boots as ever
        netboot(service, "backup", str(backup))
        netboot(service, "machine", "readmit", "gpu-001", "--reason", "a mistake")
        wait_for(lambda: in_service(service) == ("Held", "it is held, whatever it boots"))
        service.kill()
        service.start()
        wait_for(lambda: in_service(service) == ("Held", "it is held, whatever it boots"))
        assert service.readyz()["details"]["intents"] == {"ok": True, "message": "machines held or in quarantine: 1"}
        gone(service, file)
        assert service.stop() == 0
        netboot(service, "restore", str(backup), "--force")
        service.start()
        wait_for(lambda: in_service(service) == ("Quarantined", "it is quarantined, whatever it boots"))
        assert service.stop() == 0


def replaced(service: Service, controllers: int) -> bool:
    """Whether others are there in their place: for a moment the supervisor says of those that died that they are."""
    now = service.processes()["controllers"]
    return bool(now["ready"]) and now["pid"] != controllers


def gone(service: Service, file: Path) -> None:
    """The file is removed under the running service: nothing is said of nobody, and nobody makes an empty one."""
    file.rename(file.with_name("aside"))
    try:
        netboot(service, "machine", "holds", status=5)
        netboot(service, "machine", "hold", "gpu-002", "--reason", "x", status=5)
        assert f"{file} cannot be used: it is not there" in netboot(service, "doctor") + service.log
        controllers = service.processes()["controllers"]["pid"]
        os.kill(controllers, signal.SIGKILL)
        wait_for(lambda: not runs(controllers) and replaced(service, controllers))
        wait_for(lambda: f"{file} cannot be used" in service.readyz()["details"]["lifecycle"]["message"])
        assert in_service(service) == ("Held", "it is held, whatever it boots")
        assert not file.exists()
    finally:
        file.with_name("aside").rename(file)
    wait_for(lambda: service.readyz()["details"]["intents"]["ok"])
    assert in_service(service) == ("Held", "it is held, whatever it boots")


def test_a_site_whose_file_is_lost_between_two_starts_is_told(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site", workers=1)
    with serving(config, tmp_path / "site" / "netboot.yaml") as service:
        assert "is made anew" not in service.log
        assert service.stop() == 0
        (config.data / "intents.db").unlink()
        service.start()
        words = f"{config.data}/intents.db was not there, and is made anew: nothing is held or in quarantine"
        assert words in service.log
        assert service.stop() == 0
        (config.data / "intents.db").write_bytes(b"torn" * 1000)
        service.start()
        assert (
            f"{config.data}/intents.db: file is not a database: once it can be used, restart the service" in service.log
        )
        assert service.readyz()["details"]["intents"]["ok"] is False
        assert service.stop() == 0
        (config.data / "intents.db").write_bytes(b"")
        service.start()
        assert f"{config.data}/intents.db: it has nothing in it, as after a full disk" in service.log
        assert "it has nothing in it" in service.readyz()["details"]["intents"]["message"]
        assert service.stop() == 0
