"""`netboot cluster` and `netboot doctor`, as an operator uses them, with a real control plane."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from netboot.join.preconditions import SELFNODECLIENT
from tests.commands import Run
from tests.kube_world import RealWorld

pytestmark = pytest.mark.cluster
DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
def site(tmp_path: Path, run: Run, control_plane: Cluster, accounts: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site whose `default` is the control plane; its kubeconfigs are not made yet."""
    folder = tmp_path / "site"
    assert run("init", folder, "--url", "http://192.0.2.1:8080").status == 0
    monkeypatch.chdir(folder)
    configure(folder, endpoints=[control_plane.url], authority=str(control_plane.folder / "ca.crt"))
    return folder


def configure(site: Path, **cluster: Any) -> None:
    path = site / "netboot.yaml"
    document = yaml.safe_load(path.read_text())
    document.setdefault("clusters", {}).setdefault("default", {}).update(cluster)
    document["management"]["listen"] = "127.0.0.1:9"
    path.write_text(yaml.safe_dump(document))


def doctor(run: Run) -> tuple[int, dict[tuple[str, str], dict[str, str]]]:
    done = run("doctor", "--output", "json")
    return done.status, {(one["where"], one["name"]): one for one in json.loads(done.out)["diagnoses"]}


def outcomes(found: dict[tuple[str, str], dict[str, str]]) -> dict[str, str]:
    return {name: one["outcome"] for (where, name), one in found.items() if where == "cluster default"}


def test_the_kubeconfigs_are_made_private_and_good(run: Run, site: Path, control_plane: Cluster) -> None:
    done = run("cluster", "kubeconfigs", "--admin-kubeconfig", control_plane.admin, "--days", 90)
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    for role, line in zip(("issuer", "approver", "nodes"), lines, strict=False):
        path = site / "secrets" / f"{role}.kubeconfig"
        assert line.startswith(f"wrote {path}: netboot-{role}, until 20")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert yaml.safe_load(path.read_text())["users"][0]["user"]["token"] not in done.out
    assert lines[3].startswith("make them again before 20") and lines[3].endswith("warns 30 days before")
    _, found = doctor(run)
    assert outcomes(found) == {
        f"endpoint {control_plane.url}": "ok",
        "kubeconfig of the issuer": "ok",
        "version of Kubernetes": "ok",
        "clock": "ok",
        "rights of the issuer": "ok",
        "least privilege of the issuer": "ok",
        "admission policy netboot-tokens": "ok",
        "admission policy netboot-nodes": "ok",
        "admission policy netboot-taints": "ok",
        "admission policy netboot-gate": "ok",
        "admission policy netboot-deletions": "ok",
        "admission policy netboot-leases": "ok",
        "Leases in admission": "ok",
        "first certificates": "ok",
        "renewals": "ok",
        "signing duration": "ok",
        "kubeconfig of the approver": "ok",
        "rights of the approver": "ok",
        "kubeconfig of the nodes": "ok",
        "rights of the nodes": "ok",
        "DaemonSets and the gate": "advice",
    }


def test_tokens_that_end_soon_and_files_that_others_read_are_told(run: Run, site: Path, control_plane: Cluster) -> None:
    assert run("cluster", "kubeconfigs", "--admin-kubeconfig", control_plane.admin, "--days", 7).status == 0
    issuer = site / "secrets" / "issuer.kubeconfig"
    os.chmod(issuer, 0o644)
    done = run("doctor", "--quiet")
    assert f"WARN  cluster default: kubeconfig of the issuer: others can read {issuer} (mode 0644)" in done.out
    assert f"      → `chmod 600 {issuer}`" in done.out
    assert f"WARN  cluster default: kubeconfig of the nodes: the token in {site}/secrets/nodes.kubeconfig expires" in (
        done.out
    )
    assert "renew it: `netboot cluster kubeconfigs`" in done.out


def test_what_kubeadm_leaves_is_told_with_the_command(
    run: Run, site: Path, control_plane: Cluster, world: RealWorld
) -> None:
    assert run("cluster", "kubeconfigs", "--admin-kubeconfig", control_plane.admin).status == 0
    name = "kubeadm:node-autoapprove-certificate-rotation"
    world.bind(name, SELFNODECLIENT, "system:nodes")
    try:
        done = run("doctor")
    finally:
        world.unbind(name)
    assert done.status == 1
    assert (
        "FAIL  cluster default: renewals: a machine that was taken out of service could renew its certificate for "
        f"ever: ClusterRoleBinding {name} binds ClusterRole {SELFNODECLIENT}\n"
    ) in done.out
    assert f"`kubectl delete clusterrolebinding {name}`" in done.out


