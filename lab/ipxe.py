"""iPXE for arm64, which Debian 12's package has not: from Debian 13's, by the script that operators are told of."""

import fcntl
import hashlib
import subprocess
from pathlib import Path

from lab.errors import UnusableError
from lab.work import ROOT

SCRIPT = ROOT / "deploy/ipxe-arm64.sh"


def ipxe_arm64(cache: Path) -> Path:
    """`ipxe-arm64.efi`, fetched once for each version of the script, and kept in `cache`.

    Raises:
        UnusableError: it could not be fetched; the message ends with what apt said.
    """
    folder = cache.absolute() / f"ipxe-arm64-{hashlib.sha256(SCRIPT.read_bytes()).hexdigest()[:12]}"
    program = folder / "ipxe-arm64.efi"
    cache.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            done = subprocess.run([SCRIPT, folder], stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                raise UnusableError(f"no iPXE for arm64: {SCRIPT} ended with {done.returncode}:\n{done.stderr[-1000:]}")
    return program
