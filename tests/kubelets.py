"""What agents and kubelets ask of the apiserver, for tests: certificate requests, good ones and bent ones."""

import base64
import ipaddress
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from netboot.join.ports import Csr
from tokens.binding import PREFIX, binding_group
from tokens.csr import CLIENT_SIGNER, SERVING_SIGNER

FIRST = "1" * 64
"""The fingerprint of the certificate with which a kubelet asks, where a test says nothing else."""
Key = ec.EllipticCurvePrivateKey
KEY, THIEF = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
USAGES = {CLIENT_SIGNER: ("digital signature", "client auth"), SERVING_SIGNER: ("digital signature", "server auth")}


def spki(key: Key) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def pem(node: str, key: Key = KEY, sans: Sequence[str] = (), organisations: Sequence[str] = ("system:nodes",)) -> bytes:
    """A request; `sans`: names and addresses."""
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organisations]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node}"))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if sans:
        builder = builder.add_extension(x509.SubjectAlternativeName([_san(one) for one in sans]), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _san(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def client(node: str = "gpu-001", token: str = "abc123", key: Key = KEY, **altered: Any) -> Csr:
    """As the agent asks with its token, and the apiserver records it."""
    groups = ("system:bootstrappers", PREFIX, binding_group(node, spki(key)), "system:authenticated")
    plain = Csr(
        name=f"netboot-{node}-{token}",
        uid=f"uid-{node}-{token}",
        version="1",
        signer=CLIENT_SIGNER,
        username=f"system:bootstrap:{token}",
        groups=groups,
        usages=USAGES[CLIENT_SIGNER],
        expiration_seconds=86_400,
        pem=pem(node, key),
        decided=False,
    )
    return plain._replace(**altered)


def renewal(node: str = "gpu-001", **altered: Any) -> Csr:
    """As a kubelet asks with the certificate it has; it names no lifetime."""
    mine = {"name": f"csr-{node}", "uid": f"uid-csr-{node}", "username": f"system:node:{node}", "credential": FIRST}
    groups = ("system:nodes", "system:authenticated")
    return client(node)._replace(**{**mine, "groups": groups, "expiration_seconds": None, **altered})


def serving(node: str = "gpu-001", sans: Sequence[str] = ("gpu-001", "192.0.2.7"), **altered: Any) -> Csr:
    """As a kubelet asks for its serving certificate."""
    what = {"signer": SERVING_SIGNER, "usages": USAGES[SERVING_SIGNER], "pem": pem(node, sans=sans)}
    return renewal(node, **{"name": f"serving-{node}", "uid": f"uid-serving-{node}", **what, **altered})


def signed(csr: Csr, signs_for_seconds: int, since: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> bytes:
    """The certificate, as a controller-manager signs it: for as long as was asked, and not longer than it may."""
    asked = x509.load_pem_x509_csr(csr.pem)
    lifetime = timedelta(seconds=min(csr.expiration_seconds or signs_for_seconds, signs_for_seconds))
    builder = x509.CertificateBuilder().subject_name(asked.subject).issuer_name(asked.subject)
    builder = builder.public_key(asked.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(since).not_valid_after(since + lifetime)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def csr_object(csr: Csr, name: str) -> dict[str, Any]:
    """What is posted to the apiserver: the request as an object of that name."""
    spec: dict[str, Any] = {
        "request": base64.b64encode(csr.pem).decode(),
        "signerName": csr.signer,
        "usages": list(csr.usages),
    }
    if csr.expiration_seconds is not None:
        spec["expirationSeconds"] = csr.expiration_seconds
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def condition(kind: str) -> dict[str, str]:
    """Of a Node, or of a Pod: that this is so, now."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"type": kind, "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
