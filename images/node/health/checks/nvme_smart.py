"""What NVMe disks say of themselves. Source: NVM Express Base Specification, "SMART / Health Information"; nvme-cli's
`nvme smart-log --output-format=json`."""

import json
from typing import Any

from ..kept import outgrown
from ..machine import CannotTellError, Machine
from ..result import Check, Finding, Result, counted, judged

_HOME = "sys/class/nvme"
_WARNINGS = (
    (0x01, "its spare blocks are used up"),
    (0x02, "its temperature is beyond its limits"),
    (0x04, "it is degraded by errors"),
    (0x08, "it is read-only"),
    (0x10, "its backup of volatile memory failed"),
    (0x20, "its persistent memory is read-only"),
)
_REPLACE = "save what is on it and replace the disk"


def smart(text: str) -> dict[str, Any]:
    """The log as an object; empty: it is none. Never raises."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def look(machine: Machine) -> Result:
    """Of each disk on PCIe: critical warnings and spare blocks fail; wear, and errors of the medium that grow, warn."""
    disks = [disk for disk in machine.names(_HOME) if machine.text(f"{_HOME}/{disk}/transport") in ("pcie", None)]
    if not disks:
        return Result("absent", "no NVMe disk")
    if not machine.has("nvme"):
        raise CannotTellError(
            "this image has no nvme-cli: disks are not asked", "add nvme-cli to the recipe's packages"
        )
    counts: dict[tuple[str, str], int] = {}
    findings: list[Finding] = []
    used = []
    for disk in disks:
        output = machine.run("nvme", "smart-log", "--output-format=json", f"/dev/{disk}")
        log = smart(output.text) if output.status == 0 else {}
        warning = _whole(log, "critical_warning")
        if warning is None:
            findings.append(Finding("unknown", f"{disk} does not tell its health", f"`nvme smart-log /dev/{disk}`"))
            continue
        findings += [Finding("fail", f"{disk}: {words}", _REPLACE) for bit, words in _WARNINGS if warning & bit]
        percent, media = _whole(log, "percent_used"), _whole(log, "media_errors")
        used.append(percent)
        if percent is not None and percent > machine.expected.threshold("nvme_used_percent"):
            findings.append(Finding("warn", f"{disk}: {percent} % of its endurance is used", "plan its replacement"))
        if media is not None:
            counts[disk, "nvme_media_errors"] = media
    findings += outgrown(machine, CHECK.name, counts, _REPLACE)
    return judged(
        findings, Result("pass", f"{counted(len(disks), 'NVMe disk')} well by themselves", facts={"used": used})
    )


def _whole(log: dict[str, Any], name: str) -> int | None:
    """Newer versions of nvme-cli have `critical_warning` as an object with its `value`."""
    value = log.get(name)
    if isinstance(value, dict):
        value = value.get("value")
    return value if type(value) is int else None


CHECK = Check("nvme-smart", "major", 30, look)
