"""Huge pages. Source: Linux Documentation/admin-guide/mm/hugetlbpage.rst."""

from ..machine import Machine
from ..result import Check, Result, listed

_HOME = "sys/kernel/mm/hugepages"
_SIZES = {"hugepages_2m": ("hugepages-2048kB", "2 MiB"), "hugepages_1g": ("hugepages-1048576kB", "1 GiB")}


def look(machine: Machine) -> Result:
    """As many of each size as the class says; unsaid: facts."""
    there = {name: machine.whole(f"{_HOME}/{folder}/nr_hugepages") for name, (folder, _) in _SIZES.items()}
    wanted = {"hugepages_2m": machine.expected.hugepages_2m, "hugepages_1g": machine.expected.hugepages_1g}
    expected = {name: count for name, count in wanted.items() if count is not None}
    if not expected and not any(there.values()):
        return Result("absent", "no huge pages, and none are expected", facts=there)
    short = [
        f"{count} of {_SIZES[name][1]} expected, {there[name] or 'none'} there"
        for name, count in expected.items()
        if (there[name] or 0) < count
    ]
    if short:
        remedy = "reserve them at boot (`hugepagesz=1G hugepages=...` of the profile): later memory is in pieces"
        return Result("fail", f"huge pages: {listed(short)}", remedy, there)
    sizes = [f"{there[name]} of {words}" for name, (_, words) in _SIZES.items() if there[name]]
    return Result("pass", f"huge pages: {listed(sizes) or 'none'}", facts=there)


CHECK = Check("hugepages", "major", 30, look)
