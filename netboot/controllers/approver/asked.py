"""Whom the approver asks, and what it finds there."""

from collections.abc import Callable
from typing import NamedTuple

from netboot.controllers.approver.backlog import Remembered
from netboot.join.certificates import IssuedCertificates, issued
from netboot.join.ports import CertificateRequests, Csr, Leases, Tokens


class Cluster(NamedTuple):
    """The apiserver, as the approver's account sees it."""

    requests: CertificateRequests
    leases: Leases
    tokens: Tokens
    certificates: IssuedCertificates


class NotOnRecordError(Exception):
    """The certificate of whoever asks is none of its boot, yet."""


def to_record(sha256: str, noted: Remembered) -> Callable[[Csr], bool]:
    """Whether a request has that certificate, and it is still to be recorded. `noted`: uids of those that are not."""

    def records(csr: Csr) -> bool:
        if not csr.issued or csr.uid in noted:
            return False
        certificate = issued(csr.certificate)
        return certificate is not None and certificate.sha256 == sha256

    return records
