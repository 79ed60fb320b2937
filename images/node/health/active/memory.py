"""Bandwidth of the memory: a channel that has no module, or a slow one, is not seen in the size.

Counted as STREAM's Copy (J. D. McCalpin, "Memory Bandwidth and Machine Balance"): bytes read and written.
"""

from ..machine import Machine
from ..ranges import in_list
from ..result import Check, Result, counted, judged
from .judging import behind, under
from .rates import rates

_NODES = "sys/devices/system/node"
_REMEDY = (
    "see which modules are there and at what speed (`dmidecode -t memory`), and the firmware's NUMA and power set-up"
)


def look(machine: Machine) -> Result:
    """All CPUs at once: their sum against the class's floor, each NUMA node against its siblings."""
    found = rates(machine, "memory")
    total = sum(found.values()) / 1e9
    nodes = _by_node(machine, found)
    findings = [*under(machine, "memory_gbs", {"all CPUs": total}, _REMEDY), *behind("memory_gbs", nodes, _REMEDY)]
    facts = {"gbs": round(total, 4), "nodes": [f"{node} {rate:.4g}" for node, rate in nodes.items()]}
    return judged(findings, Result("pass", f"{counted(len(found), 'CPU')} copy {total:.4g} GB/s", facts=facts))


def _by_node(machine: Machine, found: dict[int, float]) -> dict[str, float]:
    """GB/s of the CPUs of each NUMA node. Source: Linux Documentation/ABI/stable/sysfs-devices-node (`cpulist`)."""
    nodes = {}
    for name in machine.names(_NODES):
        cpus = in_list(machine.text(f"{_NODES}/{name}/cpulist") or "") if name.startswith("node") else None
        if here := [found[cpu] for cpu in cpus or () if cpu in found]:
            nodes[name] = sum(here) / 1e9
    return nodes


CHECK = Check("active-memory", "major", 30, look)
