"""Rollouts through a running service: machines that boot what they are assigned, counted, proved, undone; a service
that is killed in the middle; a channel that is set while one is under way."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests

from images.store.store import Store
from netboot.stores.snapshot import read_snapshot
from tests.processes import wait_for
from tests.sites import add_image, make_site
from tests.sockets.service import Service, serving

MACHINES = {f"gpu-00{number}": f"52:54:00:00:00:0{number}" for number in range(1, 5)}
INVENTORY = f"""\
machines:
{
    chr(10).join(
        f'  - {{name: {name}, match: {{macs: ["{mac}"]}}, profile: compute, rack: r{int(name[-1]) % 2}}}'
        for name, mac in MACHINES.items()
    )
}
profiles:
  - {{name: compute, channel: stable, kernel_arguments: [quiet]}}
channels:
  - {{name: stable, strategy: {{bake: 1s, max_unavailable: 3}}}}
  - {{name: fixed, image: {"d" * 64}}}
racks:
  - {{name: r0}}
  - {{name: r1}}
"""


class Site:
    """A service with two images, and four machines that run the first."""

    def __init__(self, service: Service, old: str, new: str) -> None:
        self.service, self.old, self.new = service, old, new

    def netboot(self, *arguments: str) -> str:
        done = self.service.netboot(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(self) -> Any:
        return json.loads(self.netboot("rollout", "status", "stable", "--output", "json"))

    def image(self, name: str) -> str:
        """What it would boot now."""
        decision = self.service.api(f"/v1/machines/{name}/explain")["decision"]
        return str(decision["image"]["digest"])

    def served(self) -> bool:
        """Whether the boot server goes by what is published: it reads that by itself, after whoever explains it."""
        ready = requests.get(f"{self.service.provisioning}/readyz", timeout=60).json()
        return bool(ready["published_ms"] == read_snapshot(self.service.config.data / "snapshot.json").published_ms)

    def reboot(self, name: str) -> None:
        """It asks for its script, and comes up."""
        wait_for(self.served)
        boot = self.service.boot(MACHINES[name])
        assert self.service.post(boot, MACHINES[name], "InitrdStarted") == 204
        assert self.service.post(boot, MACHINES[name], "Booted") == 204
        wait_for(lambda: (self.service.api(f"/v1/machines/{name}")["current"] or {}).get("boot") == boot)

    def named(self, count: int) -> list[str]:
        """The machines that are to be rebooted, once there are so many, and it is published."""
        wait_for(lambda: len(self.status()["to_reboot"]) == count)
        names: list[str] = self.status()["to_reboot"]
        wanted = self.old if self.status()["undoing"] else self.new
        wait_for(lambda: all(self.image(name) == wanted for name in names))
        return names


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    config = make_site(tmp_path / "site", workers=1, inventory=INVENTORY)
    old, new = add_image(config), add_image(config, name="next", salt="2")
    Store(config.store).set_channel("stable", old)
    with serving(config, tmp_path / "site" / "netboot.yaml") as service:
        made = Site(service, old, new)
        for name in MACHINES:
            made.reboot(name)
        wait_for(lambda: all(up(made, name) for name in MACHINES))
        yield made


def up(site: Site, name: str) -> bool:
    conditions = site.service.api(f"/v1/machines/{name}")["conditions"] or ()
    return {each["type"]: each["status"] for each in conditions}.get("Booted") == "True"


def test_machines_come_to_another_image_canaries_first_and_a_killed_service_goes_on(site: Site) -> None:
    refused = site.service.netboot("rollout", "start", "stable", "next")
    assert refused.returncode == 4
    assert refused.stderr == (
        "Error: gpu-001, gpu-002, gpu-003 and 1 more: they join no cluster, and nobody there takes an order to reboot; "
        "with `--on-next-boot` machines are assigned the image, a few at a time, and somebody has to reboot them\n"
        "Remedy: see `netboot rollout status`\n"
    )
    short = f"4 machines of channel stable from {site.old[:12]} to next {site.new[:12]}"
    budgets = "2 canaries first, which bake 1s; at most 3 of 4 machines are out at once\n"
    assert site.netboot("rollout", "start", "stable", "next", "--on-next-boot", "--dry-run") == (
        f"this would be a rollout of {short}\n{budgets}4 of them are in service now; nothing was changed\n"
    )
    assert site.netboot("rollout", "status") == "no rollout is under way\n"
    assert site.netboot("rollout", "start", "stable", "next", "--on-next-boot", "--reason", "CVE") == (
        f"rollout 1 of {short}\n{budgets}"
        "machines are assigned the image, and this rollout reboots none of them:\n"
        "reboot those that `netboot rollout status stable` names, as it names them\n"
    )
    canaries = site.named(2)
    others = sorted(MACHINES.keys() - set(canaries))
    assert {int(name[-1]) % 2 for name in canaries} == {0, 1}
    assert [site.image(name) for name in others] == [site.old, site.old]
    explained = site.netboot("explain", canaries[0])
    assert f"because rollout 1 of channel stable assigned image next {site.new[:12]}\n" in explained
    counted = 'netboot_rollout_machines{channel="stable",rollout="1",state="assigned"} 2.0'
    wait_for(lambda: counted in site.service.text("/metrics"))
    site.service.kill()
    site.service.start()
    for name in canaries:
        site.reboot(name)
    wait_for(lambda: site.status()["to_reboot"] == others)
    assert site.named(2) == others
    for name in others:
        site.reboot(name)
    followed = site.service.netboot("rollout", "status", "stable", "--follow", "--output", "json")
    assert followed.returncode == 0
    ended = json.loads(followed.stdout)
    assert (ended["state"], ended["why"], ended["machines"]["done"]) == ("complete", "4 done", 4)
    assert Store(site.service.config.store).channel("stable").image == site.new  # type: ignore[union-attr]
    wait_for(lambda: "channel stable is image next" in site.netboot("explain", canaries[0]))
    history = json.loads(site.netboot("rollout", "history", "stable", "--output", "json"))["rollouts"][0]["history"]
    assert [(entry["act"], entry["said"]) for entry in history] == [
        ("complete", "4 done"),
        ("the canaries are in service", ""),
        ("start", "CVE"),
    ]
    references = Store(site.service.config.store).references()["rollouts"]
    assert references == {site.old, site.new}, "going back stays possible"


def test_it_is_paused_resumed_and_undone_and_a_channel_that_is_set_ends_it(site: Site) -> None:
    site.netboot("rollout", "start", "stable", "next", "--on-next-boot")
    first, second = site.named(2)
    site.reboot(first)
    wait_for(lambda: site.status()["machines"]["done"] == 1)
    assert site.netboot("rollout", "pause", "stable") == (
        "rollout 1 of channel stable is paused: machines that were not rebooted yet boot what they had\n"
    )
    wait_for(lambda: site.image(second) == site.old)
    assert site.image(first) == site.new, "a machine that crashes boots what it was assigned"
    refused = site.service.netboot("channel", "set", "stable", "next")
    assert refused.returncode == 4
    assert refused.stderr.splitlines()[-2] == (
        "Error: rollout 1 of channel stable is paused: let it end or undo it; `force` ends it, and all machines of the "
        "channel boot what is set from their next boot on"
    )
    assert site.netboot("rollout", "resume", "stable") == "rollout 1 of channel stable is running: it goes on\n"
    assert site.netboot("rollout", "undo", "stable") == (
        "rollout 1 of channel stable is running: every machine boots what it had; `netboot rollout status` names those "
        "that are to be rebooted\n"
    )
    wait_for(lambda: site.status()["to_reboot"] == [first])
    assert site.named(1) == [first]
    site.reboot(first)
    wait_for(lambda: site.status()["state"] == "undone")
    site.netboot("rollout", "start", "stable", "next", "--on-next-boot")
    second_refused = site.service.netboot("rollout", "start", "stable", "next", "--on-next-boot")
    assert "rollout 2 of channel stable is running: one at a time; let it end, or undo it" in second_refused.stderr
    assert site.service.netboot("channel", "set", "stable", "nothing", "--force").returncode == 3
    assert site.status()["state"] == "running", "what cannot be set ends nothing"
    said = site.netboot("channel", "set", "stable", "next", "--force")
    assert said.endswith(
        "rollout 2 is cancelled: it assigns nothing any more\n"
        "4 machines of channel stable boot it from the next boot on\n"
    )
    wait_for(lambda: all(site.image(name) == site.new for name in MACHINES))
    assert site.status()["why"].startswith("channel set by ")
    drift = site.service.netboot("drift", "--output", "json")
    assert drift.returncode == 1
    told = [(each["machine"], each["what"], each["why"]) for each in json.loads(drift.stdout)["drift"]]
    assert told == [(name, "image", f"channel stable is image next {site.new[:12]} now") for name in MACHINES]
    for name in MACHINES:
        site.reboot(name)
    whole = site.service.netboot("drift")
    assert (whole.returncode, whole.stdout) == (0, "no drift: 4 machines run what they would boot now\n")
    file = site.service.config.inventory / "site.yaml"
    file.write_text(file.read_text().replace("[quiet]", "[debug]"))
    wait_for(lambda: site.service.netboot("drift").returncode == 1)
    others = [(each["machine"], each["what"]) for each in site.service.api("/v1/drift")["drift"]]
    assert others == [(name, "arguments") for name in MACHINES]
    nothing = site.service.netboot("rollout", "start", "stable", "next", "--on-next-boot")
    assert "channel stable is that image already: machines that run another take it when they are reb" in nothing.stderr
    pinned = site.service.netboot("rollout", "start", "fixed", "next", "--on-next-boot")
    assert "channel fixed is pinned to dddddddddddd in " in pinned.stderr
    assert "and its machines boot that: a rollout needs a channel that is not pinned\n" in pinned.stderr
    revoked_in_the_middle(site)


def revoked_in_the_middle(site: Site) -> None:
    """A rollout back to the first image, which is then revoked: its machines boot what the channel points to."""
    site.netboot("rollout", "start", "stable", "tiny", "--on-next-boot")
    wait_for(lambda: len(site.status()["to_reboot"]) == 2)
    canaries = ", ".join(site.status()["to_reboot"])
    wait_for(lambda: canaries in site.service.netboot("image", "revoke", "tiny", "--reason", "CVE", "--dry-run").stdout)
    refused = site.service.netboot("image", "revoke", "tiny", "--reason", "CVE")
    assert refused.returncode == 4
    assert refused.stderr == (
        f"Error: image {site.old[:12]} is what 2 machines boot next: {canaries}\n"
        "rollouts of channel stable assigned it to 2 machines\n"
        "these machines would not boot, so nothing was changed\n"
        "Remedy: say what they are to boot with --replace-with IMAGE, or --force-nothing-boots\n"
    )
    add_image(site.service.config, name="third", salt="3")
    assert site.netboot("image", "revoke", "tiny", "--reason", "CVE", "--replace-with", "third") == (
        f"image {site.old[:12]} is revoked: the site bundle says so, signed now\n"
        f"channel stable is image {site.new[:12]} now, for 4 machines; rollout 3 is cancelled\n"
    )
    wait_for(lambda: all(site.image(name) == site.new for name in MACHINES))
    site.netboot("image", "revoke", "next", "--reason", "CVE", "--force-nothing-boots")
    wait_for(lambda: all(site.service.outcome(mac) == "unavailable" for mac in MACHINES.values()))
    why = wait_for(lambda: site.service.readyz()["details"]["images"].get("unusable", {}).get("stable"))
    assert why == "it is revoked at this site: `netboot image revocations` says why"
    site.netboot("image", "unrevoke", site.new)
    wait_for(lambda: all(site.service.outcome(mac) == "boot" for mac in MACHINES.values()))
    undoes_itself(site)


def undoes_itself(site: Site) -> None:
    """Both canaries crash again and again with the third image."""
    said = site.netboot("rollout", "start", "stable", "third", "--on-next-boot", "--auto-undo", "--bake", "10m")
    assert "\nit undoes itself where too many machines fail with the image, in two racks\n" in said
    wait_for(lambda: len(site.status()["to_reboot"]) == 2)
    assert "auto-undo       it undoes itself where too many" in site.netboot("rollout", "status", "stable")
    canaries = site.status()["to_reboot"]
    third = site.status()["image"]
    wait_for(lambda: all(site.image(name) == third for name in canaries))
    for boots in range(3):
        for name in canaries:
            site.reboot(name)
        wait_for(partial(crashed, site, canaries, boots))
    for name in canaries:
        site.reboot(name)
    wait_for(lambda: site.status()["undoing"])
    first = canaries[0]
    verdict = (
        f"2 canaries in 2 racks failed, which is the image's fault; {first}: it began 3 more boots since it came into "
        "service with it"
    )
    assert site.status()["verdict"] == verdict
    assert f"verdict         undone by itself: {verdict}\n" in site.netboot("rollout", "status", "stable")
    newest = site.status()["history"][0]
    assert (newest["who"], newest["act"], newest["said"]) == ("netboot", "auto-undo", verdict)
    wait_for(lambda: "netboot_rollouts_auto_undone_total 1.0\n" in site.service.text("/metrics"))
    wait_for(lambda: all(site.image(name) == site.new for name in MACHINES))
    for name in canaries:
        site.reboot(name)
    wait_for(lambda: site.status()["state"] == "undone")
    assert site.netboot("rollout", "history").splitlines()[1].endswith(f"undone by itself: {verdict}; 4 done")
    followed = site.service.netboot("rollout", "status", "stable", "--follow")
    assert followed.returncode == 1, "who waits for the image has not got it"


def crashed(site: Site, names: list[str], times: int) -> bool:
    """Whether they began so many boots after the one with which they came into service first."""
    members = [each for each in site.status()["members"] if each["machine"] in names]
    return all((each["state"], each["again"]) == ("done", times) for each in members)


def test_a_file_of_rollouts_that_cannot_be_read_is_said_and_machines_boot_what_they_were_assigned(site: Site) -> None:
    site.netboot("rollout", "start", "stable", "next", "--on-next-boot")
    canary = site.named(2)[0]
    path = site.service.config.data / "rollouts.db"
    with closing(sqlite3.connect(path, timeout=60)) as db:
        db.execute("UPDATE members SET body = '{}'")
        db.commit()
    words = "holds what cannot be read (machine: Field required): restore a backup"
    said = wait_for(lambda: words in (found := site.service.readyz()["details"]["rollouts"])["message"] and found)
    assert said["ok"] is False
    assert site.image(canary) == site.new
    assert site.service.stop() == 0
    site.service.start()
    assert site.image(canary) == site.new
    assert site.service.netboot("rollout", "status", "stable").returncode == 5
