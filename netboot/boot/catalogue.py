"""One published snapshot, made ready for serving: who gets which script, rendered ahead but for the boot id.

A catalogue never changes but for its memory of what it has rendered; a new snapshot is a new one, swapped whole.
"""

import json
from dataclasses import dataclass

import ipxe.render
from netboot.lifecycle.claims import parse_claim
from netboot.lifecycle.decide import Boot, Claim, Refused, Unavailable, Unknown, View, decide
from netboot.lifecycle.events import ScriptRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.scripts import boot_values
from netboot.lifecycle.snapshot import Snapshot

LONGEST_REMEMBERED = 400
"""Characters of a query; a machine always asks with the same one, and honest ones are shorter."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A machine's script, and its journal record, but for what differs from boot to boot."""

    machine: str
    script: ipxe.render.Prepared
    nonce_script: ipxe.render.Prepared | None
    """The same, fetching a nonce too; until `nonce_until_ms`."""
    nonce_until_ms: int
    record_rest: str
    """The record's JSON from after `boot` up to `peer`'s value."""

    def script_at(self, now_ms: int) -> ipxe.render.Prepared:
        """The script of this moment."""
        if self.nonce_script is None or now_ms >= self.nonce_until_ms:
            return self.script
        return self.nonce_script

    def record(self, boot_id: str, at_ms: int, peer: str) -> str:
        """`ScriptRecord` as JSON. `peer` must need no escaping: an address as `plain_address` makes it."""
        return f'{{"kind":"script","at_ms":{at_ms},"boot":"{boot_id}",{self.record_rest}"{peer}"}}'


class Catalogue:
    """Finds what a query gets. `retry`: least and most seconds before a machine asks again after its script failed."""

    def __init__(self, snapshot: Snapshot, retry: tuple[int, int]) -> None:
        self.view = View.of(snapshot)
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
        ready = self._by_query.get(query)
        if ready is not None:
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
            ready = self._by_machine[key] = Ready(
                decision.machine.name,
                self._script(decision),
                self._script(decision, nonce=True) if window is not None else None,
                window.until_ms if window is not None else 0,
                _record_rest(decision),
            )
        return ready

    def _script(self, decision: Boot, *, nonce: bool = False) -> ipxe.render.Prepared:
        return ipxe.render.prepare(boot_values(decision, self.snapshot, self._retry, nonce=nonce))


def _record_rest(decision: Boot) -> str:
    fields = {
        "machine": decision.machine.name,
        "cluster": decision.machine.cluster,
        "image": decision.image.digest,
        "profile": decision.profile.name,
        "channel": decision.channel,
    }
    assert {"kind", "at_ms", "boot", "peer", *fields} == set(ScriptRecord.model_fields)
    return "".join(f"{json.dumps(name)}:{json.dumps(value)}," for name, value in fields.items()) + '"peer":'
