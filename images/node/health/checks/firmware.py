"""Firmware against the least version that the class wants.

Sources: Linux Documentation/ABI/testing/sysfs-class-dmi (`bios_version`), drivers/char/ipmi/ipmi_msghandler.c
(`firmware_revision` of `ipmi_bmc`), Documentation/ABI/stable/sysfs-class-infiniband (`fw_ver`, `board_id`: the PSID).
"""

import re

from ..machine import Machine
from ..rdma import HOME
from ..result import Check, Finding, Result, counted, judged

_VERSION = re.compile(r"[vV]?(\d{1,9}(?:\.\d{1,9}){0,7})", re.ASCII)
_BMC = "sys/bus/platform/devices"


def version(text: str) -> tuple[int, ...] | None:
    """Numbers with dots between them, so that two can be compared; None: it is none. Never raises."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return None
    numbers = [int(number) for number in match[1].split(".")]
    while numbers[-1:] == [0]:  # 1.2 is no older than 1.2.0
        numbers.pop()
    return tuple(numbers)


def look(machine: Machine) -> Result:
    """BIOS, BMC, and network cards by their boards."""
    floors = machine.expected.hardware.firmware
    if not floors:
        return Result("absent", "the class names no firmware")
    findings, facts = [], []
    for what, least in sorted(floors.items()):
        found = _installed(machine, what)
        facts += [f"{where} {said}" for where, said in found.items()]
        if not found:
            text = f"the version of {what} cannot be read"
            findings.append(Finding("unknown", text, "`bios`, `bmc` (needs ipmi_si) and boards (PSID) are known"))
        findings += [finding for where, said in found.items() if (finding := _judge(where, said, least))]
    well = Result("pass", f"{counted(len(facts), 'version')} of firmware, new enough", facts={"firmware": facts})
    return judged(findings, well)


def _judge(where: str, said: str, least: str) -> Finding | None:
    have, want = version(said), version(least)
    if have is None or want is None:
        return Finding("unknown", f"{where} has {said}, which cannot be compared with {least}", "look yourself")
    if have >= want:
        return None
    return Finding("fail", f"{where} has {said}, older than {least}", "update it, then a power cycle")


def _installed(machine: Machine, what: str) -> dict[str, str]:
    """Where -> version."""
    if what == "bios":
        said = {"bios": machine.text("sys/class/dmi/id/bios_version")}
    elif what == "bmc":
        name = next((name for name in machine.names(_BMC) if name.startswith("ipmi_bmc")), "")
        said = {"bmc": machine.text(f"{_BMC}/{name}/firmware_revision")}
    else:
        cards = [card for card in machine.names(HOME) if machine.text(f"{HOME}/{card}/board_id") == what]
        said = {card: machine.text(f"{HOME}/{card}/fw_ver") for card in cards}
    return {where: text for where, text in said.items() if text}


CHECK = Check("firmware", "minor", 30, look)
