"""`/v1/boot`: the script of a machine that boots, rendered ahead but for the boot id, written down, then sent.

Always status 200 and always a script, for firmware knows nothing else; those that wait are in `waiting`.
"""

import asyncio
import json
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import ipxe.render
import ipxe.values
from netboot.boot.answers import PreparedResponse
from netboot.boot.discovery import Strangers
from netboot.boot.ingest import Ingest, Repeats
from netboot.boot.live import Live
from netboot.boot.metrics import Counters
from netboot.boot.waiting import HEAD, Waiting
from netboot.lifecycle import bootid, decided
from netboot.lifecycle.claims import parse_claim
from netboot.lifecycle.decide import Boot, Claim, Refused, Unavailable, Unknown, decide
from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.events import ScriptRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.ports import Clock, Journal
from netboot.lifecycle.published import View
from netboot.lifecycle.snapshot import Snapshot

_HEAD = f"{HEAD}Netboot-Outcome: boot\r\n"
LONGEST_REMEMBERED = 400
"""Characters of a query; a machine always asks with the same one, and honest ones are shorter."""


class Scripts:
    """Decides, mints, writes down, answers. A script is a claim: recorded, it alters nothing. `key()`: of boot ids."""

    def __init__(
        self,
        key: Callable[[], bytes],
        live: "Live[Catalogue]",
        journal: Journal,
        clock: Clock,
        counters: Counters,
        strangers: Strangers,
        ingest: Ingest,
        waiting: Waiting,
    ) -> None:
        self._key, self._live, self._waiting = key, live, waiting
        self._minter = bootid.Minter(key())
        self._journal, self._clock, self._counters, self._strangers = journal, clock, counters, strangers
        self._ingest, self._repeats = ingest, Repeats()
        self._numbers = bootid.numbers()

    async def boot(self, query: str, peer: str, gone: Callable[[], bool]) -> PreparedResponse:
        """The script is sent when its record has survived a power cut.

        Raises:
            ConnectionResetError: whoever asked was `gone()` when it was its turn.
        """
        catalogue = self._live.catalogue
        if catalogue is None:
            decision = decide(None, Claim())
            assert isinstance(decision, Unavailable)
            return self._waiting.script(decision)
        outcome = catalogue.find(query)
        if isinstance(outcome, Ready):
            return await self._served(outcome, peer, gone)
        decision, claim = outcome
        return await self._strangers.script(decision, claim, peer)

    async def _served(self, ready: "Ready", peer: str, gone: Callable[[], bool]) -> PreparedResponse:
        now, machine = self._clock.now_ms(), ready.machine
        if not self._ingest.take((machine, peer), peer, len(ready.record_rest)):
            repeated = self._repeats.boot_id(machine, peer, ready.record_rest, now)
            if repeated is not None:
                await self._ingest.hold()
                self._counters.scripts["boot"] += 1
                self._counters.scripts_repeated += 1
                return PreparedResponse(_HEAD, ready.script_at(now).fill(repeated))
        await self._ingest.turns.begin(peer, gone)
        try:
            written = self._write(ready, peer)
            with suppress(JournalUnavailableError):  # which `_answer` has words for
                await written.done
            return self._answer(written)
        finally:
            self._ingest.turns.end(peer)

    def write(self, query: str, peer: str) -> "Written | None":
        """Begin with `boot`, where a machine asks as it did before and waits for nothing but the disk: when that is
        `done`, `written` has the answer. None: it is not so, and nothing has happened."""
        ready = self._live.catalogue._by_query.get(query) if self._live.catalogue is not None else None
        if ready is None or not self._ingest.turns.begin_at_once(peer):
            return None
        written = None
        try:
            if self._ingest.take((ready.machine, peer), peer, len(ready.record_rest)):
                written = self._write(ready, peer)
        finally:
            if written is None:
                self._ingest.turns.end(peer)
        return written

    def written(self, written: "Written") -> PreparedResponse:
        """The answer to what was begun with `write`."""
        self._ingest.turns.end(written.peer)
        return self._answer(written)

    def _write(self, ready: "Ready", peer: str) -> "Written":
        now = self._clock.now_ms()
        if (key := self._key()) is not self._minter.key:
            self._minter, self._repeats = bootid.Minter(key), Repeats()
        boot_id = self._minter.mint(ready.machine, ready.image, now, next(self._numbers))
        done = self._journal.append_json(now, ready.record(boot_id, now, peer), reserved=True)
        return Written(done, ready, peer, boot_id, now)

    def _answer(self, written: "Written") -> PreparedResponse:
        done, ready, peer, boot_id, at_ms = written
        if done.exception() is not None:
            because = f"machine {ready.machine} may boot, but its boot cannot be written down right now"
            machines = (ready.machine,)
            return self._waiting.script(Unavailable(reason="journal", machines=machines, because=(because,)))
        self._repeats.remember(ready.machine, peer, ready.record_rest, boot_id, at_ms)
        self._counters.scripts["boot"] += 1
        return PreparedResponse(_HEAD, ready.script_at(at_ms).fill(boot_id))


