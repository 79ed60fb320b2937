"""Recorded machines (`fixtures/`, README.md there) as files below a folder, and tools that say what was recorded."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from images.node.health.active import TESTS
from images.node.health.checks import CHECKS
from images.node.health.expected import Expected
from images.node.health.hardware import read_hardware
from images.node.health.machine import CannotTellError, Machine, Output
from images.node.health.result import Check, Result

FIXTURES = Path(__file__).parent / "fixtures"
GPUS = {"gpus": 8, "gpu_model": "H100", "nvlinks": 18, "nvswitches": 4, "pcie_width": 16}
PORTS = {"ib_ports": 8, "ib_rate_gbps": 400, "roce_ports": 2, "ports": ("enp64s0f0np0", "enp64s0f1np1")}
CLASS = {
    "name": "hgx-h100",
    "architecture": "amd64",
    "nics": [
        {"name": "compute", "model": "ConnectX-7", "count": 8, "speed_mbps": 400_000},
        {"model": "15b3:a2dc", "count": 2, "speed_mbps": 200_000},
    ],
    "disks": [{"count": 4, "size_bytes": 3840 * 10**9, "model": "MZQL23T8"}],
    "firmware": {"bios": "1.6.2", "bmc": "1.70", "MT_0000000838": "28.36.1010"},
    "active": {"skip": [], "floors": {"memory_gbs": 500, "cpu_gbs": 200, "disk_read_mbs": 6000}},
}
"""The class of `hgx-h100`, as the service tells it."""
HARDWARE = read_hardware(CLASS)[0]
WHOLE = {**GPUS, **PORTS, "nvme": 4, "memory_gib": 2048, "cpus": 224, "hugepages_1g": 16}
"""What is expected of `hgx-h100` beside its class."""
RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


def said(name: str) -> str:
    """What a tool says when something is wrong."""
    return (FIXTURES / "said" / name).read_text()


@cache
def recorded(name: str) -> tuple[dict[str, str], dict[str, Output]]:
    """Files and tools of a machine.txt: `{0..7}` stands for each number of a range, the same one all over the entry."""
    files: dict[str, str] = {}
    tools: dict[str, Output] = {}
    entries = re.split(r"\n(?!\t)", (FIXTURES / name / "machine.txt").read_text().rstrip("\n"))
    for entry in entries:
        head, *below = entry.split("\n")
        text = "\n".join(line.removeprefix("\t") for line in below)
        if head.startswith("$ "):
            line, _, status = head.removeprefix("$ ").rpartition(" = ")
            tools[line] = Output(int(status), text + "\n")
            continue
        path, _, first = head.partition(" =")
        files |= dict(_each(path, text if below else first.strip()))
    return files, tools


def _each(path: str, content: str) -> list[tuple[str, str]]:
    match = RANGE.search(path)
    if match is None:
        return [(path, content)]
    numbers = map(str, range(int(match[1]), int(match[2]) + 1))
    return [(path.replace(match[0], number), RANGE.sub(number, content)) for number in numbers]


def plant(root: Path, name: str, changes: dict[str, str | None] | None = None) -> Path:
    """Write a machine's files below `root`; `changes`: path -> content, or None: it is not there."""
    for path, content in (recorded(name)[0] | (changes or {})).items():
        put(root / path, content)
    return root


def put(path: Path, content: str | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
        if path.parent.exists() and not any(path.parent.iterdir()):
            path.parent.rmdir()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")


@dataclass(frozen=True, slots=True)
class Told(Machine):
    """A machine whose tools say what they are told to, by their command lines."""

    tools: dict[str, Output] = field(default_factory=dict)

    def has(self, tool: str) -> bool:
        return any(line.split()[0] == tool for line in self.tools)

    def run(self, *argv: str) -> Output:
        if not self.has(argv[0]):
            raise CannotTellError(f"this image has no {argv[0]}", "build an image with the feature that brings it")
        return self.tools[" ".join(argv)]

    def run_beside(self, server: Sequence[str], client: Sequence[str]) -> Output:
        assert list(client[: len(server)]) == list(server)
        return self.run(*client)

    def load(self, what: Literal["memory", "cpu"], seconds: float) -> Output:
        return self.run("@load", what)


def told(name: str, tools: dict[str, Output]) -> dict[str, Output]:
    """A machine's tools, some of which say something else: by the beginning of the command line."""
    lines = recorded(name)[1]
    for beginning in tools:
        assert sum(line.startswith(beginning) for line in lines) == 1, beginning
    changed = {line: one for line in lines for beginning, one in tools.items() if line.startswith(beginning)}
    return lines | changed


def look(machine: Machine, checks: Sequence[Check] = CHECKS) -> dict[str, Result]:
    """All checks, or tests, one after the other."""
    found = {}
    for check in checks:
        try:
            found[check.name] = check.look(machine)
        except CannotTellError as error:
            found[check.name] = Result(error.status, str(error), error.remedy)
    return found


def loaded(machine: Machine) -> dict[str, Result]:
    """All tests that load the machine."""
    return look(machine, TESTS)


def words(found: dict[str, Result]) -> dict[str, tuple[str, str]]:
    return {name: (one.status, one.summary) for name, one in found.items()}


def links(gpus: int, count: int, active: int) -> str:
    """`nvidia-smi nvlink --status` of several GPUs, in the recorded form."""
    rows = ["26.562 GB/s" if at < active else "<inactive>" for at in range(count)]
    each = "".join(f"\t Link {at}: {said}\n" for at, said in enumerate(rows))
    return "".join(f"GPU {at}: NVIDIA H100 80GB HBM3 (UUID: GPU-{at:08x})\n{each}" for at in range(gpus))


def expected(**values: object) -> Expected:
    return Expected(source="service", **values)  # type: ignore[arg-type]
