"""What machines in a boot report, acknowledged when durable; and what they are told to have (docs/health.md).

Nothing of it is secret, and nothing of it is proven: a report is the word of whoever has the boot's id.
"""

from collections.abc import Callable
from typing import TypeVar

from aiohttp import web

from netboot.boot import answers, requests
from netboot.boot.ingest import Ingest
from netboot.boot.live import Live
from netboot.boot.metrics import Counters
from netboot.boot.scripts import Catalogue
from netboot.connections import connection_of
from netboot.lifecycle.bootid import machine_of_boot
from netboot.lifecycle.errors import NoSuchBootError, NotReadyError, TooOftenError
from netboot.lifecycle.events import (
    BootEvent,
    ConsoleRecord,
    ConsoleReport,
    CrashRecord,
    CrashReport,
    EventRecord,
    HealthRecord,
)
from netboot.lifecycle.health import HealthReport
from netboot.lifecycle.ports import Clock, Journal
from netboot.machines.health import expected_of
from netboot.machines.values import Machine

R = TypeVar("R", BootEvent, CrashReport, ConsoleReport, HealthReport)

LONGEST_EVENT = 4096
"""Bytes; an honest event has fewer than 500."""
LONGEST_HEALTH_REPORT = 32 * 1024
"""Bytes; a report of a machine with eight GPUs and ten ports has about 8,000."""
LONGEST_CRASH_REPORT = 40 * 1024
"""Bytes; the text has at most 16 Ki characters, and JSON writes some of them with two."""
LONGEST_CONSOLE_REPORT = 10 * 1024
"""Bytes; of its text there are at most 4 Ki characters."""


