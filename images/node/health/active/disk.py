"""Disks, read in order and all at once by fio. Source: fio(1), `--output-format=json`: `bw_bytes`, `error`.

Nothing is written: `--readonly` makes fio itself refuse to.
"""

from ..blocks import Disk, disks
from ..machine import CannotTellError, Machine
from ..result import Check, Finding, Result, counted, judged
from .judging import behind, document, items, positive, under

_BOUNDS = ("--runtime=10", "--io_size=16G")
"""Seconds, and bytes of each disk, whatever is reached first."""
_HOW = ("--readonly", "--rw=read", "--bs=1M", "--direct=1", "--ioengine=libaio", "--iodepth=32")
_REMEDY = "see `nvme-smart`, `pcie-speed` and `pcie-width` of it, its temperature, and the kernel log"


def command(names: list[str]) -> list[str]:
    """fio for disks by their names."""
    each = [word for name in names for word in ("--name", name, f"--filename=/dev/{name}")]
    return ["fio", "--output-format=json", "--name", "global", *_HOW, *_BOUNDS, *each]


def parsed(text: str) -> dict[str, float | None]:
    """Disk -> bytes a second; None: it could not be read. Never raises."""
    found: dict[str, float | None] = {}
    for job in items(document(text), "jobs"):
        name, read = job.get("jobname"), job.get("read")
        if isinstance(name, str) and isinstance(read, dict):
            found[name] = positive(read.get("bw_bytes")) if job.get("error") == 0 else None
    return found


def look(machine: Machine) -> Result:
    """Each disk against the class's floor, and against those of its model."""
    present = disks(machine)
    if not present:
        return Result("absent", "no disk is built in")
    output = machine.run(*command([disk.name for disk in present]))
    found = parsed(output.text)
    if not found:
        raise CannotTellError(f"fio: {output.last_line}", "run it by hand: `fio --readonly …`")
    remedy = "see the kernel log; have the disk replaced"
    unread = [disk.name for disk in present if found.get(disk.name) is None]
    findings = [Finding("fail", f"{name} could not be read", remedy) for name in unread]
    rates = {name: rate / 1e6 for name, rate in found.items() if rate is not None}
    findings += under(machine, "disk_read_mbs", rates, _REMEDY)
    for alike in _by_model(present):
        findings += behind("disk_read_mbs", {name: rates[name] for name in alike if name in rates}, _REMEDY)
    facts = {"mbs": [f"{name} {rate:.0f}" for name, rate in rates.items()]}
    return judged(findings, Result("pass", f"{counted(len(rates), 'disk')} read as they should", facts=facts))


def _by_model(present: list[Disk]) -> list[list[str]]:
    models = dict.fromkeys(disk.model for disk in present)
    return [[disk.name for disk in present if disk.model == model] for model in models]


CHECK = Check("active-disk", "major", 60, look)
