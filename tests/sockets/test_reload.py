"""`netboot config reload`: what the service takes of a changed netboot.yaml while it runs, and what it says of the
rest."""

import json
from pathlib import Path

import requests

from netboot.config import load_config
from tests.processes import wait_for
from tests.sites import add_image, make_site
from tests.sockets.service import Service, serving

MAC = "52:54:00:00:00:01"
RACK = "http://192.0.2.7:8080"


ELSEWHERE = "of one elsewhere ask there, with its file"


def test_what_can_be_taken_is_and_the_rest_is_named(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site", workers=2)
    file = tmp_path / "site" / "netboot.yaml"
    config_text = file.read_text()
    image = add_image(config)
    with serving(load_config(file), file) as service:
        assert service.netboot("channel", "set", "stable", image).returncode == 0
        wait_for(lambda: service.outcome(MAC) == "boot")
        assert RACK not in script(service)
        before = pids(service)
        nothing = service.netboot("config", "reload")
        assert (nothing.returncode, nothing.stdout) == (0, "nothing was taken\n")
        assert pids(service) == before
        file.write_text(f"{config_text}origins: [{RACK}]\nlog: {{level: debug}}\nwatchdog: {{start_seconds: 900}}\n")
        said = f"{file} was changed since the service took it: "
        both = f"{said}`netboot config reload` takes log, origins; needs a restart: watchdog"
        told = f"the service that runs goes by an older one: {both}"
        remedy = "`netboot config reload`, and what that does not take: restart the service"
        checked = service.netboot("config", "check")
        assert f"\nwarning: {told}: {remedy}\n" in f"\n{checked.stderr}"
        in_force = {"state": "changed", "message": told, "remedy": remedy}
        for asked in ("check", "show"):
            assert json.loads(service.netboot("config", asked, "-o", "json").stdout)["in_force"] == in_force
        wait_for(lambda: service.readyz()["details"]["configuration"].get("message") == both)
        done = service.netboot("config", "reload")
        assert (done.returncode, done.stdout, done.stderr) == (
            0,
            f"taken: log, origins; processes are started again, one after the other\n{said}needs a restart: watchdog\n",
            "",
        )
        acted = json.loads(service.netboot("audit", "--limit", "1", "--output", "json").stdout)["audit"][0]
        facts = {"taken": ["log", "origins"], "left": f"{said}needs a restart: watchdog"}
        assert (acted["act"], acted["role"], acted["facts"]) == ("config-reload", "files", facts)
        wait_for(lambda: not set(pids(service).values()) & set(before.values()) and service.readyz()["ready"])
        wait_for(lambda: all(RACK in script(service) for _ in range(20)))  # whichever of two boot servers is asked
        assert {each["restarts"] for each in service.processes().values()} == {0}
        assert "level=debug" in service.log
        file.write_text(f"{config_text}origin: [{RACK}]\n")
        faulty = service.netboot("config", "reload")
        assert (faulty.returncode, "origin: unknown key; did you mean 'origins'?" in faulty.stderr) == (1, True)
        assert RACK in script(service)
        file.write_text(config_text)
        checked = service.netboot("config", "check")
        assert f"{said}`netboot config reload` takes log, origins: " in checked.stderr
        assert service.netboot("config", "reload").returncode == 0
        as_it_is = {"state": "in-force", "message": "the service that runs goes by it", "remedy": ""}
        assert json.loads(service.netboot("config", "show", "-o", "json").stdout)["in_force"] == as_it_is
        other = tmp_path / "site" / "other.yaml"
        other.write_text(config_text)
        words = f"cannot tell whether a service goes by it: the one with data {config.data} reads {file}"
        shown = service.netboot("config", "show", "--config", str(other), "-o", "json")
        assert json.loads(shown.stdout)["in_force"] == {
            "state": "unknown",
            "message": words,
            "remedy": "name that file",
        }
        assert service.stop() == 0
    unknown = f"cannot tell whether a service goes by it: none runs on this host with data {config.data}: {ELSEWHERE}"
    checked = service.netboot("config", "check")
    assert (checked.returncode, checked.stdout.splitlines()[1:]) == (0, [unknown])
    gone = service.netboot("config", "reload")
    words = f"Error: no service works on {config.data}\nRemedy: start it: it reads netboot.yaml then; where `data` was "
    assert (gone.returncode, gone.stderr) == (5, f"{words}changed, restart it\n")


def script(service: Service) -> str:
    answer = requests.get(f"{service.provisioning}/v1/boot", params={"mac": MAC}, timeout=60)
    return answer.text


def pids(service: Service) -> dict[str, int | None]:
    return {name: each.pid for name, each in service.status().processes.items()}
