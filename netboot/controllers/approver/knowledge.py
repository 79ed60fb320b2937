"""What is known of the machine that a request concerns: inventory, enrolment, Lease."""

import logging
from collections.abc import Callable

from netboot.controllers.approver.decision import Known, is_of_boot, nodes_named, purpose_of
from netboot.join.certificates import Issued, IssuedCertificates, recorded
from netboot.join.errors import ClusterUnavailableError, ConflictError, RefusedError
from netboot.join.ports import Credential, Csr, Enrolments, Leases
from netboot.lifecycle.published import View
from netboot.machines.values import Machine

log = logging.getLogger(__name__)


class Machines:
    """Machines of one cluster by the name of their node, as `view` has them now. Safe for threads."""

    def __init__(self, cluster: str, view: Callable[[], View]) -> None:
        self._cluster, self._view = cluster, view
        self._of: tuple[View | None, dict[str, Machine]] = (None, {})

    def named(self, node: str) -> Machine | None:
        """The machine that joins under this name.

        Raises:
            NotReadyError: nothing has been published yet.
        """
        return self.all().get(node)

    def all(self) -> dict[str, Machine]:
        """Every one.

        Raises:
            NotReadyError: nothing has been published yet.
        """
        view = self._view()
        known, machines = self._of
        if view is not known:
            declared = view.snapshot.inventory.machines
            machines = {machine.node_name: machine for machine in declared if machine.cluster == self._cluster}
            self._of = (view, machines)
        return machines


class Knowledge:
    """Asks whoever knows, anew for each request: what is decided here is in force for a day."""

    def __init__(self, cluster: str, machines: Machines, enrolments: Enrolments, now_ms: Callable[[], int]) -> None:
        self._cluster, self._machines, self._enrolments, self._now_ms = cluster, machines, enrolments, now_ms

    def of(self, csr: Csr, leases: Leases, certificates: IssuedCertificates) -> Known:
        """What is known of the first node it names that is, or was, a machine of ours.

        Raises:
            CannotTellError: the apiserver, the state or the inventory cannot be asked right now.
            RefusedError: the machine's Lease is damaged; the words say what to do.
        """
        names = nodes_named(csr)
        for name in names:
            machine = self._machines.named(name)
            if machine is not None:
                credential = leases.read(self._cluster, machine.name)
                record = certificates.read(self._cluster, machine.name)
                enrolment = self._enrolments.of(machine.name)
                return Known(self._cluster, name, machine, enrolment, credential, record, self._now_ms())
        if purpose_of(csr) in ("renewal", "serving"):
            for name in names:
                credential = self._departed(name, leases)
                if credential is not None:
                    return Known(self._cluster, name, credential=credential)
        return Known(self._cluster, names[0] if names else "")

    def record(
        self, csr: Csr, certificate: Issued, leases: Leases, certificates: IssuedCertificates
    ) -> Credential | None:
        """Write down that a certificate is one of its machine's boot, where it is; of no other may one be renewed.
        Returns what the machine's Lease says of that boot; None: it is of no boot in force.

        Raises:
            CannotTellError: it is not written down yet. TooManyError: it is not, for those that are leave it no room.
        """
        if not any(self._machines.named(name) for name in nodes_named(csr)):
            return None  # and no Lease is looked through for it
        try:
            known = self.of(csr, leases, certificates)
        except RefusedError as error:
            log.warning("the certificate of the request %s is of no boot: %s", csr.name, error)
            return None
        if known.credential is None or not is_of_boot(csr, known):
            return None
        record = recorded(known.certificates, known.credential, certificate, known.now_ms)
        try:
            if record is not None:
                certificates.write(record)
        except ConflictError as error:
            raise ClusterUnavailableError(str(error)) from None  # and not: somebody else has done it
        return known.credential

    def _departed(self, node: str, leases: Leases) -> Credential | None:
        """Of a machine that the inventory has no longer."""
        credentials = (
            credential for credential in leases.all() if credential.cluster == self._cluster and credential.node == node
        )
        return next(credentials, None)
