"""The declaration of a machine that asked and may not boot."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from netboot.machines.identity import parse_mac, parse_serial, parse_uuid

MOST_MACS = 16


def declaration(
    name: str, profile: str, found: Mapping[str, Any], *, class_name: str | None = None, rack: str | None = None
) -> dict[str, Any]:
    """An item of `machines`, as a file of the inventory has it. `found`: the machine as `/v1/discovered` shows it. What
    it says that identifies no machine, a placeholder say, is left out.

    Raises:
        ValueError: its MAC is none.
    """
    hardware = found.get("hardware") or {}
    firmware = hardware.get("firmware") or {}
    macs = [parse_mac(found["mac"]), *_macs(hardware)]
    match: dict[str, Any] = {"macs": list(dict.fromkeys(macs))[:MOST_MACS]}
    with suppress(ValueError):  # the MAC suffices
        match["uuid"] = parse_uuid(found["uuid"] or firmware.get("uuid"))
    with suppress(ValueError):
        match["serial"] = parse_serial(firmware.get("serial"))
    if hardware.get("tpm"):
        match["ek_sha256"] = hardware["tpm"]["ek_sha256"]
    said: dict[str, Any] = {"name": name, "match": match, "profile": profile}
    if rack is not None:
        said["rack"] = rack
    if class_name is not None:
        said["class"] = class_name
    elif found["architecture"] == "arm64":  # what neither it nor its class says is amd64
        said["architecture"] = found["architecture"]
    return said


def _macs(hardware: Mapping[str, Any]) -> Iterator[str]:
    """Of cards on the PCI bus: what a board's controller shows by USB has one address in many machines."""
    for card in hardware.get("cards", ()):
        with suppress(ValueError):
            if card["pci"]:
                yield parse_mac(card["mac"])


def in_words(match: Mapping[str, Any]) -> str:
    """By what a machine is declared, all of it."""
    return ", ".join(
        f"{key} {' '.join(value) if isinstance(value, list) else value}" for key, value in match.items() if value
    )


def reported(found: Mapping[str, Any]) -> str:
    """By what a machine would be declared beyond that with which it asked; and who said so, where it was another, or
    several. `found`: as `/v1/discovered` shows it."""
    asked = (found["mac"], found["uuid"], found["serial"])
    match = {key: value for key, value in found["match"].items() if key != "macs" and value not in asked}
    macs = [mac for mac in found["match"].get("macs", ()) if mac not in asked]
    told = found["told_from"]
    who = f"said by {told}" if told not in (None, found["peer"]) else ""
    other = found["told_otherwise_from"]
    others = f"{other} says that it is this machine, too" if other is not None else ""
    return ", ".join(filter(None, (in_words({"macs": macs, **match}), who, others)))


def summary(hardware: Mapping[str, Any] | None) -> str:
    """What a machine is made of, in a few words; "": it was not discovered."""
    if hardware is None:
        return ""
    firmware, count = hardware["firmware"], hardware["cpu"]["count"]
    links = [card["neighbour"] for card in hardware["cards"] if card["neighbour"]]
    parts = [
        _one(f"{firmware['vendor']} {firmware['product']}"),
        f"{count} CPU{'s' * (count != 1)}",
        f"{hardware['memory_bytes'] / 2**30:.0f} GiB",
        *_many(len(hardware["cards"]), "card"),
        *_many(len(hardware["disks"]), "disk"),
        *_many(len(hardware["gpus"]), "GPU"),
        f"TPM {hardware['tpm']['ek_sha256'][:16]}" if hardware["tpm"] else "no TPM",
        *(f"at {_one(link['system'])} {_one(link['port'])}" for link in links[:1]),
    ]
    return ", ".join(part for part in parts if part)


def _one(said: str) -> str:
    """What a machine says as one part of several: it cannot seem to be more of them."""
    return said.replace(",", "").strip()


def _many(count: int, what: str) -> list[str]:
    return [f"{count} {what}{'s' * (count != 1)}"] if count else []
