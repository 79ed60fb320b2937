"""SXid messages of NVSwitches of this boot."""

from ..kept import heard
from ..machine import Machine
from ..pci import devices
from ..result import Check, Finding, Result, judged
from ..sxid import sxid

_RESET = "drain the node and restart it, which resets GPUs and NVSwitches; if it comes again: the baseboard"
_LOOK = "see appendix D of NVIDIA's Fabric Manager User Guide, and nvlink-errors"


def _key(line: str) -> str | None:
    message = sxid(line)
    return f"{message.switch} {message.code} {message.weight}" if message is not None else None


def look(machine: Machine) -> Result:
    """Fatal ones fail, others warn; those that the hardware corrects are facts."""
    messages = [message for line in heard(machine, CHECK.name, _key) if (message := sxid(line)) is not None]
    if not messages and not any(device.is_nvswitch for device in devices(machine)):
        return Result("absent", "no NVSwitch is on the PCI bus, and no SXid in the kernel log")
    facts = {"sxids": [f"{message.code} of {message.switch}" for message in messages][:32]}
    texts = {f"SXid {message.code} of {message.switch}: {message.text}": message.weight for message in messages}
    findings = [Finding("fail", text, _RESET) for text, weight in texts.items() if weight == "stop"]
    findings += [Finding("warn", text, _LOOK) for text, weight in texts.items() if weight == "look"]
    return judged(findings, Result("pass", "no SXid that matters in the kernel log of this boot", facts=facts))


CHECK = Check("nvswitch-sxid", "critical", 30, look)
