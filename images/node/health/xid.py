"""NVIDIA's Xid messages in the kernel log, and what each means for a node.

Source: NVIDIA "Analyzing Xid Errors with the Xid Catalog", column "Immediate Action",
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html.
"""

import re
from dataclasses import dataclass
from typing import Literal

Weight = Literal["stop", "look", "program"]

STOP = frozenset({46, 48, 54, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 156, 158})
"""RESET_GPU, RESTART_BM, CHECK_MECHANICALS and the workflows of 48 and 74: nothing should run there before that."""
PROGRAM = frozenset(
    {
        *(8, 11, 13, 14, 25, 31, 32, 37, 38, 39, 40, 41, 43, 44, 45, 60, 66, 67, 68, 69, 70, 71, 72, 75, 76, 77),
        *(80, 82, 83, 84, 85, 86, 88, 89, *range(96, 109), *range(126, 136), 137, 139, 141, 152, 153),
    }
)
"""RESTART_APP and IGNORE: programs' faults mostly; the GPU goes on. What is in neither set is to be looked at."""
_XID = re.compile(r"NVRM: Xid \(([^)]{1,64})\): (\d{1,4})\b,? ?(.*)", re.ASCII)
_LOST = re.compile(r"fallen off the bus and is not responding to commands")


@dataclass(frozen=True, slots=True)
class Xid:
    """One message. `where`: as the driver says it, `PCI:0000:3b:00`."""

    where: str
    code: int
    text: str

    @property
    def weight(self) -> Weight:
        """By NVIDIA's immediate action: stop using the GPU, look into it, or leave it to the program."""
        if self.code in STOP:
            return "stop"
        return "program" if self.code in PROGRAM else "look"


def xids(text: str) -> list[Xid]:
    """All in a kernel log (dmesg's or /dev/kmsg's lines), in order. Never raises.

    A GPU that is gone before the driver has it has no number: it is counted as 79, which says the same.
    """
    messages = []
    for line in text.splitlines():
        if match := _XID.search(line):
            messages.append(Xid(match[1], int(match[2]), match[3][:120]))
        elif _LOST.search(line):
            messages.append(Xid("unknown", 79, "fallen off the bus and is not responding to commands"))
    return messages
