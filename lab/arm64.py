"""A QEMU machine of arm64 without any disk, in software emulation.

Debian 12 has no iPXE for arm64, so iPXE's part is played here: its question is asked, and the kernel, initrd and
arguments that the answer names are handed to the machine's UEFI, which starts the kernel as it would iPXE's.
"""

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import requests

from lab.errors import LabError, UnusableError
from lab.machines import Hardware, Machine, serial_arguments, serial_line
from lab.output_log import OutputLog
from lab.processes import child
from lab.site import Site

FIRMWARE = Path("/usr/share/qemu-efi-aarch64/QEMU_EFI.fd")
GATEWAY = "10.0.2.2"
"""This host, as a machine on QEMU's user network sees it."""
SECONDS = 120.0


def ask(site: Site, hardware: Hardware, architecture: str = "arm64") -> tuple[str, str]:
    """What the service answers to iPXE on this machine: the outcome, and the script.

    As iPXE does, it asks again for as long as the machine is unknown: each worker hears of the inventory by itself.
    """
    claim = {"mac": hardware.mac, "uuid": hardware.uuid, "serial": hardware.serial, "arch": architecture}
    deadline, pause = monotonic() + SECONDS, threading.Event()
    while True:
        answer = requests.get(_here(f"{site.url}/v1/boot"), params={**claim, "platform": "efi"}, timeout=SECONDS)
        answer.raise_for_status()
        outcome = answer.headers["Netboot-Outcome"]
        if outcome != "unknown" or monotonic() > deadline:
            return outcome, answer.text
        pause.wait(0.2)


@contextlib.contextmanager
def machine(hardware: Hardware, site: Site, folder: Path) -> Iterator[Machine]:
    """Switch a machine on for the length of a block; it reaches the site's service by QEMU's user network.

    Raises:
        UnusableError: no UEFI firmware for arm64 is installed. LabError: it is not to boot.
    """
    if not FIRMWARE.exists():
        raise UnusableError(f"no {FIRMWARE}: install the package qemu-efi-aarch64")
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / hardware.name
    arguments = _fetch(site, hardware, stem)
    with contextlib.ExitStack() as stack:
        with serial_line(stack) as (ours, theirs):
            argv, fds = _argv(hardware, stem, arguments, theirs), [theirs]
            running = stack.enter_context(
                child(f"qemu of {hardware.name}", argv, Path(f"{stem}.qemu.log"), grace=3, fds=fds)
            )
        console = OutputLog(f"console of {hardware.name}", Path(f"{stem}.console.log"), lambda: os.read(ours, 65536))
        stack.callback(console.join)
        stack.callback(running.stop, 3)
        yield Machine(hardware, console, running)


def _fetch(site: Site, hardware: Hardware, stem: Path) -> str:
    """Fetch what the script names, as `<stem>.kernel` and `.initrd`; the kernel's arguments."""
    outcome, script = ask(site, hardware)
    script = script.replace("${netX/mac:hexhyp}", hardware.mac.replace(":", "-"))
    lines = {
        name: re.search(rf"^{name} --timeout \d+ --name {name} (\S+)(.*) \|\| goto retry$", script, re.MULTILINE)
        for name in ("kernel", "initrd")
    }
    for name, line in lines.items():
        if line is None:
            raise LabError(f"{hardware.name} is not to boot ({outcome}):\n{script}")
        answer = requests.get(_here(line[1]), timeout=SECONDS)
        answer.raise_for_status()
        Path(f"{stem}.{name}").write_bytes(answer.content)
    assert lines["kernel"]
    return lines["kernel"][2].strip()


def _here(url: str) -> str:
    return url.replace(f"//{GATEWAY}:", "//127.0.0.1:")


def _argv(hardware: Hardware, stem: Path, arguments: str, serial: int) -> list[str]:
    return [
        "qemu-system-aarch64",
        *("-name", hardware.name, "-nodefaults", "-no-user-config", "-display", "none"),
        *("-machine", "virt,gic-version=3", "-cpu", "cortex-a72", "-accel", "tcg,thread=multi,tb-size=256"),
        *("-m", str(hardware.memory), "-smp", str(hardware.cpus), "-bios", str(FIRMWARE)),
        *("-kernel", f"{stem}.kernel", "-initrd", f"{stem}.initrd", "-append", arguments),
        *("-smbios", f"type=1,manufacturer=netboot,product=lab,uuid={hardware.uuid},serial={hardware.serial}"),
        *serial_arguments(serial),
        *("-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng"),
        *("-netdev", "user,id=net", "-device", f"virtio-net-pci,netdev=net,mac={hardware.mac},romfile="),
    ]
