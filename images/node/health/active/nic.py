"""RDMA ports, each to itself, by perftest's ib_write_bw: the card, its PCIe link and memory, not the cable.

Source: perftest, README and src/perftest_parameters.c (the table's header). From host to host: `netboot fabric check`.
"""

import re

from ..machine import Machine
from ..rdma import Port, physical
from ..result import Check, Finding, Result, counted, judged
from .judging import floor, positive

_TOOL = "ib_write_bw"
_HEADER = re.compile(r"^[ \t]*#bytes[ \t]+#iterations[ \t]+BW peak\[Gb/sec\][ \t]+BW average\[Gb/sec\]", re.MULTILINE)
_ROW = re.compile(
    r"^[ \t]*\d{1,12}[ \t]+\d{1,12}[ \t]+\d{1,9}\.\d{1,9}[ \t]+(\d{1,9}\.\d{1,9})(?:\s|$)", re.MULTILINE | re.ASCII
)
_REMEDY = "see pcie-width and pcie-speed of the card, IOMMU and relaxed ordering in the firmware's set-up"


def parsed(text: str) -> float | None:
    """Gbit/s, the average of the last row; None: there is no table of Gbit/s. Never raises."""
    header = _HEADER.search(text)
    rows = _ROW.findall(text, header.end()) if header else []
    return positive(rows[-1]) if rows else None


def command(port: Port) -> list[str]:
    """The server; the client is the same and an address. Two seconds."""
    return [_TOOL, "-d", port.device, "-i", port.number, "-s", "8388608", "-D", "2", "-F", "--report_gbits"]


def look(machine: Machine) -> Result:
    """Each port that is up, one after the other, against its part of the port's own rate."""
    ports = [port for port in physical(machine) if port.up]
    if not ports:
        return Result("absent", "no RDMA port is up")
    percent = floor(machine, "nic_percent") or 0
    findings, rates = [], {}
    for port in ports:
        output = machine.run_beside(command(port), [*command(port), "127.0.0.1"])
        reached = parsed(output.text)
        if reached is None or output.status != 0:
            words = f"{port.name}: not measured: {output.last_line[:120]}"
            findings.append(Finding("unknown", words, f"run it by hand: `{' '.join(command(port))}`"))
            continue
        rates[port.name] = reached
        least = port.rate_gbps * percent / 100
        if reached < least:
            text = f"{port.name}: {reached:.4g} of {least:g} Gbit/s ({percent:g} % of its rate)"
            findings.append(Finding("fail", text, _REMEDY))
    facts = {"gbps": [f"{name} {rate:.4g}" for name, rate in rates.items()]}
    return judged(
        findings, Result("pass", f"{counted(len(rates), 'RDMA port')} as quick as they should be", facts=facts)
    )


CHECK = Check("active-nic", "major", 120, look)
