"""A switch with an LACP group on a network of the lab: Open vSwitch in user space, for hosts whose kernel bonds nothing."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from lab.network import Network, Tap
from lab.processes import child

READY_SECONDS = 60.0
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"


@dataclass(frozen=True, slots=True)
class Switch:
    """It is running. `tagged`: its interface inside the namespace that is in the VLAN."""

    network: Network
    tagged: str

    def group(self) -> str:
        """What it says of the group: who its partner is, which ports take part."""
        return self.network.run("ovs-appctl", "-t", f"{self.network.folder}/vswitchd.ctl", "lacp/show", "group0")


@contextlib.contextmanager
def switch(network: Network, ports: Tap, number: int) -> Iterator[Switch]:
    """`ports` leave the bridge and become the group, LACP active; untagged frames go on to the bridge, VLAN `number`
    to an interface of its own. Firmware that speaks no LACP gets through by the first port (lacp-fallback-ab)."""
    folder = network.folder
    database, taps = f"unix:{folder}/db.sock", (ports.interface, *ports.others)
    network.run("ovsdb-tool", "create", f"{folder}/conf.db", SCHEMA)
    servers = {
        "ovsdb": ["ovsdb-server", f"{folder}/conf.db", f"--remote=p{database}", f"--unixctl={folder}/ovsdb.ctl"],
        "vswitchd": ["ovs-vswitchd", database, f"--unixctl={folder}/vswitchd.ctl", "--pidfile=" + f"{folder}/vs.pid"],
    }
    with contextlib.ExitStack() as stack:
        for name, argv in servers.items():
            running = stack.enter_context(child(name, argv, folder / f"{name}.log", namespace=network.namespace))
            running.output.wait_for("ovsdb-server|connected", READY_SECONDS)
        for tap in taps:
            network.run("ip", "link", "set", tap, "nomaster")
        configure = f"ovs-vsctl --db={database} --timeout=30"
        network.run(*configure.split(), *"add-br ovs0 -- set bridge ovs0 datapath_type=netdev".split())
        group = "lacp=active bond_mode=active-backup other_config:lacp-time=fast other_config:lacp-fallback-ab=true"
        network.run(*configure.split(), "add-bond", "ovs0", "group0", *taps, *group.split())
        for name, more in (("untagged0", ""), ("tagged0", f"tag={number}")):
            port = f"add-port ovs0 {name} {more} -- set interface {name} type=internal"
            network.run(*configure.split(), *port.split())
            network.run("ethtool", "-K", name, "tx", "off")
        network.run(*"ip link set untagged0 master br0 up".split())
        yield Switch(network, "tagged0")
