"""NVIDIA's own diagnostics, `dcgmi diag -r 2`: deployment, PCIe, memory of GPUs. About two minutes.

Sources: NVIDIA DCGM User Guide, "DCGM Diagnostics"; dcgm_errors.h, `dcgmErrorSeverity_enum` (5: it can be configured);
the JSON has no schema of NVIDIA's: its forms are those of DCGM 3 (`DCGM GPU Diagnostic`, `gpu_id`) and 4
(`DCGM Diagnostic`, `entity_id`).
"""

from dataclasses import dataclass
from typing import Any

from ..machine import CannotTellError, Machine
from ..nvidia import nothing_to_ask
from ..result import Check, Finding, Result, counted, judged
from .judging import document, items

_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
_CONFIGURED = 5
_REMEDY = "drain the node; DCGM User Guide, Diagnostics, says what a failed test means; `dcgmi diag -r 3` tells more"


@dataclass(frozen=True, slots=True)
class Told:
    """One result: of a test, of one GPU ("" of all) `status` Pass, Fail, Warn or Skip."""

    test: str
    gpu: str
    status: str
    words: str
    configured: bool
    """It is about how the machine is set up, not about its hardware."""


def parsed(text: str) -> list[Told]:
    """All results, in their order; what is of another form is left out. Never raises."""
    told = document(text)
    root = next((told[name] for name in _ROOTS if name in told), None)
    return [
        _result(str(test.get("name", "test"))[:40], result)
        for category in items(root, "test_categories")
        for test in items(category, "tests")
        for result in items(test, "results")
    ]


def _result(test: str, result: dict[str, Any]) -> Told:
    gpu = next((result[name] for name in ("entity_id", "gpu_id", "gpu_ids") if name in result), "")
    warnings = items(result, "warnings")
    words = [str(one.get("warning", "")) for one in warnings]
    if isinstance(result.get("warnings"), str):
        words = [result["warnings"]]
    severities = [one.get("error_severity") for one in warnings]
    configured = bool(severities) and all(severity == _CONFIGURED for severity in severities)
    return Told(test, str(gpu)[:40], str(result.get("status", "")), (words or [""])[0][:120], configured)


def look(machine: Machine) -> Result:
    """What failed fails; what is a matter of configuration warns; where nothing was tested nobody can tell."""
    if nothing := nothing_to_ask(machine):
        return nothing
    output = machine.run("dcgmi", "diag", "-r", "2", "--json")
    told = parsed(output.text)
    counts = {status: sum(one.status.lower() == status for one in told) for status in ("pass", "fail", "warn", "skip")}
    findings = [_finding(one) for one in told if one.status.lower() in ("fail", "warn") or _warned(one)]
    if not findings and (output.status != 0 or not counts["pass"]):
        remedy = "does nv-hostengine run (nvidia-dcgm.service), and does DCGM know these GPUs?"
        words = "every test was skipped" if counts["skip"] else output.last_line[:120]
        raise CannotTellError(f"dcgmi: {words}", remedy)
    hardware = [one for one in told if one.status.lower() == "pass" and one.test.lower() != "software"]
    if not findings and not hardware:
        raise CannotTellError("dcgmi: no test of the hardware ran", "see `dcgmi diag -r 2`")
    return judged(findings, Result("pass", f"{counted(counts['pass'], 'result')} of DCGM in order", facts=dict(counts)))


def _warned(one: Told) -> bool:
    """Some tests pass with a warning: memory that could not be had was not tested (DCGM issue 284)."""
    return one.status.lower() == "pass" and bool(one.words)


def _finding(one: Told) -> Finding:
    where = f"{one.test} of GPU {one.gpu}" if one.gpu else one.test
    text = f"{where}: {one.words or one.status}"
    if one.status.lower() != "fail" or one.configured:
        return Finding("warn", text, "see how the machine is set up: no fault of its hardware")
    return Finding("fail", text, _REMEDY)


CHECK = Check("active-dcgm", "critical", 300, look)
