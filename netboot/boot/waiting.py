"""Scripts of machines that do not boot now: the first one, which asks for the machine's own, and those that wait.

Nobody is sent away: each says on the console why, waits, and asks again.
"""

import secrets
from typing import Any

import ipxe.render
import ipxe.values
from netboot.boot.answers import PreparedResponse
from netboot.boot.live import Live
from netboot.boot.metrics import Counters
from netboot.config import Config
from netboot.lifecycle.decide import Claim, Refused, Unavailable, Unknown

HEAD = "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n"
_REFUSED = {
    "ambiguous": "refused: what this machine says of itself belongs to more than one machine",
    "disabled": "refused: this machine is disabled",
    "architecture": "refused: this machine is of another architecture than declared",
    "command-line": "refused: the command line of this machine's kernel is too long",
}
_OVERFULL = "too many connections at once, or too many from this address"
_DEFECT = "the service met an error of its own; see its log"


class Waiting:
    """Each wait is drawn within its bounds (`retry` in netboot.yaml), so that a fleet does not come back at once."""

    def __init__(self, config: Config, live: Live[Any], counters: Counters) -> None:
        self._config, self._live, self._counters = config, live, counters
        self._bounds = {
            "unknown": config.retry.unknown_seconds,
            "refused": config.retry.refused_seconds,
            "unavailable": config.retry.unavailable_seconds,
        }

    def chain(self) -> PreparedResponse:
        """`/boot.ipxe`, the same for everybody but for its wait."""
        seconds = _drawn(self._config.retry.unavailable_seconds)
        values = ipxe.values.Chain(url=self._config.provisioning.url, seconds=seconds)
        return PreparedResponse(HEAD, ipxe.render.chain_script(values))

    def script(self, decision: Unknown | Refused | Unavailable, claim: Claim | None = None) -> PreparedResponse:
        """For a machine that waits; `claim`: what it said of itself, where that was looked at."""
        snapshot, outcome = self._live.snapshot, decision.outcome
        url = snapshot.url if snapshot is not None else self._config.provisioning.url
        seconds = _drawn(self._bounds[outcome])
        values = waiting_values(decision, claim or Claim(), self._config.site, url, seconds)
        self._counters.scripts[outcome] += 1
        return PreparedResponse(f"{HEAD}Netboot-Outcome: {outcome}\r\n", ipxe.render.waiting_script(values))

    def busy(self) -> PreparedResponse:
        """For a machine whose connection is one too many."""
        return self.script(Unavailable(reason="busy", because=(_OVERFULL,)))

    def broken(self) -> PreparedResponse:
        """For a machine that has met a defect of ours; the log has it."""
        return self.script(Unavailable(reason="busy", because=(_DEFECT,)))


def waiting_values(
    decision: Unknown | Refused | Unavailable, claim: Claim, site: str, url: str, seconds: int
) -> ipxe.values.Waiting:
    """What the script of a machine that waits says; `seconds`: drawn by the caller from the bounds of this outcome."""
    claimed = (
        f"MAC {claim.mac or '(none usable)'}",
        f"UUID {claim.uuid or '(none usable)'}",
        f"serial {claim.serial or '(none usable)'}",
        f"architecture {claim.architecture or '(not said)'}",
    )
    lines = (*claimed, *decision.because)
    return ipxe.values.Waiting(url=url, headline=_headline(decision, site), lines=lines, seconds=seconds)


def _headline(decision: Unknown | Refused | Unavailable, site: str) -> str:
    if isinstance(decision, Unknown):
        return f"this machine is not in the inventory of site {site}"
    if isinstance(decision, Refused):
        return f"{_REFUSED[decision.reason]} ({', '.join(decision.machines)})"
    return "cannot tell right now what this machine boots"


def _drawn(bounds: tuple[int, int]) -> int:
    """Evenly from [least, most] seconds."""
    least, most = bounds
    return least + secrets.randbelow(most - least + 1)
