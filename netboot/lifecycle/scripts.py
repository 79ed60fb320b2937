"""From decisions to scripts: what a machine in each outcome is told. The rendering itself is `ipxe`'s."""

import zlib

from ipxe import values
from netboot.lifecycle.decide import Boot, Claim, Refused, Unavailable, Unknown
from netboot.lifecycle.snapshot import Snapshot

_REFUSED = {
    "ambiguous": "refused: what this machine says of itself belongs to more than one machine",
    "disabled": "refused: this machine is disabled",
    "architecture": "refused: this machine is of another architecture than declared",
}
_UNAVAILABLE = "cannot tell right now what this machine boots"


def boot_values(decision: Boot, snapshot: Snapshot, retry: tuple[int, int], *, nonce: bool = False) -> values.Boot:
    """The script of a machine that boots; `retry`: least and most seconds before it asks again after a failure;
    `nonce`: a boot window of it is open.

    The wait is spread over machines by their names, so that scripts can be rendered ahead.
    """
    least, most = retry
    return values.Boot(
        url=snapshot.url,
        machine=decision.machine.name,
        image=decision.image.digest,
        kernel=decision.image.kernel.sha256,
        initrd=decision.image.initrd.sha256,
        origins=snapshot.origins,
        arguments=decision.kernel_arguments,
        seconds=least + zlib.crc32(decision.machine.name.encode()) % (most - least + 1),
        nonce=nonce,
    )


def waiting_values(
    decision: Unknown | Refused | Unavailable, claim: Claim, site: str, url: str, seconds: int
) -> values.Waiting:
    """The script of a machine that waits; `seconds`: drawn by the caller from the bounds of this outcome."""
    said = (
        f"MAC {claim.mac or '(none usable)'}",
        f"UUID {claim.uuid or '(none usable)'}",
        f"serial {claim.serial or '(none usable)'}",
        f"architecture {claim.architecture or '(not said)'}",
    )
    return values.Waiting(
        url=url, headline=_headline(decision, site), lines=(*said, *decision.because), seconds=seconds
    )


def _headline(decision: Unknown | Refused | Unavailable, site: str) -> str:
    if isinstance(decision, Unknown):
        return f"this machine is not in the inventory of site {site}"
    if isinstance(decision, Refused):
        return f"{_REFUSED[decision.reason]} ({', '.join(decision.machines)})"
    return _UNAVAILABLE