def daemon_set(name: str, path: str = "/run", **spec: Any) -> dict[str, Any]:
    labels, volume = {"app": name}, {"name": "host", "hostPath": {"path": path}}
    pod = {"containers": [{"name": "a", "image": "a"}], "volumes": [volume], **spec}
    template = {"metadata": {"labels": labels}, "spec": pod}
    metadata, selector = {"name": name, "namespace": "kube-system"}, {"matchLabels": labels}
    kind = {"apiVersion": "apps/v1", "kind": "DaemonSet"}
    return {**kind, "metadata": metadata, "spec": {"selector": selector, "template": template}}


def test_daemon_sets_that_a_shut_gate_keeps_off(
    run: Run, site: Path, control_plane: Cluster, as_admin: Admin, accounts: dict[str, Path]
) -> None:
    """Seen with the administrator's kubeconfig: no account of ours may list them."""

    def said(*arguments: object) -> list[tuple[str, str, str]]:
        found = json.loads(run("doctor", "--output", "json", *arguments).out)["diagnoses"]
        return [
            (one["outcome"], one["words"], one["remedy"]) for one in found if one["name"] == "DaemonSets and the gate"
        ]

    look = "`netboot doctor --admin-kubeconfig FILE` looks"
    assert said() == [("advice", "not looked at: no account of netboot's may list DaemonSets", look)]
    for role, path in accounts.items():
        words = f"cannot be told: the account of {path} may not list DaemonSets"
        right = "`kubectl auth can-i list daemonsets --all-namespaces` has to say yes"
        assert said("--quiet", "--admin-kubeconfig", path) == [("unknown", words, right)], role
    how = ("--admin-kubeconfig", control_plane.admin, "--server", "https://127.0.0.1:9")
    assert run("cluster", "kubeconfigs", *how).status == 0
    words = "cannot be told: the apiserver 127.0.0.1:9 cannot be reached: Connection refused"
    assert said("--admin-kubeconfig", f"default={site}/secrets/nodes.kubeconfig") == [
        ("unknown", words, "give a kubeconfig that works from here")
    ]
    daemon_sets = "/apis/apps/v1/namespaces/kube-system/daemonsets"
    made = (
        daemon_set("calico-node", "/etc/cni/net.d", tolerations=[{"operator": "Exists", "effect": "NoSchedule"}]),
        daemon_set("kube-proxy", tolerations=[{"operator": "Exists"}]),
        daemon_set("node-exporter"),
        daemon_set("windows", nodeSelector={"kubernetes.io/os": "windows"}),
    )
    admin = ("--admin-kubeconfig", control_plane.admin)
    try:
        for document in made:
            answer = as_admin("POST", daemon_sets, document)
            assert answer.status_code == 201, answer.text
        add = "add to its Pods' tolerations `{key: netboot.dev/unchecked, operator: Exists, effect: NoExecute}`"
        network = (
            "likely the network of Pods, and does not tolerate netboot.dev/unchecked:NoExecute: kube-system/calico-node"
            "; no node is Ready before its gate is open, and none whose checks fail at all"
        )
        others = "these start when a node's gate opens, and not before: kube-system/node-exporter"
        assert said(*admin) == [
            ("warn", network, add),
            ("advice", others, f"where one has to run on a node that is shut, {add}"),
        ]
    finally:
        for document in made:
            as_admin("DELETE", f"{daemon_sets}/{document['metadata']['name']}")
    assert said(*admin) == [("ok", f"all of {control_plane.url} tolerate netboot.dev/unchecked:NoExecute", "")]


def test_a_kubeconfig_is_of_a_cluster_that_is_configured(run: Run, site: Path, control_plane: Cluster) -> None:
    missing = run("doctor", "--admin-kubeconfig", "nowhere")
    assert (missing.status, missing.err.splitlines()[0]) == (3, "Error: there is no nowhere")
    path = site / "netboot.yaml"
    document = yaml.safe_load(path.read_text())
    document["clusters"]["other"] = {"endpoints": ["https://192.0.2.1:6443"], "authority": "tls/ca.crt"}
    path.write_text(yaml.safe_dump(document))
    done = run("doctor", "--admin-kubeconfig", control_plane.admin)
    assert (done.status, done.err.splitlines()[-1]) == (
        2,
        f"Error: --admin-kubeconfig {control_plane.admin}: say CLUSTER=FILE, with a cluster of default, other",
    )


