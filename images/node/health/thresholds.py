"""How much of what is tolerated, each with its source. docs/health.md has this table; a test compares them.

Those of counters are for an hour. `health.thresholds` of a profile or machine overrides each by its name, `thresholds`
of its class those that are left.
"""

from dataclasses import dataclass
from typing import Any, Literal

_DCGM = "DCGM, `DcgmGpuHardwareLimits.h`"
_IB = "infiniband-diags, `ibqueryerrors(8)`: `error_thresholds`"
_OURS = "ours: no vendor names one"


@dataclass(frozen=True, slots=True)
class Threshold:
    """More than `value` is a finding. `what`: as messages call it."""

    value: float
    what: str
    source: str
    unit: Literal["times", "°C", "%"] = "times"


THRESHOLDS = {
    "gpu_ecc_corrected": Threshold(10, "corrected memory errors", f"{_DCGM}: `DCGM_LIMIT_MAX_SBE_RATE`"),
    "gpu_margin_celsius": Threshold(
        0, "degrees below a GPU's highest working temperature", "NVIDIA NVSentinel, runbook gpu-thermal-margin", "°C"
    ),
    "gpu_celsius": Threshold(
        85, "degrees of a GPU that names no limit of its own", "Meta GCM, `gpu_temperature`", "°C"
    ),
    "gpu_memory_celsius": Threshold(95, "degrees of a GPU's memory that names no limit of its own", _OURS, "°C"),
    "nvlink_replays": Threshold(0, "NVLink replays", f"{_DCGM}: `DCGM_LIMIT_MAX_NVLINK_ERROR`"),
    "nvlink_recoveries": Threshold(0, "NVLink recoveries", f"{_DCGM}: `DCGM_LIMIT_MAX_NVLINK_ERROR`"),
    "nvlink_crc": Threshold(360_000, "NVLink CRC errors", f"{_DCGM}: `DCGM_LIMIT_MAX_NVLINK_CRC_ERROR`, 100 a second"),
    "pcie_replays": Threshold(480, "PCIe replays", f"{_DCGM}: `DCGM_LIMIT_MAX_PCIREPLAY_RATE`, 8 a minute"),
    "pcie_correctable": Threshold(100, "corrected PCIe errors", _OURS),
    "pcie_nonfatal": Threshold(
        0, "uncorrected PCIe errors", "Linux `Documentation/PCI/pcieaer-howto.rst`: data were lost"
    ),
    "pcie_fatal": Threshold(
        0, "fatal PCIe errors", "Linux `Documentation/PCI/pcieaer-howto.rst`: the link is unreliable"
    ),
    "ib_symbol_errors": Threshold(10, "symbol errors", _IB),
    "ib_link_error_recovery": Threshold(10, "link error recoveries", _IB),
    "ib_receive_errors": Threshold(10, "receive errors", _IB),
    "ib_link_integrity": Threshold(10, "local link integrity errors", _IB),
    "ib_buffer_overruns": Threshold(10, "excessive buffer overruns", _IB),
    "ib_link_downed": Threshold(0, "times down", "NVIDIA Health Validation, `rdma_linkflap_fatal`"),
    "memory_corrected": Threshold(10, "corrected memory errors", "mcelog, `mcelog.conf`: `[dimm]`, there in 24 hours"),
    "memory_uncorrected": Threshold(0, "uncorrected memory errors", "mcelog, `mcelog.conf`: `[dimm]`"),
    "nvme_used_percent": Threshold(
        100, "percent of its endurance used", "NVM Express Base Specification, SMART log: Percentage Used", "%"
    ),
    "nvme_media_errors": Threshold(
        0, "media errors", "NVM Express Base Specification, SMART log: Media and Data Integrity Errors"
    ),
}


def understood(said: dict[str, Any]) -> dict[str, float]:
    """Those of a site's thresholds that are known here, and are numbers. Never raises."""
    return {
        name: limit
        for name, limit in said.items()
        if name in THRESHOLDS and type(limit) in (int, float) and 0 <= limit < 2**31
    }
