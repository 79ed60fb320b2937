"""The Kubernetes adapters as a `tests.kube_contract.World`, with what happens beside them."""

import base64
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lab.kube.accounts import Admin
from netboot.join.certificates import IssuedCertificates
from netboot.join.control_plane import ControlPlane
from netboot.join.node_drains import NodeDrains
from netboot.join.node_events import NodeEvents
from netboot.join.ports import MARK, CertificateRequests, Leases, Nodes, Tokens
from netboot.join.self_check import Preconditions
from netboot.kube.certificates import KubeIssuedCertificates
from netboot.kube.connection import Connection
from netboot.kube.control_plane import KubeControlPlane
from netboot.kube.drains import KubeDrains
from netboot.kube.elections import KubeElection
from netboot.kube.events import KubeNodeEvents
from netboot.kube.leases import KubeLeases
from netboot.kube.nodes import KubeNodes
from netboot.kube.preconditions import KubePreconditions
from netboot.kube.requests import KubeCertificateRequests
from netboot.kube.secrets import KubeTokens
from netboot.lifecycle.control_planes import LABEL
from tests.processes import wait_for

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/netboot/leases"
CONFIG_MAPS = "/api/v1/namespaces/netboot/configmaps"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
SECRETS = "/api/v1/namespaces/kube-system/secrets"
NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/kube-system/pods"
LEASE_GROUP, ADMISSION_GROUP = "coordination.k8s.io", "admissionregistration.k8s.io"
CLIENT_SIGNER, SERVING_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
OTHER_SIGNER = "kubernetes.io/kube-apiserver-client"


