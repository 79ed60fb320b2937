"""`POST /v1/boots/<id>/events`: what machines report. Acknowledged when durable."""

import asyncio

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from pydantic import ValidationError

from netboot.boot import answers
from netboot.boot.limits import connection_of
from netboot.boot.live import Live
from netboot.boot.metrics import Tally
from netboot.lifecycle import bootid
from netboot.lifecycle.errors import BadClaimError, NoSuchBootError, NotReadyError
from netboot.lifecycle.events import BootEvent, EventRecord
from netboot.lifecycle.ports import Clock, Journal

LONGEST_BODY = 4096
"""Bytes; an honest event has fewer than 500."""


class Events:
    """Takes what machines report, and what we know ourselves of artifacts that were fetched."""

    def __init__(
        self, key: bytes, live: Live, journal: Journal, clock: Clock, tally: Tally, body_seconds: float
    ) -> None:
        self._key, self._live, self._journal = key, live, journal
        self._clock, self._tally, self._body_seconds = clock, tally, body_seconds

    async def reported(self, request: web.BaseRequest, boot_id: str) -> web.StreamResponse:
        """Answer a machine's post: 204 when the event is durable.

        Raises:
            BadClaimError, NoSuchBootError, NotReadyError, JournalUnavailableError: see `netboot.failures`.
        """
        if (request.content_length or 0) > LONGEST_BODY:
            return self._refused(413, f"an event has at most {LONGEST_BODY} bytes")
        try:
            async with asyncio.timeout(self._body_seconds):
                body = await _read(request)
        except TimeoutError:
            return self._refused(408, f"the body did not arrive within {self._body_seconds:g} seconds")
        if body is None:
            return self._refused(413, f"an event has at most {LONGEST_BODY} bytes")
        event = _parsed(body)
        record = self._record(event, boot_id, connection_of(request).peer)
        await self._journal.append(record)
        self._tally.events["accepted"] += 1
        return answers.empty(204)

    async def fetched(self, digest: str, boot_id: str, machine: str, peer: str) -> None:
        """A blob went out whole for a boot: a phase, if it is a kernel or initrd and the boot is that machine's.

        Raises:
            JournalUnavailableError: it cannot be written down.
        """
        catalogue = self._live.catalogue
        phase = catalogue.phases.get(digest) if catalogue is not None else None
        if phase is None or catalogue is None or catalogue.view.index.named(machine) is None:
            return
        if bootid.belongs(self._key, boot_id, machine):
            now = self._clock.now_ms()
            await self._journal.append(
                EventRecord(at_ms=now, boot=boot_id, machine=machine, phase=phase, detail="", peer=peer)
            )

    def _record(self, event: BootEvent, boot_id: str, peer: str) -> EventRecord:
        catalogue = self._live.catalogue
        if catalogue is None:
            raise NotReadyError("nothing has been published yet")
        machine = catalogue.view.index.by_mac(event.mac)
        if machine is None or not bootid.belongs(self._key, boot_id, machine.name):
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
        self._tally.events["refused"] += 1

    def _refused(self, status: int, words: str) -> web.Response:
        self.count_refused()
        answer = answers.text(status, words)
        answer.force_close()
        return answer


async def _read(request: web.BaseRequest) -> bytes | None:
    """The body; None: it is too long (told before more than a buffer of it was taken)."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    body = bytearray()
    try:
        async for piece in request.content.iter_any():
            body += piece
            if len(body) > LONGEST_BODY:
                return None
    except (web.RequestPayloadError, HttpProcessingError):
        raise BadClaimError("not an event: its body is not framed as HTTP has it") from None
    return bytes(body)


def _parsed(body: bytes) -> BootEvent:
    try:
        return BootEvent.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        words = first["msg"].removeprefix("Value error, ")
        raise BadClaimError(f"not an event: {where + ': ' if where else ''}{words}") from None
