"""The BMC's event log, where the image has ipmitool. Source: ipmitool(1), `sel elist`; IPMI 2.0, table 42-3."""

import re

from ..kept import grown
from ..machine import CannotTellError, Machine
from ..result import Check, Finding, Result, counted, judged

_ENTRY = re.compile(r"\s*([0-9a-f]{1,4}) \| ([^|]*)\| ([^|]*)\| ([^|]*)\| ([^|]*)\| Asserted\s*", re.IGNORECASE)
_SEVERE = re.compile(
    r"Uncorrectable|Non-recoverable|Critical going|Failure detected|Power Supply AC lost|PCI (?:P|S)ERR"
    r"|Bus (?:Fatal|Uncorrect)|IERR|Thermal Trip|Predictive Failure|Redundancy Lost|Drive Fault",
    re.IGNORECASE,
)
_REMEDY = "see `ipmitool sel elist`, mend it, and clear the log (`ipmitool sel clear`)"
MOST = 2000


def severe(text: str) -> list[str]:
    """Entries that say that something broke, as `Memory #0x53 Uncorrectable ECC`. Never raises."""
    entries = (_ENTRY.fullmatch(line) for line in text.splitlines()[-MOST:])
    words = (f"{entry[4].strip()} {entry[5].strip()}" for entry in entries if entry)
    return [said[:120] for said in words if _SEVERE.search(said)]


def look(machine: Machine) -> Result:
    """What the log was given since the first run of this boot fails; what was in it before warns: nobody cleared it."""
    if not machine.has("ipmitool") or not machine.names("sys/class/ipmi"):
        return Result("absent", "no ipmitool in this image, or no BMC that the kernel knows (ipmi_si, ipmi_devintf)")
    output = machine.run("ipmitool", "sel", "elist")
    if output.status != 0:
        raise CannotTellError(f"ipmitool: {output.last_line}", "does the BMC answer? `ipmitool mc info`")
    found = severe(output.text)
    counts = {said: found.count(said) for said in dict.fromkeys(found)}
    new = grown(machine, CHECK.name, {**counts, "(all)": len(found)}, resets=False)
    since = [said for said in counts if said in new] or (found[-1:] if "(all)" in new else [])
    if since:
        return judged([Finding("fail", said, _REMEDY) for said in since], Result("pass", ""))
    before = [Finding("warn", f"before this boot: {said}", _REMEDY) for said in counts]
    return judged(
        before, Result("pass", f"nothing severe among {counted(len(output.text.splitlines()), 'entry', 'entries')}")
    )


CHECK = Check("bmc-log", "major", 30, look)
