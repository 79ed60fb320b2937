"""A provisioning network without IPv4: the host has an address, a router announces the prefix, DHCPv6 what to boot."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from lab.network import Network, common, serve
from lab.processes import run


def host(network: Network) -> str:
    """Give the host an IPv6 address on the network, and take what the lab announces for its own from it."""
    outer = f"nblab{network.number}"
    for name, value in (("accept_ra", "0"), ("disable_ipv6", "0")):
        Path(f"/proc/sys/net/ipv6/conf/{outer}/{name}").write_text(value)
    address = f"{network.prefix}1"
    run(["ip", "-6", "addr", "add", f"{address}/64", "dev", outer, "nodad"])
    return address


@contextlib.contextmanager
def router(network: Network, boot_url: str) -> Iterator[None]:
    """A real dnsmasq: the prefix (RFC 4861, of no router), and by stateless DHCPv6 the URL for firmware (RFC 5970)."""
    lines = [
        "enable-ra",
        "ra-param=*,5,0",
        f"dhcp-range={network.prefix},ra-stateless,64",
        f"dhcp-option=option6:bootfile-url,{boot_url}",
    ]
    with contextlib.ExitStack() as stack:
        serve(stack, network, "dnsmasq", common(network, "br0") + lines)
        yield
