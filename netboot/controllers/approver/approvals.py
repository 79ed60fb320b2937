"""`CSRApproved` of a machine's boot, and its client certificates: written down once for each request, as far as this
process remembers."""

import logging
from contextlib import suppress
from typing import Protocol

from pydantic import ValidationError

from netboot.controllers.approver.backlog import Remembered
from netboot.join.certificates import Issued
from netboot.join.ports import Credential, Csr
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.events import CertificateRecord, EventRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.ports import Clock

log = logging.getLogger(__name__)


class Facts(Protocol):
    """Where facts are written down: `netboot.stores.facts.Facts`."""

    def append(self, record: EventRecord | CertificateRecord) -> None:
        """Durable when it returns; raises JournalUnavailableError."""
        ...


class Approvals:
    """What was approved, as facts. Safe for threads."""

    def __init__(self, facts: Facts, clock: Clock) -> None:
        self._facts, self._clock, self._told = facts, clock, Remembered()
        self._untold: dict[str, CertificateRecord] = {}
        """Of requests that somebody still has to finish."""

    def told(self, csr: Csr) -> bool:
        """Whether it is written down; False also where that was forgotten: once more does no harm."""
        return csr.uid in self._told

    def tell_if_possible(self, csr: Csr, machine: str, boot: str) -> None:
        """A machine's certificate matters more than the record of it; whoever finishes the request tries again."""
        try:
            self.tell(csr, machine, boot)
        except CannotTellError as error:
            log.error("the approval of %s is not written down yet: %s", csr.name, error)  # noqa: TRY400

    def certified(self, csr: Csr, credential: Credential, certificate: Issued) -> None:
        """A certificate was signed for the boot that a machine's Lease names: written down now, or when it is asked
        for again."""
        until_ms = certificate.since_ms + certificate.seconds * 1000
        fields = {"machine": credential.machine, "boot": credential.boot, "until_ms": until_ms}
        try:
            record = {"at_ms": self._clock.now_ms(), "sha256": certificate.sha256, **fields}
            self._untold[csr.uid] = CertificateRecord.model_validate(record)
        except ValidationError:
            words = "the Lease of %s names no boot (%r): no report counts under its certificate"
            named = {"machine": credential.machine, "boot": credential.boot}
            log.warning(words, credential.machine, credential.boot, extra={"fields": named})
        with suppress(CannotTellError):
            self.tell_certificate(csr)

    def tell_certificate(self, csr: Csr) -> None:
        """Write down what is not yet of its certificate.

        Raises:
            CannotTellError: the disk refuses.
        """
        if (record := self._untold.get(csr.uid)) is not None:
            self._facts.append(record)
            self._untold.pop(csr.uid, None)

    def tell(self, csr: Csr, machine: str, boot: str) -> None:
        """Write it down.

        Raises:
            CannotTellError: the disk refuses.
        """
        fields = {"machine": machine, "boot": boot, "detail": f"certificate request {csr.name}"[:300], "peer": ""}
        try:
            record = EventRecord.model_validate({"at_ms": self._clock.now_ms(), "phase": Phase.CSR_APPROVED, **fields})
        except ValidationError:
            named = {"machine": machine, "boot": boot}
            log.warning(
                "the Lease of %s names no boot (%r): nothing to write down", machine, boot, extra={"fields": named}
            )
        else:
            self._facts.append(record)
        self._told.add(csr.uid)
