"""Whether a node's certificate request may be approved: pure functions of the request and of what the inventory says.

What a request says is read in `tokens.pkcs10`, in the one way in which its signer reads it too.

Sources: Kubernetes "Certificates and Certificate Signing Requests" (signers kube-apiserver-client-kubelet and
kubelet-serving), k8s.io/api/certificates/v1; the rules beyond are `docs/decisions` and join's design.
"""

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass

from tokens.binding import PREFIX, binding_group
from tokens.errors import BindingError, CsrError, ForeignNameError, NotAllowedError
from tokens.pkcs10 import Address, NodeRequest, read

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING_SIGNER = "kubernetes.io/kubelet-serving"
LONGEST_SECONDS = 86_400
_NODE = "system:node:"
_BOOTSTRAP = re.compile(r"system:bootstrap:[a-z0-9]{6}")


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
    return read(request.pem).node


def check_client(request: Request, *, allowed: bool, because: str) -> str:
    """A first client certificate, asked for with a bootstrap token. Returns the node's name.

    `allowed` and `because`: whether the inventory lets that machine join now, and why not.

    Raises:
        CsrError: the first rule that is broken.
    """
    csr = _check_client_form(request)
    name = csr.node
    _check_lifetime(request.expiration_seconds)
    if not _BOOTSTRAP.fullmatch(request.username):
        raise CsrError("asked for by somebody who is not a bootstrap token")
    if PREFIX not in request.groups:
        raise BindingError("asked for with a bootstrap token that is not of netboot's making")
    if binding_group(name, csr.spki) not in request.groups:
        raise BindingError(f"the token was not issued for node {name} with this key")
    if not allowed:
        raise NotAllowedError(f"node {name} may not join now: {because}")
    return name


def check_renewal(request: Request, *, allowed: bool, because: str) -> str:
    """A client certificate that a node asks for itself, for a new key. Returns the node's name.

    Raises:
        CsrError: the first rule that is broken.
    """
    name = _check_client_form(request).node
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
    csr = read(request.pem)
    name = csr.node
    _check_requester(request, name)
    _check_usages(request.usages, "server auth")
    _check_own_lifetime(request.expiration_seconds)
    if not allowed:
        raise NotAllowedError(f"node {name} may not have a serving certificate: {because}")
    _check_sans(csr, {n.lower() for n in names}, {ipaddress.ip_address(a) for a in addresses})
    return name


def _check_client_form(request: Request) -> NodeRequest:
    if request.signer != CLIENT_SIGNER:
        raise CsrError(f"signer {request.signer} is not {CLIENT_SIGNER}")
    csr = read(request.pem)
    _check_usages(request.usages, "client auth")
    if csr.names or csr.addresses:
        raise CsrError("a node's client certificate has no alternative names and no other extensions")
    return csr


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


def _check_sans(csr: NodeRequest, names: set[str], addresses: set[Address]) -> None:
    if not csr.names and not csr.addresses:
        raise CsrError("a serving certificate has alternative names, and no other extension")
    for name in (name.lower() for name in csr.names):
        if "*" in name or name.split(".")[0].startswith("kubernetes"):
            raise ForeignNameError(f"the name {name} may not be served by a node")
        if name not in names:
            raise ForeignNameError(f"the name {name} is not this machine's")
    for address in csr.addresses:
        if address not in addresses:
            raise ForeignNameError(f"the address {address} is not this machine's")
