"""Machines that join: each with a TPM in software, an address of its own, and what its initrd would have left."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)

from bench.serving import BenchError, get
from bench.site import Identity, boot_path
from tests.agent_tpm import SoftTpm
from tests.soft_tpm import Machine

BOOT = re.compile(rb"netboot\.boot=([0-9a-f-]{36})")


@dataclass(frozen=True)
class Member:
    """One machine of the fleet; picklable. Keys of its TPM in DER; `resets`: what its TPM counts."""

    name: str
    address: str
    ek: bytes
    ak: bytes
    boot: str = ""
    mac: str = ""
    resets: int = 0

    def tpm(self) -> SoftTpm:
        """A TPM in software with its keys and counters, as after its last boot."""
        ek, ak = (load_der_private_key(der, None) for der in (self.ek, self.ak))
        assert isinstance(ek, ec.EllipticCurvePrivateKey) and isinstance(ak, ec.EllipticCurvePrivateKey)
        return SoftTpm(Machine(self.boot, ek=ek, ak=ak, resets=self.resets))

    def rebooted(self, times: int = 1) -> "Member":
        """The same after so many resets."""
        return replace(self, resets=self.resets + times)


@dataclass(frozen=True)
class Door:
    """Where members go: the service's report address and join's, and who is believed there (PEM)."""

    report: str
    join: str
    authorities: str


def members(count: int) -> list[Member]:
    """So many, each with an EK and AK on P-256 made now: no clock runs yet."""
    # An address of 127/8 for each, so that the service's limits for one address count as they would for machines.
    return [Member(f"node-{n}", f"127.70.{n // 250}.{n % 250 + 1}", _key(), _key()) for n in range(count)]


def _key() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def booted(fleet: Sequence[Member], port: int, identities: Sequence[Identity]) -> list[Member]:
    """Each with the boot that its script gives it: a new one, after a reset.

    Raises:
        BenchError: a script that boots nothing.
    """
    done = []
    for member, identity in zip(fleet, identities, strict=True):
        status, script = get(port, boot_path(identity))
        match = BOOT.search(script)
        if status != 200 or match is None:
            raise BenchError(f"{member.name} gets no boot from its script: status {status}: {script[:200]!r}")
        done.append(replace(member.rebooted(), boot=match[1].decode(), mac=identity.mac))
    return done


def furnish(root: Path, member: Member, door: Door) -> Path:
    """What the initrd leaves below `root` for the agent (docs/join.md)."""
    run = root / "run/netboot"
    run.mkdir(parents=True)
    env = {"BOOT": member.boot, "IMAGE": "0" * 64, "REPORT": door.report, "MAC": member.mac, "NAME": member.name}
    (run / "boot.env").write_text("".join(f"{name}={value}\n" for name, value in env.items()))
    site = {"join_url": door.join, "join_authorities": [door.authorities], "issued": 1}
    (run / "site.json").write_text(json.dumps(site))
    return root
