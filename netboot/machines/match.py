"""Which machine a claim means.

Built once for each inventory; a look-up costs the same among one machine or ten thousand.
"""

from collections.abc import Iterable
from typing import NamedTuple

from netboot.machines.values import Machine


class Found(NamedTuple):
    """A machine and the identifiers by which it was found, for people: `MAC 52:54:00:…`, `UUID …`, `serial …`."""

    machine: Machine
    by: tuple[str, ...]


class Index:
    """Machines by MAC, UUID, serial, names and pinned endorsement key; references only, nothing is copied."""

    __slots__ = ("_eks", "_former", "_macs", "_names", "_serials", "_uuids")

    def __init__(self, machines: Iterable[Machine]) -> None:
        self._macs: dict[str, Machine] = {}
        self._uuids: dict[str, Machine] = {}
        self._serials: dict[str, Machine] = {}
        self._names: dict[str, Machine] = {}
        self._former: dict[str, Machine] = {}
        self._eks: dict[str, Machine] = {}
        for machine in machines:
            self._names[machine.name] = machine
            self._former |= dict.fromkeys(machine.former_names, machine)
            for mac in machine.match.macs:
                self._macs[mac] = machine
            if machine.match.uuid is not None:
                self._uuids[machine.match.uuid] = machine
            if machine.match.serial is not None:
                self._serials[machine.match.serial] = machine
            if machine.match.ek_sha256 is not None:
                self._eks[machine.match.ek_sha256] = machine

    def __len__(self) -> int:
        return len(self._names)

    def named(self, name: str) -> Machine | None:
        """The machine of that name."""
        return self._names.get(name)

    def formerly(self, name: str) -> Machine | None:
        """The machine that had this name before."""
        return self._former.get(name)

    def by_mac(self, mac: str) -> Machine | None:
        """The machine that has this (normalised) MAC address."""
        return self._macs.get(mac)

    def by_ek(self, ek_sha256: str) -> Machine | None:
        """The machine to which the inventory pins this endorsement key."""
        return self._eks.get(ek_sha256)

    def find(self, mac: str | None, uuid: str | None, serial: str | None) -> list[Found]:
        """Every machine that any of the (normalised) identifiers names; more than one is for the caller to refuse."""
        matches: dict[str, tuple[Machine, list[str]]] = {}
        for kind, value, table in (
            ("MAC", mac, self._macs),
            ("UUID", uuid, self._uuids),
            ("serial", serial, self._serials),
        ):
            machine = table.get(value) if value is not None else None
            if machine is not None:
                matches.setdefault(machine.name, (machine, []))[1].append(f"{kind} {value}")
        return [Found(machine, tuple(by)) for machine, by in matches.values()]
