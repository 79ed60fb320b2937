"""The declaration of a machine that asked and may not boot."""

from contextlib import suppress
from typing import Any

from netboot.machines.identity import parse_mac, parse_uuid


def declaration(
    name: str,
    profile: str,
    mac: str,
    uuid: str | None,
    architecture: str | None,
    *,
    class_name: str | None = None,
    rack: str | None = None,
) -> dict[str, Any]:
    """An item of `machines`, as a file of the inventory has it. `mac`, `uuid`, `architecture`: as the machine said them
    when it asked; a UUID that is none, or that many have, is left out.

    Raises:
        ValueError: the MAC is none.
    """
    match: dict[str, Any] = {"macs": [parse_mac(mac)]}
    with suppress(ValueError):  # the MAC suffices
        match["uuid"] = parse_uuid(uuid)
    said: dict[str, Any] = {"name": name, "match": match, "profile": profile}
    if rack is not None:
        said["rack"] = rack
    if class_name is not None:
        said["class"] = class_name
    elif architecture == "arm64":  # what neither it nor its class says is amd64
        said["architecture"] = architecture
    return said
