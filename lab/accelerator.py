"""Whether KVM really works here: a /dev/kvm may exist and stock kernels still hang on it, so a real kernel is asked."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Literal

from lab.errors import LabError
from lab.processes import child

Accelerator = Literal["kvm", "tcg"]
PROBE_SECONDS = 20.0
_KVM = Path("/dev/kvm")
_PROOF = "Unable to mount root fs|No working init found|end Kernel panic"
"""A kernel without root and initrd says this when everything before user space has worked."""


def arguments(accelerator: Accelerator) -> list[str]:
    """QEMU's options. tb-size in MiB: the default is a gigabyte. With la57 QEMU 7.2 hangs kernels; with erms they clear
    and copy memory by string instructions of bytes, which TCG does one by one (decision 224)."""
    if accelerator == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,la57=off,erms=off"]


def accelerator(kernel: Path, cache: Path) -> Accelerator:
    """What runs machines here; asked once for each boot of this host and each kernel, the answer is kept in `cache`."""
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return "tcg"
    host = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    key = f"{host} {hashlib.sha256(kernel.read_bytes()).hexdigest()}"
    answers = cache / "accelerator.json"
    try:
        known: dict[str, Accelerator] = json.loads(answers.read_text())
    except (FileNotFoundError, ValueError):
        known = {}
    if key not in known:
        known = {key: "kvm" if _works(kernel) else "tcg"}
        cache.mkdir(parents=True, exist_ok=True)
        partial = answers.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(known))
        partial.replace(answers)
    return known[key]


def _works(kernel: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="netboot-kvm-") as folder:
        argv = [
            "qemu-system-x86_64",
            "-machine",
            "q35",
            *arguments("kvm"),
            "-m",
            "512",
            "-display",
            "none",
            "-no-reboot",
        ]
        argv += ["-nodefaults", "-serial", "stdio", "-kernel", str(kernel), "-append", "console=ttyS0 panic=-1"]
        try:
            with child("KVM probe", argv, Path(folder) / "console.log", grace=0) as guest:
                guest.output.wait_for(_PROOF, PROBE_SECONDS)
        except LabError:
            return False
        return True
