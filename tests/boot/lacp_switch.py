"""A switch with an LACP group: Open vSwitch, all in user space, for hosts whose kernel has no bonding.

Two processes in the network's namespace, whose files are in its folder.

    the network's bridge ══ Open vSwitch (its own port `switch0`) ══ the group: taps of one machine
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.network import Network, Tap
from lab.processes import child, run

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
BRIDGE, GROUP = "switch0", "group0"
SECONDS = "150"
TOGETHER = "activity timeout aggregation synchronized collecting distributing"
"""What the machine says of a card that is in the group, with `lacp_rate=fast` (IEEE 802.1AX, Actor_State)."""


@dataclass(frozen=True, slots=True)
class LacpGroup:
    """Ports of a switch that are one link once who is plugged in speaks LACP."""

    folder: Path
    network: Network
    ports: Tap

    def together(self) -> dict[str, str]:
        """The ports that carry traffic as one link, and with which machine each: by the address of its bond."""
        carrying = set(re.findall(r"^member (\S+): enabled$", self.show("bond/show"), re.MULTILINE))
        found = {}
        for member in self.show("lacp/show").split("\nmember: ")[1:]:
            port, _, status = member.partition("\n")[0].partition(": ")
            partner = dict(re.findall(r"^  partner (sys_id|state): (.+)$", member, re.MULTILINE))
            if port in carrying and (status, partner.get("state")) == ("current attached", TOGETHER):
                found[port] = partner["sys_id"]
        return found

    def show(self, what: str) -> str:
        """What ovs-appctl says of the group: `bond/show`, `lacp/show`."""
        return run(["ovs-appctl", f"--target={self.folder / 'switch.ctl'}", "--timeout", SECONDS, what, GROUP])

    def cut(self, port: str) -> None:
        """Nothing passes this port any more. The machine's card still has a link, as behind a media converter."""
        self.network.run("ip", "link", "set", port, "down")


@contextlib.contextmanager
def lacp_group(network: Network, *names: str) -> Iterator[LacpGroup]:
    """Taps of these names in one group. The first forwards before LACP has spoken, for firmware (docs/boot-stage.md);
    of what the switch sends all goes by one member, of what it gets any."""
    folder = network.folder / "switch"
    folder.mkdir()
    database, remote = folder / "conf.db", f"unix:{folder / 'db.sock'}"
    run(["ovsdb-tool", "create", str(database), str(SCHEMA)])
    own = ["env", *(f"OVS_{what}DIR={folder}" for what in ("RUN", "DB", "LOG"))]
    control = [*own, "ovs-vsctl", f"--db={remote}", "--retry", "--timeout", SECONDS]
    server = [*own, "ovsdb-server", str(database), f"--remote=p{remote}", f"--unixctl={folder / 'db.ctl'}"]
    switch = [*own, "ovs-vswitchd", remote, f"--unixctl={folder / 'switch.ctl'}"]
    for name in names:
        network.run("ip", "tuntap", "add", "dev", name, "mode", "tap")
        network.run("ip", "link", "set", name, "up")
    bridge = ["add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev"]
    group = ["add-bond", BRIDGE, GROUP, *names, "bond_mode=active-backup", "lacp=active", "other_config:lacp-time=fast"]
    group += ["other_config:lacp-fallback-ab=true", f"other_config:bond-primary={names[0]}"]
    with child("database of the switch", server, folder / "database.log", grace=3):
        run([*control, "--no-wait", "init"])
        with child("switch", switch, folder / "switch.log", namespace=network.namespace, grace=3):
            run([*control, *bridge, "--", *group])
            network.run("ip", "link", "set", BRIDGE, "master", "br0", "up")
            yield LacpGroup(folder, network, Tap(network.namespace, names[0], names[1:], offload=False))
