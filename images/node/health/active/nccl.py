"""An all-reduce of all GPUs of this machine, by NVIDIA's nccl-tests. Source: nccl-tests, README and doc/PERFORMANCE.md
(bus bandwidth is comparable whatever the number of GPUs); src/common.cu prints what is read here."""

import re
from dataclasses import dataclass

from ..machine import CannotTellError, Machine
from ..nvidia import nothing_to_ask
from ..result import Check, Finding, Result, judged
from .gpus import product
from .judging import positive, under

_TOOL = "all_reduce_perf"
_SIZE = ("-b", "4G", "-e", "4G", "-n", "20", "-c", "1")
"""Bytes of each GPU, rounds, and that results are looked at."""
_AVERAGE = re.compile(r"^# Avg bus bandwidth\s*: (\d{1,7}(?:\.\d{1,9})?)\s*$", re.MULTILINE | re.ASCII)
_WRONG = re.compile(r"^# Out of bounds values\s*: (\d{1,18}) (OK|FAILED)\s*$", re.MULTILINE | re.ASCII)
_REMEDY = "see gpu-nvlink, nvlink-errors and gpu-fabric; `NCCL_DEBUG=INFO all_reduce_perf …` tells which way it went"


@dataclass(frozen=True, slots=True)
class Measured:
    """Bus bandwidth in GB/s, and how many results were wrong."""

    gbs: float
    wrong: int


def parsed(text: str) -> Measured | None:
    """The two lines at the end; None: one is not there, so the run has not come to its end. Never raises."""
    average, wrong = _AVERAGE.search(text), _WRONG.search(text)
    if average is None or wrong is None:
        return None
    gbs = positive(average[1])
    return None if gbs is None else Measured(gbs, int(wrong[1]))


def look(machine: Machine) -> Result:
    """Against the floor; wrong sums fail however quick they are."""
    if nothing := nothing_to_ask(machine):
        return nothing
    name, count = product(machine)
    if count < 2:
        return Result("absent", "one GPU: there is nothing to reduce")
    output = machine.run(_TOOL, *_SIZE, "-g", str(count))
    found = parsed(output.text)
    if found is None:
        raise CannotTellError(f"{_TOOL}: {output.last_line[:120]}", "run it by hand with `NCCL_DEBUG=INFO`")
    findings = [Finding("fail", f"{found.wrong} sums are wrong", "drain the node; see gpu-ecc, then replace")] * (
        found.wrong > 0
    )
    findings += under(machine, "nccl_gbs", {f"{count} GPUs": found.gbs}, _REMEDY, name)
    return judged(findings, Result("pass", f"{count} GPUs reduce {found.gbs:.4g} GB/s", facts={"gbs": found.gbs}))


CHECK = Check("active-nccl", "critical", 120, look)
