"""Errors of each NVLink, by how much they grew. Source: nvidia-smi(1), `nvlink --errorcounters`."""

import re

from ..kept import outgrown
from ..machine import Machine
from ..nvidia import nothing_to_ask, refusal, unread
from ..result import Check, Finding, Result, counted, judged

_GPU = re.compile(r"GPU (\d{1,3}):")
_COUNT = re.compile(r"\s*Link (\d{1,3}): (Replay|Recovery|CRC)[^:]{0,20} Errors?: (.*)", re.ASCII)
_LIMITS = {"Replay": "nvlink_replays", "Recovery": "nvlink_recoveries", "CRC": "nvlink_crc"}
_NONE = Result("absent", "no NVLink has error counters, and none is expected")
_REMEDY = "see gpu-xid and nvswitch-sxid; restart the node; on the same link again: the baseboard"


def counters(text: str) -> dict[str, dict[tuple[str, str], str]]:
    """GPU (its index) -> (link, threshold) -> what is said. Never raises."""
    by_gpu: dict[str, dict[tuple[str, str], str]] = {}
    current: dict[tuple[str, str], str] = {}
    for line in text.splitlines():
        if gpu := _GPU.match(line):
            current = by_gpu.setdefault(gpu[1], {})
        elif by_gpu and (match := _COUNT.fullmatch(line)):
            current[match[1], _LIMITS[match[2]]] = match[3].strip()
    return by_gpu


def look(machine: Machine) -> Result:
    """Of each link of each GPU."""
    if nothing := nothing_to_ask(machine):
        return nothing
    output = machine.run("nvidia-smi", "nvlink", "-e")
    if output.status != 0:
        raise refusal(output)
    by_gpu = counters(output.text)
    if not by_gpu and not machine.expected.nvlinks:
        return _NONE
    findings = unread(machine, [{} for _ in by_gpu], ())
    counts = {}
    for gpu, of_gpu in by_gpu.items():
        for (link, limit), value in of_gpu.items():
            if value.isascii() and value.isdigit() and len(value) < 19:
                counts[f"GPU {gpu} link {link}", limit] = int(value)
            elif value not in ("N/A", "Not Supported"):
                findings.append(Finding("fail", f"GPU {gpu} link {link} says {value or 'nothing'}", _REMEDY))
    if not counts and not findings:
        if not machine.expected.nvlinks:
            return _NONE
        findings.append(Finding("unknown", "no NVLink tells its errors", "see `nvidia-smi nvlink -e`"))
    findings += outgrown(machine, CHECK.name, counts, _REMEDY)
    return judged(findings, Result("pass", f"no NVLink error too many, by {counted(len(counts), 'counter')}"))


CHECK = Check("nvlink-errors", "major", 60, look)
