"""How long the cluster's signer lets a certificate live that asked for no limit, as kubelets' requests do.

It cannot be asked, only seen of what it has made. A serving certificate tells it as well as a client's (both come from
the one `--cluster-signing-duration` of kube-controller-manager) and opens nothing but the kubelet's own port: so until
it is known, those are approved, and a client's without a limit waits.
"""

import logging
import time
from collections.abc import Callable

from netboot.controllers.approver.decision import Purpose
from netboot.join.certificates import Issued, IssuedCertificates
from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.join.ports import Csr
from netboot.join.signing import LONGEST_SECONDS, NOT_SEEN, SIGNING_REMEDY, Signing, signing_words

log = logging.getLogger(__name__)
FRESH_SECONDS = 5.0
"""How long what is on record is not read again: an operator may have deleted it."""


class SigningDuration:
    """What is on record of one cluster's signer. Safe for threads: two that look at once see the same."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._signing: Signing | None = None
        self._due = float("-inf")

    @property
    def problem(self) -> str | None:
        """Why nothing is approved, as far as it was looked at; None: all is well."""
        signing = self._signing
        return None if signing is None or signing.seconds <= LONGEST_SECONDS else signing_words(signing)

    @property
    def _seconds(self) -> int:
        return self._signing.seconds if self._signing is not None else 0

    def check(self, csr: Csr, purpose: Purpose, certificates: IssuedCertificates) -> None:
        """Let an approval pass.

        Raises:
            ClusterUnavailableError: the signer makes certificates that live too long, or that is not known of it yet.
        """
        if self._monotonic() >= self._due:
            self._signing = self._on_record(certificates)
            self._due = self._monotonic() + FRESH_SECONDS
        if self.problem is not None:
            raise ClusterUnavailableError(f"{self.problem}: nothing is approved; {SIGNING_REMEDY}")
        if not self._seconds and purpose == "renewal" and csr.expiration_seconds is None:
            raise ClusterUnavailableError(
                "it is not known yet how long the cluster's certificates live: the first serving certificate of a "
                "kubelet shows it"
            )

    def _on_record(self, certificates: IssuedCertificates) -> Signing:
        """What is on record; where nothing is, a record is made, which says from when on it is looked."""
        known = certificates.signing()
        if known is None:
            _write(certificates, NOT_SEEN)
            known = certificates.signing()
        return known or NOT_SEEN

    def observe(self, csr: Csr, issued: Issued, certificates: IssuedCertificates) -> None:
        """Write down what a certificate shows, where that is new. One that got what it had asked for shows nothing, nor
        does one that was approved before the record was made: the signer may have been corrected since.

        Raises:
            ClusterUnavailableError: it is not written down yet.
        """
        asked = csr.expiration_seconds
        if asked is not None and not asked <= LONGEST_SECONDS < issued.seconds:
            return
        known = self._on_record(certificates)
        shown_ms = csr.approved_ms if csr.approved_ms is not None else issued.since_ms
        if shown_ms < max(known.since_ms, known.kept_since_ms) or abs(known.seconds - issued.seconds) <= 60:
            return
        self._signing = Signing(seconds=issued.seconds, since_ms=shown_ms, request=csr.name)
        _write(certificates, self._signing)
        if self.problem is None:
            log.info("%s", signing_words(self._signing))
        else:
            log.error("%s: nothing is approved; %s", signing_words(self._signing), SIGNING_REMEDY)


def _write(certificates: IssuedCertificates, signing: Signing) -> None:
    try:
        certificates.write_signing(signing)
    except ConflictError as error:
        raise ClusterUnavailableError(str(error)) from None
