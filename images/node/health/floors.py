"""How much a machine must reach in the tests of active/, each with its source. docs/health.md has this table; a test
compares them.

`active.floors` of the class in the inventory overrides each by its name. Where neither says anything, parts of one
machine are compared with each other (`SIBLINGS`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_AZURE = "Azure AzNHC, `conf/nd96isr_h100_v5.conf`, `nd96isr_h200_v5.conf`, `nd96asr_v4.conf`"
_CLASS = "the class: no number is true of all machines"
_H100, _H200, _A100 = "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA A100-SXM4-40GB"
SIBLINGS = 0.8
"""Of the median of its siblings: what has less is to be looked at. Ours: no vendor names one."""


@dataclass(frozen=True, slots=True)
class Floor:
    """Less is a failure. `by_gpu`: what a machine with eight of these GPUs reaches, by nvidia-smi's name of them."""

    what: str
    unit: str
    source: str
    default: float | None = None
    by_gpu: Mapping[str, float] = field(default_factory=dict)


FLOORS = {
    "memory_gbs": Floor("memory of all CPUs at once, read and written", "GB/s", _CLASS),
    "cpu_gbs": Floor("SHA-256 of all CPUs at once", "GB/s", _CLASS),
    "disk_read_mbs": Floor("each disk, read in order", "MB/s", _CLASS),
    "gpu_copy_gbs": Floor(
        "each GPU, from the host and to it",
        "GB/s",
        f"{_AZURE}: `check_gpu_bw`",
        by_gpu={_H100: 48, _H200: 48, _A100: 24},
    ),
    "gpu_peer_gbs": Floor(
        "each GPU, from each other", "GB/s", f"{_AZURE}: `check_gpu_bw`", by_gpu={_H100: 335, _H200: 335}
    ),
    "nccl_gbs": Floor(
        "an all-reduce of all GPUs, bus bandwidth",
        "GB/s",
        f"{_AZURE}: `check_nccl_allreduce`",
        by_gpu={_H100: 460, _H200: 431, _A100: 228},
    ),
    "nic_percent": Floor(
        "each RDMA port to itself, of its rate", "%", f"{_AZURE}: `check_ib_bw_gdr` 360 of 400", default=90
    ),
}
