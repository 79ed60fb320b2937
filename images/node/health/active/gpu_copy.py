"""Copies between host and GPUs, and between GPUs, by nvbandwidth. Source: NVIDIA nvbandwidth, README and
`json_output.cpp` (`bandwidth_matrix`: texts, "N/A" where nothing was measured)."""

from typing import Any

from ..machine import CannotTellError, Machine
from ..nvidia import nothing_to_ask
from ..result import Check, Finding, Result, counted, judged
from .gpus import product
from .judging import behind, document, items, positive, under

HOST = {"host_to_device_memcpy_ce": "to GPU", "device_to_host_memcpy_ce": "from GPU"}
PEERS = "device_to_device_memcpy_read_ce"
_REMEDY = "see pcie-width and pcie-speed of the GPU, its slot, and ACS and IOMMU in the firmware's set-up"
_PEERS = "see gpu-nvlink, nvlink-errors and gpu-fabric"

Matrix = list[list[float | None]]


def parsed(text: str) -> dict[str, tuple[str, Matrix]]:
    """Test -> its status and GB/s, row by row; None: not measured. Never raises."""
    found = {}
    for case in items(document(text).get("nvbandwidth"), "testcases"):
        rows = case.get("bandwidth_matrix")
        matrix = [[positive(cell) for cell in row] for row in _list(rows) if isinstance(row, list)]
        found[str(case.get("name", ""))[:60]] = (str(case.get("status", ""))[:40], matrix)
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def look(machine: Machine) -> Result:
    """Each GPU against the floor, else against the others."""
    if nothing := nothing_to_ask(machine):
        return nothing
    names, count = product(machine)
    peers = [PEERS] if count > 1 else []
    output = machine.run("nvbandwidth", "-j", "-t", *HOST, *peers)
    found = parsed(output.text)
    if not found:
        raise CannotTellError(
            f"nvbandwidth: {output.last_line}", "run it by hand: `nvbandwidth -t host_to_device_memcpy_ce`"
        )
    findings, slowest = [], {}
    for test, (status, matrix) in found.items():
        reached = _host(HOST[test], matrix) if test in HOST else _peers(matrix)
        if status != "Passed" or not reached:
            findings.append(Finding("unknown", f"{test}: {status or 'no number'}", "see `nvbandwidth`"))
            continue
        if len(reached) < count:
            words = f"{test}: {len(reached)} of {counted(count, 'GPU')} measured"
            findings.append(Finding("unknown", words, "see `nvbandwidth`"))
        name, remedy = ("gpu_copy_gbs", _REMEDY) if test in HOST else ("gpu_peer_gbs", _PEERS)
        findings += under(machine, name, reached, remedy, names) or behind(name, reached, remedy)
        slowest[test] = min(reached.values())
    left = [test for test in (*HOST, *peers) if test not in found]
    findings += [
        Finding("unknown", f"nvbandwidth says nothing of {test}", "is it a version from 0.5 on?") for test in left
    ]
    return judged(findings, Result("pass", f"{counted(count, 'GPU')} copy as they should", facts=slowest))


def _host(way: str, matrix: Matrix) -> dict[str, float]:
    """One row, a column for each GPU."""
    return {f"{way} {at}": rate for row in matrix[:1] for at, rate in enumerate(row) if rate is not None}


def _peers(matrix: Matrix) -> dict[str, float]:
    """Of each GPU the slowest of its row: reading from one other GPU."""
    rows = {f"GPU {at}": [rate for rate in row if rate is not None] for at, row in enumerate(matrix)}
    return {where: min(rates) for where, rates in rows.items() if rates}


CHECK = Check("active-gpu-copy", "major", 120, look)
