"""Whether a node's certificate request may be approved: pure functions of the request and of what the inventory says.

Sources: Kubernetes "Certificates and Certificate Signing Requests" (signers kube-apiserver-client-kubelet and
kubelet-serving), k8s.io/api/certificates/v1; the rules beyond are `docs/decisions` and join's design.
"""

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from tokens.binding import PREFIX, binding_group
from tokens.errors import BindingError, CsrError, ForeignNameError, NotAllowedError

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING_SIGNER = "kubernetes.io/kubelet-serving"
LONGEST_SECONDS = 86_400
_NODE = "system:node:"
_BOOTSTRAP = re.compile(r"system:bootstrap:[a-z0-9]{6}")
_BLOCK = re.compile(rb"\s*-----BEGIN CERTIFICATE REQUEST-----\n[A-Za-z0-9+/=\n\r]+-----END CERTIFICATE REQUEST-----\s*")


@dataclass(frozen=True, slots=True)
class Request:
    """A CertificateSigningRequest's spec, as the API server recorded it."""

    signer: str
    username: str
    groups: frozenset[str]
    usages: tuple[str, ...]
    expiration_seconds: int | None
    pem: bytes


def node_of(request: Request) -> str:
    """The node that the request is for, whoever asks.

    Raises:
        CsrError: the request is not well formed, or not for a node.
    """
    return _node_name(_parse(request.pem))


def check_client(request: Request, *, allowed: bool, because: str) -> str:
    """A first client certificate, asked for with a bootstrap token. Returns the node's name.

    `allowed` and `because`: whether the inventory lets that machine join now, and why not.

    Raises:
        CsrError: the first rule that is broken.
    """
    csr, name = _check_client_form(request)
    _check_lifetime(request.expiration_seconds)
    if not _BOOTSTRAP.fullmatch(request.username):
        raise CsrError("asked for by somebody who is not a bootstrap token")
    if PREFIX not in request.groups:
        raise BindingError("asked for with a bootstrap token that is not of netboot's making")
    spki = csr.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if binding_group(name, spki) not in request.groups:
        raise BindingError(f"the token was not issued for node {name} with this key")
    if not allowed:
        raise NotAllowedError(f"node {name} may not join now: {because}")
    return name


def check_renewal(request: Request, *, allowed: bool, because: str) -> str:
    """A client certificate that a node asks for itself, for a new key. Returns the node's name.

    Raises:
        CsrError: the first rule that is broken.
    """
    _, name = _check_client_form(request)
    _check_own_lifetime(request.expiration_seconds)
    _check_requester(request, name)
    if not allowed:
        raise NotAllowedError(f"node {name} may not renew: {because}")
    return name


def check_serving(
    request: Request, *, names: Collection[str], addresses: Collection[str], allowed: bool, because: str
) -> str:
    """A serving certificate of a kubelet, for names and addresses that the inventory gives it. Returns the node's name.

    Raises:
        CsrError: the first rule that is broken.
    """
    if request.signer != SERVING_SIGNER:
        raise CsrError(f"signer {request.signer} is not {SERVING_SIGNER}")
    csr = _parse(request.pem)
    name = _node_name(csr)
    _check_requester(request, name)
    _check_usages(request.usages, "server auth")
    _check_own_lifetime(request.expiration_seconds)
    _check_key(csr)
    if not allowed:
        raise NotAllowedError(f"node {name} may not have a serving certificate: {because}")
    _check_sans(csr, {n.lower() for n in names}, {ipaddress.ip_address(a) for a in addresses})
    return name


def _check_client_form(request: Request) -> tuple[x509.CertificateSigningRequest, str]:
    if request.signer != CLIENT_SIGNER:
        raise CsrError(f"signer {request.signer} is not {CLIENT_SIGNER}")
    csr = _parse(request.pem)
    name = _node_name(csr)
    _check_usages(request.usages, "client auth")
    _check_key(csr)
    if len(csr.extensions):
        raise CsrError("a node's client certificate has no alternative names and no other extensions")
    return csr, name


