"""QEMU machines without any disk: real firmware, a NIC whose ROM is iPXE, a serial console that is always kept."""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lab.accelerator import Accelerator, arguments
from lab.errors import UnusableError
from lab.network import Attachment, Tap
from lab.output_log import OutputLog
from lab.processes import Child, child
from lab.tpm import qemu_arguments, tpm

Firmware = Literal["bios", "uefi"]
DISK_BYTES = 256 * 1024**2
CRASH_STORE_BYTES = 64 * 1024
SERIAL_BYTES = 1024 * 1024
"""What anybody may have in a pipe (/proc/sys/fs/pipe-max-size), and more than a boot says."""
_OVMF = Path("/usr/share/OVMF")
NO_PXE = tuple(
    word
    for name in ("IPv4PXESupport", "IPv6PXESupport", "IPv6Support")
    for word in ("-fw_cfg", f"name=opt/org.tianocore/{name},string=n")
)
"""Switches of OVMF and AAVMF (OvmfPkg/RUNTIME_CONFIG.md): with all on, it is minutes until HTTP's turn."""
_OVMF_PAIRS = (("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"), ("OVMF_CODE.fd", "OVMF_VARS.fd"))


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the machine is. `memory` in MiB; `rom` False: the NIC has none, the firmware's own PXE must fetch iPXE.

    `others`: addresses of further cards, whose ROM is none.
    `http_boot`: its UEFI boots by HTTP, and tries no PXE before.
    `program`: an EFI program that the firmware starts, before it looks at the network.
    `tpm`: it has a TPM 2.0, whose state is `<folder>/<name>.tpm`: a machine that is switched off and on keeps its chip.
    `disks`: how many NVMe disks it has, empty at first; what they hold stays in `<folder>/<name>.disk<number>`.
    `crash_store`: its firmware keeps what a kernel says last (ACPI ERST), in `<folder>/<name>.erst`.
    `watchdog`: its board has one (i6300esb), which resets it.
    `clock`: what the board's clock says when it is switched on, as QEMU's `-rtc base=` has it; "": the time.
    """

    name: str
    mac: str
    uuid: str
    serial: str
    firmware: Firmware = "bios"
    memory: int = 1024
    cpus: int = 1
    rom: bool = True
    http_boot: bool = False
    others: tuple[str, ...] = ()
    tpm: bool = False
    disks: int = 0
    program: Path | None = None
    crash_store: bool = False
    clock: str = ""
    watchdog: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that is switched on. `console` is its serial port."""

    hardware: Hardware
    console: OutputLog
    qemu: Child

    def wait_for_console(self, pattern: str, seconds: float, *, after: int = 0) -> re.Match[str]:
        """Wait until the console shows `pattern`; raises DeadlineError or EndedError with the console's last lines."""
        return self.console.wait_for(pattern, seconds, after=after)


