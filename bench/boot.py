"""Boot: seconds of each phase from the kernel to the Ready node, beside a floor in the same rounds.

The floor is the same root image on the same machine by the same kernel, with an initrd that verifies nothing and a
kubelet that joins by a bootstrap token: no attestation, no agent.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.boot_times import Seconds
from bench.boot_world import World, boot_floor, boot_ours, world
from bench.serving import AbsentError, BenchError
from lab.accelerator import Accelerator
from lab.errors import LabError, UnusableError
from lab.kube.binaries import NoKubernetesError
from lab.kube.cluster import ClusterError

ROUNDS = 3
"""A round takes minutes."""
NEEDED = {
    "cpio": "cpio",
    "dnsmasq": "dnsmasq-base",
    "etcd": "etcd-server",
    "mmdebstrap": "mmdebstrap",
    "nginx": "nginx-light",
    "qemu-system-x86_64": "qemu-system-x86",
    "swtpm": "swtpm",
    "tpm2": "tpm2-tools",
    "zstd": "zstd",
}
"""Programs, and the packages that bring them."""
ARMS: dict[str, Callable[[World], Seconds]] = {"floor": boot_floor, "ours": boot_ours}


@dataclass(frozen=True)
class Boots:
    """Of each round the seconds from the kernel's start, by phase. `mib`: the packed root image."""

    accelerator: Accelerator
    mib: float
    ours: list[Seconds]
    floor: list[Seconds]


def measure(folder: Path, rounds: int, console: Console) -> Boots:
    """Build the image, then boot it in turn by the service and by the floor, one machine at a time.

    Raises:
        AbsentError: something that it takes is not here. BenchError: a machine did not become a node.
    """
    require()
    folder.chmod(0o755)  # the service is nobody, and its site lies there
    found: dict[str, list[Seconds]] = {name: [] for name in ARMS}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console, transient=True, refresh_per_second=1) as progress:
            task = progress.add_task("image, control plane, service", total=1 + rounds * len(ARMS))
            with world(folder / "boot") as here:
                for number, name in turns(rounds):
                    progress.update(task, advance=1, description=f"round {number + 1}: {name}")
                    found[name].append(ARMS[name](here))
                progress.update(task, advance=1)
                return Boots(here.accelerator, here.root_size / 2**20, **found)
    except (NoKubernetesError, UnusableError) as error:
        raise AbsentError(f"boot: {error}") from None
    except (LabError, ClusterError) as error:
        raise BenchError(f"boot: {error}") from None


def turns(rounds: int) -> Iterator[tuple[int, str]]:
    """Round and arm, in the order in which they are booted: which is first alternates."""
    for number in range(rounds):
        yield from ((number, name) for name in (reversed(ARMS) if number % 2 else ARMS))


def require() -> None:
    """Look for all that it takes, before minutes are spent.

    Raises:
        AbsentError: with what is missing, and what to do.
    """
    if os.geteuid() != 0:
        raise AbsentError(
            "boot: images are built and machines get a network by root; run the bench with sudo, "
            "or leave the part boot out (--only)"
        )
    missing = [package for program, package in NEEDED.items() if shutil.which(program) is None]
    if missing:
        raise AbsentError(f"boot: not installed: {', '.join(missing)}; ./setup.sh installs what the lab needs")
