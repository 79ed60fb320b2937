"""Which labels the Node of a machine has from us, and who writes each: the kubelet when it registers, or the service.

A kubelet may write some of Kubernetes' own names, and all that are not Kubernetes': `ValidateKubeletFlags`
(cmd/kubelet/app/options), with which one that is told more does not start, and `getForbiddenLabels` of the admission
plugin NodeRestriction, which also keeps it from `node-restriction.kubernetes.io/`.
"""

from collections.abc import Mapping

from netboot.config_nodes import NodeLabels
from netboot.join.ports import MARK, NodeView
from netboot.machines.topology import NOWHERE, Topology
from netboot.machines.values import Machine

_KUBERNETES = ("kubernetes.io", "k8s.io")
_KUBELETS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_NAMED = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
"""`kubeletLabels` of k8s.io/kubelet/pkg/apis/well_known_labels.go."""


def of_kubelets(key: str) -> bool:
    """Whether a kubelet may write it."""
    namespace = key.rpartition("/")[0]
    if not any(_below(namespace, each) for each in _KUBERNETES):
        return True
    return key in _NAMED or any(_below(namespace, each) for each in _KUBELETS)


def registered(machine: Machine) -> dict[str, str]:
    """With which the node registers: what is declared and a kubelet may write, and our mark."""
    return {key: value for key, value in machine.node.labels.items() if of_kubelets(key)} | MARK


def written(machine: Machine, rack: Topology, keys: NodeLabels) -> dict[str, str]:
    """What the service writes: where it stands, and what is declared and no kubelet may write. A label that is declared
    is over a place of the same key, for a kubelet writes its zone and region again and again (`updateDefaultLabels`).
    """
    declared = machine.node.labels
    stands = places((machine.topology or NOWHERE).over(rack), keys)
    ours = {key: value for key, value in stands.items() if key not in declared}
    return ours | {key: value for key, value in declared.items() if not of_kubelets(key)}


def places(topology: Topology, keys: NodeLabels) -> dict[str, str]:
    """Labels of a place."""
    said = {
        keys.zone: topology.zone,
        keys.region: topology.region,
        keys.accelerator_domain: topology.accelerator_domain,
    }
    if keys.tier is not None:
        said |= {keys.tier.replace("{n}", str(n)): place for n, place in enumerate(topology.tiers)}
    return {key: place for key, place in said.items() if key is not None and place is not None}


def differ(node: NodeView, wanted: Mapping[str, str]) -> bool:
    """Whether a Node has not what the service writes, or still has what it wrote before."""
    return set(node.written) != wanted.keys() or any(node.labels.get(key) != value for key, value in wanted.items())


def _below(namespace: str, domain: str) -> bool:
    return namespace == domain or namespace.endswith(f".{domain}")
