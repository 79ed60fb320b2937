"""Asking the NVIDIA driver through nvidia-smi. Source: `nvidia-smi --help-query-gpu` and its manual page."""

import csv
import re
from collections.abc import Mapping, Sequence

from .machine import CannotTellError, Machine, Output
from .pci import gpus
from .result import Finding, Result, counted, listed

_NOTHING = re.compile(r"\[?(N/A|Not Supported)\]?", re.IGNORECASE)
_UNREAD = re.compile(
    r"\[.*\]|.*(?:ERR!|Unknown Error|requires reset|Insufficient Permissions|is lost|Not Found).*", re.IGNORECASE
)
"""NVML's errors (nvmlErrorString) in the place of a value: in brackets in CSV, bare in `-q`."""
_LOST = re.compile(r"Unable to determine the device handle for (GPU ?[0-9A-Fa-f:.]+)")
_RESET = "drain the node and reset the GPU (a restart does); if it comes again, have it replaced"
_BAD_FIELD = re.compile(r'Field "([^"]*)" is not a valid field')
_LINK = re.compile(r"\s*Link (\d+): (<inactive>|[\d.]+ GB/s)")
_GPU = re.compile(r"GPU (\d+): (.*?)(?: \(UUID: (GPU-[0-9a-fA-F-]+)\))?\s*$")


def nothing_to_ask(machine: Machine) -> Result | None:
    """The result of a check of GPUs where none is on the bus; None: there are some."""
    if gpus(machine):
        return None
    expected = machine.expected.gpus
    if not expected:
        return Result("absent", "no NVIDIA GPU is on the PCI bus, and none is expected")
    return Result(
        "unknown",
        f"{counted(expected, 'GPU')} expected, none on the PCI bus: there is none to ask",
        "see the check gpu-count",
    )


def rows(text: str, fields: Sequence[str]) -> list[dict[str, str]]:
    """The rows of `--format=csv,noheader,nounits` as field → value; lines of another form are left out. Never raises.

    A value that the GPU does not have is "".
    """
    parsed = []
    for line in text.splitlines():
        try:
            values = next(csv.reader([line], skipinitialspace=True), [])
        except csv.Error:
            continue
        if len(values) == len(fields):
            plain = (value_of(value) for value in values)
            parsed.append(dict(zip(fields, plain, strict=True)))
    return parsed


def value_of(text: str) -> str:
    """A value without blanks around it; "": the GPU does not have it. What NVML could not read stays as it says it."""
    return "" if _NOTHING.fullmatch(text.strip()) else text.strip()


def unread(machine: Machine, told: Sequence[Mapping[str, str]], keys: Sequence[str]) -> list[Finding]:
    """GPUs of which something could not be read, and GPUs that did not answer: neither is ever in order."""
    findings = []
    for at, row in enumerate(told):
        said = sorted({value.strip("[]") for key in keys if _UNREAD.fullmatch(value := row.get(key, ""))})
        denied = said == ["Insufficient Permissions"]
        if said:
            remedy = "run the checks as root" if denied else _RESET
            findings.append(Finding("unknown" if denied else "fail", f"GPU {at} says {listed(said)}", remedy))
    on_bus = len(gpus(machine))
    if len(told) < on_bus:
        remedy = "see gpu-uuid, and the kernel log for NVRM"
        findings.append(Finding("fail", f"{len(told)} of {counted(on_bus, 'GPU')} answer", remedy))
    return findings


def query(machine: Machine, fields: Sequence[str], what: str = "gpu") -> list[dict[str, str]]:
    """One row for each GPU that the driver has.

    Raises:
        CannotTellError: no nvidia-smi, no answer of it, or a field that this version does not know.
    """
    output = machine.run("nvidia-smi", f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits")
    parsed = rows(output.text, fields)
    if output.status == 0 and parsed:
        return parsed
    raise refusal(output)


def refusal(output: Output) -> CannotTellError:
    """The error for output that has not what was asked for: cause and remedy, where we know that cause."""
    text = output.text
    if field := _BAD_FIELD.search(text):
        return CannotTellError(f"this nvidia-smi does not know {field[1]}", "it belongs to an older driver")
    if lost := _LOST.search(text):
        return CannotTellError(f"the driver has lost {lost[1].rstrip(':.')}", "power-cycle the machine", "fail")
    if "version mismatch" in text:
        return CannotTellError(
            "the driver in the kernel and its libraries are of different versions",
            "build the image anew: its gates refuse such a pair",
        )
    if "couldn't communicate with the NVIDIA driver" in text:
        return CannotTellError(
            "the NVIDIA driver is not loaded", "see `journal -k` for nvidia: no module for this kernel, or no signature"
        )
    if "No devices were found" in text:
        return CannotTellError(
            "GPUs are on the PCI bus, and the driver could start none of them",
            "see the kernel log for NVRM: RmInitAdapter; then a power cycle, then the board",
        )
    return CannotTellError(f"nvidia-smi: {output.last_line}", "see the kernel log for NVRM")


def links(text: str) -> dict[str, dict[int, bool]]:
    """From `nvidia-smi nvlink --status`: GPU (its index) → link → whether it is active. Never raises."""
    by_gpu: dict[str, dict[int, bool]] = {}
    current: dict[int, bool] = {}
    for line in text.splitlines():
        if gpu := _GPU.match(line):
            current = by_gpu.setdefault(gpu[1], {})
        elif (link := _LINK.match(line)) and by_gpu and len(link[1]) < 4:
            current[int(link[1])] = link[2] != "<inactive>" and not link[2].startswith("0 ")
    return by_gpu


def number(value: str) -> int | None:
    """A count of nvidia-smi; None: the GPU has none."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None


def yes(value: str) -> bool | None:
    """`Yes`/`No`, or 1/0 as some versions have it; None: neither."""
    return {"yes": True, "1": True, "no": False, "0": False}.get(value.lower())
