"""Discovery: an unknown machine boots an image that says what the machine is made of, where the site wants that.

Its boot id is of no machine but of a MAC and the address that was served (a text that is no machine's name), so
whatever asks for a machine by a boot id, join too, finds none; and only who was given it reports for that MAC.
"""

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

import ipxe.render
import ipxe.values
from images.values.kernel_arguments import command_line
from netboot.boot import answers, requests
from netboot.boot.answers import PreparedResponse
from netboot.boot.discoveries import Discoveries
from netboot.boot.ingest import Ingest, network
from netboot.boot.live import Live
from netboot.boot.metrics import Counters
from netboot.boot.waiting import HEAD, Waiting
from netboot.config_nodes import Discovery
from netboot.connections import connection_of
from netboot.lifecycle import bootid
from netboot.lifecycle.claims import parse_claim
from netboot.lifecycle.decide import Claim, Refused, Unavailable, Unknown, decide
from netboot.lifecycle.errors import NoSuchBootError, NotReadyError, TooOftenError
from netboot.lifecycle.events import HardwareRecord
from netboot.lifecycle.hardware import KEPT_MS, LONGEST_REPORT, MOST_MACHINES, HardwareReport
from netboot.lifecycle.ports import Clock, Journal
from netboot.lifecycle.snapshot import ImageFacts, Snapshot

log = logging.getLogger(__name__)

ARGUMENTS = ("netboot.discovery=1", "systemd.unit=netboot-discovery.target")
"""What makes a boot one that only says what the machine is made of; the last of two counts."""
OLDEST_MS = 86_400_000
"""A machine that has waited for a day is told that its boot is unknown, and asks anew."""


def share(index: int, of: int) -> int:
    """How many machines the boot server of that number discovers at once, so that all together do `MOST_MACHINES`."""
    return MOST_MACHINES // of + (index < MOST_MACHINES % of)


def _subject(mac: str, peer: str) -> str:
    """What the boot id of a discovery is of."""
    return f"discovery {mac} {network(peer)}"


class Strangers:
    """What machines get that do not boot now. `discovery` None: each waits."""

    def __init__(self, discoveries: Discoveries, waiting: Waiting, discovering: "Discovering") -> None:
        self._discoveries, self._waiting, self._discovering = discoveries, waiting, discovering

    async def script(self, decision: Unknown | Refused | Unavailable, claim: Claim, peer: str) -> PreparedResponse:
        """Note who asked, and answer."""
        await self._discoveries.note(decision, claim, peer)
        if isinstance(decision, Unknown) and claim.mac is not None:
            offered = self._discovering.script(claim, claim.mac, peer)
            if isinstance(offered, PreparedResponse):
                return offered
            decision = decision.model_copy(update={"because": (*decision.because, *offered)})
        return self._waiting.script(decision, claim)


