"""`GET /v1/boots/<id>/nonce`: the second initrd file of a machine that an operator lets join without a TPM.

A boot server makes no nonce: sealing is handed to it (docs/decisions/009). What it hands out is a cpio archive of one
file, whole, because firmware differs in what it can wrap: iPXE does so only on BIOS before 2021. It is gzipped, because
the kernel finds a compressed archive wherever the file before it ends, and a plain one only at multiples of four bytes
(Linux init/initramfs.c); a UEFI kernel lays its files side by side without padding.
"""

import base64
import gzip
import logging
from typing import Protocol

from aiohttp import web

from images.formats import cpio
from netboot.boot import answers
from netboot.boot.live import Live
from netboot.boot.prepared import PreparedResponse
from netboot.boot.queries import machine_and_mac
from netboot.lifecycle import bootid
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.snapshot import BootWindow

log = logging.getLogger(__name__)

PATH = "etc/netboot/nonce"
MODE = 0o400
_HEAD = "Content-Type: application/octet-stream\r\nCache-Control: no-store\r\n"


class Seal(Protocol):
    """What makes a nonce of who asked. Raises CannotTellError: there is no key that can be used."""

    def __call__(self, *, mac: str, address: str, machine: str, window: str, now_ms: int) -> bytes:
        """The sealed nonce."""
        ...


class Nonces:
    """Hands out nonces of open boot windows. `seal` None: machines do not join here."""

    def __init__(self, key: bytes, live: Live, clock: Clock, seal: Seal | None) -> None:
        self._key, self._live, self._clock, self._seal = key, live, clock, seal

    def nonce(self, boot_id: str, query: str, peer: str) -> web.StreamResponse:
        """Answer `peer` (an address). 404 for everything but a boot of this machine while its window is open.

        Raises:
            CannotTellError: it cannot be sealed right now.
        """
        machine, mac = machine_and_mac(query)
        now = self._clock.now_ms()
        window = self._window(machine, mac, now)
        if self._seal is None or window is None or not bootid.belongs(self._key, boot_id, machine):
            return answers.text(404, "no nonce for this boot: no boot window of its machine is open")
        sealed = self._seal(mac=mac, address=peer, machine=machine, window=window.id, now_ms=now)
        fields = {"machine": machine, "boot": boot_id, "peer": peer, "window": window.id}
        log.info("the nonce of a boot window was fetched", extra={"fields": fields})
        return PreparedResponse(_HEAD, archive(sealed))

    def _window(self, machine: str, mac: str, now_ms: int) -> BootWindow | None:
        """The open window of the machine, if it is known by this MAC."""
        catalogue = self._live.catalogue
        if catalogue is None:
            return None
        known, window = catalogue.view.index.by_mac(mac), catalogue.snapshot.windows.get(machine)
        if known is None or known.name != machine or not known.enabled or window is None:
            return None
        return window if now_ms < window.until_ms else None


def archive(sealed: bytes) -> bytes:
    """The nonce as an initrd file: below `/`, for its owner alone."""
    text = base64.b64encode(sealed) + b"\n"
    return gzip.compress(cpio.archive([cpio.file(PATH, text, MODE)]), mtime=0)
