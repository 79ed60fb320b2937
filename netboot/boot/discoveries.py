"""Sightings of machines that may not boot here: journalled, at a bounded rate and from bounded memory."""

import logging
from collections import OrderedDict

from netboot.lifecycle.decide import Claim, Refused, Unknown
from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.events import DiscoveryRecord
from netboot.lifecycle.ports import Clock, Journal

log = logging.getLogger(__name__)

REMEMBERED = 16_384
"""Identities not journalled again for a while; about 3 MB."""
AGAIN_MS = 300_000
BURST = 2_000
"""As many unknown machines as one power cut may bring at once."""
PER_SECOND = 50


class Discoveries:
    """Decides which sightings are worth a record."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal, self._clock = journal, clock
        self._recent: OrderedDict[str, int] = OrderedDict()
        self._tokens = float(BURST)
        self._filled_ms = clock.now_ms()
        self.dropped = 0
        """Sightings that were one too many for the rate; the machine asks again, so it has its chance again."""

    async def note(self, decision: Unknown | Refused, claim: Claim, peer: str) -> None:
        """Journal this sighting, unless its like was journalled lately or there are too many. Never fails."""
        now = self._clock.now_ms()
        who = f"{decision.outcome} {claim.mac or claim.uuid or claim.serial or peer}"
        last = self._recent.get(who)
        if last is not None and now - last < AGAIN_MS:
            return
        if not self._take(now):
            self.dropped += 1
            return
        self._recent[who] = now
        self._recent.move_to_end(who)
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)
        try:
            await self._journal.append(_record(decision, claim, peer, now))
        except JournalUnavailableError:
            self._recent.pop(who, None)  # the journal says so in the log; next time

    def _take(self, now: int) -> bool:
        self._tokens = min(BURST, self._tokens + max(0, now - self._filled_ms) * PER_SECOND / 1000)
        self._filled_ms = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def _record(decision: Unknown | Refused, claim: Claim, peer: str, now: int) -> DiscoveryRecord:
    reason = "".join(c if " " <= c <= "~" else "?" for c in decision.because[-1])[:300]
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
