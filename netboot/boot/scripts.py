"""`/boot.ipxe` and `/v1/boot`: always status 200 and always a script, for firmware knows nothing else."""

import os
import secrets

import ipxe.render
import ipxe.values
from netboot.boot.catalogue import Ready
from netboot.boot.discoveries import Discoveries
from netboot.boot.live import Live
from netboot.boot.metrics import Counters
from netboot.boot.prepared import PreparedResponse
from netboot.config import Config
from netboot.lifecycle import bootid
from netboot.lifecycle.decide import Claim, Refused, Unavailable, Unknown, decide
from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.ports import Clock, Journal
from netboot.lifecycle.scripts import waiting_values

_NO_CLAIM = Claim()
_HEAD = "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n"


class Scripts:
    """Decides, mints, writes down, answers. A script is a claim: recorded, and it alters nothing."""

    def __init__(
        self,
        config: Config,
        key: bytes,
        live: Live,
        journal: Journal,
        clock: Clock,
        counters: Counters,
        discoveries: Discoveries,
    ) -> None:
        self._config, self._mint, self._live = config, bootid.Minter(key).mint, live
        self._random, self._random_at = b"", 0
        self._journal, self._clock, self._counters, self._discoveries = journal, clock, counters, discoveries
        self._heads = {outcome: f"{_HEAD}Netboot-Outcome: {outcome}\r\n" for outcome in counters.scripts}

    def chain(self) -> PreparedResponse:
        """`/boot.ipxe`. Only the wait differs from one to the next, so that a fleet does not come back at once."""
        values = ipxe.values.Chain(
            url=self._config.provisioning.url, seconds=_drawn(self._config.retry.unavailable_seconds)
        )
        return PreparedResponse(_HEAD, ipxe.render.chain_script(values))

    async def boot(self, query: str, peer: str) -> PreparedResponse:
        """`/v1/boot`: the script is sent when its record has survived a power cut."""
        catalogue = self._live.catalogue
        if catalogue is None:
            decision = decide(None, _NO_CLAIM)
            assert isinstance(decision, Unavailable)
            return self._waiting(decision, _NO_CLAIM)
        found = catalogue.find(query)
        if isinstance(found, Ready):
            return await self._served(found, peer)
        decision, claim = found
        if not isinstance(decision, Unavailable):
            await self._discoveries.note(decision, claim, peer)
        return self._waiting(decision, claim)

    def busy(self) -> PreparedResponse:
        """For a machine whose connection is one too many."""
        return self._waiting(
            Unavailable(reason="busy", because=("too many connections at once, or too many from this address",)),
            _NO_CLAIM,
        )

    def broken(self) -> PreparedResponse:
        """For a machine that has met a defect of ours; the log has it."""
        return self._waiting(
            Unavailable(reason="busy", because=("the service met an error of its own; see its log",)), _NO_CLAIM
        )

    async def _served(self, ready: Ready, peer: str) -> PreparedResponse:
        now = self._clock.now_ms()
        boot_id = self._mint(ready.machine, now, self._random4())
        try:
            await self._journal.append_json(now, ready.record(boot_id, now, peer))
        except JournalUnavailableError:
            because = f"machine {ready.machine} may boot, but its boot cannot be written down right now"
            return self._waiting(Unavailable(reason="journal", because=(because,)), _NO_CLAIM)
        self._counters.scripts["boot"] += 1
        return PreparedResponse(self._heads["boot"], ready.script_at(now).fill(boot_id))

    def _random4(self) -> bytes:
        """From a stock: asking the kernel gives up the interpreter's lock, and for four bytes that is dear."""
        at = self._random_at
        if at >= len(self._random):
            self._random, at = os.urandom(4096), 0
        self._random_at = at + 4
        return self._random[at : at + 4]

    def _waiting(self, decision: Unknown | Refused | Unavailable, claim: Claim) -> PreparedResponse:
        retry = self._config.retry
        bounds = {
            "unknown": retry.unknown_seconds,
            "refused": retry.refused_seconds,
            "unavailable": retry.unavailable_seconds,
        }[decision.outcome]
        catalogue = self._live.catalogue
        url = catalogue.snapshot.url if catalogue is not None else self._config.provisioning.url
        values = waiting_values(decision, claim, self._config.site, url, _drawn(bounds))
        self._counters.scripts[decision.outcome] += 1
        return PreparedResponse(self._heads[decision.outcome], ipxe.render.waiting_script(values))


def _drawn(bounds: tuple[int, int]) -> int:
    """Evenly from [least, most] seconds."""
    least, most = bounds
    return least + secrets.randbelow(most - least + 1)
