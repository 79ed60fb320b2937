"""Images of servers, from power-on to multi-user.target: local disks by real mdadm, NVIDIA's driver without a GPU."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lab.machines import Hardware, Machine
from tests.boot.data_centre import BOOT_SECONDS, LOG_SECONDS, BuiltImage, DataCentre, data_centre, entry, hardware

pytestmark = pytest.mark.boot
SECONDS = 2 * BOOT_SECONDS
"""A large image is verified and unpacked in software emulation."""
WORTH_A_LOOK = re.compile(
    r"netboot: FAILED.*|netboot: module [\w.-]+|NVRM: .*|netboot-\w+: .*"
    r"|\[(?:FAILED|DEPEND| TIME )\] (?!Failed to start nvidia-p).*"  # cut to fit, and before the login or after it
)
"""On a console: what fails in the initrd, units that fail before the login, and what the driver and our units say."""
NOTHING_TO_JOIN = "netboot-join: this site's bundle names no join_url, so there is nothing to join"
NO_TIME_SERVER = (
    "netboot-clock: neither the site nor DHCP names a time server; the clock is as the service's time has it"
)


def server(built: BuiltImage, disks: int = 0) -> Hardware:
    return replace(hardware(1), memory=int(built.manifest["ram_mib"]) + 768, cpus=2, disks=disks)


@contextlib.contextmanager
def booted(here: DataCentre, mine: Hardware, not_boot: str = "") -> Iterator[tuple[Machine, str, str]]:
    """The machine once it is up, in another boot than `not_boot`: with the boot's id, and which units failed."""
    with here.switched_on(mine) as machine:
        for event in here.service.events(mine.name, SECONDS, machine.qemu.check):
            if event["phase"] == "Booted" and event["boot"] != not_boot:
                here.wait_for_trace(mine.name)
                yield machine, event["boot"], event["detail"]
                return


def declare(here: DataCentre, mine: Hardware, *arguments: str) -> None:
    profile = f"{{name: default, channel: stable, kernel_arguments: [{', '.join(arguments)}]}}"
    here.site.declare(f"machines:\n- {{{entry(mine)}}}\nprofiles:\n- {profile}\nchannels:\n- {{name: stable}}\n")


def test_a_servers_disks_become_an_array_that_the_next_boot_finds(built_cpu: BuiltImage, folder: Path) -> None:
    mine = server(built_cpu, disks=2)
    made = r"netboot-disks: containerd's and the kubelet's state are on /dev/md/netboot-disk \(raid0\)"
    with data_centre(folder, built_cpu) as here:
        declare(here, mine, "netboot.disks=auto")
        with booted(here, mine) as (machine, first, failed):
            machine.wait_for_console(made, LOG_SECONDS)
            machine.wait_for_console("mdadm: array /dev/md/netboot-disk started", LOG_SECONDS)
            assert failed == ""
        with booted(here, mine, not_boot=first) as (machine, _, failed):
            machine.wait_for_console(made, LOG_SECONDS)
            machine.wait_for_console("mdadm: /dev/md/netboot-disk has been started with 2 drives", LOG_SECONDS)
            assert failed == ""


def test_a_gpu_image_boots_where_there_is_no_gpu_and_says_what_is_missing(built_gpu: BuiltImage, folder: Path) -> None:
    """The driver is of this kernel: it loads, and finds no GPU. The machine is up all the same."""
    mine = server(built_gpu)
    with data_centre(folder, built_gpu) as here:
        declare(here, mine)
        with booted(here, mine) as (machine, _, failed):
            machine.wait_for_console("NVRM: No NVIDIA GPU found", LOG_SECONDS)
            machine.wait_for_console(f"{NOTHING_TO_JOIN}\n", LOG_SECONDS)
            machine.wait_for_console(f"{NO_TIME_SERVER}\n", LOG_SECONDS)
            assert failed.split() == ["failed", "units:", "nvidia-persistenced.service"]
            assert set(WORTH_A_LOOK.findall(machine.console.text.rpartition("\n")[0])) == {
                "netboot: module hv_netvsc.ko",  # of Hyper-V's bus, whose own driver finds no device, which is not said
                "NVRM: No NVIDIA GPU found.",
                NOTHING_TO_JOIN,
                NO_TIME_SERVER,
                "netboot-disks: auto: there is no empty NVMe disk; containerd's and the kubelet's state are in memory",
            }
