"""Machines as they stand in the rack, and how the inventory declares them."""

from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from tests import soft_tpm


@dataclass
class Chassis:
    """A machine as it stands in the rack. `declared`, `node`: more of its entry in the inventory, and of its `node`."""

    name: str
    number: int
    ek: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP384R1()))
    declared: dict[str, Any] = field(default_factory=dict)
    node: dict[str, Any] = field(default_factory=dict)
    on_record: bool = True
    """Whether the inventory pins its TPM."""
    resets: int = 4

    @property
    def mac(self) -> str:
        return f"52:54:00:00:01:{self.number:02x}"

    @property
    def serial(self) -> str:
        return f"S-{self.number:03}"

    @property
    def address(self) -> str:
        """Any of 127.0.0.0/8 is this machine."""
        return f"127.0.1.{self.number}"

    def entry(self) -> dict[str, Any]:
        """As the inventory has it."""
        match: dict[str, Any] = {"macs": [self.mac], "serial": self.serial}
        if self.on_record:
            match["ek_sha256"] = self.as_it_is("").ek_sha256
        node = {"addresses": [self.address]} | self.node
        return {"name": self.name, "profile": "compute", "match": match, "node": node, **self.declared}

    def as_it_is(self, boot: str, **more: Any) -> soft_tpm.Machine:
        """The machine in this boot."""
        own: dict[str, Any] = {"macs": (self.mac,), "serial": self.serial, "ek": self.ek, "resets": self.resets}
        return soft_tpm.Machine(boot, **(own | more))