@dataclass(slots=True)
class Discovering:
    """Scripts of discovery, reports, and whether a machine is declared by now. `settings` None: there is none;
    `most`: machines at once; `key()`: of boot ids; `retry`: least and most seconds before a machine asks again."""

    settings: Discovery | None
    most: int
    key: Callable[[], bytes]
    live: Live[Any]
    journal: Journal
    clock: Clock
    counters: Counters
    ingest: Ingest
    body_seconds: float
    retry: tuple[int, int]
    _until: dict[str, int] = field(default_factory=dict)
    """MAC → until when it is one of those that are discovered."""

    def script(self, claim: Claim, mac: str, peer: str) -> PreparedResponse | tuple[str, ...]:
        """The script for a machine that nobody knows; or why it gets none, in sentences (none: no discovery)."""
        if self.settings is None or self.live.catalogue is None:
            return ()
        snapshot, channel = self.live.catalogue.snapshot, self.settings.channel
        image = snapshot.images.get(snapshot.channels.get(channel) or "")
        if image is None:
            return (f"it is not discovered: channel {channel} (`discovery` of the configuration) has no usable image",)
        if claim.architecture not in (None, image.architecture):
            return (f"it is not discovered: image {image.name} of channel {channel} is for {image.architecture}",)
        now = self.clock.now_ms()
        if not self.begins(mac, now):
            return ("it is not discovered yet: as many machines are as may be at once",)
        try:
            script = ipxe.render.prepare(self._values(snapshot, image, mac))
        except ValueError as error:
            return (f"it is not discovered: {error}",)
        boot_id = bootid.mint(self.key(), _subject(mac, peer), image.digest, now, secrets.randbelow(64))
        self.counters.scripts["discovery"] += 1
        return PreparedResponse(f"{HEAD}Netboot-Outcome: discovery\r\n", script.fill(boot_id))

    async def report(self, request: web.BaseRequest, boot_id: str) -> web.StreamResponse:
        """`POST /v1/boots/<id>/discovery`: 204 when the report is durable, or of no use any more.

        Raises:
            BadClaimError, NoSuchBootError, TooOftenError, JournalUnavailableError: see `netboot.failures`.
        """
        connection, counted = connection_of(request), self.counters.discovery
        peer = connection.peer
        body = await requests.taken(request, LONGEST_REPORT, self.body_seconds, "a report of hardware")
        if isinstance(body, web.Response):
            counted["refused"] += 1
            return body
        await self.ingest.turns.begin(peer, connection.gone)
        try:
            report = requests.parsed(body, HardwareReport, "a report of hardware")
            self._require(boot_id, report.mac, peer)
            record = HardwareRecord(at_ms=self.clock.now_ms(), boot=boot_id, peer=peer, report=report)
            within = self.ingest.take(boot_id, peer, len(body))
            if within and not self._is_declared(report.mac):  # it would take the place of another that is not
                await self.journal.append_json(record.at_ms, record.model_dump_json())
        finally:
            self.ingest.turns.end(peer)
        if not within:
            await self.ingest.hold()
            raise TooOftenError("more than is written down of reports of hardware in a short time")
        counted["accepted"] += 1
        return answers.empty(204)

    def declared(self, boot_id: str, query: str, peer: str) -> web.StreamResponse:
        """`GET /v1/boots/<id>/discovery`: whether the inventory knows the machine by now, which then reboots.

        Raises:
            NoSuchBootError, NotReadyError: see `netboot.failures`.
        """
        claim = parse_claim(query)
        self._require(boot_id, claim.mac or "", peer)
        if self.live.catalogue is None:
            raise NotReadyError("nothing has been published yet")
        declared = not isinstance(decide(self.live.catalogue.view, claim), Unknown)
        return answers.document(200, {"schema": 1, "declared": declared})

    def _require(self, boot_id: str, mac: str, peer: str) -> None:
        of_it = self.settings is not None and bootid.belongs(self.key(), boot_id, _subject(mac, peer))
        if not of_it or self.clock.now_ms() - bootid.minted_ms(boot_id) > OLDEST_MS:
            raise NoSuchBootError("no machine of that MAC and address is discovered by this boot")

    def begins(self, mac: str, now: int) -> bool:
        """Whether it may be discovered; those that are declared by now, or were not heard of for long, make room."""
        self._until = {
            each: until
            for each, until in self._until.items()
            if now < until <= now + KEPT_MS and not self._is_declared(each)
        }
        if mac not in self._until and len(self._until) >= self.most:
            return False
        self._until[mac] = now + KEPT_MS
        return True

    def _is_declared(self, mac: str) -> bool:
        return self.live.catalogue is not None and self.live.catalogue.view.index.by_mac(mac) is not None

    def _values(self, snapshot: Snapshot, image: ImageFacts, mac: str) -> ipxe.values.Boot:
        assert self.settings is not None
        said = command_line(image.kernel_arguments, self.settings.kernel_arguments, image.architecture)
        least, most = self.retry
        return ipxe.values.Boot(
            url=snapshot.url,
            machine=f"discovery-{mac.replace(':', '-')}",
            image=image.digest,
            kernel=image.kernel.sha256,
            initrd=image.initrd.sha256,
            origins=(snapshot.origins,),
            kernel_from=snapshot.url,
            arguments=(*(word for word in said if not word.startswith("systemd.unit=")), *ARGUMENTS),
            seconds=least + secrets.randbelow(most - least + 1),
        )
