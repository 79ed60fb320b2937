"""SXid messages of NVSwitches in the kernel log.

Source: NVIDIA "Fabric Manager for NVIDIA NVSwitch Systems User Guide", appendix D: the driver says `Fatal` or
`Non-fatal`; fatal ones want GPUs and NVSwitches reset, and non-fatal ones of the list are corrected by hardware.
"""

import re
from dataclasses import dataclass
from typing import Literal

CORRECTED = frozenset(
    {
        *(11012, 11021, 11022, 11023, 12021, 12023, 15008, 15011, 19049, 19055, 19057, 19059, 19062, 19065, 19068),
        *(19071, 22013, 24001, 24002, 24003),
    }
)
_SXID = re.compile(r"(nvidia-nvswitch\d{1,3}): SXid \(PCI:[^)]{1,32}\): (\d{1,6}), (.*)", re.ASCII)
_MORE = re.compile(r"Severity \d|Data \{")
"""Lines that follow a message with its registers."""


@dataclass(frozen=True, slots=True)
class SXid:
    """One message of a switch, `nvidia-nvswitch3`."""

    switch: str
    code: int
    text: str

    @property
    def weight(self) -> Literal["stop", "look", "corrected"]:
        """Fatal stops the fabric's part; what is neither corrected nor fatal is to be looked at."""
        if self.text.startswith("Fatal"):
            return "stop"
        return "corrected" if self.code in CORRECTED else "look"


def sxid(line: str) -> SXid | None:
    """The message in one line of a kernel log; None: it has none. Never raises."""
    match = _SXID.search(line)
    if match is None or _MORE.match(match[3]):
        return None
    return SXid(match[1], int(match[2]), match[3][:120])
