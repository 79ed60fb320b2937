"""`netboot.join.ports.CertificateRequests`."""

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from kubernetes import client

from netboot.join.certificates import fingerprint
from netboot.join.errors import ConflictError
from netboot.join.ports import Csr
from netboot.kube.connection import Connection, milliseconds
from netboot.kube.errors import StatusError
from netboot.kube.following import follow

SIGNERS = ("kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving")
MOST_BYTES = 16_384
"""Of a request or certificate, in base64; a longer one is none. A kubelet's have less than two thousand."""
MOST_USAGES = 32
"""That are looked at; a request with more is denied for those."""
_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
_PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


class KubeCertificateRequests:
    """CertificateSigningRequests of the two kubelet signers; others' are passed over."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._api = connection, client.CertificatesV1Api(connection.api)

    def watch(self, seconds: float) -> Iterator[Csr]:
        for request in follow(self._connection, self._api.list_certificate_signing_request, _PATH, seconds):
            if request["spec"].get("signerName") in SIGNERS:
                yield _csr(request)

    def approve(self, csr: Csr, reason: str, message: str) -> None:
        self._decide(csr, "Approved", reason, message)

    def deny(self, csr: Csr, reason: str, message: str) -> None:
        self._decide(csr, "Denied", reason, message)

    def _decide(self, csr: Csr, decision: str, reason: str, message: str) -> None:
        condition = {"type": decision, "status": "True", "reason": reason, "message": message}
        body = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            # The uid and the version make this a decision about the very request that was looked at.
            "metadata": {"name": csr.name, "uid": csr.uid, "resourceVersion": csr.version},
            "spec": {"request": base64.b64encode(csr.pem).decode(), "signerName": csr.signer},
            "status": {"conditions": [condition]},
        }
        try:
            operation = self._api.replace_certificate_signing_request_approval
            self._connection.call(operation, csr.name, body, expected=(404, 409))
        except StatusError:
            raise ConflictError(f"the certificate request {csr.name} was changed by somebody else since") from None


def _csr(request: dict[str, Any]) -> Csr:
    metadata, spec, status = request["metadata"], request["spec"], request.get("status") or {}
    decisions = {condition["type"]: condition.get("lastUpdateTime") for condition in status.get("conditions") or ()}
    approved = decisions.get("Approved")
    return Csr(
        name=str(metadata["name"]),
        uid=str(metadata["uid"]),
        version=str(metadata["resourceVersion"]),
        signer=str(spec["signerName"]),
        username=str(spec.get("username") or ""),
        groups=tuple(spec.get("groups") or ()),
        usages=tuple((spec.get("usages") or ())[:MOST_USAGES]),
        expiration_seconds=spec.get("expirationSeconds"),
        pem=_pem(spec.get("request") or ""),
        decided=bool(decisions.keys() & {"Approved", "Denied"}),
        credential=fingerprint((spec.get("extra") or {}).get(_CREDENTIAL_ID) or ()),
        certificate=_pem(status.get("certificate") or ""),
        approved_ms=milliseconds(approved) if approved else None,
    )


def _pem(text: str) -> bytes:
    if len(text) > MOST_BYTES:
        return b""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""  # no certificate request: the policy says so in its words
