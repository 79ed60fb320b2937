"""The files with which the kubelet starts as this node. Their places are docs/join.md's."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from .answers import Admission
from .brought import brought
from .files import put, small
from .key import pem
from .request import Issued

CA = "/etc/kubernetes/pki/ca.crt"
PAIR = "/var/lib/kubelet/pki/kubelet-client-current.pem"
KUBECONFIG = "/etc/kubernetes/kubelet.kubeconfig"
ENVIRONMENT = "/run/netboot/kubelet.env"
DROP_IN = "/etc/kubernetes/kubelet.d/20-netboot.conf"
JOINED = "/run/netboot/joined"
"""The boot that has joined; the last file to be written."""


def install(root: Path, boot: str, admission: Admission, issued: Issued, key: ec.EllipticCurvePrivateKey) -> None:
    """Write all files below `root`, each in one instant; the kubelet may be started when this returns."""
    for path, data, mode in (
        (CA, admission.authorities.encode(), 0o644),
        (PAIR, issued.chain.rstrip() + b"\n" + pem(key), 0o600),
        (ENVIRONMENT, environment(admission, brought(root)).encode(), 0o644),
        (DROP_IN, drop_in(admission).encode(), 0o644),
        (KUBECONFIG, kubeconfig(issued.apiserver).encode(), 0o600),
        (JOINED, boot.encode(), 0o644),
    ):
        put(root / path[1:], data, mode)


def has_joined(root: Path, boot: str, now: float) -> bool:
    """Whether this very boot has joined, and the certificate is still valid: then there is nothing to do."""
    if small(root / JOINED[1:], 64) != boot.encode() or small(root / KUBECONFIG[1:], 65536) is None:
        return False
    try:
        certificate = x509.load_pem_x509_certificate(small(root / PAIR[1:], 262144) or b"")
    except ValueError:
        return False
    end = getattr(certificate, "not_valid_after_utc", None) or certificate.not_valid_after.replace(tzinfo=UTC)
    return bool(datetime.fromtimestamp(now, UTC) < end)


def kubeconfig(apiserver: str) -> str:
    """The kubelet's: it names files, so that a renewed certificate is used without a restart."""
    return f"""\
apiVersion: v1
kind: Config
clusters:
- name: cluster
  cluster:
    server: {apiserver}
    certificate-authority: {CA}
users:
- name: node
  user:
    client-certificate: {PAIR}
    client-key: {PAIR}
contexts:
- name: node
  context:
    cluster: cluster
    user: node
current-context: node
"""


def environment(admission: Admission, image: Mapping[str, str]) -> str:
    """For the kubelet's unit: what its configuration file cannot say. What join says is over what the image says."""
    both = dict(image) | admission.labels
    labels = ",".join(f"{name}={value}" for name, value in sorted(both.items()))
    taints = ",".join(map(str, admission.taints))
    return f"NODE_NAME={admission.node_name}\nNODE_LABELS={labels}\nNODE_TAINTS={taints}\n"


def drop_in(admission: Admission) -> str:
    """A drop-in of the kubelet's configuration (JSON is YAML): the taints with which the node registers."""
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in admission.taints]
    kind = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    return json.dumps({**kind, "registerWithTaints": taints}, indent=1) + "\n"