class RealWorld:
    """A `World` of the adapters; what happens beside them is done by the administrator, by plain HTTP."""

    def __init__(self, connections: dict[str, Connection], admin: Admin) -> None:
        issuer = connections["issuer"]
        self.leases: Leases = KubeLeases(issuer, "netboot")
        self.tokens: Tokens = KubeTokens(issuer)
        self.nodes: Nodes = KubeNodes(issuer)
        self.collector: Nodes = KubeNodes(connections["nodes"])
        self.drains: NodeDrains = KubeDrains(connections["nodes"])
        self.events: NodeEvents = KubeNodeEvents(connections["nodes"], "test")
        self.requests: CertificateRequests = KubeCertificateRequests(connections["approver"])
        self.served: Tokens = KubeTokens(connections["approver"])
        self.looked_up: Leases = KubeLeases(connections["approver"], "netboot")
        self.preconditions: Preconditions = KubePreconditions(issuer, "netboot")
        self.certificates: IssuedCertificates = KubeIssuedCertificates(connections["approver"], "netboot")
        self.elections = {
            kind: KubeElection(connections[kind], "netboot-leaders", kind) for kind in ("approver", "nodes")
        }
        self.control_plane: ControlPlane = KubeControlPlane(connections["nodes"])
        self._admin = admin
        self._made: list[str] = []
        self._bound: dict[str, tuple[str, str]] = {}
        """Of each binding its group and its role."""

    def make_node(self, name: str, *, ready: bool = False, boot_id: str = "") -> None:
        if self._admin("GET", f"{NODES}/{name}").status_code == 404:
            self._create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for _ in range(20):  # the controllers write to it, too
            node = self._admin("GET", f"{NODES}/{name}").json()
            labels = node["metadata"].setdefault("labels", {})
            if not MARK.items() <= labels.items():  # one that has it from the beginning has to be shut, too
                labels |= MARK
                answer = self._admin("PUT", f"{NODES}/{name}", node)
                if answer.status_code != 200:
                    continue
                node = answer.json()
            node["status"] |= {"conditions": [condition], "nodeInfo": {"bootID": boot_id}}
            answer = self._admin("PUT", f"{NODES}/{name}/status", node)
            if answer.status_code == 200:
                return
        raise AssertionError(answer.text)

    def make_control(self, name: str, *, ready: bool, etcd: bool | None) -> None:
        self.make_node(name, ready=ready)
        for _ in range(20):  # the controllers write to it, too
            node = self._admin("GET", f"{NODES}/{name}").json()
            node["metadata"]["labels"][LABEL] = ""
            if (answer := self._admin("PUT", f"{NODES}/{name}", node)).status_code == 200:
                break
        assert answer.status_code == 200, answer.text
        if etcd is None:
            return
        pod = {"name": f"etcd-{name}", "annotations": {"kubernetes.io/config.mirror": "of a file"}}
        spec = {"nodeName": name, "containers": [{"name": "etcd", "image": "etcd"}]}
        self._create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": spec})
        made = self._admin("GET", f"{PODS}/etcd-{name}").json()
        made["status"]["conditions"] = [{"type": "Ready", "status": str(etcd)}]
        assert self._admin("PUT", f"{PODS}/etcd-{name}/status", made).status_code == 200

    def keep_node(self, name: str, *, kept: bool) -> None:
        for _ in range(20):  # the controllers write to it, too
            node = self._admin("GET", f"{NODES}/{name}").json()
            node["metadata"]["finalizers"] = ["example.com/kept"] if kept else []
            answer = self._admin("PUT", f"{NODES}/{name}", node)
            if answer.status_code == 200:
                return
        raise AssertionError(answer.text)

    def submit(self, name: str, *, ours: bool = True) -> None:
        self.submit_to(CLIENT_SIGNER if ours else "example.com/other", name)

    def submit_to(self, signer: str, name: str) -> None:
        """A bootstrapper asks a signer for a certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, f"system:node:{name}")]
        names = x509.Name([x509.NameAttribute(oid, value) for oid, value in subject])
        csr = x509.CertificateSigningRequestBuilder().subject_name(names).sign(key, hashes.SHA256())
        spec = {
            "request": base64.b64encode(csr.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": signer,
            "usages": ["digital signature", "server auth" if signer == SERVING_SIGNER else "client auth"],
            "expirationSeconds": 3600,
        }
        kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
        # Not as the administrator, for whom Kubernetes' own approver would approve at once.
        who = {"user": "system:bootstrap:abc123", "group": "system:bootstrappers:netboot"}
        self._create(CSRS, {**kind, "metadata": {"name": name}, "spec": spec}, **who)

    def touch(self, name: str) -> None:
        csr = self._admin("GET", f"{CSRS}/{name}").json()
        csr["metadata"]["annotations"] = {"touched": "yes"}
        assert self._admin("PUT", f"{CSRS}/{name}", csr).status_code == 200

    def token_ids(self) -> set[str]:
        items = self._admin("GET", SECRETS).json()["items"]
        prefix = "bootstrap-token-"
        return {name.removeprefix(prefix) for one in items if (name := one["metadata"]["name"]).startswith(prefix)}

    def bind(self, name: str, role: str, group: str) -> None:
        rbac = "rbac.authorization.k8s.io"
        binding = {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": rbac, "kind": "Group", "name": group}],
        }
        self._create(BINDINGS, binding)
        self._bound[name] = (group, role)
        wait_for(lambda: self._granted(group, role))  # the authorizer learns of it by watching

    def unbind(self, name: str) -> None:
        self._admin("DELETE", f"{BINDINGS}/{name}")
        wait_for(lambda: not self._granted(*self._bound[name]))

    def _granted(self, group: str, role: str) -> bool:
        return self.preconditions.may("x", [group], "create", *role.removeprefix("system:").split(":"))

    def clean(self) -> None:
        for path in self._made:
            self._admin("DELETE", path)
        self._admin("DELETE", LEASES)
        self._admin("DELETE", f"{CONFIG_MAPS}?labelSelector=app.kubernetes.io/managed-by=netboot")

    def _create(self, path: str, body: Any, **who: str) -> None:
        created = self._admin("POST", path, body, **who)
        assert created.status_code == 201, created.text
        self._made.append(f"{path}/{body['metadata']['name']}")
