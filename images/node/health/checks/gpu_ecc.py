"""Memory errors of GPUs. Source: NVIDIA "GPU Memory Error Management" (row remapping, when a GPU is to be replaced)."""

from collections.abc import Iterator

from ..kept import outgrown
from ..machine import Machine
from ..nvidia import nothing_to_ask, number, query, unread, yes
from ..result import Check, Finding, Result, counted, judged
from ..smi import details, first

_ECC = ("index", "ecc.mode.current", "ecc.errors.uncorrected.volatile.total", "ecc.errors.corrected.volatile.total")
_ROWS = ("gpu_uuid", "remapped_rows.uncorrectable", "remapped_rows.pending", "remapped_rows.failure")
_SRAM = ("Aggregate/SRAM Threshold Exceeded", "ECC Errors/Unrepairable Memory")
_REPAIRS = ("ECC Errors/Channel Repair Pending", "ECC Errors/TPC Repair Pending")
_RESET = "reset the GPU (a restart does)"
_REPLACE = "the GPU is to be replaced"


def look(machine: Machine) -> Result:
    """Of each GPU: errors that were not corrected since the driver started, rows that wait to be remapped or could not
    be, NVIDIA's own threshold of its caches, corrected errors that grow."""
    if nothing := nothing_to_ask(machine):
        return nothing
    ecc = query(machine, _ECC)
    rows = query(machine, _ROWS, "remapped-rows")
    told = details(machine)
    findings = [*unread(machine, ecc, _ECC), *unread(machine, rows, _ROWS), *unread(machine, told, (*_SRAM, *_REPAIRS))]
    if not findings and all(row["ecc.mode.current"] == "" for row in ecc):
        return Result("absent", f"{counted(len(ecc), 'GPU')} without ECC")
    findings += [*_errors(ecc), *_remapped(rows), *_sram(told)]
    corrected = {row["index"]: number(row[_ECC[3]]) for row in ecc}
    counts = {(f"GPU {at}", "gpu_ecc_corrected"): count for at, count in corrected.items() if count is not None}
    findings += outgrown(machine, CHECK.name, counts, "see whether it goes on; then have the GPU looked at")
    facts = {
        "uncorrected": [number(row[_ECC[2]]) for row in ecc],
        "corrected": list(corrected.values()),
        "remapped": [number(row["remapped_rows.uncorrectable"]) for row in rows],
    }
    return judged(
        findings, Result("pass", f"{counted(len(ecc), 'GPU')} without uncorrected memory errors", facts=facts)
    )


def _errors(ecc: list[dict[str, str]]) -> Iterator[Finding]:
    for row in ecc:
        at, mode, uncorrected = row["index"], row["ecc.mode.current"], row[_ECC[2]]
        if mode == "Disabled":
            yield Finding("warn", f"ECC is off on GPU {at}", "`nvidia-smi -e 1`, then a restart")
        if number(uncorrected):
            text = f"GPU {at} has {uncorrected} memory errors that ECC could not correct"
            yield Finding("fail", text, "drain the node and reset the GPU (a restart does); again: replace it")
        elif mode == "Enabled" and uncorrected == "":
            yield Finding("unknown", f"GPU {at} does not count memory errors", "see `nvidia-smi -q -d ECC`")


def _remapped(rows: list[dict[str, str]]) -> Iterator[Finding]:
    for at, row in enumerate(rows):
        if yes(row["remapped_rows.failure"]):
            yield Finding("fail", f"rows could not be remapped on GPU {at}", _REPLACE)
        elif yes(row["remapped_rows.pending"]):
            yield Finding("warn", f"rows wait to be remapped on GPU {at}", _RESET)


def _sram(told: list[dict[str, str]]) -> Iterator[Finding]:
    for at, row in enumerate(told):
        if row.get(_SRAM[0]) == "Yes":
            yield Finding("fail", f"GPU {at} has more SRAM errors than NVIDIA tolerates", _REPLACE)
        if row.get(_SRAM[1]) == "Yes":
            yield Finding("fail", f"GPU {at} has memory that cannot be repaired", _REPLACE)
        if first(row, *(key for key in _REPAIRS if row.get(key) == "Yes")):
            yield Finding("warn", f"memory waits to be repaired on GPU {at}", _RESET)


CHECK = Check("gpu-ecc", "critical", 60, look)
