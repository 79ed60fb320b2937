"""`python3 -m node.health.record FOLDER`: record what the checks see on this machine, so that it can be sent to us.

What is recorded is what the checks ask for, no more: each check is run on a machine that writes down what was read.
FOLDER gets `machine.txt` (files, and what tools said; see `rendered`) and `provenance.json`.
"""

import contextlib
import json
import re
import socket
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..agent.files import put
from .checks import CHECKS
from .machine import CLOCK_IS_HELD, CannotTellError, Machine, Output
from .result import Check, Result
from .runner import run_all
from .scrub import Scrubber

SCHEMA = 1
_KERNEL = re.compile(r"NVRM|nvidia|SXid|mlx5|AER|EDAC|nvme", re.IGNORECASE)
_ARGUMENTS = re.compile(r"(?:Kernel c|C)ommand line: |Unknown kernel command line parameters")
"""Linux init/main.c: names of drivers are among the arguments, and so is whatever its owner put there."""
_PROCESS = re.compile(r"proc/(\d+)(?:/|$)")


@dataclass(frozen=True, slots=True)
class Recording(Machine):
    """Answers as this machine does, and writes down what it said. Keeps nothing on the machine."""

    files: dict[str, str] = field(default_factory=dict)
    tools: dict[str, Output] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """As the machine's own, and kept for the recording where there is such a file."""
        said = Machine.text(self, path)
        if said is not None:
            self.files[path] = said
        return said

    def names(self, folder: str) -> list[str]:
        """As listed; what is not read itself is an empty file."""
        names = Machine.names(self, folder)
        for name in names:
            self.files.setdefault(f"{folder}/{name}", "")
        return names

    def kernel_log(self) -> str:
        """The lines about hardware, without the kernel's arguments."""
        said = Machine.kernel_log(self).splitlines()
        lines = [line for line in said if _KERNEL.search(line) and not _ARGUMENTS.search(line)]
        self.files["dev/kmsg"] = "\n".join(lines[-500:])
        return self.files["dev/kmsg"]

    def clock_is_held(self, seconds: float = 0.0) -> bool:
        """As the kernel says."""
        held = Machine.clock_is_held(self, seconds)
        self.files[CLOCK_IS_HELD] = "yes" if held else "no"
        return held

    def run(self, *argv: str) -> Output:
        """As the machine's own, by the whole command line; a tool that is not there is not recorded."""
        output = self.tools[" ".join(argv)] = Machine.run(self, *argv)
        return output

    def keep(self, path: Path, data: bytes) -> None:
        """Nothing: a recording leaves no trace."""


def _recorder(check: Check, root: Path) -> Check:
    def look(machine: Machine) -> Result:  # noqa: ARG001 - the runner's own is not asked
        recording = Recording(root)
        with contextlib.suppress(CannotTellError):
            check.look(recording)
        tools = {line: [output.status, output.text] for line, output in recording.tools.items()}
        return Result("pass", "", facts={"files": recording.files, "tools": tools})

    return Check(check.name, check.severity, check.seconds, look)


def rendered(files: dict[str, str], tools: dict[str, list[Any]]) -> str:
    """machine.txt: `path = line`; `$ argv = exit status`; of several lines each is below, after a tab."""
    lines = []
    for path, text in sorted(files.items()):
        if "\n" in text:
            lines += [f"{path} =", *("\t" + line for line in text.splitlines())]
        elif text or not any(other.startswith(f"{path}/") for other in files):
            lines.append(f"{path} = {text}".rstrip())
    for argv, (status, text) in sorted(tools.items()):
        lines += [f"$ {argv} = {status}", *("\t" + line for line in text.splitlines())]
    return "\n".join(lines) + "\n"


def record(root: Path) -> tuple[str, dict[str, Any], list[str]]:
    """machine.txt, provenance, and what could not be recorded."""
    files: dict[str, str] = {}
    tools: dict[str, list[Any]] = {}
    missed = []
    for result in run_all([_recorder(check, root) for check in CHECKS], Machine(root)):
        if result["status"] != "pass":
            missed.append(f"{result['name']}: {result['summary']}")
            continue
        files |= {path: text for path, text in result["facts"]["files"].items() if text or path not in files}
        tools |= result["facts"]["tools"]
    files = _without_processes(files)
    name = socket.gethostname()
    scrubber = Scrubber([name, name.partition(".")[0]])
    made = scrubber.clean(rendered(files, tools))
    return made, _provenance(Machine(root), sorted({line.split()[0] for line in tools})), missed


def _without_processes(files: dict[str, str]) -> dict[str, str]:
    """Of all processes the checks name only the one whose limits were read."""
    kept = {match[1] for path in files if path.endswith("/limits") and (match := _PROCESS.match(path))}
    return {path: text for path, text in files.items() if not (match := _PROCESS.match(path)) or match[1] in kept}


def _provenance(machine: Machine, tools: list[str]) -> dict[str, Any]:
    vendor, product = (machine.text(f"sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name"))
    return {
        "schema": SCHEMA,
        "machine": f"{vendor} {product}".strip() or "unknown",
        "recorded": datetime.now(UTC).date().isoformat(),
        "by": "netboot node record",
        "kernel": machine.text("proc/sys/kernel/osrelease"),
        "driver": machine.text("sys/module/nvidia/version"),
        "tools": tools,
        "parts": [{"what": "all", "how": "recorded", "source": "this machine"}],
    }


def main(argv: list[str]) -> int:
    """0: recorded. 1: it cannot be written. 2: wrong arguments."""
    if len(argv) not in (2, 3) or argv[1].startswith("-"):
        print("usage: python3 -m node.health.record FOLDER", file=sys.stderr)
        return 2
    folder, root = Path(argv[1]), Path(argv[2] if len(argv) > 2 else "/").absolute()
    if folder.exists():
        print(f"{folder} is there already: name a new folder", file=sys.stderr)
        return 1
    text, provenance, missed = record(root)
    try:
        put(folder / "machine.txt", text.encode(), 0o644)
        put(folder / "provenance.json", (json.dumps(provenance, indent=2) + "\n").encode(), 0o644)
    except OSError as error:
        print(f"{folder} cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    for line in missed:
        print(f"not recorded: {line}", file=sys.stderr)
    print(f"{folder}: {len(text.splitlines())} lines, scrubbed of names; read machine.txt before you send it")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
