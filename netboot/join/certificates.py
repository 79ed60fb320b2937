"""Which client certificates were issued under a machine's boot.

Only the approver writes it: the issuer's account may not. Why it is so: docs/decisions/024.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from images.values.strict import Strict
from netboot.join.ports import Credential
from netboot.join.signing import Signing

MOST = 16
"""Certificates of one boot that may renew, the latest. A kubelet has one at a time, and two while it changes them."""
_CREDENTIAL = re.compile(r"X509SHA256=([0-9a-f]{64})")


class BootCertificates(Strict):
    """The client certificates of a machine's boot.

    `boot`, `holder` and `generation`: of the Lease under which they were issued; `sha256`: their fingerprints in hex,
    the latest last; `version`: opaque, as read, "" for a new record.
    """

    cluster: str
    machine: str
    boot: str
    holder: str
    generation: int
    sha256: tuple[str, ...] = ()
    version: str = ""

    def is_of(self, credential: Credential) -> bool:
        """Whether it was written under this very credential, and not one before a reboot, a release, a new proof."""
        mine = (self.cluster, self.machine, self.boot, self.holder, self.generation)
        return mine == (
            credential.cluster, credential.machine, credential.boot, credential.holder, credential.generation
        )  # fmt: skip


class Issued(NamedTuple):
    """A certificate, as far as it matters here. `sha256`: of its DER, in hex."""

    sha256: str
    since_ms: int
    seconds: int


class IssuedCertificates(Protocol):
    """Where it is written down, per cluster: `netboot.kube.certificates`."""

    def read(self, cluster: str, machine: str) -> BootCertificates | None:
        """Of a machine's latest boot that got one; None: nothing (that can be understood) is on record."""
        ...

    def write(self, record: BootCertificates) -> None:
        """Create (version "") or replace. Raises ConflictError: somebody else wrote since."""
        ...

    def signing(self) -> Signing | None:
        """What was seen of the cluster's signer; None: nothing yet."""
        ...

    def write_signing(self, signing: Signing) -> None:
        """Replace it."""
        ...


def fingerprint(credential_ids: Sequence[str]) -> str:
    """The certificate that a requester authenticated with, by `authentication.kubernetes.io/credential-id` of its user
    (kube-apiserver 1.32 and newer); "": the apiserver does not say."""
    match = _CREDENTIAL.fullmatch(credential_ids[0]) if len(credential_ids) == 1 else None
    return match[1] if match else ""


def issued(pem: bytes) -> Issued | None:
    """What a signer has made, the first certificate of its chain; None: it cannot be read."""
    try:
        certificate = x509.load_pem_x509_certificates(pem)[0]
    except ValueError:
        return None
    since, until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    digest = hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()
    return Issued(digest, int(since.timestamp() * 1000), int((until - since).total_seconds()))


def descends(record: BootCertificates | None, credential: Credential, sha256: str) -> bool:
    """Whether that certificate is one of the boot that the Lease names now."""
    return record is not None and record.is_of(credential) and sha256 in record.sha256


def recorded(record: BootCertificates | None, credential: Credential, sha256: str) -> BootCertificates | None:
    """The record with one certificate more, under the boot of the Lease; what is of another boot ends with it.

    None: it is there already.
    """
    if descends(record, credential, sha256):
        return None
    before = record.sha256 if record is not None and record.is_of(credential) else ()
    return BootCertificates(
        cluster=credential.cluster,
        machine=credential.machine,
        boot=credential.boot,
        holder=credential.holder,
        generation=credential.generation,
        sha256=(*before, sha256)[-MOST:],
        version=record.version if record is not None else "",
    )
