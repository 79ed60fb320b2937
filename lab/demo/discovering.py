"""The part of the demo before the boot, with `--discover`: a machine that nobody has declared introduces itself."""

import json
from dataclasses import replace
from time import time
from typing import Any

import yaml

from lab.demo.progress import CHANNEL, NAME, Boot, Demo, short
from lab.demo.steps import BOOT_SECONDS, inventory
from lab.machines import Hardware
from lab.service import Service
from lab.site import Site
from netboot.machines.found import summary

REPORT_SECONDS = 180.0
"""From the console's word to the list: the journal and the projection are between."""


def prepare(site: Site, hardware: Hardware) -> None:
    """Let the site discover who is unknown, and declare nobody."""
    with site.config.open("a") as config:
        config.write(f"discovery: {{channel: {CHANNEL}}}\n")
    declared, _, _ = inventory(hardware, None).partition("\nmachines:\n")
    site.declare(f"{declared}\nmachines: []\n")


def introduced(demo: Demo, site: Site, running: Service, hardware: Hardware, address: str) -> str:
    """Wait for its report, declare it by that, and wait until it reboots by itself; the digest of its TPM's key."""
    assert demo.machine is not None
    with demo.doing("nobody has declared it: it boots the image to say what it is made of"):
        demo.machine.wait_for_console("netboot-discovery: it waits until it is declared", 2 * BOOT_SECONDS)
        running.wait_until("its report", lambda: bool(_found(site, hardware)), REPORT_SECONDS)
        (found,) = _found(site, hardware)
        demo.say(f"    netboot machine discovered: [bold]{found['mac']}[/] {summary(found['hardware'])}")
        report = demo.folder / "machine" / f"{NAME}.discovered.json"
        report.write_text(json.dumps(found, indent=1))
        demo.say(f"    all that it said: {short(report)}")
    argv = ("machine", "declare", hardware.mac, "--name", NAME, "--profile", "default", "--seen", found["seen"])
    with demo.doing(f"the operator runs: netboot {' '.join(argv)} --print"):
        text = site.netboot(*argv, "--print")
        (declared,) = yaml.safe_load(text)["machines"]
        for line in text.splitlines():
            demo.say(f"    {line}")
        demo.say(f"    and puts that into the inventory, with the node's address {address}")
        match = declared["match"]
        mine = replace(hardware, mac=match["macs"][0], uuid=match["uuid"])
        site.declare(inventory(mine, address, match["ek_sha256"]))
        demo.machine.wait_for_console("netboot-discovery: this machine is declared", REPORT_SECONDS)
        demo.say(f"    {NAME} reboots by itself")
    demo.boots[-1] = Boot(time())
    return str(match["ek_sha256"])


def _found(site: Site, hardware: Hardware) -> list[dict[str, Any]]:
    listed = json.loads(site.netboot("machine", "discovered", "--output", "json"))["discovered"]
    return [each for each in listed if each["mac"] == hardware.mac and each["hardware"]]
