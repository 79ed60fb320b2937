"""Two hosts of one site, as docs/operations.md has it: what a machine began at one goes on at the other."""

import shutil
from pathlib import Path

import pytest

from images.store.store import Store
from images.values import files
from lab.kube.authority import write_private
from netboot.config import load_config
from tests.processes import wait_for
from tests.sites import add_image, free_ports, make_site
from tests.sockets.service import Service, serving

MAC1 = "52:54:00:00:00:01"


def other_host(first: Service, folder: Path, ports: list[int]) -> Service:
    """The same site on another host: its folder but for `data`, at other addresses, for both are this machine here."""
    shutil.copytree(first.file.parent, folder, ignore=shutil.ignore_patterns("data", "out*"))
    file, text = folder / "netboot.yaml", first.file.read_text()
    for address, port in zip((first.config.provisioning.listen, first.config.management.listen), ports, strict=True):
        text = text.replace(f":{address.port}", f":{port}")
    file.write_text(text)
    return Service(load_config(file), file)


@pytest.fixture
def first(tmp_path: Path) -> Service:
    config = make_site(tmp_path / "one", workers=1)
    Store(config.store).set_channel("stable", add_image(config))
    file = tmp_path / "one" / "netboot.yaml"
    file.write_text(f"boot_id_key: secrets/boot-id.key\n{file.read_text()}")
    write_private(tmp_path / "one" / "secrets" / "boot-id.key", b"o" * 32)
    return Service(load_config(file), file)


def test_a_service_whose_named_key_is_not_there_does_not_start(first: Service) -> None:
    key = first.config.boot_id_key
    assert key is not None
    key.unlink()
    refused = first.refused()
    assert (refused.returncode, key.exists(), refused.stdout) == (5, False, "")
    words = f"boot_id_key names {key}, which is not there: bring the site's key"
    assert words in refused.stderr
    assert words in first.netboot("config", "check").stderr


def test_a_boot_that_began_at_one_host_goes_on_at_the_other(first: Service, tmp_path: Path) -> None:
    with serving(first.config, first.file, service=first):
        boot = first.boot(MAC1)
        assert first.post(boot, MAC1, "InitrdStarted") == 204
        second = other_host(first, tmp_path / "two", free_ports())
        with serving(second.config, second.file, service=second):
            assert second.post(boot, MAC1, "ImageFetched") == 204, "while the first runs still"
            first.kill()
            assert second.post(boot, MAC1, "Switched") == 204
            trace = wait_for(lambda: (found := second.api(f"/v1/boots/{boot}")).get("state") == "Switched" and found)
            assert [reached["phase"] for reached in trace["reached"]] == ["ImageFetched", "Switched"]
            assert second.api("/v1/machines/gpu-001")["current"]["boot"] == boot
            assert second.outcome(MAC1) == "boot"


def test_a_standby_that_had_a_key_of_its_own_takes_the_site_s_without_a_restart(first: Service, tmp_path: Path) -> None:
    with serving(first.config, first.file, service=first):
        boot, key = first.boot(MAC1), first.config.boot_id_key
        assert key is not None
        second = other_host(first, tmp_path / "two", free_ports())
        other = second.config.boot_id_key
        assert other is not None
        write_private(other, b"t" * 32)
        with serving(second.config, second.file, service=second):
            assert second.post(boot, MAC1, "InitrdStarted") == 404
            files.write(other, key.read_bytes(), mode=0o600)
            wait_for(lambda: second.post(boot, MAC1, "InitrdStarted") == 204)
            assert first.post(second.boot(MAC1), MAC1, "InitrdStarted") == 204, "and the other way round"


def test_the_recipe_for_a_standby_from_a_backup(first: Service, tmp_path: Path) -> None:
    """The backup restored elsewhere, the images copied; the first host dies, and its address moves."""
    file = tmp_path / "two" / "netboot.yaml"
    with serving(first.config, first.file, service=first):
        before = first.boot(MAC1)
        assert first.post(before, MAC1, "Booted") == 204
        wait_for(lambda: first.api(f"/v1/boots/{before}").get("state") == "Booted")
        assert first.netboot("backup", str(tmp_path / "site.tar.gz")).returncode == 0
        begun = first.boot(MAC1)
        file.parent.mkdir()
        second = Service(first.config, file)
        restored = second.netboot("restore", str(tmp_path / "site.tar.gz"), "--config", str(file))
        assert restored.returncode == 0, restored.stderr
        shutil.copytree(first.config.store, file.parent / "store", dirs_exist_ok=True)
        first.kill()
    second = Service(load_config(file), file)
    with serving(second.config, second.file, service=second):
        assert second.post(begun, MAC1, "InitrdStarted") == 204
        wait_for(lambda: second.api("/v1/machines/gpu-001")["current"]["boot"] == begun)
        assert second.api(f"/v1/boots/{before}")["state"] == "Booted"
        assert second.outcome(MAC1) == "boot"
