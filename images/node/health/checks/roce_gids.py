"""RoCE ports and their GIDs. Source: Linux Documentation/ABI/testing/sysfs-class-infiniband (`gid_attrs/types`)."""

import ipaddress

from ..machine import Machine
from ..rdma import HOME, Port, ports
from ..result import Check, Result, counted, listed


def routable(gid: str) -> bool:
    """Whether a GID is an address that others reach: not empty, not link-local. Never raises."""
    try:
        address = ipaddress.IPv6Address(gid)
    except ValueError:
        return False
    return not (address.is_unspecified or address.is_link_local)


def look(machine: Machine) -> Result:
    """Ports that are up, with at least one RoCE v2 GID of an address; not those of virtual functions without one."""
    found, wanted = ports(machine, "Ethernet"), machine.expected.roce_ports
    usable = {one.name: _gids(machine, one) for one in found}
    facts = {"ports": [f"{one.name} {one.state} {one.rate_gbps:g}, {usable[one.name]} RoCE v2 GIDs" for one in found]}
    if not found and not wanted:
        return Result("absent", "no RoCE port, and none is expected", facts=facts)
    well = [one for one in found if one.up and usable[one.name]]
    wrong = [
        f"{one.name} has no RoCE v2 GID with an address" if one.up else f"{one.name} is {one.state} ({one.physical})"
        for one in found
        if one not in well
    ]
    if wanted is not None and len(well) < wanted:
        words = f"{counted(wanted, 'RoCE port')} expected, {len(well) or 'none'} in order"
        remedy = "does the interface have its address (networkctl), its link, its module (mlx5_ib)?"
        return Result("fail", words + (f": {listed(wrong)}" if wrong else ""), remedy, facts)
    if wanted is None and wrong:
        return Result("warn", f"RoCE: {listed(wrong)}", "say how many there should be: `health.roce_ports`", facts)
    return Result("pass", f"{counted(len(well), 'RoCE port')} up, with GIDs", facts=facts)


def _gids(machine: Machine, port: Port) -> int:
    """How many of its GIDs are RoCE v2 with an address. An empty place of the table cannot be read."""
    at = f"{HOME}/{port.device}/ports/{port.number}"
    second = (one for one in machine.names(f"{at}/gids") if machine.text(f"{at}/gid_attrs/types/{one}") == "RoCE v2")
    return sum(routable(machine.text(f"{at}/gids/{index}") or "") for index in second)


CHECK = Check("roce-gids", "critical", 30, look)
