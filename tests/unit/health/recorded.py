"""Recorded machines (`fixtures/`) as files below a folder, and tools that say what was recorded."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from images.node.health.expected import Expected
from images.node.health.machine import CannotTellError, Machine, Output

FIXTURES = Path(__file__).parent / "fixtures"
GPUS = {"gpus": 8, "gpu_model": "H100", "nvlinks": 18, "nvswitches": 4, "pcie_width": 16}
PORTS = {"ib_ports": 8, "ib_rate_gbps": 400, "roce_ports": 2}
WHOLE = {**GPUS, **PORTS, "nvme": 4, "memory_gib": 2048, "cpus": 224}
"""What the class of `hgx-h100.tree` has."""


def text(name: str) -> str:
    return (FIXTURES / name).read_text()


def plant(root: Path, name: str, **changes: str | None) -> Path:
    """Write a tree below `root`; `changes`: path → content, or None: it is not there."""
    lines = dict(line.split(" = ", 1) for line in text(name).splitlines() if line and not line.startswith("#"))
    files = {path: content for line in lines.items() for path, content in _each(*line)}
    for path, content in (files | changes).items():
        if content is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content + "\n")
    return root


def _each(path: str, content: str) -> list[tuple[str, str]]:
    match = re.search(r"\{(\d+)\.\.(\d+)\}", path)
    if match is None:
        return [(path, content)]
    numbers = map(str, range(int(match[1]), int(match[2]) + 1))
    return [(path.replace(match[0], number), re.sub(r"\{\d+\.\.\d+\}", number, content)) for number in numbers]


@dataclass(frozen=True, slots=True)
class Told(Machine):
    """A machine whose tools say what they are told to: by the beginning of the command line."""

    tools: dict[str, Output] = field(default_factory=dict)

    def run(self, *argv: str) -> Output:
        line = " ".join(argv)
        for beginning, said in self.tools.items():
            if line.startswith(beginning):
                return said
        raise CannotTellError(f"this image has no {argv[0]}", "build an image with the feature that brings it")


def links(gpus: int, count: int, active: int) -> str:
    """`nvidia-smi nvlink --status` of several GPUs, in the recorded form."""
    rows = ["26.562 GB/s" if at < active else "<inactive>" for at in range(count)]
    each = "".join(f"\t Link {at}: {said}\n" for at, said in enumerate(rows))
    return "".join(f"GPU {at}: NVIDIA H100 80GB HBM3 (UUID: GPU-{at:08x})\n{each}" for at in range(gpus))


TOOLS = {
    "nvidia-smi --query-gpu=index,uuid": Output(0, text("nvidia-smi-uuid.csv")),
    "nvidia-smi --query-gpu=index,ecc": Output(0, text("nvidia-smi-ecc.csv")),
    "nvidia-smi --query-gpu=index,fabric": Output(0, "".join(f"{at}, Completed, Success\n" for at in range(8))),
    "nvidia-smi --query-remapped-rows": Output(0, text("nvidia-smi-rows.csv")),
    "nvidia-smi nvlink --status": Output(0, links(8, 18, 18)),
    "nv-fabricmanager --version": Output(0, text("fabricmanager.txt")),
    "systemctl is-active": Output(0, "active\n"),
}


def expected(**said: object) -> Expected:
    return Expected(source="service", **said)  # type: ignore[arg-type]
