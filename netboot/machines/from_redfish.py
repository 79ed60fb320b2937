"""Machines as their BMCs describe them: `ComputerSystem` of Redfish, with its `EthernetInterfaces` expanded (DSP0268;
`$expand`: DSP0266, 7.3). What the properties mean is said in docs/inventory.md."""

from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

from images.values import strict_json
from netboot.machines.identity import is_placeholder
from netboot.machines.imported import NAME, Item, Listed, Said

NAMES = ("HostName", "AssetTag", "SerialNumber")
"""Properties by which a machine may be called."""
TO_MANAGER = "ToManager"
"""`Id` of the interface by which a machine reaches its own BMC, as Lenovo's and Supermicro's call it."""
_NAMELESS = "fill it in, or say by --name-from which other property machines are called by"
_EXPAND = "is a link: ask with $expand, or put in what it leads to"


def read_redfish(data: bytes, file: str, name_from: str) -> Listed:
    """One `ComputerSystem`, a collection of them, or a list of either. `name_from`: of `NAMES`, which is the name."""
    items: list[Item] = []
    faults: list[str] = []
    try:
        systems = list(_systems(strict_json.read(data.removeprefix(BOM_UTF8))))
    except ValueError as error:
        return Listed([], [f"{file}: {error}"])
    for number, system in enumerate(systems, 1):
        item = Item(f"{file}, system {number}")
        if why := _no_system(system):
            faults.append(f"{item.at}: {why}")
            continue
        _take(item, system, name_from)
        try:
            _take_macs(item, _interfaces(system))
        except ValueError as error:
            faults.append(f"{item.at}: EthernetInterfaces: {error}")
        items.append(item)
    return Listed(items, faults or ([] if items else [f"{file}: no system is in there"]), _NAMELESS)


def _systems(value: Any) -> Iterator[Any]:
    """Raises ValueError: a collection is not whole."""
    if isinstance(value, list):
        for each in value:
            yield from _systems(each)
    elif isinstance(value, dict) and isinstance(value.get("Members"), list):
        if "Members@odata.nextLink" in value:
            raise ValueError("a collection is not whole (Members@odata.nextLink): put its pages into one list")
        yield from value["Members"]
    else:
        yield value


def _no_system(value: Any) -> str:
    if not isinstance(value, dict):
        return "is no ComputerSystem: an object is one"
    if value.keys() <= {"@odata.id"}:
        return _EXPAND
    kind = str(value.get("@odata.type", "#ComputerSystem."))
    return "" if kind.startswith("#ComputerSystem.") else f"is no ComputerSystem, but {kind[:60]!r}"


def _take(item: Item, system: dict[str, Any], name_from: str) -> None:
    item.declared["match"] = {}
    item.unsaid[NAME] = name_from
    name = system.get(name_from)
    if name is not None and name != "":
        item.put(NAME, name.strip().lower() if isinstance(name, str) else name, Said(name_from, str(name)))
    for key, property_ in (("uuid", "UUID"), ("serial", "SerialNumber")):
        text = system.get(property_)
        if text is None or (isinstance(text, str) and is_placeholder(text.replace("-", ""))):
            continue  # the others suffice
        item.put(("match", key), text, Said(property_, str(text)))


def _interfaces(system: dict[str, Any]) -> list[Any]:
    """Raises ValueError, with the remedy."""
    value = system.get("EthernetInterfaces")
    if value is None:
        raise ValueError("is not there: leave out what is no machine, or put them in")
    members = value.get("Members") if isinstance(value, dict) else value
    if not isinstance(members, list) or any(each.keys() <= {"@odata.id"} for each in members if isinstance(each, dict)):
        raise ValueError(_EXPAND)
    return members


def _take_macs(item: Item, interfaces: list[Any]) -> None:
    """The burned-in addresses of what is no bond, bridge or VLAN of its operating system, nor a way to the BMC."""
    found: dict[str, str] = {}
    for each in interfaces:
        if isinstance(each, dict) and each.get("EthernetInterfaceType") != "Virtual" and each.get("Id") != TO_MANAGER:
            mac = each.get("PermanentMACAddress") or each.get("MACAddress")
            if mac is not None and str(mac).strip("0:-. "):  # ports that have none say so by null, nothing or zeros
                found.setdefault(str(mac).lower(), str(mac))
    if found:
        item.put(("match", "macs"), list(found.values()), Said("MACAddress", " ".join(found.values())))
