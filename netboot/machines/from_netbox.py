"""Machines as NetBox has them: what its REST API answers about devices, about their interfaces, or both
(docs/inventory.md says which fields are read)."""

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from images.values import strict_json
from netboot.machines.imported import NAME, Item, Listed, Said

_APART = frozenset({"virtual", "bridge", "lag"})
"""Types of interfaces that have no address of their own."""


@dataclass(slots=True)
class _Answers:
    """What was read, by the ids of devices."""

    items: dict[int, Item] = field(default_factory=dict)
    macs: dict[int, list[str]] = field(default_factory=dict)
    interfaces_of: dict[int, Item] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    paged: Counter[int] = field(default_factory=Counter)
    """Of answers in pages, by how many results each says there are: how many are in the pages."""


def read_netbox(files: Sequence[tuple[str, bytes]]) -> Listed:
    """Devices are machines; where no device is in there, each that has interfaces is."""
    read = _Answers()
    for file, data in files:
        try:
            for number, each in enumerate(_objects(read, strict_json.read(data.removeprefix(BOM_UTF8))), 1):
                _take(read, each, file, number)
        except ValueError as error:
            read.faults.append(f"{file}: {error}")
    for count, there in read.paged.items():
        if not count or there % count:
            words = f"only {there} of {count} results are in there: put in the other pages, to which `next` leads"
            read.faults.append(f"{files[0][0]}: {words}")
    items = read.items or read.interfaces_of
    for number, item in items.items():
        macs = read.macs.get(number, [])
        if macs:
            item.put(("match", "macs"), macs, Said("mac_address", " ".join(macs)))
    names = " and ".join(file for file, _ in files)
    faults = read.faults or ([] if items else [f"{names}: no device is in there"])
    return Listed([*items.values()], faults, "name the device in NetBox, or leave it out of the list")


def _objects(read: _Answers, value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _objects(read, each)
    elif isinstance(value, dict) and isinstance(value.get("results"), list):
        if value.get("next") is not None or value.get("previous") is not None:
            read.paged[value["count"] if type(value.get("count")) is int else 0] += len(value["results"])
        yield from value["results"]
    else:
        yield value


def _take(read: _Answers, value: Any, file: str, number: int) -> None:
    if not isinstance(value, dict):
        read.faults.append(f"{file}, object {number}: is neither a device nor an interface")
    elif isinstance(value.get("device_type"), dict) and type(value.get("id")) is int:
        if value["id"] in read.items:
            read.faults.append(f"{file}, device {value['id']}: is here twice")
        read.items[value["id"]] = _device(value, file)
    elif isinstance(device := value.get("device"), dict) and type(device.get("id")) is int:
        read.interfaces_of.setdefault(device["id"], _named(device, file))
        known = read.macs.setdefault(device["id"], [])
        known += dict.fromkeys(mac for mac in _macs(value) if mac not in known)
    else:
        words = "is neither a device nor an interface, as the REST API answers them without `brief` and `fields`"
        read.faults.append(f"{file}, object {number}: {words}")


def _named(device: dict[str, Any], file: str) -> Item:
    item = Item(f"{file}, device {device['id']}")
    item.declared["match"] = {}
    name = device.get("name")
    if name is not None:
        item.put(NAME, str(name).lower(), Said("name", str(name)))
    return item


def _device(device: dict[str, Any], file: str) -> Item:
    item, rack = _named(device, file), device.get("rack")
    if serial := device.get("serial"):
        item.put(("match", "serial"), serial, Said("serial", str(serial)))
    if isinstance(rack, dict):
        item.put(("rack",), str(rack.get("name")).lower(), Said("rack.name", str(rack.get("name"))))
        unit = device.get("position")
        if isinstance(unit, int | float) and unit == int(unit):  # others are half units
            item.put(("position",), int(unit), Said("position", str(unit)))
    return item


def _macs(interface: dict[str, Any]) -> Iterator[str]:
    """Since NetBox 4.2 an interface may have several, `mac_address` being the first of them."""
    kind, several = interface.get("type"), interface.get("mac_addresses")
    if interface.get("mgmt_only") is True or (isinstance(kind, dict) and kind.get("value") in _APART):
        return
    listed = (
        [each.get("mac_address") for each in several if isinstance(each, dict)] if isinstance(several, list) else []
    )
    for mac in (interface.get("mac_address"), *listed):
        if mac:
            yield str(mac)
