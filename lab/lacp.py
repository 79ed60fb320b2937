"""A switch with an LACP group on a network of the lab: Open vSwitch in user space, where the kernel has no bonding."""

import contextlib
from collections.abc import Iterator

from lab.network import Network, Tap
from lab.processes import child

READY_SECONDS = 60.0
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"


@contextlib.contextmanager
def switch(network: Network, ports: Tap, number: int) -> Iterator[str]:
    """`ports` leave the bridge and become the group, LACP active. Untagged frames go on to the bridge; yields the
    interface inside the namespace that is in VLAN `number`. Firmware that speaks no LACP gets through by the first port
    (lacp-fallback-ab)."""
    folder = network.folder
    database, taps = f"unix:{folder}/db.sock", (ports.interface, *ports.others)
    network.run("ovsdb-tool", "create", f"{folder}/conf.db", SCHEMA)
    servers = {
        "ovsdb": ["ovsdb-server", f"{folder}/conf.db", f"--remote=p{database}", f"--unixctl={folder}/ovsdb.ctl"],
        "vswitchd": ["ovs-vswitchd", database, f"--unixctl={folder}/vswitchd.ctl", f"--pidfile={folder}/vs.pid"],
    }
    with contextlib.ExitStack() as stack:
        for name, argv in servers.items():
            running = stack.enter_context(child(name, argv, folder / f"{name}.log", namespace=network.namespace))
            running.output.wait_for("ovsdb-server|connected", READY_SECONDS)
        for tap in taps:
            network.run("ip", "link", "set", tap, "nomaster")
        configure = f"ovs-vsctl --db={database} --timeout=30"
        bridge = "add-br ovs0 -- set bridge ovs0 datapath_type=netdev"
        network.run(*configure.split(), *bridge.split())
        group = "lacp=active bond_mode=active-backup other_config:lacp-time=fast other_config:lacp-fallback-ab=true"
        network.run(*configure.split(), "add-bond", "ovs0", "group0", *taps, *group.split())
        for name, more in (("untagged0", ""), ("tagged0", f"tag={number}")):
            port = f"add-port ovs0 {name} {more} -- set interface {name} type=internal"
            network.run(*configure.split(), *port.split())
            network.run("ethtool", "-K", name, "tx", "off")
        network.run("ip", "link", "set", "untagged0", "master", "br0", "up")
        yield "tagged0"
