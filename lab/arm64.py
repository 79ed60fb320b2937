"""A QEMU machine of arm64 without any disk, in software emulation: AAVMF, Debian's UEFI, and real iPXE (`lab.ipxe`)."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import requests

from lab.errors import UnusableError
from lab.machines import NO_PXE, Hardware, Machine, nic, serial_arguments, serial_line
from lab.network import Attachment, Tap
from lab.output_log import OutputLog
from lab.processes import child
from lab.site import Site

FIRMWARE = Path("/usr/share/qemu-efi-aarch64/QEMU_EFI.fd")
GATEWAY = "10.0.2.2"
"""This host, as a machine on QEMU's user network sees it."""
SECONDS = 180.0


def ask(site: Site, hardware: Hardware, architecture: str) -> tuple[str, str]:
    """What the service answers to iPXE of an architecture on this machine: the outcome, and the script.

    As iPXE does, it asks again for as long as the machine is unknown: each worker hears of the inventory by itself.
    """
    here = site.url.replace(f"//{GATEWAY}:", "//127.0.0.1:")
    claim = {"mac": hardware.mac, "uuid": hardware.uuid, "serial": hardware.serial, "arch": architecture}
    deadline, pause = monotonic() + SECONDS, threading.Event()
    while True:
        answer = requests.get(f"{here}/v1/boot", params={**claim, "platform": "efi"}, timeout=SECONDS)
        answer.raise_for_status()
        outcome = answer.headers["Netboot-Outcome"]
        if outcome != "unknown" or monotonic() > deadline:
            return outcome, answer.text
        pause.wait(0.2)


@contextlib.contextmanager
def machine(hardware: Hardware, attachment: Attachment, folder: Path) -> Iterator[Machine]:
    """Switch a machine on for the length of a block; logs are `<folder>/<name>.console.log` and `.qemu.log`.

    It boots by its `program`, by HTTP Boot or by PXE: give its card no ROM, for those that QEMU has are of amd64.

    Raises:
        UnusableError: no UEFI firmware for arm64 is installed.
    """
    if not FIRMWARE.exists():
        raise UnusableError(f"no {FIRMWARE}: install the package qemu-efi-aarch64")
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / hardware.name
    with contextlib.ExitStack() as stack:
        with serial_line(stack) as (ours, theirs):
            namespace = attachment.namespace if isinstance(attachment, Tap) else None
            argv, log = _argv(hardware, attachment, theirs), Path(f"{stem}.qemu.log")
            qemu = child(f"qemu of {hardware.name}", argv, log, namespace=namespace, grace=3, fds=[theirs])
            running = stack.enter_context(qemu)
        console = OutputLog(f"console of {hardware.name}", Path(f"{stem}.console.log"), lambda: os.read(ours, 65536))
        stack.callback(console.join)
        stack.callback(running.stop, 3)
        yield Machine(hardware, console, running)


def _argv(hardware: Hardware, attachment: Attachment, serial: int) -> list[str]:
    return [
        "qemu-system-aarch64",
        *("-name", hardware.name, "-nodefaults", "-no-user-config", "-display", "none"),
        *("-machine", "virt,gic-version=3", "-cpu", "cortex-a72", "-accel", "tcg,thread=multi,tb-size=256"),
        *("-m", str(hardware.memory), "-smp", str(hardware.cpus), "-bios", str(FIRMWARE)),
        *("-smbios", f"type=1,manufacturer=netboot,product=lab,uuid={hardware.uuid},serial={hardware.serial}"),
        *serial_arguments(serial),
        *("-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng"),
        *(NO_PXE if hardware.http_boot else ()),
        *(("-kernel", str(hardware.program)) if hardware.program else ()),
        *nic(hardware, attachment),
    ]
