"""One bad thing each that only load shows, to be laid over the machine `hgx-h100`."""

import json
from collections.abc import Callable
from typing import Any

from tests.unit.health.faults import Edit, Fault

MEMORY, CPU, FIO, DCGM, COPY, NCCL = "@load memory", "@load cpu", "fio", "dcgmi diag", "nvbandwidth", "all_reduce_perf"
IB_4 = "ib_write_bw -d mlx5_4"


def edited(change: Callable[[Any], object]) -> Edit:
    """A change of the value in a tool's JSON."""

    def edit(text: str) -> str:
        value = json.loads(text)
        change(value)
        return json.dumps(value)

    return edit


def rates(factor: float, *cpus: range) -> Edit:
    def change(value: Any) -> None:
        for cpu in (str(cpu) for numbers in cpus for cpu in numbers):
            value["rates"][cpu] *= factor

    return edited(change)


def dcgm(category: int, gpu: int, **fields: object) -> Edit:
    def change(value: Any) -> None:
        tests = value["DCGM Diagnostic"]["test_categories"][category]["tests"]
        tests[0]["results"][gpu].update(fields)

    return edited(change)


def warned(words: str, severity: int) -> list[dict[str, object]]:
    return [{"error_category": 7, "error_id": 29, "error_severity": severity, "warning": words}]


def skipped(value: Any) -> None:
    for category in value["DCGM Diagnostic"]["test_categories"][1:]:
        for result in category["tests"][0]["results"]:
            result["status"] = "Skip"


def job(number: int, **fields: object) -> Edit:
    def change(value: Any) -> None:
        of_job = value["jobs"][number]
        of_job["read"]["bw_bytes"] = fields.pop("bw_bytes", of_job["read"]["bw_bytes"])
        of_job.update(fields)

    return edited(change)


def copies(test: int, row: int, column: int, value: str) -> Edit:
    def change(told: Any) -> None:
        told["nvbandwidth"]["testcases"][test]["bandwidth_matrix"][row][column] = value

    return edited(change)


def waived(told: Any) -> None:
    told["nvbandwidth"]["testcases"][2].update(status="Waived", bandwidth_matrix=[])


FAULTS = {
    "memory-slow": Fault(
        "active-memory", "fail", "all CPUs: 350.6 of 500 GB/s", tools={MEMORY: rates(0.5, range(224))}
    ),
    "memory-of-one-node-slow": Fault(
        "active-memory",
        "warn",
        "node1: 241.9 GB/s, its siblings have 350.6",
        tools={MEMORY: rates(0.69, range(56, 112), range(168, 224))},
    ),
    "memory-unmeasured": Fault(
        "active-memory", "unknown", "not measured: MemoryError", tools={MEMORY: lambda _: "Traceback\nMemoryError\n"}
    ),
    "cpu-throttled": Fault(
        "active-cpu", "warn", "CPU 17: 0.535 GB/s, its siblings have 1.07", tools={CPU: rates(0.5, range(17, 18))}
    ),
    "cpus-slow": Fault("active-cpu", "fail", "all CPUs: 119.8 of 200 GB/s", tools={CPU: rates(0.5, range(224))}),
    "disk-slow": Fault(
        "active-disk", "fail", "nvme2n1: 2900 of 6000 MB/s", tools={FIO: job(2, bw_bytes=2_900_000_000)}
    ),
    "disk-unreadable": Fault("active-disk", "fail", "nvme3n1 could not be read", tools={FIO: job(3, error=5)}),
    "dcgm-memory": Fault(
        "active-dcgm",
        "fail",
        "memory of GPU 5: uncorrectable ECC memory error",
        tools={DCGM: dcgm(1, 5, status="Fail", warnings=warned("uncorrectable ECC memory error", 2))},
    ),
    "dcgm-set-up": Fault(
        "active-dcgm",
        "warn",
        "software of GPU 0: Persistence mode for GPU 0 is disabled.",
        tools={DCGM: dcgm(0, 0, status="Fail", warnings=warned("Persistence mode for GPU 0 is disabled.", 5))},
    ),
    "dcgm-passed-with-a-warning": Fault(
        "active-dcgm",
        "warn",
        "memory of GPU 2: Couldn't allocate at least 75% of GPU memory",
        tools={DCGM: dcgm(1, 2, warnings=warned("Couldn't allocate at least 75% of GPU memory", 4))},
    ),
    "dcgm-skipped": Fault(
        "active-dcgm", "unknown", "dcgmi: no test of the hardware ran", tools={DCGM: edited(skipped)}
    ),
    "dcgm-no-engine": Fault(
        "active-dcgm",
        "unknown",
        "dcgmi: Error: unable to establish a connection to the specified host: localhost",
        tools={DCGM: lambda _: "Error: unable to establish a connection to the specified host: localhost\n"},
    ),
    "gpu-copy-slow": Fault(
        "active-gpu-copy", "fail", "from GPU 6: 26.1 of 48 GB/s", tools={COPY: copies(1, 0, 6, "26.10")}
    ),
    "gpu-peer-slow": Fault(
        "active-gpu-copy", "fail", "GPU 1: 214 of 335 GB/s", tools={COPY: copies(2, 1, 3, "214.02")}
    ),
    "gpu-peer-waived": Fault(
        "active-gpu-copy", "unknown", "device_to_device_memcpy_read_ce: Waived", tools={COPY: edited(waived)}
    ),
    "nccl-slow": Fault(
        "active-nccl",
        "fail",
        "8 GPUs: 231.4 of 460 GB/s",
        tools={NCCL: lambda text: text.replace(": 473.155", ": 231.4")},
    ),
    "nccl-wrong": Fault(
        "active-nccl",
        "fail",
        "12 sums are wrong",
        tools={NCCL: lambda text: text.replace("values : 0 OK", "values : 12 FAILED")},
    ),
    "nccl-broken-off": Fault(
        "active-nccl",
        "unknown",
        "all_reduce_perf: host: Test NCCL failure common.cu:1005 'unhandled cuda error'",
        tools={NCCL: lambda _: "host: Test NCCL failure common.cu:1005 'unhandled cuda error'\n"},
    ),
    "nic-slow": Fault(
        "active-nic",
        "fail",
        "mlx5_4/1: 197.3 of 360 Gbit/s (90 % of its rate)",
        tools={IB_4: lambda text: text.replace("394.30", "197.31")},
    ),
    "nic-unmeasured": Fault(
        "active-nic",
        "unknown",
        "mlx5_4/1: not measured: Failed to modify QP to RTR",
        tools={IB_4: lambda _: "Failed to modify QP to RTR\n"},
    ),
}
