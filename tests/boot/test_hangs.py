"""What conditions say of a machine whose kernel hangs, of one that crashes again and again, and of one whose image is
damaged: one sentence each, the same in API and command line; and that each goes with its cause. Who hangs where the
board's watchdog is armed comes back without anybody's hand."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.boot.data_centre import (
    BOOT_SECONDS,
    LOG_SECONDS,
    BuiltImage,
    DataCentre,
    data_centre,
    entry,
    flip,
    hardware,
)

pytestmark = pytest.mark.boot
SHOWN = "/v1/machines/node-1"
CHUNK = 4 << 20
NO_INIT = "rdinit=/nothing, root=/dev/nothing"
"""The kernel finds nothing to start, and panics."""
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
BOOT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def test_a_kernel_that_hangs_one_that_panics_in_circles_and_a_damaged_image_are_told_and_recover(
    built: BuiltImage, folder: Path
) -> None:
    """Nobody but its operator (here: whoever switches it off) frees one that hangs before anything was started; a
    kernel with `panic=` frees itself, and comes back to the same."""
    mine, root = hardware(1), built.root["sha256"]
    with data_centre(folder, built) as here:
        of_profile(here, 4, f", kernel_arguments: [{NO_INIT}, panic=0], deadlines: {{InitrdFetched: 10s}}")
        with here.switched_on(mine) as machine:
            machine.wait_for_console("Kernel panic - not syncing", BOOT_SECONDS)
            assert said(here, "Stuck") == (
                "boot BOOT reached InitrdFetched at MOMENT and nothing beyond in 10s (profile default): it has kernel "
                "and initrd, and its initrd has said nothing: the kernel hangs, or has no network; last heard: "
                "InitrdFetched at MOMENT"
            )
        of_profile(here, 2, f", kernel_arguments: [{NO_INIT}, panic=1]")
        with here.switched_on(mine):
            assert re.fullmatch(
                r"([3-9]|1\d) scripts that were served in its name, to whoever asked, in \d\d?m, and none was up: more "
                r"than 2 \(profile default\) are a loop; the furthest phase of all is InitrdFetched, the newest is "
                r"boot BOOT; last heard: (ScriptServed|KernelFetched|InitrdFetched) at MOMENT",
                said(here, "BootLoop"),
            )
            blob = here.site.store / "blobs" / root
            flip(blob, 2 * CHUNK + 1)
            of_profile(here, 0)
            assert said(here, "Failed") == (
                "boot BOOT says that it failed after InitrdStarted, at MOMENT: ImageRefused: chunk 2 of the root image "
                f"is damaged at every origin that sends it: {here.site.url}: sends damaged chunks"
            )
            flip(blob, 2 * CHUNK + 1)
            assert said(here, "Booted") == f"boot BOOT is up, with image {built.digest[:12]}"


def test_a_kernel_that_hangs_is_reset_by_its_watchdog_and_comes_back(built_erofs: BuiltImage, folder: Path) -> None:
    """It stands after a panic (`panic=0`, sysrq-c), which frees nobody; nobody touches the machine."""
    with data_centre(folder, built_erofs) as here:
        of_profile(here, 4, ", kernel_arguments: [stands], deadlines: {Switched: 10s}")
        with here.switched_on(replace(hardware(1), watchdog=True)) as machine:
            machine.wait_for_console("Kernel panic - not syncing: sysrq triggered crash", BOOT_SECONDS)
            stood = len(machine.console.text)
            assert said(here, "Stuck") == (
                "boot BOOT reached Switched at MOMENT and nothing beyond in 10s (profile default): it runs the root "
                "image, and has not reached multi-user.target: a unit hangs, or the kernel; last heard: "
                "Switched at MOMENT"
            )
            of_profile(here, 0)
            machine.wait_for_console("stage started", BOOT_SECONDS, after=stood)
            assert said(here, "Booted") == f"boot BOOT is up, with image {built_erofs.digest[:12]}"


def of_profile(here: DataCentre, limit: int, says: str = "") -> None:
    """The machine's profile says this; who is switched on then, or boots again, has it."""
    profile = f"{{name: default, channel: stable, pcrs: none, boot_limit: {limit or 'none'}{says}}}"
    here.site.declare(f"machines:\n- {{{entry(hardware(1))}}}\nprofiles:\n- {profile}\nchannels:\n- {{name: stable}}\n")

    def in_force() -> bool:
        machines = here.service.api("/v1/machines")["machines"]
        return bool(machines) and here.service.api(SHOWN)["boot_limit"]["boots"] == limit

    here.service.wait_until("the profile is in force", in_force, LOG_SECONDS)


def said(here: DataCentre, reason: str) -> str:
    """Wait for the reason of the condition `Booted`, and until API and command line say the same sentence of it; that,
    without what differs from run to run."""
    found = ""

    def the_same() -> bool:
        nonlocal found
        by_api = booted(here.service.api(SHOWN))
        if by_api.get("reason") != reason:
            return False
        found = by_api["message"]
        by_command = booted(json.loads(here.site.netboot("machine", "show", "node-1", "--output", "json")))
        return by_command == by_api and found in here.site.netboot("machine", "show", "node-1")

    here.service.wait_until(f"Booted has the reason {reason}", the_same, BOOT_SECONDS)
    return BOOT.sub("BOOT", MOMENT.sub("MOMENT", found))


def booted(shown: Any) -> Any:
    """The condition of that type; empty where there is none yet."""
    return next((each for each in shown["conditions"] or () if each["type"] == "Booted"), {})
