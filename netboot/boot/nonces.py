"""`GET /v1/boots/<id>/nonce`: the second initrd file of a machine that an operator lets join without a TPM.

The boot server cannot make a nonce: sealing is handed to it (docs/decisions/009). What it hands out is a cpio archive
of one file, whole, because firmware differs in what it can wrap: iPXE does so only on BIOS before 2021. It is gzipped,
because the kernel finds a compressed archive wherever the file before it ends, and a plain one only at multiples of
four bytes (Linux init/initramfs.c); a UEFI kernel lays its files side by side without padding.
"""

import base64
import gzip
import logging
from collections.abc import Callable
from typing import Protocol

from aiohttp import web

from images.formats import cpio
from netboot.boot import answers
from netboot.boot.answers import PreparedResponse
from netboot.boot.live import Live
from netboot.boot.requests import machine_and_mac
from netboot.boot.scripts import Catalogue
from netboot.lifecycle.bootid import machine_of_boot
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.snapshot import BootWindow
from netboot.machines.values import Machine

log = logging.getLogger(__name__)

PATH = "etc/netboot/nonce"
MODE = 0o400
_HEAD = "Content-Type: application/octet-stream\r\nCache-Control: no-store\r\n"


class Seal(Protocol):
    """What makes a nonce of who asked. Raises CannotTellError: there is no key that can be used."""

    def __call__(self, *, mac: str, address: str, machine: str, window: str, now_ms: int) -> bytes:
        """The sealed nonce, as the second initrd file holds it; `window`: the id of the boot window."""
        ...


class Nonces:
    """Hands out nonces of open boot windows. `key()`: of boot ids. `seal` None: machines do not join here."""

    def __init__(self, key: Callable[[], bytes], live: Live[Catalogue], clock: Clock, seal: Seal | None) -> None:
        self._key, self._live, self._clock, self._seal = key, live, clock, seal

    def nonce(self, boot_id: str, query: str, peer: str) -> web.StreamResponse:
        """Answer `peer` (an address). 404 for everything but a boot of this machine while its window is open.

        Raises:
            CannotTellError: it cannot be sealed right now.
        """
        name, mac = machine_and_mac(query)
        now = self._clock.now_ms()
        machine = self._machine(boot_id, name, mac)
        window = self._window(machine, now) if machine is not None else None
        if self._seal is None or machine is None or window is None:
            return answers.text(
                404, "no nonce for this boot: no boot window of its machine is open; `netboot token issue` opens one"
            )
        sealed = self._seal(mac=mac, address=peer, machine=machine.name, window=window.id, now_ms=now)
        fields = {"machine": machine.name, "boot": boot_id, "peer": peer, "window": window.id}
        log.info("the nonce of a boot window was fetched", extra={"fields": fields})
        return PreparedResponse(_HEAD, archive(sealed))

    def _machine(self, boot_id: str, name: str, mac: str) -> Machine | None:
        """The machine of the boot, if the card is one of its own; any card, where the inventory declares none."""
        catalogue = self._live.catalogue
        if catalogue is None or not mac:
            return None
        machine = machine_of_boot(catalogue.view.index, self._key(), boot_id, name, mac)
        if machine is None or not machine.enabled or (machine.match.macs and mac not in machine.match.macs):
            return None
        return machine

    def _window(self, machine: Machine, now_ms: int) -> BootWindow | None:
        catalogue = self._live.catalogue
        window = catalogue.snapshot.windows.get(machine.name) if catalogue is not None else None
        return window if window is not None and now_ms < window.until_ms else None


def archive(sealed: bytes) -> bytes:
    """The nonce as an initrd file: below `/`, for its owner alone."""
    text = base64.b64encode(sealed) + b"\n"
    return gzip.compress(cpio.archive([cpio.file(PATH, text, MODE)]), mtime=0)
