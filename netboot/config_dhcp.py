"""The section `dhcp` of `netboot.yaml`: what `netboot dhcp config` has to know of networks. The service reads none."""

import itertools
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Self

from pydantic import Field, model_validator

from images.values.strict import Strict


class Subnet(Strict):
    """A network of machines, on the server's own wire or behind a relay (whose address is one of this network)."""

    subnet: IPv4Network
    range: tuple[IPv4Address, IPv4Address] | None = None
    """First and last address that is given out; None: another server gives addresses there."""
    router: IPv4Address | None = None
    name_servers: Annotated[tuple[IPv4Address, ...], Field(max_length=8)] = ()

    @model_validator(mode="after")
    def _inside(self) -> Self:
        if self.range is not None:
            if self.range[0] > self.range[1]:
                raise ValueError("range must be [first, last] with first not above last")
            if not all(self._host(address) for address in self.range):
                raise ValueError(f"range must lie in {self.subnet}, and have neither its first nor its last address")
        if self.router is not None and not self._host(self.router):
            raise ValueError(f"router must be an address of {self.subnet}")
        return self

    def _host(self, address: IPv4Address) -> bool:
        edges = (self.subnet.network_address, self.subnet.broadcast_address)
        return address in self.subnet and address not in edges


class Dhcp(Strict):
    """What a DHCP server is to be told of this site."""

    tftp: IPv4Address | None = None
    """The TFTP server (option 66, `next-server`); None: the host of `provisioning.url`."""
    subnets: Annotated[tuple[Subnet, ...], Field(max_length=1024)] = ()

    @model_validator(mode="after")
    def _apart(self) -> Self:
        ordered = sorted(subnet.subnet for subnet in self.subnets)
        for one, other in itertools.pairwise(ordered):
            if one.overlaps(other):
                raise ValueError(f"subnets {one} and {other} overlap: an address belongs to one of them")
        return self
