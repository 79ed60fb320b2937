"""`CSRApproved` of a machine's boot: written down once for each request, as far as this process remembers."""

import logging
from typing import Protocol

from pydantic import ValidationError

from netboot.controllers.approver.backlog import Remembered
from netboot.join.ports import Csr
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.ports import Clock

log = logging.getLogger(__name__)


class Facts(Protocol):
    """Where facts are written down: `netboot.stores.facts.Facts`."""

    def append(self, record: EventRecord) -> None:
        """Durable when it returns; raises JournalUnavailableError."""
        ...


class Approvals:
    """What was approved, as facts. Safe for threads."""

    def __init__(self, facts: Facts, clock: Clock) -> None:
        self._facts, self._clock, self._told = facts, clock, Remembered()

    def told(self, csr: Csr) -> bool:
        """Whether it is written down; False also where that was forgotten: once more does no harm."""
        return csr.uid in self._told

    def tell_if_possible(self, csr: Csr, machine: str, boot: str, sha256: str = "") -> None:
        """A machine's certificate matters more than the record of it; whoever finishes the request tries again."""
        try:
            self.tell(csr, machine, boot, sha256)
        except CannotTellError as error:
            log.error("the approval of %s is not written down yet: %s", csr.name, error)  # noqa: TRY400

    def tell(self, csr: Csr, machine: str, boot: str, sha256: str = "") -> None:
        """Write it down. `sha256`: of the certificate, once it is there.

        Raises:
            CannotTellError: the disk refuses.
        """
        fields = {"machine": machine, "boot": boot, "detail": f"certificate request {csr.name}"[:300], "peer": ""}
        fields["sha256"] = sha256
        try:
            record = EventRecord.model_validate({"at_ms": self._clock.now_ms(), "phase": Phase.CSR_APPROVED, **fields})
        except ValidationError:
            log.warning("the Lease of %s names no boot (%r): nothing to write down", machine, boot)
        else:
            self._facts.append(record)
        self._told.add(csr.uid)
