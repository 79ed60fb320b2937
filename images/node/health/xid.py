"""NVIDIA's Xid messages in the kernel log, and what each means for a node.

Source: NVIDIA "Analyzing Xid Errors with the Xid Catalog", column "Immediate Action",
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html; 154: NVML's nvmlDeviceGpuRecoveryAction_t.
"""

import re
from dataclasses import dataclass
from typing import Literal

Weight = Literal["stop", "look", "program"]

_AGAIN = "if it comes again, have the GPU replaced"
_RESET = f"drain the node and reset the GPU (`nvidia-smi -r`, or a restart); {_AGAIN}"
_POWER = f"drain the node and power-cycle it; {_AGAIN}"
_LINKS = "drain the node and reset all its GPUs (a restart does); on the same link again: the baseboard"
ACTIONS: dict[str, tuple[frozenset[int], str]] = {
    "RESET_GPU": (frozenset({46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 156, 158}), _RESET),
    "RESTART_BM": (frozenset({79}), _POWER),
    "CHECK_MECHANICALS": (frozenset({54}), "power it off, and see the GPU's power connectors and its seat"),
    "WORKFLOW_XID_48": (frozenset({48}), f"see gpu-ecc; {_RESET}"),
    "WORKFLOW_NVLINK_ERR": (frozenset({74}), _LINKS),
}
"""Nothing should run on the GPU before that. Action -> codes and remedy."""
NVLINK5 = frozenset(range(144, 151))
"""WORKFLOW_NVLINK5_ERR: the message itself says whether it is fatal."""
RECOVERY = 154
"""The driver's own word of what a GPU needs now: the latest of a GPU counts."""
PROGRAM = frozenset(
    {
        *(8, 11, 13, 14, 25, 31, 32, 37, 38, 39, 40, 41, 43, 44, 45, 60, 63, 66, 67, 68, 69, 70, 71, 72, 75, 76, 77),
        *(80, 82, 83, 84, 85, 86, 88, 89, 92, 94, *range(96, 109), *range(126, 136), 137, 139, 141, 152, 153),
    }
)
"""RESTART_APP and IGNORE: programs' faults mostly; the GPU goes on. Rows that wait to be remapped (63) are gpu-ecc's.
What is in no set is CONTACT_SUPPORT, or newer than this list: to be looked at."""
_XID = re.compile(r"NVRM: Xid \(([^)]{1,64})\): (\d{1,4})\b,? ?(.*)", re.ASCII)
_LOST = re.compile(r"fallen off the bus and is not responding to commands")
_NEEDED = re.compile(r"changed from .{0,60}? to 0x([0-9a-f]{1,4}) \(([^)]{1,40})\)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Xid:
    """One message. `where`: as the driver says it, `PCI:0000:3b:00`."""

    where: str
    code: int
    text: str

    @property
    def weight(self) -> Weight:
        """By NVIDIA's immediate action: stop using the GPU, look into it, or leave it to the program."""
        if self.code == RECOVERY:
            needed = _NEEDED.search(self.text)
            if needed is None:
                return "look"
            return "program" if int(needed[1], 16) == 0 else "stop"
        if self.code in NVLINK5:
            return "stop" if re.search(r"\bFatal\b", self.text) else "look"
        if any(self.code in codes for codes, _ in ACTIONS.values()):
            return "stop"
        return "program" if self.code in PROGRAM else "look"

    @property
    def remedy(self) -> str:
        """What to do about one that stops a GPU."""
        if self.code == RECOVERY and (needed := _NEEDED.search(self.text)):
            return f"drain the node; the driver says what the GPU needs: {needed[2]}"
        return next((remedy for codes, remedy in ACTIONS.values() if self.code in codes), _LINKS)


def xid(line: str) -> Xid | None:
    """The message in one line of a kernel log (dmesg's or /dev/kmsg's); None: it has none. Never raises.

    A GPU that is gone before the driver has it has no number: it is counted as 79, which says the same.
    """
    if match := _XID.search(line):
        return Xid(match[1], int(match[2]), match[3][:120])
    if _LOST.search(line):
        return Xid("unknown", 79, "fallen off the bus and is not responding to commands")
    return None


def xids(lines: list[str]) -> list[Xid]:
    """All in the lines of a kernel log, in order; of Xid 154 the latest of each GPU."""
    messages = [message for line in lines if (message := xid(line)) is not None]
    latest = {message.where: message for message in messages if message.code == RECOVERY}
    return [message for message in messages if message.code != RECOVERY or message is latest[message.where]]