def _parse(pem: bytes) -> x509.CertificateSigningRequest:
    if not _BLOCK.fullmatch(pem):
        raise CsrError("must be exactly one PEM block of a certificate request")
    try:
        csr = x509.load_pem_x509_csr(pem)
        list(csr.extensions)
        list(csr.subject)
        valid = csr.is_signature_valid
    except Exception as error:  # noqa: BLE001 - the parser has no error class of its own; whatever it says, it is no request
        raise CsrError(f"not a certificate request: {type(error).__name__}") from None
    if not valid:
        raise CsrError("the request is not signed by the key that it names")
    return csr


def _node_name(csr: x509.CertificateSigningRequest) -> str:
    subject = [(attribute.oid, attribute.value) for attribute in csr.subject]
    organisations = [value for oid, value in subject if oid == NameOID.ORGANIZATION_NAME]
    names = [value for oid, value in subject if oid == NameOID.COMMON_NAME]
    if organisations != ["system:nodes"] or len(names) != 1 or len(subject) != 2:
        raise CsrError("the subject must be exactly O=system:nodes and CN=system:node:<name>")
    name = names[0]
    if not isinstance(name, str) or not name.startswith(_NODE) or not _is_node_name(name.removeprefix(_NODE)):
        raise CsrError("the subject must be exactly O=system:nodes and CN=system:node:<name>")
    return name.removeprefix(_NODE)


def _is_node_name(name: str) -> bool:
    return bool(re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", name))


def _check_requester(request: Request, name: str) -> None:
    if request.username != _NODE + name:
        raise CsrError(f"asked for by {request.username}, only {_NODE}{name} may")
    if "system:nodes" not in request.groups:
        raise CsrError("asked for by somebody outside system:nodes")


def _check_usages(usages: tuple[str, ...], purpose: str) -> None:
    if len(set(usages)) != len(usages) or set(usages) - {"key encipherment"} != {"digital signature", purpose}:
        raise CsrError(f"the usages must be digital signature and {purpose}, and at most key encipherment beside")


def _check_lifetime(seconds: int | None) -> None:
    if seconds is None or not 600 <= seconds <= LONGEST_SECONDS:
        raise CsrError(f"expirationSeconds must be between 600 and {LONGEST_SECONDS}, it is {seconds}")


def _check_own_lifetime(seconds: int | None) -> None:
    """A kubelet's own requests name none (1.34, pkg/kubelet/certificate/kubelet.go): the signer's limit holds then."""
    if seconds is not None:
        _check_lifetime(seconds)


def _check_key(csr: x509.CertificateSigningRequest) -> None:
    key = csr.public_key()
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, (ec.SECP256R1, ec.SECP384R1)):
        return
    if isinstance(key, ed25519.Ed25519PublicKey) or (isinstance(key, rsa.RSAPublicKey) and key.key_size >= 2048):
        return
    raise CsrError("the key must be ECDSA P-256 or P-384, Ed25519, or RSA of at least 2048 bits")


Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _check_sans(csr: x509.CertificateSigningRequest, names: set[str], addresses: set[Address]) -> None:
    extensions = list(csr.extensions)
    if len(extensions) != 1 or not isinstance(extensions[0].value, x509.SubjectAlternativeName):
        raise CsrError("a serving certificate has alternative names, and no other extension")
    for san in extensions[0].value:
        if isinstance(san, x509.DNSName):
            name = san.value.lower()
            if "*" in name or name.split(".")[0].startswith("kubernetes"):
                raise ForeignNameError(f"the name {name} may not be served by a node")
            if name not in names:
                raise ForeignNameError(f"the name {name} is not this machine's")
        elif isinstance(san, x509.IPAddress):
            if san.value not in addresses:
                raise ForeignNameError(f"the address {san.value} is not this machine's")
        else:
            raise CsrError("alternative names must be DNS names or addresses")
