"""`/v1/boots/<id>/health`: what a machine should have (GET), and what its checks found (POST). docs/health.md.

Nothing of it is secret, and nothing of it is proven: a report is the word of whoever has the boot's id.
"""

from aiohttp import web

from netboot.boot import answers, bodies
from netboot.boot.limits import connection_of
from netboot.boot.live import Live
from netboot.boot.metrics import Counters
from netboot.boot.queries import machine_and_mac
from netboot.lifecycle.bootid import machine_of_boot
from netboot.lifecycle.decide import View
from netboot.lifecycle.errors import NoSuchBootError, NotReadyError
from netboot.lifecycle.events import HealthRecord
from netboot.lifecycle.health import HealthReport
from netboot.lifecycle.ports import Clock, Journal
from netboot.machines.health import expected_of
from netboot.machines.values import Machine

LONGEST_BODY = 32 * 1024
"""Bytes; a report of a machine with eight GPUs and ten ports has about 8,000."""


class Health:
    """Hands out expectations, takes reports."""

    def __init__(
        self, key: bytes, live: Live, journal: Journal, clock: Clock, counters: Counters, body_seconds: float
    ) -> None:
        self._key, self._live, self._journal = key, live, journal
        self._clock, self._counters, self._body_seconds = clock, counters, body_seconds

    def expected(self, boot_id: str, query: str) -> web.StreamResponse:
        """Answer a machine that asks what it should have, and what time it is.

        Raises:
            NoSuchBootError, NotReadyError: see `netboot.failures`.
        """
        name, mac = machine_and_mac(query)
        view = self._view()
        machine = self._machine(view, boot_id, name, mac)
        expected = expected_of(view.profiles[machine.profile].health, machine.health)
        said = expected.model_dump(mode="json", exclude_defaults=True)
        return answers.document(200, {"schema": 1, "now_ms": self._clock.now_ms(), "expected": said})

    async def reported(self, request: web.BaseRequest, boot_id: str) -> web.StreamResponse:
        """Answer a machine's report: 204 when it is durable.

        Raises:
            BadClaimError, NoSuchBootError, NotReadyError, JournalUnavailableError: see `netboot.failures`.
        """
        body = await bodies.taken(request, LONGEST_BODY, self._body_seconds, "a health report")
        if isinstance(body, web.Response):
            self.count_refused()
            return body
        report = bodies.parsed(body, HealthReport, "a health report")
        machine = self._machine(self._view(), boot_id, report.machine, report.mac)
        record = HealthRecord(
            at_ms=self._clock.now_ms(),
            boot=boot_id,
            machine=machine.name,
            peer=connection_of(request).peer,
            report=report,
        )
        await self._journal.append_json(record.at_ms, record.model_dump_json(by_alias=True))
        self._counters.health["accepted"] += 1
        return answers.empty(204)

    def count_refused(self) -> None:
        """A report was not one, or of no boot of that machine."""
        self._counters.health["refused"] += 1

    def _view(self) -> View:
        catalogue = self._live.catalogue
        if catalogue is None:
            raise NotReadyError("nothing has been published yet")
        return catalogue.view

    def _machine(self, view: View, boot_id: str, name: str | None, mac: str | None) -> Machine:
        machine = machine_of_boot(view.index, self._key, boot_id, name, mac)
        if machine is None:
            raise NoSuchBootError("no such boot of this machine")
        return machine