class Reports:
    """Takes what machines report, and what we know ourselves of artifacts that were fetched. `key()`: of boot ids."""

    def __init__(
        self,
        key: Callable[[], bytes],
        live: Live[Catalogue],
        journal: Journal,
        clock: Clock,
        counters: Counters,
        ingest: Ingest,
        body_seconds: float,
    ) -> None:
        self._key, self._live, self._journal, self._ingest = key, live, journal, ingest
        self._clock, self._counters, self._body_seconds = clock, counters, body_seconds

    async def event(self, request: web.BaseRequest, boot_id: str) -> web.StreamResponse:
        """`POST /v1/boots/<id>/events`: 204 when the event is durable.

        Raises:
            BadClaimError, NoSuchBootError, NotReadyError, TooOftenError, JournalUnavailableError: see
                `netboot.failures`.
        """

        def record(event: BootEvent, machine: Machine, peer: str) -> EventRecord:
            return EventRecord(
                at_ms=self._clock.now_ms(),
                boot=boot_id,
                machine=machine.name,
                phase=event.phase,
                uptime_ms=event.uptime_ms,
                detail=event.detail,
                peer=peer,
            )

        return await self._take(request, boot_id, BootEvent, LONGEST_EVENT, "an event", self._counters.events, record)

    async def crash(self, request: web.BaseRequest, boot_id: str) -> web.StreamResponse:
        """`POST /v1/boots/<id>/crashes`: 204 when it is durable, and the machine may forget it.

        Raises:
            BadClaimError, NoSuchBootError, NotReadyError, TooOftenError, JournalUnavailableError: see
                `netboot.failures`.
        """
        what, counted = "a crash report", self._counters.events

        def record(report: CrashReport, machine: Machine, peer: str) -> CrashRecord:
            return CrashRecord(
                at_ms=self._clock.now_ms(),
                boot=boot_id,
                machine=machine.name,
                crashed_ms=report.crashed_ms,
                text=report.text,
                peer=peer,
            )

        return await self._take(request, boot_id, CrashReport, LONGEST_CRASH_REPORT, what, counted, record)

    async def console(self, request: web.BaseRequest, boot_id: str) -> web.StreamResponse:
        """`POST /v1/boots/<id>/console`: 204 when it is durable.

        Raises:
            BadClaimError, NoSuchBootError, NotReadyError, TooOftenError, JournalUnavailableError: see
                `netboot.failures`.
        """
        what, counted = "a console report", self._counters.events

        def record(report: ConsoleReport, machine: Machine, peer: str) -> ConsoleRecord:
            return ConsoleRecord(
                at_ms=self._clock.now_ms(),
                boot=boot_id,
                machine=machine.name,
                uptime_ms=report.uptime_ms,
                text=report.text,
                peer=peer,
            )

        return await self._take(request, boot_id, ConsoleReport, LONGEST_CONSOLE_REPORT, what, counted, record)

    async def fetched(self, digest: str, boot_id: str, name: str, peer: str) -> None:
        """A blob went out whole for a boot: a phase, if it is a kernel or initrd and the boot is that machine's.

        Raises:
            JournalUnavailableError: it cannot be written down.
        """
        catalogue = self._live.catalogue
        phase = catalogue.phases.get(digest) if catalogue is not None else None
        if phase is None or catalogue is None:
            return
        machine = machine_of_boot(catalogue.view.index, self._key(), boot_id, name, None)
        if machine is not None and self._ingest.take(boot_id, peer, 0):
            now = self._clock.now_ms()
            await self._journal.append(
                EventRecord(at_ms=now, boot=boot_id, machine=machine.name, phase=phase, detail="", peer=peer)
            )

    def expected(self, boot_id: str, query: str) -> web.StreamResponse:
        """`GET /v1/boots/<id>/health`: what the machine should have, its class, and what time it is.

        Raises:
            NoSuchBootError, NotReadyError: see `netboot.failures`.
        """
        name, mac = requests.machine_and_mac(query)
        catalogue = self._catalogue()
        machine = self._machine(catalogue, boot_id, name, mac)
        expected = expected_of(catalogue.view.profiles[machine.profile].health, machine.health)
        fields = expected.model_dump(mode="json", exclude_defaults=True)
        hardware = catalogue.view.hardware(machine)
        said = {"schema": 1, "now_ms": self._clock.now_ms(), "expected": fields}
        return answers.document(200, said if hardware is None else {**said, "class": hardware})

    async def health(self, request: web.BaseRequest, boot_id: str) -> web.StreamResponse:
        """`POST /v1/boots/<id>/health`: 204 when the report is durable.

        Raises:
            BadClaimError, NoSuchBootError, NotReadyError, TooOftenError, JournalUnavailableError: see
                `netboot.failures`.
        """
        what, counted = "a health report", self._counters.health

        def record(report: HealthReport, machine: Machine, peer: str) -> HealthRecord:
            now = self._clock.now_ms()
            return HealthRecord(at_ms=now, boot=boot_id, machine=machine.name, peer=peer, report=report)

        return await self._take(request, boot_id, HealthReport, LONGEST_HEALTH_REPORT, what, counted, record)

    async def _take(
        self,
        request: web.BaseRequest,
        boot_id: str,
        model: type[R],
        longest: int,
        what: str,
        counted: dict[str, int],
        record: Callable[[R, Machine, str], EventRecord | CrashRecord | ConsoleRecord | HealthRecord],
    ) -> web.Response:
        """Read a report, find the machine whose boot it is of, write it down; the answer, counted."""
        connection = connection_of(request)
        body, peer = await requests.taken(request, longest, self._body_seconds, what), connection.peer
        if isinstance(body, web.Response):
            counted["refused"] += 1
            return body
        await self._ingest.turns.begin(peer, connection.gone)
        try:
            report = requests.parsed(body, model, what)
            made = record(report, self._machine(self._catalogue(), boot_id, report.machine, report.mac), peer)
            within = self._ingest.take(boot_id, peer, len(body))
            if within:
                await self._journal.append_json(made.at_ms, made.model_dump_json(by_alias=True))
        finally:
            self._ingest.turns.end(peer)
        if not within:
            await self._ingest.hold()
            raise TooOftenError(f"more than is written down of {what} in a short time")
        counted["accepted"] += 1
        return answers.empty(204)

    def _catalogue(self) -> Catalogue:
        if self._live.catalogue is None:
            raise NotReadyError("nothing has been published yet")
        return self._live.catalogue

    def _machine(self, catalogue: Catalogue, boot_id: str, name: str | None, mac: str | None) -> Machine:
        machine = machine_of_boot(catalogue.view.index, self._key(), boot_id, name, mac)
        if machine is None:
            raise NoSuchBootError("no such boot of this machine")
        return machine
