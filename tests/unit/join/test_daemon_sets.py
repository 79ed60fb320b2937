"""Which DaemonSets the taint of a Node that registers keeps off, by Kubernetes' rules."""

from typing import Any

import pytest

from netboot.join.daemon_sets import FOR_EVER, DaemonSet, daemon_set, tolerated

KEY = "netboot.dev/unchecked"


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0),
        ([{"operator": "Exists"}], FOR_EVER),
        ([{"operator": "Exists", "effect": "NoExecute"}], FOR_EVER),
        ([{"operator": "Exists", "effect": "NoSchedule"}], 0),
        ([{"key": KEY, "operator": "Exists"}], FOR_EVER),
        ([{"key": KEY}], FOR_EVER),
        ([{"key": KEY, "operator": "Equal", "value": ""}], FOR_EVER),
        ([{"key": KEY, "operator": "Equal", "value": "ChecksFailed"}], 0),
        ([{"key": KEY, "operator": "Gt", "value": "0"}], 0),
        ([{"key": "netboot.dev", "operator": "Exists"}], 0),
        ([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}], 0),
        ([{"key": "a"}, {"key": "", "operator": "Exists", "effect": ""}], FOR_EVER),
        ([{"operator": "Exists", "tolerationSeconds": 300}], 300),
        ([{"operator": "Exists", "tolerationSeconds": -1}], 0),
        ([{"operator": "Exists", "tolerationSeconds": 300}, {"operator": "Exists"}], 300),
        ([{"operator": "Exists"}, {"operator": "Exists", "tolerationSeconds": 300}], FOR_EVER),
    ],
)
def test_what_tolerates_the_taint_with_which_nodes_register(tolerations: list[dict[str, Any]], seconds: int) -> None:
    assert tolerated(tolerations) == seconds


def document(name: str = "calico-node", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "kube-system", "name": name}, "spec": {"template": {"spec": spec}}}


def volume(path: str) -> dict[str, Any]:
    return {"volumes": [{"name": "a", "configMap": {}}, {"name": "b", "hostPath": {"path": path}}]}


@pytest.mark.parametrize(
    ("of", "network"),
    [
        (document(**volume("/etc/cni/net.d")), True),
        (document(**volume("/opt/cni/bin")), True),
        (document(**volume("/etc/cni")), True),
        (document(**volume("/etc/cnidaria")), False),
        (document(**volume("/run")), False),
        (document("kube-proxy"), True),
        (document("node-exporter", hostNetwork=True), False),
    ],
)
def test_which_of_them_is_likely_the_network(of: dict[str, Any], network: bool) -> None:
    assert daemon_set(of) == DaemonSet("kube-system", of["metadata"]["name"], 0, network)


def test_pods_of_another_operating_system_do_not_count() -> None:
    assert daemon_set(document(nodeSelector={"kubernetes.io/os": "windows"})) is None
    assert daemon_set(document(nodeSelector={"kubernetes.io/os": "linux", "pool": "gpu"})) is not None


def test_how_it_is_named() -> None:
    assert str(DaemonSet("kube-system", "a", 0, network=False)) == "kube-system/a"
    assert str(DaemonSet("kube-system", "a", 300, network=False)) == "kube-system/a (for 300 s)"