@dataclass(frozen=True, slots=True)
class Ready:
    """A machine's script, and its journal record, but for what differs from boot to boot."""

    machine: str
    image: str
    script: ipxe.render.Prepared
    nonce_script: ipxe.render.Prepared | None
    """The same, fetching a nonce too; until `nonce_until_ms`."""
    nonce_until_ms: int
    record_rest: str
    """The record's JSON from after `boot` up to `peer`'s value."""

    def script_at(self, now_ms: int) -> ipxe.render.Prepared:
        """The script with the nonce while it has one, else the plain one."""
        return self.script if self.nonce_script is None or now_ms >= self.nonce_until_ms else self.nonce_script

    def record(self, boot_id: str, at_ms: int, peer: str) -> str:
        """`ScriptRecord` as JSON. `peer` must need no escaping: an address as `plain_address` makes it."""
        return f'{{"kind":"script","at_ms":{at_ms},"boot":"{boot_id}",{self.record_rest}"{peer}"}}'


class Written(NamedTuple):
    """A script whose record is on its way to the disk; `done` when it is there."""

    done: "asyncio.Future[None]"
    ready: Ready
    peer: str
    boot_id: str
    at_ms: int


class Catalogue:
    """One published snapshot, made ready for serving: finds what a query gets. It never changes but for its memory of
    what it has rendered; a new snapshot is a new one, swapped whole.

    `retry`: least and most seconds before a machine asks again after its script failed.
    """

    def __init__(self, snapshot: Snapshot, retry: tuple[int, int]) -> None:
        self.view = View.of(snapshot)
        self._inputs = decided.Inputs(self.view)
        self.snapshot = snapshot
        self._retry = retry
        self._by_query: dict[str, Ready] = {}
        self._by_machine: dict[tuple[str, str], Ready] = {}
        self._most = 1024 + 2 * len(snapshot.inventory.machines)
        self.phases = {facts.kernel.sha256: Phase.KERNEL_FETCHED for facts in snapshot.images.values()} | {
            facts.initrd.sha256: Phase.INITRD_FETCHED for facts in snapshot.images.values()
        }
        """Blob → the phase that a machine reaches by fetching it whole."""

    def find(self, query: str) -> Ready | tuple[Unknown | Refused | Unavailable, Claim]:
        """What the machine that asks with this query string gets."""
        if (ready := self._by_query.get(query)) is not None:
            return ready
        claim = parse_claim(query)
        decision = decide(self.view, claim)
        if not isinstance(decision, Boot):
            return decision, claim
        ready = self._ready(decision)
        if len(query) <= LONGEST_REMEMBERED:
            if len(self._by_query) >= self._most:  # somebody makes queries up: forget, and start again
                self._by_query.clear()
            self._by_query[query] = ready
        return ready

    def _ready(self, decision: Boot) -> Ready:
        key = (decision.machine.name, decision.image.digest)
        ready = self._by_machine.get(key)
        if ready is None:
            window = self.snapshot.windows.get(decision.machine.name)
            script = self._script(decision)
            ready = self._by_machine[key] = Ready(
                decision.machine.name,
                decision.image.digest,
                script,
                self._script(decision, nonce=True) if window is not None else None,
                window.until_ms if window is not None else 0,
                _record_rest(decision, self._inputs, script),
            )
        return ready

    def _script(self, decision: Boot, *, nonce: bool = False) -> ipxe.render.Prepared:
        return ipxe.render.prepare(boot_values(decision, self.snapshot, self._retry, nonce=nonce))


def _record_rest(decision: Boot, inputs: decided.Inputs, script: ipxe.render.Prepared) -> str:
    machine, fields = decision.machine, dict[str, str | None]()
    fields |= {"machine": machine.name, "cluster": machine.cluster, "image": decision.image.digest}
    fields |= {"profile": decision.profile.name, "channel": decision.channel}
    fields |= {"decision": inputs.digest(machine, decision.image), "script": decided.digest_of_script(script.fill(""))}
    fields |= {"class_name": machine.class_name, "arguments": decided.arguments_digest(decision.kernel_arguments)}
    assert {"kind", "at_ms", "boot", "peer", *fields} == set(ScriptRecord.model_fields)
    return "".join(f'"{name}":{json.dumps(value)},' for name, value in fields.items() if value is not None) + '"peer":'


def boot_values(decision: Boot, snapshot: Snapshot, retry: tuple[int, int], *, nonce: bool = False) -> ipxe.values.Boot:
    """The script of a machine that boots; `retry`: least and most seconds before it asks again after a failure;
    `nonce`: a boot window of it is open.

    The wait, and which origin brings the kernel, are spread over machines by name: scripts are rendered ahead.
    """
    least, most = retry
    number = zlib.crc32(decision.machine.name.encode())
    nearest = [url for url in decision.origins[0] if url != snapshot.url] or [snapshot.url]
    return ipxe.values.Boot(
        url=snapshot.url,
        machine=decision.machine.name,
        image=decision.image.digest,
        kernel=decision.image.kernel.sha256,
        initrd=decision.image.initrd.sha256,
        origins=decision.origins,
        kernel_from=nearest[number % len(nearest)] if snapshot.kernel_from_origins else snapshot.url,
        arguments=decision.kernel_arguments,
        seconds=least + number % (most - least + 1),
        nonce=nonce,
    )
