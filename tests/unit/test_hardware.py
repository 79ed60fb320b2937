"""What is made of a machine's report: its declaration, a few words, and the class that it may be of."""

from typing import Any

import pytest

from netboot.lifecycle.hardware import HardwareReport, suggested
from netboot.machines.classes import Class, Disks, Gpus
from netboot.machines.found import declaration, in_words, reported, summary
from tests.records import made_of

MAC = "52:54:00:aa:00:01"
GIB = 2**30
DISK = {"name": "nvme0n1", "model": "MZQL23T8", "size_bytes": 3_840_755_982_336, "path": ""}
GPU = {"pci": "0000:17:00.0", "id": "10de:2330"}


def report(**more: Any) -> HardwareReport:
    return made_of(MAC, **more).report


@pytest.mark.parametrize(
    ("hardware", "said"),
    [
        (Class(name="x"), False),
        (Class(name="x", memory_gib=64), True),
        (Class(name="x", memory_gib=128), False),
        (Class(name="x", gpus=Gpus(count=1)), True),
        (Class(name="x", memory_gib=64, gpus=Gpus(count=8)), False),
        (Class(name="x", disks=(Disks(count=2, size_gb=3840),)), True),
        (Class(name="x", disks=(Disks(count=2, size_gb=7680),)), False),
        (Class(name="x", disks=(Disks(count=2, model="MZQL"),)), True),
    ],
)
def test_a_class_is_suggested_where_all_that_it_says_is_so(hardware: Class, said: bool) -> None:
    display = {"pci": "0000:03:00.0", "id": "1a03:2000"}
    mine = report(memory=int(62.8 * GIB), disks=[DISK, DISK], gpus=[GPU, display])
    assert suggested(mine, [hardware]) == ("x" if said else None)


def test_a_machine_in_a_few_words() -> None:
    assert summary(None) == ""
    mine = report(memory=64 * GIB, disks=[DISK], gpus=[GPU, GPU], tpm={"ek_sha256": "ab" * 32}).model_dump(mode="json")
    assert summary(mine) == "QEMU Standard PC, 2 CPUs, 64 GiB, 1 disk, 2 GPUs, TPM abababababababab"
    neighbour = {"system": "leaf-1", "port": "swp10"}
    card = {"name": "e", "mac": MAC, "pci": "", "driver": "", "speed_mbps": 0, "link": True, "neighbour": neighbour}
    assert summary(report(cards=[card]).model_dump(mode="json")) == (
        "QEMU Standard PC, 2 CPUs, 0 GiB, 1 card, no TPM, at leaf-1 swp10"
    )


def test_what_a_machine_says_seems_to_be_nothing_else() -> None:
    firmware = {"vendor": "HPE, 64 CPUs, TPM ab", "product": "DL380,", "serial": "", "uuid": "", "bios": ""}
    assert summary(report(firmware=firmware).model_dump(mode="json")) == (
        "HPE 64 CPUs TPM ab DL380, 2 CPUs, 0 GiB, no TPM"
    )


def test_what_was_reported_beyond_what_asked_and_by_whom() -> None:
    """A label's serial number in the question, another machine's in the report: both are seen before it is declared."""
    match: dict[str, Any] = {"macs": [MAC, "52:54:00:aa:00:02"], "uuid": "u", "serial": "S2", "ek_sha256": "ab"}
    found: dict[str, Any] = {"mac": MAC, "uuid": "u", "serial": "S1", "peer": "192.0.2.8", "match": match}
    found |= {"told_from": "192.0.2.9", "told_otherwise_from": None}
    assert reported(found) == "macs 52:54:00:aa:00:02, serial S2, ek_sha256 ab, said by 192.0.2.9"
    assert in_words(match) == f"macs {MAC} 52:54:00:aa:00:02, uuid u, serial S2, ek_sha256 ab"
    asked = {**found, "serial": "S2", "told_from": None, "match": {"macs": [MAC], "serial": "S2"}}
    assert reported(asked) == ""
    assert reported({**asked, "match": {}}) == ""
    assert reported({**asked, "told_otherwise_from": "192.0.2.7"}) == "192.0.2.7 says that it is this machine, too"


def test_placeholders_identify_nobody() -> None:
    firmware = {"vendor": "", "product": "", "serial": "Default string", "uuid": "0" * 8, "bios": ""}
    hardware = report(firmware=firmware).model_dump(mode="json")
    found = {"mac": MAC, "uuid": None, "architecture": "arm64", "hardware": hardware}
    assert declaration("n", "p", found) == {
        "name": "n",
        "match": {"macs": [MAC]},
        "profile": "p",
        "architecture": "arm64",
    }
