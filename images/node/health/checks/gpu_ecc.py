"""Memory errors of GPUs. Source: NVIDIA "GPU Memory Error Management" (row remapping, when a GPU is to be replaced)."""

from ..machine import Machine
from ..nvidia import nothing_to_ask, number, query, yes
from ..result import Check, Result, counted, listed

_ECC = ("index", "ecc.mode.current", "ecc.errors.uncorrected.volatile.total", "ecc.errors.corrected.volatile.total")
_ROWS = ("gpu_uuid", "remapped_rows.uncorrectable", "remapped_rows.pending", "remapped_rows.failure")


def look(machine: Machine) -> Result:
    """Errors that were not corrected since the driver started, and rows that wait to be remapped or could not be."""
    if nothing := nothing_to_ask(machine):
        return nothing
    ecc = query(machine, _ECC)
    errors = {row["index"]: number(row["ecc.errors.uncorrected.volatile.total"]) for row in ecc}
    if all(row["ecc.mode.current"] == "" for row in ecc):
        return Result("absent", f"{counted(len(ecc), 'GPU')} without ECC")
    rows = query(machine, _ROWS, "remapped-rows")
    off = [row["index"] for row in ecc if row["ecc.mode.current"] == "Disabled"]
    failed = [str(at) for at, row in enumerate(rows) if yes(row["remapped_rows.failure"])]
    pending = [str(at) for at, row in enumerate(rows) if yes(row["remapped_rows.pending"])]
    facts = {
        "uncorrected": [errors[at] for at in errors],
        "corrected": [number(row["ecc.errors.corrected.volatile.total"]) for row in ecc],
        "remapped": [number(row["remapped_rows.uncorrectable"]) for row in rows],
    }
    bad = [f"GPU {at}: {count}" for at, count in errors.items() if count]
    if failed:
        summary = f"rows could not be remapped on {listed([f'GPU {at}' for at in failed])}"
        return Result("fail", summary, "the GPU is to be replaced", facts)
    if bad:
        summary = f"memory errors that ECC could not correct: {listed(bad)}"
        return Result("fail", summary, "drain the node and reset the GPU (a restart does); again: replace it", facts)
    if pending:
        summary = f"rows wait to be remapped on {listed([f'GPU {at}' for at in pending])}"
        return Result("warn", summary, "reset the GPU (a restart does)", facts)
    if off:
        return Result(
            "warn", f"ECC is off on {listed([f'GPU {at}' for at in off])}", "`nvidia-smi -e 1`, then a restart", facts
        )
    return Result("pass", f"{counted(len(ecc), 'GPU')} without uncorrected memory errors", facts=facts)


CHECK = Check("gpu-ecc", "critical", 60, look)
