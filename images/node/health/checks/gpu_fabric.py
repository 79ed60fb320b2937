"""NVSwitches, the fabric manager, which must be of the very driver's version, and each GPU's place in the fabric.

Source: NVIDIA "Fabric Manager for NVIDIA NVSwitch Systems User Guide" (version match; CUDA fails until it has run;
Fabric: State Completed and Status Success). A GPU tells its place wherever it is part of a fabric, also where no switch
is on this machine's bus: HGX B200 has them behind ConnectX cards, GB200 NVL72 in other machines, and some fall off.
"""

import re
from typing import Any

from ..kept import lasting
from ..machine import Machine
from ..nvidia import unread
from ..pci import devices, gpus
from ..result import Check, Result, counted, judged, listed
from ..smi import details

_VERSION = re.compile(r"\b(\d{3,4}\.\d{1,4}(?:\.\d{1,4})?)\b", re.ASCII)
_FABRIC = re.compile(r"Fabric Manager version is\s*:\s*(\d{3,4}\.\d{1,4}(?:\.\d{1,4})?)", re.ASCII)
_UNIT = "nvidia-fabricmanager.service"
_STATE, _STATUS = "Fabric/State", "Fabric/Status"
WAIT_SECONDS = 240.0
"""In Progress for longer is stuck: it takes seconds, and this is less than what lies between two runs."""


def driver_version(machine: Machine) -> str | None:
    """Of the module that is loaded; None: none is."""
    text = machine.text("sys/module/nvidia/version") or machine.text("proc/driver/nvidia/version") or ""
    match = _VERSION.search(text)
    return match[1] if match else None


def fabric_version(text: str) -> str | None:
    """From `nv-fabricmanager --version`; None: it does not say. Never raises."""
    match = _FABRIC.search(text)
    return match[1] if match else None


def look(machine: Machine) -> Result:
    """Whether it is there, of the right version, and running, where there are NVSwitches or should be; and the GPUs'
    places, wherever they tell them."""
    switches, expected = sum(device.is_nvswitch for device in devices(machine)), machine.expected.nvswitches
    if expected is not None and switches < expected:
        summary = f"{counted(expected, 'NVSwitch', 'NVSwitches')} expected, {switches or 'none'} on the PCI bus"
        return Result("fail", summary, "a power cycle, then the baseboard", {"nvswitches": switches})
    if not switches:
        return _without_switches(machine)
    driver, fabric = driver_version(machine), fabric_version(machine.run("nv-fabricmanager", "--version").text)
    facts = {"nvswitches": switches, "driver": driver, "fabric_manager": fabric}
    if driver is None or fabric is None:
        what = "driver is loaded" if driver is None else "version of the fabric manager can be read"
        return Result(
            "fail", f"{switches} NVSwitches, and no {what}", "build an image with the feature nvswitch", facts
        )
    if driver != fabric:
        summary = f"the driver is {driver} and the fabric manager {fabric}: they must be the same"
        return Result("fail", summary, "build the image anew: its gates refuse such a pair", facts)
    state = machine.run("systemctl", "is-active", _UNIT).last_line
    if state != "active":
        summary = f"{switches} NVSwitches, and {_UNIT} is {state}"
        return Result("fail", summary, f"see `journalctl -u {_UNIT}`", {**facts, "unit": state})
    return _registered(machine, facts) or _well(switches, driver, facts)


def _without_switches(machine: Machine) -> Result:
    facts: dict[str, Any] = {"nvswitches": 0}
    if gpus(machine):
        if found := _registered(machine, facts):
            return found
        if count := sum(state != "" for state in facts["fabric"]):
            return Result("pass", f"{counted(count, 'GPU')} in the fabric, no NVSwitch on the PCI bus", facts=facts)
    return Result("absent", "no NVSwitch is on the PCI bus, and none is expected", facts=facts)


def _registered(machine: Machine, facts: dict[str, Any]) -> Result | None:
    """What is wrong with the GPUs' places in the fabric; None: nothing, or neither they nor this driver tell of them.
    `facts` is given the places as `fabric`, "" of a GPU that has none."""
    rows = details(machine)
    states = [f"{row.get(_STATE, '')} {row.get(_STATUS, '')}".strip() for row in rows]
    facts["fabric"] = states
    wrong = [f"GPU {at}: {state}" for at, state in enumerate(states) if state not in ("", "Completed Success")]
    waiting = all(state in ("", "Completed Success", "In Progress") for state in states)
    since = lasting(machine, CHECK.name, holds=bool(wrong) and waiting)
    if any(states) and (broken := unread(machine, rows, (_STATE, _STATUS))):
        return judged(broken, Result("pass", "", facts=facts))
    if not wrong:
        return None
    summary = f"GPUs that are not in the fabric: {listed(wrong)}"
    if waiting and since < WAIT_SECONDS:
        return Result("unknown", summary, "wait: it is being set up; the next run tells", facts)
    where = f"see `journalctl -u {_UNIT}`; restart it while no program uses a GPU"
    if not facts["nvswitches"]:
        where += "; no NVSwitch is on this machine's bus: see that the fabric's own machines run, or count the switches"
    return Result("fail", summary, where, facts)


def _well(switches: int, driver: str, facts: dict[str, Any]) -> Result:
    return Result("pass", f"{counted(switches, 'NVSwitch', 'NVSwitches')}, all of version {driver}", facts=facts)


CHECK = Check("gpu-fabric", "critical", 60, look)
