"""The certificate request: asked for with the token, waited for on one watch, until it is this node's certificate."""

import base64
import binascii
import contextlib
import hashlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from .answers import Admission
from .errors import AgentError, AnswerError, RefusedError, RequestError
from .key import spki
from .net import LONGEST, Server, plain, read_json

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SECONDS = 86_400
"""Lifetime that is asked for: the longest that is approved. The kubelet renews in time."""
WATCH_SECONDS = 3600
"""An hour on one watch: once it is approved the token is gone, and nothing but an open watch brings the certificate."""
UNKNOWN_SECONDS = 20.0
"""The apiserver learns of a token by watching: so long a 401 is no answer yet."""


@dataclass(frozen=True, slots=True)
class Issued:
    """The endpoint that answered, and the certificate chain (PEM)."""

    apiserver: str
    chain: bytes


@dataclass
class Request:
    """One token's request. `say` and `pause` (seconds) are the agent's."""

    admission: Admission
    key: ec.EllipticCurvePrivateKey
    say: Callable[[str], object]
    pause: Callable[[float], object]
    now: Callable[[], float] = monotonic
    _unknown_since: float | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The same for the same key and token: a request whose answer was lost is not made twice."""
        token_id = self.admission.token[:6].encode()
        return f"netboot-{hashlib.sha256(spki(self.key) + token_id).hexdigest()[:32]}"

    def obtain(self) -> Issued:
        """Try the endpoints in turn until one has brought the certificate.

        Raises:
            RequestError: denied, or the token is over: begin again with hello.
        """
        body = self._body()
        until = self.now() + max(0, self.admission.expires_ms - self.admission.now_ms) / 1000
        wait, turn = 0.2, 0
        while True:
            url = self.admission.apiservers[turn % len(self.admission.apiservers)]
            try:
                return Issued(url, self._from(Server(url, self.admission.authorities), body))
            except RequestError:
                raise
            except AgentError as error:
                self._judge(error, until)
                if not isinstance(error, RefusedError) or error.status != 401:
                    self.say(f"{error}; asking for the certificate again in {max(wait, error.after):.1f} s")
                    turn += 1
                self.pause(max(wait, error.after))
                wait = min(wait * 1.6, 10.0)

    def _judge(self, error: AgentError, until: float) -> None:
        """Whether there is any use in trying again with this token."""
        now, unknown = self.now(), isinstance(error, RefusedError) and error.status == 401
        self._unknown_since = (self._unknown_since or now) if unknown else None
        if self._unknown_since is not None and now - self._unknown_since > UNKNOWN_SECONDS:
            raise RequestError(f"the token is not accepted (any more): {error}") from None
        if now > until:
            raise RequestError(f"the token expired before there was a certificate: {error}") from None

    def _from(self, server: Server, body: Mapping[str, Any]) -> bytes:
        try:
            csr = self._call(server, "POST", PATH, body)
            self.say(f"waiting until certificate request {self.name} is approved and signed")
        except RefusedError as error:
            if error.status != 409:  # it is there already: its answer was lost, or this agent is another's successor
                raise
            csr = self._call(server, "GET", f"{PATH}/{self.name}")
        while (chain := self._read(csr, body)) is None:
            with contextlib.closing(self._watch(server, str(_at(csr, "metadata", "resourceVersion")))) as changes:
                for changed in changes:
                    chain = self._read(changed, body)
                    if chain is not None:
                        return chain
            self.pause(1.0)  # the watch ended, or its version is too old
            csr = self._call(server, "GET", f"{PATH}/{self.name}")
        return chain

    def _read(self, csr: Any, body: Mapping[str, Any]) -> bytes | None:
        if not isinstance(csr, dict) or _at(csr, "spec", "request") != body["spec"]["request"]:
            raise RequestError(f"certificate request {self.name} is not ours")
        chain = outcome(csr)
        return None if chain is None else fitting(chain, self.admission.node_name, self.key)

    def _watch(self, server: Server, version: str) -> Generator[Any, None, None]:
        """The request after each of its changes, as long as this one watch lasts."""
        if not version.isdigit():
            raise AnswerError(f"{server.url} gave the certificate request no version")
        query = f"watch=true&fieldSelector=metadata.name%3D{self.name}&timeoutSeconds={WATCH_SECONDS}"
        patient, path = replace(server, seconds=WATCH_SECONDS + 30.0), f"{PATH}?{query}&resourceVersion={version}"
        with patient.open("GET", path, headers=self._headers(), idle=patient.seconds) as response:
            if response.status != 200:
                raise server.refusal(response, response.read(LONGEST))
            while line := response.readline(LONGEST + 1):
                if len(line) > LONGEST:
                    raise AnswerError(f"{server.url} answered more than {LONGEST} bytes")
                event = read_json(line, server.url)
                kind = event.get("type") if isinstance(event, dict) else None
                if kind == "DELETED":
                    raise RequestError(f"certificate request {self.name} was deleted before it was approved")
                if kind not in ("ADDED", "MODIFIED"):
                    return
                yield event.get("object")

    def _call(self, server: Server, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return server.call(method, path, body, self._headers())

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.admission.token}"}

    def _body(self) -> dict[str, Any]:
        spec = {
            "request": base64.b64encode(csr_pem(self.admission.node_name, self.key)).decode(),
            "signerName": SIGNER,
            "usages": ["digital signature", "client auth"],
            "expirationSeconds": SECONDS,
        }
        kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
        return {**kind, "metadata": {"name": self.name}, "spec": spec}


def csr_pem(node_name: str, key: ec.EllipticCurvePrivateKey) -> bytes:
    """PKCS#10 for a node: exactly O and CN, nothing else."""
    organisation = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes")
    name = x509.Name([organisation, x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node_name}")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM)


def outcome(csr: Mapping[str, Any]) -> bytes | None:
    """The certificate chain; None: not yet.

    Raises:
        RequestError: denied or failed, with the reason that the approver gave. AnswerError: not a certificate.
    """
    for condition in _at(csr, "status", "conditions") or ():
        kind = condition.get("type") if isinstance(condition, dict) else None
        if kind in ("Denied", "Failed"):
            reason = f"{condition.get('reason') or 'no reason'}: {condition.get('message') or 'no words'}"
            raise RequestError(plain(f"the certificate request was {str(kind).lower()} ({reason})"))
    certificate = _at(csr, "status", "certificate")
    if not certificate:
        return None
    try:
        return base64.b64decode(certificate, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise AnswerError("the certificate request's certificate is not base64") from None


def fitting(chain: bytes, node_name: str, key: ec.EllipticCurvePrivateKey) -> bytes:
    """The chain, if its first certificate is for this node and this key.

    Raises:
        RequestError: it is not.
    """
    try:
        certificate = x509.load_pem_x509_certificate(chain)
        public = certificate.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        names = [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    except Exception as error:  # noqa: BLE001 - the parser has no error class of its own; whatever it says, it is none
        raise RequestError(f"what was signed is not a certificate: {type(error).__name__}") from None
    if public != spki(key) or names != [f"system:node:{node_name}"]:
        raise RequestError("the certificate that was signed is not for this node and its key")
    return chain


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
