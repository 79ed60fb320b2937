"""Which client certificates were issued under a machine's boot.

Only the approver writes it: the issuer's account may not. Why it is so: docs/decisions/024.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from pydantic import field_validator

from images.values.strict import Strict
from netboot.join.ports import Credential
from netboot.join.signing import LONGEST_SECONDS, Signing
from tokens.errors import TooManyError

MOST = 8
"""Certificates of one boot that live at a time. A kubelet has one, and two while it changes them."""
AT_WILL = 4
"""Of these; a kubelet that dies at each start, when its certificate is due, asks for one more at each."""
SPACE_MS = 90 * 60_000
"""Between any others: the fewer are left of the eight, the longer they have to last."""
_CREDENTIAL = re.compile(r"X509SHA256=([0-9a-f]{64})")


class BootCertificates(Strict):
    """The client certificates of a machine's boot.

    `boot`, `holder` and `generation`: of the Lease under which they were issued; `sha256`: when each of them ends, by
    its fingerprint in hex, the latest last; `latest_ms`: from when on that is valid; `version`: opaque, as read, "" for
    a new record; `lease`: the version of the Lease, which the record does not outlive, "" as read.
    """

    cluster: str
    machine: str
    boot: str
    holder: str
    generation: int
    sha256: Mapping[str, int] = {}
    """In ms since 1970; 0: an older netboot wrote it, which kept no end, and more of them than a kubelet uses."""
    latest_ms: int = 0
    version: str = ""
    lease: str = ""

    @field_validator("sha256", mode="before")
    @classmethod
    def _without_ends(cls, value: object) -> object:
        return dict.fromkeys(value[-2:], 0) if isinstance(value, list | tuple) else value

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


def require_room(record: BootCertificates | None, credential: Credential, now_ms: int) -> None:
    """
    Raises:
        TooManyError: so many live, and the latest is so new, that there is no room for another now.
    """
    alive = len(living(record, credential, now_ms))
    if record is None or alive < AT_WILL or (alive < MOST and now_ms - record.latest_ms >= SPACE_MS):
        return
    raise TooManyError(
        f"{alive} certificates of node {credential.node} from boot {credential.boot} are in force, where a kubelet has "
        f"two at most: either it dies at each start (`journalctl -u kubelet`), or somebody else has its key; reboot "
        f"machine {credential.machine}, then none of them renews"
    )


def living(record: BootCertificates | None, credential: Credential, now_ms: int) -> dict[str, int]:
    """Those of the boot that the Lease names now that have not ended by `now_ms`, and when they will."""
    if record is None or not record.is_of(credential):
        return {}
    longest = now_ms + LONGEST_SECONDS * 1000
    ends = {sha256: until_ms or longest for sha256, until_ms in record.sha256.items()}
    return {sha256: until_ms for sha256, until_ms in ends.items() if until_ms > now_ms}


def recorded(
    record: BootCertificates | None, credential: Credential, issued: Issued, now_ms: int
) -> BootCertificates | None:
    """The record with one certificate more, under the boot of the Lease; what is of another boot, or has ended, goes.

    None: it is there already.

    Raises:
        TooManyError: none that lives makes room for another, for it may be the owner's.
    """
    if descends(record, credential, issued.sha256):
        return None
    before = living(record, credential, now_ms)
    if len(before) >= MOST:
        raise TooManyError(
            f"{MOST} certificates of node {credential.node} from boot {credential.boot} are in force, and none of them "
            "makes room: what was approved beside them is not recorded, and renews nothing"
        )
    return BootCertificates(
        cluster=credential.cluster,
        machine=credential.machine,
        boot=credential.boot,
        holder=credential.holder,
        generation=credential.generation,
        sha256=before | {issued.sha256: issued.since_ms + issued.seconds * 1000},
        latest_ms=issued.since_ms,
        version=record.version if record is not None else "",
        lease=credential.version,
    )
