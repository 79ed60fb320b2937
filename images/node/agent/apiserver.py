"""The apiserver as this machine's kubelet knows it, for those who are handed the kubelet's own files."""

import hashlib
import re
import ssl
from pathlib import Path

from .files import small
from .net import Server

_SERVER = re.compile(r"(?m)^ +server: (https://[^\s/]+)$")
_AUTHORITY = re.compile(r"(?m)^ +certificate-authority: (/[^\s]+)$")
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n")


class UnusableError(Exception):
    """What was handed over is not what the agent and the kubelet leave."""


def apiserver(root: Path, handed: Path) -> tuple[Server, str]:
    """The apiserver as this node, and by which certificate that is: `X509SHA256=<hex>`, as the apiserver has it in
    `authentication.kubernetes.io/credential-id` (kubernetes.io: User extra).

    Raises:
        UnusableError: what was handed over is not what the agent writes.
    """
    text = (small(handed / "kubeconfig", 65536) or b"").decode("ascii", "replace")
    server, authority = _SERVER.search(text), _AUTHORITY.search(text)
    certificate = _CERTIFICATE.search(small(handed / "pair", 262144) or b"")
    if server is None or authority is None or certificate is None:
        raise UnusableError("the kubeconfig or the certificate of the kubelet is not what netboot-join leaves")
    authorities = small(root / authority[1][1:], 1024 * 1024)
    if authorities is None:
        raise UnusableError(f"cannot read {authority[1]}")
    der = ssl.PEM_cert_to_DER_cert(certificate[0].decode("ascii"))
    to = Server(server[1], authorities.decode("ascii", "replace"), pair=str(handed / "pair"))
    return to, f"X509SHA256={hashlib.sha256(der).hexdigest()}"
