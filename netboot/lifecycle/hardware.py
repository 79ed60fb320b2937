"""What a machine that nobody has declared says of its hardware. A claim, of whoever has its boot's id."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from images.values.strict import Strict
from images.values.types import Sha256
from netboot.machines.classes import GB, GIB, Class
from netboot.machines.values import Mac

LONGEST_REPORT = 64 * 1024
"""Bytes as it is sent; of a machine with eight GPUs and sixteen disks about 6,000."""
MOST_MACHINES = 10
"""Machines that are discovered at once, and whose reports are kept."""
KEPT_MS = 3_600_000
"""How long a report is shown, and how long a machine counts as being discovered after it asked."""
_MAKERS = ("10de:", "1002:")
"""PCI vendors of GPUs that compute: NVIDIA, AMD. A board's own display is none."""
Words = Annotated[str, StringConstraints(pattern=r"^[ -~]{0,128}$")]
Id = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z:._-]{0,64}$")]
Bytes = Annotated[int, Field(ge=0, le=2**60)]


class Cpu(Strict):
    """Processors, as the kernel counts them: threads."""

    model: Words
    count: Annotated[int, Field(ge=0, le=65_536)]


class Neighbour(Strict):
    """What the switch at the other end of a card's cable says by LLDP."""

    system: Words
    port: Words


class Card(Strict):
    """A network card's port. `pci`: "" where it is on another bus; `speed_mbps`: 0 without a link."""

    name: Words
    mac: Id
    pci: Id
    driver: Words
    speed_mbps: Annotated[int, Field(ge=0, le=10**7)]
    link: bool
    neighbour: Neighbour | None = None


class Disk(Strict):
    """A disk. `path`: its name in /dev/disk/by-path."""

    name: Words
    model: Words
    size_bytes: Bytes
    path: Words


class Gpu(Strict):
    """A display or 3D controller; `id`: vendor and device, as `10de:2330`."""

    pci: Id
    id: Id


class Tpm(Strict):
    """A TPM 2.0. `ek_sha256`: of its endorsement key, as the inventory names it; `certificate`: base64 of its DER."""

    ek_sha256: Sha256
    certificate: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+/=]{0,8192}$")] | None = None


class Firmware(Strict):
    """What SMBIOS says of the machine."""

    vendor: Words
    product: Words
    serial: Words
    uuid: Words
    bios: Words


class HardwareReport(Strict):
    """The body that a machine posts to `/v1/boots/<id>/discovery`. `mac`: of the card that it booted from."""

    model_config = ConfigDict(serialize_by_alias=True)
    schema_: Literal[1] = Field(alias="schema")
    mac: Mac
    cpu: Cpu
    memory_bytes: Bytes
    cards: Annotated[tuple[Card, ...], Field(max_length=64)]
    disks: Annotated[tuple[Disk, ...], Field(max_length=64)]
    gpus: Annotated[tuple[Gpu, ...], Field(max_length=64)]
    tpm: Tpm | None
    firmware: Firmware


def suggested(report: HardwareReport, classes: Iterable[Class]) -> str | None:
    """The first class that says how much memory, or how many GPUs or disks, its machines have, and whose hardware this
    is in all that it says of these; None: there is none. For an operator, who may know better."""
    return next((each.name for each in classes if _fits(report, each)), None)


def _fits(report: HardwareReport, of: Class) -> bool:
    said = list[bool]()
    if of.memory_gib is not None:  # the kernel counts a little less than is installed
        said.append(0.9 <= report.memory_bytes / (of.memory_gib * GIB) <= 1.0)
    if of.gpus is not None:
        said.append(sum(gpu.id.startswith(_MAKERS) for gpu in report.gpus) == of.gpus.count)
    for disks in of.disks:
        alike = [disk for disk in report.disks if disks.model is None or disks.model in disk.model]
        if disks.size_gb is not None:
            alike = [disk for disk in alike if abs(disk.size_bytes / (disks.size_gb * GB) - 1) < 0.1]
        said.append(len(alike) == disks.count)
    return bool(said) and all(said)
