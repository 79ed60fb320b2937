"""Join on a stage: the service's own code, a cluster and enrolment in memory, a clock that tests move."""

import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from netboot.join import messages
from netboot.join.attest import attest
from netboot.join.exchange import Exchange
from netboot.join.hello import hello
from netboot.join.issue import Issuer
from netboot.join.ports import ClusterAccess, Enrolments, Leases, Nodes, Tokens
from netboot.lifecycle.bootid import belongs, mint
from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.published import View
from netboot.lifecycle.snapshot import Revocations, Snapshot
from netboot.machines.values import Channel, Inventory, Machine, Profile
from tests import soft_tpm
from tests.enrolments import MemoryEnrolments
from tests.intents import MemoryIntents
from tests.kube_fake import FakeCluster
from tokens.sealed import Keyset, SealingKey

NOW = 1_790_000_000_000
KEY = b"k" * 32
IMAGE = "e" * 64
"""What scripts name."""
NONCE_KEY = SealingKey(b"n" * 32)
PEER = "192.0.2.11"
ENDPOINTS = ("https://192.0.2.1:6443",)
AUTHORITIES = "-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n"


def boot_id(machine: str, number: int = 1) -> str:
    """The `number`-th boot of a machine."""
    return mint(KEY, machine, IMAGE, NOW + number * 1_000, number)


def snapshot_of(*machines: Machine) -> Snapshot:
    """Machines that may join; what they boot does not matter here."""
    inventory = Inventory(
        machines=machines, profiles=(Profile(name="compute", channel="stable"),), channels=(Channel(name="stable"),)
    )
    url = "http://192.0.2.1:8080"
    return Snapshot(
        site="test",
        published_ms=NOW,
        inventory=inventory,
        channels={"stable": None},
        unusable={},
        images={},
        url=url,
        origins=(url,),
    )


def declared(name: str = "gpu-001", **more: Any) -> Machine:
    """A machine of the inventory."""
    fields: dict[str, Any] = {"name": name, "profile": "compute", "match": {"macs": (soft_tpm.MAC,)}}
    return Machine.model_validate(fields | more)


def pinned(machine: soft_tpm.Machine, name: str = "gpu-001", **more: Any) -> Machine:
    """The same with this machine's TPM on record."""
    match = {"macs": machine.macs, "serial": machine.serial, "ek_sha256": machine.ek_sha256}
    return declared(name, **({"match": match} | more))


@dataclass
class Stage:
    """`machines`: the inventory. `exchange()`: one replica, with the stage's cluster unless given others' ports."""

    machines: tuple[Machine, ...] = ()
    now_ms: int = NOW
    cluster: FakeCluster = field(default_factory=FakeCluster)
    enrolments: Enrolments = field(default_factory=MemoryEnrolments)
    intents: MemoryIntents = field(default_factory=MemoryIntents)
    keys: list[SealingKey] = field(default_factory=lambda: [SealingKey(b"s" * 32)])
    records: list[EventRecord] = field(default_factory=list)
    preflight: Callable[[], None] = lambda: None
    revoked: tuple[str, ...] = ()
    booted: dict[str, str] = field(default_factory=dict)
    """The images of boots."""
    image_of: Callable[[str], str | None] | None = None
    addresses_attest: bool = False
    boot_key: bytes = KEY
    journal: Callable[[EventRecord], None] | None = None
    leases: Leases | None = None
    apiserver_ahead_ms: int = 0
    """Of the stage's own clock."""
    tokens: Tokens | None = None
    nodes: Nodes | None = None

    def exchange(self, ahead_ms: int = 0) -> Exchange:
        """A replica whose clock is `ahead_ms` ahead of the stage's."""
        cluster = ClusterAccess(
            name="default",
            endpoints=ENDPOINTS,
            authorities=AUTHORITIES,
            leases=self.leases or self.cluster.leases,
            tokens=self.tokens or self.cluster.tokens,
            nodes=self.nodes or self.cluster.nodes,
            preflight=lambda: self.preflight(),
            clock_ahead_ms=lambda: self.apiserver_ahead_ms,
            server_version=str,
        )
        issuer = Issuer(
            clusters={"default": cluster},
            enrolments=self.enrolments,
            intents=self.intents,
            journal=self.journal or self.records.append,
            now_ms=lambda: self.now_ms + ahead_ms,
            choice=secrets.choice,
        )
        return Exchange(
            issuer=issuer,
            site="test",
            view=lambda: View.of(
                snapshot_of(*self.machines).model_copy(update={"revocations": Revocations(images=self.revoked)})
            ),
            keyset=lambda: Keyset(tuple(self.keys)),
            nonce_keyset=lambda: Keyset((NONCE_KEY,)),
            belongs=lambda boot, machine: belongs(self.boot_key, boot, machine),
            random=os.urandom,
            token_seconds=300,
            image_of=self.image_of or self.booted.get,
            addresses_attest=self.addresses_attest,
        )

    def hello(self, machine: soft_tpm.Machine, *, peer: str = PEER, ahead_ms: int = 0, **changes: Any) -> Any:
        """Post hello; the answer as JSON."""
        body = messages.read(dumps(machine.hello(**changes)), messages.Hello)
        return hello(self.exchange(ahead_ms), body, peer).as_json()

    def attest(
        self, machine: soft_tpm.Machine, answer: Any, *, peer: str = PEER, ahead_ms: int = 0, **changes: Any
    ) -> Any:
        """Post attest; the answer as JSON."""
        body = messages.read(dumps(machine.attest(answer, **changes)), messages.Attest)
        return attest(self.exchange(ahead_ms), body, peer).as_json()

    def join(self, machine: soft_tpm.Machine, peer: str = PEER) -> Any:
        """A whole exchange."""
        return self.attest(machine, self.hello(machine, peer=peer), peer=peer)


def dumps(body: Any) -> bytes:
    """JSON as an agent sends it."""
    return json.dumps(body).encode()