@contextlib.contextmanager
def machine(hardware: Hardware, attachment: Attachment, folder: Path, accelerator: Accelerator) -> Iterator[Machine]:
    """Switch a machine on for the length of a block; logs are `<folder>/<name>.console.log` and `.qemu.log`.

    Raises:
        UnusableError: no UEFI firmware is installed, or no software TPM.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / hardware.name
    with contextlib.ExitStack() as stack:
        with serial_line(stack) as (ours, theirs):
            namespace = attachment.namespace if isinstance(attachment, Tap) else None
            argv, fds = _argv(hardware, attachment, stem, accelerator, theirs), [theirs]
            if hardware.tpm:
                chip = stack.enter_context(tpm(f"tpm of {hardware.name}", chip_of(hardware, folder)))
                argv, fds = [*argv, *qemu_arguments(chip)], [*fds, chip.fileno()]
            qemu = child(
                f"qemu of {hardware.name}",
                argv,
                Path(f"{stem}.qemu.log"),
                namespace=namespace,
                grace=3,
                fds=fds,
            )
            running = stack.enter_context(qemu)
        console = OutputLog(f"console of {hardware.name}", Path(f"{stem}.console.log"), lambda: os.read(ours, 65536))
        stack.callback(console.join)
        stack.callback(running.stop, 3)
        yield Machine(hardware, console, running)


@contextlib.contextmanager
def serial_line(stack: contextlib.ExitStack) -> Iterator[tuple[int, int]]:
    """A pipe for a machine's serial port: the end to read, which is open as long as `stack` lasts, and the machine's.

    It takes all that a boot says however late it is read: what QEMU cannot write at once, and not at the fourth try,
    it drops (hw/char/serial.c, MAX_XMIT_RETRY). A socket holds 278 characters, for each counts as a buffer.
    """
    ours, theirs = os.pipe()
    stack.callback(os.close, ours)
    try:
        fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, SERIAL_BYTES)
        yield ours, theirs
    finally:
        os.close(theirs)


def serial_arguments(theirs: int) -> tuple[str, ...]:
    """QEMU's, for the first serial port; `theirs`: the machine's end of a serial line, which QEMU inherits."""
    return "-chardev", f"file,id=console,path=/proc/self/fd/{theirs}", "-serial", "chardev:console"


def chip_of(hardware: Hardware, folder: Path) -> Path:
    """The state of its TPM, for `lab.tpm.ek_sha256`."""
    return folder / f"{hardware.name}.tpm"


def _argv(hardware: Hardware, attachment: Attachment, stem: Path, accelerator: Accelerator, serial: int) -> list[str]:
    return [
        "qemu-system-x86_64",
        *("-name", hardware.name, "-nodefaults", "-no-user-config", "-display", "none", "-vga", "none"),
        # graphics=off makes SeaBIOS, and with it iPXE, speak on the serial port.
        *("-machine", "q35,graphics=off", *arguments(accelerator)),
        *("-m", str(hardware.memory), "-smp", str(hardware.cpus)),
        *(("-rtc", f"base={hardware.clock}") if hardware.clock else ()),
        *("-smbios", f"type=1,manufacturer=netboot,product=lab,uuid={hardware.uuid},serial={hardware.serial}"),
        *serial_arguments(serial),
        *("-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng"),
        *_firmware(hardware, stem),
        *(NO_PXE if hardware.http_boot else ()),
        *(("-kernel", str(hardware.program)) if hardware.program else ()),
        *nic(hardware, attachment),
        *_disks(hardware, stem),
        *(("-device", "i6300esb") if hardware.watchdog else ()),
        *(_crash_store(Path(f"{stem}.erst")) if hardware.crash_store else ()),
    ]


def _firmware(hardware: Hardware, stem: Path) -> list[str]:
    if hardware.firmware == "bios":
        return []  # SeaBIOS is QEMU's own
    for code, variables in _OVMF_PAIRS:
        if (_OVMF / code).exists():
            variables_copy = Path(f"{stem}.vars.fd")
            shutil.copyfile(_OVMF / variables, variables_copy)
            drives = ((_OVMF / code, "on"), (variables_copy, "off"))
            return [
                word
                for path, fixed in drives
                for word in ("-drive", f"if=pflash,format=raw,file={path},readonly={fixed}")
            ]
    raise UnusableError(f"no UEFI firmware in {_OVMF}: install the package ovmf")


def _crash_store(path: Path) -> tuple[str, ...]:
    memory = f"memory-backend-file,id=erst,mem-path={path},size={CRASH_STORE_BYTES},share=on"
    return "-object", memory, "-device", "acpi-erst,memdev=erst"


def _disks(hardware: Hardware, stem: Path) -> list[str]:
    arguments: list[str] = []
    for number in range(hardware.disks):
        path = Path(f"{stem}.disk{number}")
        if not path.exists():
            with path.open("wb") as file:
                file.truncate(DISK_BYTES)
        arguments += ["-drive", f"if=none,id=disk{number},format=raw,file={path}"]
        arguments += ["-device", f"nvme,drive=disk{number},serial=disk-{number}"]
    return arguments


def nic(hardware: Hardware, attachment: Attachment) -> list[str]:
    """QEMU's, for the machine's cards."""
    tap = "tap,script=no,downscript=no"
    if isinstance(attachment, Tap):
        tap += "" if attachment.offload else ",vnet_hdr=off"
        network = f"{tap},id=net,ifname={attachment.interface}"
    else:
        network = f"user,id=net,bootfile={attachment.bootfile}"
    # QEMU's default for this NIC is efi-virtio.rom of the package ipxe-qemu: iPXE for BIOS and for UEFI in one ROM.
    rom = "" if hardware.rom else ",romfile="
    turn = 1 if hardware.program else 0
    speed = ",speed=10000,duplex=full" if hardware.others else ""  # else LACP puts no two cards together
    card = f"virtio-net-pci,netdev=net,mac={hardware.mac},bootindex={turn}{rom}{speed}"
    argv = ["-netdev", network, "-device", card]
    interfaces = attachment.others if isinstance(attachment, Tap) else ()
    for number, (interface, mac) in enumerate(zip(interfaces, hardware.others, strict=True)):
        argv += ["-netdev", f"{tap},id=other{number},ifname={interface}"]
        argv += ["-device", f"virtio-net-pci,netdev=other{number},mac={mac},romfile={speed}"]
    return argv
