"""The approver on a stage: its own loop and threads, cluster and enrolment in memory, waits that are short."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from images.values.backoff import Backoff
from netboot.controllers import reflector
from netboot.controllers.approver import approver as module
from netboot.controllers.approver import signing as signing_module
from netboot.controllers.approver.approver import Approver
from netboot.controllers.approver.asked import Cluster
from netboot.controllers.approver.knowledge import Knowledge, Machines
from netboot.join.enrolment import Act, Import
from netboot.join.errors import ClusterUnavailableError, NotLeadingError
from netboot.join.ports import Credential, Csr
from netboot.lifecycle.errors import JournalUnavailableError, NotReadyError
from netboot.lifecycle.events import CertificateRecord, EventRecord
from netboot.lifecycle.published import View
from netboot.lifecycle.snapshot import Snapshot
from netboot.machines.values import Inventory, Machine, Match, Node
from tests.enrolments import MemoryEnrolments
from tests.kube_fake import FakeCluster
from tests.kubelets import KEY, client, spki
from tests.processes import wait_for
from tests.records import START, boot_id

BOOT = boot_id("gpu-001", 1)
INVENTORY = Inventory(
    machines=(
        Machine(
            name="gpu-001",
            match=Match(macs=("52:54:00:00:00:01",)),
            profile="compute",
            node=Node(addresses=("192.0.2.7",)),
        ),
        Machine(name="other", cluster="other", match=Match(macs=("52:54:00:00:00:02",)), profile="compute"),
    )
)


class FixedClock:
    def now_ms(self) -> int:
        return START


class MemoryFacts:
    """Records in a list; with `failure` every append fails."""

    def __init__(self) -> None:
        self.records: list[EventRecord] = []
        self.certificates: list[CertificateRecord] = []
        self.failure: str | None = None

    def append(self, record: EventRecord | CertificateRecord) -> None:
        if self.failure is not None:
            raise JournalUnavailableError(self.failure)
        if isinstance(record, CertificateRecord):
            self.certificates.append(record)
        else:
            self.records.append(record)


class Led:
    """A port whose writes go through only while its replica leads, as `netboot.kube.transport` has it."""

    def __init__(self, port: object, leads: Callable[[], bool]) -> None:
        self._port, self._leads = port, leads

    def __getattr__(self, name: str) -> object:
        if name in ("approve", "deny", "delete", "write", "write_signing") and not self._leads():
            return self._refuse
        return getattr(self._port, name)

    def _refuse(self, *_arguments: object) -> None:
        raise NotLeadingError("another replica leads")


class Stage:
    """A cluster, what is known of gpu-001, and approvers."""

    def __init__(self) -> None:
        self.cluster, self.facts, self.enrolments = FakeCluster(), MemoryFacts(), MemoryEnrolments()
        self.enrolments.apply([("gpu-001", Import("e" * 64))], Act(), START)
        self.published = True
        self.connecting = ""
        self.now_ms = self.cluster.now_ms
        self.running: list[Approver] = []
        self.issue("abc123")

    def issue(self, token: str) -> None:
        """As join does before it hands out a token."""
        before = self.cluster.credentials.get(("default", "gpu-001"))
        held = Credential(
            machine="gpu-001", cluster="default", node="gpu-001", assurance="tpm", boot=BOOT,
            holder=hashlib.sha256(spki(KEY)).hexdigest(), holder_spki="",
            ek_sha256="e" * 64, token_id=token, token_expires_ms=START + 300_000, at_ms=START,
            version=before.version if before else "",
        )  # fmt: skip
        self.cluster.leases.write(held)
        self.cluster.tokens.create({"stringData": {"token-id": token}})

    def view(self) -> View:
        if not self.published:
            raise NotReadyError("nothing has been published yet")
        return View.of(
            Snapshot(
                site="test", published_ms=START, inventory=INVENTORY, channels={}, unusable={}, images={},
                url="http://192.0.2.1:8080", origins=("http://192.0.2.1:8080",),
            )
        )  # fmt: skip

    def approver(self) -> Approver:
        """One that has just started."""
        return self.replica(lambda: True, self.facts)

    def replica(self, leads: Callable[[], bool], facts: MemoryFacts) -> Approver:
        """One of several, that writes its facts there."""
        knowledge = Knowledge("default", Machines("default", self.view), self.enrolments, lambda: self.now_ms)
        guarded = lambda: Cluster(*(Led(each, leads) for each in self.connect()))  # type: ignore[arg-type]  # noqa: E731
        one = Approver("default", guarded, knowledge, facts, FixedClock(), leads)
        self.running.append(one)
        one.start()
        return one

    def connect(self) -> Cluster:
        if self.connecting:
            raise ClusterUnavailableError(self.connecting)
        return Cluster(self.cluster.requests, self.cluster.leases, self.cluster.tokens, self.cluster.certificates)

    def join(self) -> str:
        """The machine gets its first certificate; its fingerprint, once it is on record."""
        csr = self.cluster.submit(client())
        assert self.decision(csr)[0] == "Approved"
        wait_for(lambda: self.on_record)
        return self.on_record[-1]

    @property
    def on_record(self) -> tuple[str, ...]:
        record = self.cluster.certificates.records.get(("default", "gpu-001"))
        return tuple(record.sha256) if record is not None else ()

    def decision(self, csr: Csr) -> tuple[str, str, str]:
        return wait_for(lambda: self.cluster.decisions.get(csr.name))

    def called(self, call: str) -> int:
        return sum(one.split()[0] == call for one in self.cluster.calls)


@contextmanager
def staged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A stage whose approvers wait for no longer than a test can; they are stopped at its end."""
    for where in (reflector, module):
        monkeypatch.setattr(where, "AGAIN", Backoff(0.01, 0.05))
    monkeypatch.setattr(reflector, "SHORT_SECONDS", 0.05)
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(module, "FOLLOW_SECONDS", 0.01)
    monkeypatch.setattr(signing_module, "FRESH_SECONDS", 0.0)
    made = Stage()
    try:
        yield made
    finally:
        for one in made.running:
            one.stop()
