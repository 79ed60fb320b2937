"""`POST /v1/boots/<id>/events`: what machines report. Acknowledged when durable."""

from aiohttp import web

from netboot.boot import answers, bodies
from netboot.boot.limits import connection_of
from netboot.boot.live import Live
from netboot.boot.metrics import Counters
from netboot.lifecycle.bootid import machine_of_boot
from netboot.lifecycle.errors import NoSuchBootError, NotReadyError
from netboot.lifecycle.events import BootEvent, EventRecord
from netboot.lifecycle.ports import Clock, Journal

LONGEST_BODY = 4096
"""Bytes; an honest event has fewer than 500."""


class Events:
    """Takes what machines report, and what we know ourselves of artifacts that were fetched."""

    def __init__(
        self, key: bytes, live: Live, journal: Journal, clock: Clock, counters: Counters, body_seconds: float
    ) -> None:
        self._key, self._live, self._journal = key, live, journal
        self._clock, self._counters, self._body_seconds = clock, counters, body_seconds

    async def reported(self, request: web.BaseRequest, boot_id: str) -> web.StreamResponse:
        """Answer a machine's post: 204 when the event is durable.

        Raises:
            BadClaimError, NoSuchBootError, NotReadyError, JournalUnavailableError: see `netboot.failures`.
        """
        body = await bodies.taken(request, LONGEST_BODY, self._body_seconds, "an event")
        if isinstance(body, web.Response):
            self.count_refused()
            return body
        event = bodies.parsed(body, BootEvent, "an event")
        record = self._record(event, boot_id, connection_of(request).peer)
        await self._journal.append(record)
        self._counters.events["accepted"] += 1
        return answers.empty(204)

    async def fetched(self, digest: str, boot_id: str, machine: str, peer: str) -> None:
        """A blob went out whole for a boot: a phase, if it is a kernel or initrd and the boot is that machine's.

        Raises:
            JournalUnavailableError: it cannot be written down.
        """
        catalogue = self._live.catalogue
        phase = catalogue.phases.get(digest) if catalogue is not None else None
        if phase is None or catalogue is None:
            return
        if machine_of_boot(catalogue.view.index, self._key, boot_id, machine, None) is not None:
            now = self._clock.now_ms()
            await self._journal.append(
                EventRecord(at_ms=now, boot=boot_id, machine=machine, phase=phase, detail="", peer=peer)
            )

    def _record(self, event: BootEvent, boot_id: str, peer: str) -> EventRecord:
        catalogue = self._live.catalogue
        if catalogue is None:
            raise NotReadyError("nothing has been published yet")
        machine = machine_of_boot(catalogue.view.index, self._key, boot_id, event.machine, event.mac)
        if machine is None:
            raise NoSuchBootError("no such boot of this machine")
        return EventRecord(
            at_ms=self._clock.now_ms(),
            boot=boot_id,
            machine=machine.name,
            phase=event.phase,
            uptime_ms=event.uptime_ms,
            detail=event.detail,
            peer=peer,
        )

    def count_refused(self) -> None:
        """An event was not one, or of no boot of that machine."""
        self._counters.events["refused"] += 1
