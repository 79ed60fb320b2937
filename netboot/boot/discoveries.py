"""Machines that ask and do not boot: journalled, at a bounded rate and from bounded memory."""

import logging
from collections import OrderedDict

from netboot.lifecycle.decide import Claim, Refused, Unavailable, Unknown
from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.events import DiscoveryRecord, WaitRecord
from netboot.lifecycle.ports import Clock, Journal

log = logging.getLogger(__name__)

REMEMBERED = 16_384
"""Identities not journalled again for a while; about 3 MB."""
AGAIN_MS = 300_000
BURST = 2_000
"""As many unknown machines as one power cut may bring at once."""
PER_SECOND = 50


class Bounded:
    """Who was written down lately, and how many more may be."""

    def __init__(self, now: int) -> None:
        self._recent: OrderedDict[str, int] = OrderedDict()
        self._tokens = float(BURST)
        self._filled_ms = now
        self.dropped = 0
        """Those that were one too many for the rate; the machine asks again, so it has its chance again."""

    def take(self, who: str, now: int) -> bool:
        """Whether this is written down: its like was not lately, and there are not too many."""
        last = self._recent.get(who)
        if last is not None and now - last < AGAIN_MS:
            return False
        self._tokens = min(BURST, self._tokens + max(0, now - self._filled_ms) * PER_SECOND / 1000)
        self._filled_ms = now
        if self._tokens < 1:
            self.dropped += 1
            return False
        self._tokens -= 1
        self._recent[who] = now
        self._recent.move_to_end(who)
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)
        return True

    def forget(self, who: str) -> None:
        """It was not written down after all."""
        self._recent.pop(who, None)


class Discoveries:
    """Decides what is worth a record. Machines of the inventory that wait for an image have a bound of their own, and
    take no place of those that may not boot."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal, self._clock = journal, clock
        self.sighted, self.waiting = Bounded(clock.now_ms()), Bounded(clock.now_ms())

    async def note(self, decision: Unknown | Refused | Unavailable, claim: Claim, peer: str) -> None:
        """Journal this, unless its like was journalled lately or there are too many. Never fails."""
        now = self._clock.now_ms()
        if not isinstance(decision, Unavailable):
            bound, who = self.sighted, f"{decision.outcome} {claim.mac or claim.uuid or claim.serial or peer}"
        elif decision.machines:
            bound, who = self.waiting, decision.machines[0]
        else:
            return
        if not bound.take(who, now):
            return
        try:
            await self._journal.append(_record(decision, claim, peer, now))
        except JournalUnavailableError:
            bound.forget(who)  # the journal says so in the log; next time


def _record(
    decision: Unknown | Refused | Unavailable, claim: Claim, peer: str, now: int
) -> DiscoveryRecord | WaitRecord:
    reason = "".join(c if " " <= c <= "~" else "?" for c in decision.because[-1])[:300]
    if isinstance(decision, Unavailable):
        return WaitRecord(at_ms=now, machine=decision.machines[0], reason=reason, peer=peer)
    return DiscoveryRecord(
        at_ms=now,
        outcome=decision.outcome,
        mac=claim.mac,
        uuid=claim.uuid,
        serial=claim.serial,
        architecture=claim.architecture,
        reason=reason,
        peer=peer,
    )
