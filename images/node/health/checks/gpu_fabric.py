"""NVSwitches, the fabric manager, which must be of the very driver's version, and each GPU's place in the fabric.

Source: NVIDIA "Fabric Manager for NVIDIA NVSwitch Systems User Guide" (version match; CUDA fails until it has run;
`fabric.state` Completed and `fabric.status` Success).
"""

import re
from typing import Any

from ..machine import Machine
from ..nvidia import UnknownFieldError, query, unread
from ..pci import devices
from ..result import Check, Result, counted, judged, listed

_VERSION = re.compile(r"\b(\d{3,4}\.\d{1,4}(?:\.\d{1,4})?)\b", re.ASCII)
_FABRIC = re.compile(r"Fabric Manager version is\s*:\s*(\d{3,4}\.\d{1,4}(?:\.\d{1,4})?)", re.ASCII)
_UNIT = "nvidia-fabricmanager.service"


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
    """Whether it is there, of the right version, and running: where there are NVSwitches, or should be."""
    switches, expected = sum(device.is_nvswitch for device in devices(machine)), machine.expected.nvswitches
    if expected is not None and switches < expected:
        summary = f"{counted(expected, 'NVSwitch', 'NVSwitches')} expected, {switches or 'none'} on the PCI bus"
        return Result("fail", summary, "a power cycle, then the baseboard", {"nvswitches": switches})
    if not switches:
        return Result("absent", "no NVSwitch is on the PCI bus, and none is expected", facts={"nvswitches": 0})
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


def _registered(machine: Machine, facts: dict[str, Any]) -> Result | None:
    """What is wrong with the GPUs' places in the fabric; None: nothing, or this driver does not tell of them."""
    try:
        rows = query(machine, ("index", "fabric.state", "fabric.status"))
    except UnknownFieldError:
        return None
    if broken := unread(machine, rows, ("fabric.state", "fabric.status")):
        return judged(broken, Result("pass", "", facts=facts))
    states = {row["index"]: f"{row['fabric.state']} {row['fabric.status']}".strip() for row in rows}
    facts["fabric"] = list(states.values())
    wrong = [f"GPU {at}: {state}" for at, state in states.items() if state not in ("", "Completed Success")]
    if not wrong:
        return None
    summary = f"GPUs that are not in the fabric: {listed(wrong)}"
    if all(state in ("", "Completed Success", "In Progress") for state in states.values()):
        return Result("warn", summary, "wait: it is being set up; look again with the next run", facts)
    return Result("fail", summary, f"see `journalctl -u {_UNIT}`; restart it while no program uses a GPU", facts)


def _well(switches: int, driver: str, facts: dict[str, Any]) -> Result:
    return Result("pass", f"{counted(switches, 'NVSwitch', 'NVSwitches')}, all of version {driver}", facts=facts)


CHECK = Check("gpu-fabric", "critical", 60, look)