def test_a_site_without_kubeconfigs_and_service_is_told_what_to_do(run: Run, site: Path) -> None:
    status, found = doctor(run)
    assert status == 1
    assert found[("service", "running")]["remedy"] == "start it: `netboot serve`"
    for role, where in (
        ("issuer", ("cluster default", "kubeconfig of the issuer")),
        ("approver", ("site", "approver.kubeconfig")),
        ("nodes", ("site", "nodes.kubeconfig")),
    ):
        assert found[where]["words"].endswith(
            f"{site}/secrets/{role}.kubeconfig cannot be read (No such file or directory): "
            "make it with `netboot cluster kubeconfigs`"
        )
        assert found[where]["remedy"]
    assert found[("join", "configured")]["outcome"] == "refuse"


def test_an_authority_that_is_another_ones_is_found_out(run: Run, site: Path, control_plane: Cluster) -> None:
    configure(site, authority="tls/ca.crt")
    _, found = doctor(run)
    endpoint = found[("cluster default", f"endpoint {control_plane.url}")]
    assert endpoint["outcome"] == "refuse"
    assert endpoint["words"].startswith("nodes would not believe it: ")
    configure(site, authority="nowhere.crt")
    _, found = doctor(run)
    assert found[("cluster default", "authority")]["words"] == f"{site}/nowhere.crt: No such file or directory"


def test_an_apiserver_that_is_down_is_neither_right_nor_forgotten(run: Run, site: Path, control_plane: Cluster) -> None:
    how = ("--admin-kubeconfig", control_plane.admin, "--server", "https://127.0.0.1:9")
    assert run("cluster", "kubeconfigs", *how).status == 0
    status, found = doctor(run)
    assert status == 1
    said = found[("cluster default", "apiserver, as the issuer and the approver and the nodes")]
    assert said["words"] == "cannot be told: the apiserver 127.0.0.1:9 cannot be reached: Connection refused"
    assert said["remedy"].startswith("is it up, and reached from here? `kubectl --kubeconfig ")


def test_accounts_that_are_not_there_yet(run: Run, site: Path, control_plane: Cluster) -> None:
    configure(site, namespace="elsewhere")
    done = run("cluster", "kubeconfigs", "--admin-kubeconfig", control_plane.admin)
    assert done.status == 4
    assert done.err == (
        "Error: there is no ServiceAccount elsewhere/netboot-issuer yet: apply the manifests first "
        "(`netboot cluster manifests | kubectl apply -f -`)\n"
    )
    assert not list((site / "secrets").glob("*.kubeconfig"))


def test_a_cluster_that_is_not_configured(run: Run, site: Path, control_plane: Cluster) -> None:
    done = run("cluster", "kubeconfigs", "--admin-kubeconfig", control_plane.admin, "--name", "prod")
    assert (done.status, done.err) == (
        3,
        "Error: the configuration has no cluster 'prod' (it has: default): add it to `clusters`\n",
    )


def test_the_rule_is_printed_where_gates_are_told_and_the_doctor_says_that_it_was_not_tried(
    run: Run, site: Path
) -> None:
    done = run("cluster", "readiness-rule")
    assert (done.status, done.out) == (1, "")
    assert done.err == (
        "Error: the cluster 'default' has no `gate_condition: true`, so no Node would have the condition "
        "netboot.dev/Gate, and the rule would keep work off all of them: set it, start the service again, then ask "
        "again\n"
    )
    assert ("cluster default", "gate_condition") not in doctor(run)[1]
    configure(site, gate_condition=True)
    assert run("cluster", "readiness-rule").out == (DEPLOY / "node-readiness" / "rule.yaml").read_text()
    said = doctor(run)[1]["cluster default", "gate_condition"]
    assert (said["outcome"], said["remedy"]) == (
        "warn",
        "none is needed: netboot's own taint keeps Pods off whatever it does; see docs/gate.md",
    )
    assert said["words"] == (
        "gates are told by the condition netboot.dev/Gate; the Node Readiness Controller, which may act on it, was "
        "never run by netboot's tests: its rule was checked against its published schema alone"
    )


def test_the_manifests_are_those_of_deploy(run: Run, site: Path) -> None:
    done = run("cluster", "manifests")
    files = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    assert done.out == "---\n".join(file.read_text() for file in files)
    configure(site, namespace="machines")
    moved = run("cluster", "manifests", "--name", "default").out
    assert "netboot:netboot-issuer" not in moved
    assert "system:serviceaccount:machines:netboot-issuer" in moved
    for one in ("", "-leaders"):
        assert moved.count(f"namespace: machines{one}\n") == done.out.count(f"namespace: netboot{one}\n") > 0
    assert "name: machines\n" in moved
