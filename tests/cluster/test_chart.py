"""The Helm chart before a real API server: what it is made of is taken, by PodSecurity too; upgraded; removed, and the
volumes stay. There is no kubelet: Pods are made, and wait."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.chart import CHART, examples, helm, rendered
from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from lab.kube.programs import find
from netboot.kube.connection import connect
from netboot.kube.errors import ClusterRefusedError
from netboot.kube.resources.definitions import definitions
from tests import kube_schemas
from tests.charts import ALL, ALONE, THREE
from tests.cluster.conftest import CACHE
from tests.processes import wait_for

pytestmark = pytest.mark.cluster
NAME = "chart-test"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACE = f"/api/v1/namespaces/{NAME}"
SET = f"/apis/apps/v1/namespaces/{NAME}/statefulsets/netboot"
CLAIMS = {"data-netboot-0", "store-netboot-0"}
WITHOUT = ("--set", "serviceMonitor.enabled=false")
"""Whose definitions are Prometheus' own."""


@pytest.fixture
def namespace(as_admin: Admin) -> Iterator[None]:
    labels = {
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/enforce-version": "latest",
    }
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME, "labels": labels}}
    assert as_admin("POST", "/api/v1/namespaces", document).status_code == 201
    yield
    as_admin("DELETE", NAMESPACE)
    wait_for(lambda: as_admin("GET", NAMESPACE).status_code == 404)


@pytest.fixture
def defined(as_admin: Admin) -> Iterator[None]:
    made = [definition for definition in definitions() if definition["spec"]["names"]["plural"] == "machines"]
    for definition in made:
        assert as_admin("POST", DEFINITIONS, definition).status_code == 201
    machines = f"/apis/netboot.dev/v1alpha1/namespaces/{NAME}/machines"
    wait_for(lambda: as_admin("GET", machines).status_code == 200)
    yield
    for definition in made:
        as_admin("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")
    wait_for(lambda: as_admin("GET", machines).status_code == 404)


def test_it_is_installed_upgraded_and_removed(
    control_plane: Cluster, as_admin: Admin, namespace: None, defined: None, tmp_path: Path
) -> None:
    def run(*arguments: str) -> str:
        return helm(*arguments, "-n", NAME, "--kubeconfig", str(control_plane.admin))

    run("install", "netboot", str(CHART), "-f", str(ALL), *WITHOUT)
    pod = wait_for(lambda: found(as_admin, f"{NAMESPACE}/pods/netboot-0"))
    assert pod["spec"]["serviceAccountName"] == "netboot"
    assert wait_for(lambda: claims(as_admin) == CLAIMS)
    as_the_pod(control_plane, as_admin, tmp_path)
    before = found(as_admin, SET)
    run("upgrade", "netboot", str(CHART), "-f", str(ALL), *WITHOUT)
    assert generation(as_admin) == before["metadata"]["generation"]  # nothing new, and nothing begins anew
    run("upgrade", "netboot", str(CHART), "-f", str(ALL), *WITHOUT, "--set", "config.minimum_epoch=1")
    assert generation(as_admin) == before["metadata"]["generation"] + 1
    run("uninstall", "netboot", "--wait")
    wait_for(lambda: found(as_admin, f"{NAMESPACE}/pods/netboot-0") is None)
    assert (found(as_admin, SET), claims(as_admin)) == (None, CLAIMS)


STEP = (
    "replicas: who asks for no Lease acts beside the leader, so all but one go before that is changed: upgrade with "
    "`replicas: 1` and `config: {replicas: {}}`, and wait until one Pod is left and ready; then go on"
)


def test_from_one_replica_to_three_and_back(control_plane: Cluster, as_admin: Admin, namespace: None) -> None:
    """In a restricted namespace. Whether they ask who leads changes while there is one alone."""
    # Of what a StatefulSet has for claims nothing may change.
    same = ("--set", "storage.data.storageClassName=,storage.store.storageClassName=")

    def run(what: str, values: Path, *more: str) -> None:
        where = ("-n", NAME, "--kubeconfig", str(control_plane.admin))
        helm(what, "netboot", str(CHART), "-f", str(values), *WITHOUT, *same, *more, *where)

    def refused(values: Path) -> None:
        before = found(as_admin, SET)["metadata"]["generation"]
        with pytest.raises(subprocess.CalledProcessError) as caught:
            run("upgrade", values)
        assert caught.value.stderr == (
            f"Error: UPGRADE FAILED: execution error at (netboot/templates/config.yaml:1:4): {STEP}\n"
        )
        assert generation(as_admin) == before

    def budget() -> Any:
        return found(as_admin, f"/apis/policy/v1/namespaces/{NAME}/poddisruptionbudgets/netboot")

    run("install", ALL, "--set", "podDisruptionBudget.enabled=null")
    wait_for(lambda: claims(as_admin) == CLAIMS)
    assert budget() is None
    refused(THREE)
    run("upgrade", THREE, "--set", "replicas=1", "--set-json", "config.replicas={}")
    run("upgrade", THREE)
    wait_for(lambda: pods(as_admin) == {"netboot-0", "netboot-1", "netboot-2"})
    wait_for(lambda: len(claims(as_admin)) == 6)
    assert budget()["spec"]["maxUnavailable"] == 1
    refused(ALL)
    run("upgrade", THREE, "--set", "replicas=1", "--set-json", "config.replicas={}")
    wait_for(lambda: pods(as_admin) == {"netboot-0"})
    assert (len(claims(as_admin)), budget()) == (6, None)
    run("upgrade", ALL)
    helm("uninstall", "netboot", "--wait", "-n", NAME, "--kubeconfig", str(control_plane.admin))


def as_the_pod(control_plane: Cluster, as_admin: Admin, folder: Path) -> None:
    """What is mounted for it leads to the API server, with a token that is renewed; and it may read Machines alone."""
    account = f"{NAMESPACE}/serviceaccounts/netboot/token"

    def token() -> str:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        }
        return str(as_admin("POST", account, request).json()["status"]["token"])

    document = found(as_admin, f"{NAMESPACE}/configmaps/netboot")["data"]["kubeconfig"]
    given = as_admin("GET", f"{NAMESPACE}/configmaps/kube-root-ca.crt").json()["data"]["ca.crt"]
    (folder / "ca.crt").write_text(given)
    (folder / "kubeconfig").write_text(document.replace("https://kubernetes.default.svc", control_plane.url))
    (folder / "token").write_text("of-before")
    connection = connect(folder / "kubeconfig", manifests="inventory")
    try:
        machines = f"/apis/netboot.dev/v1alpha1/namespaces/{NAME}/machines"
        with pytest.raises(ClusterRefusedError):
            connection.get(machines)
        (folder / "new").write_text(token())
        (folder / "new").rename(folder / "token")
        wait_for(lambda: connection.token != "of-before")
        assert connection.get(machines).body["items"] == []
        with pytest.raises(ClusterRefusedError):
            connection.get(f"{NAMESPACE}/secrets")
    finally:
        connection.close()


def test_the_host_s_network_is_not_for_a_restricted_namespace(
    control_plane: Cluster, as_admin: Admin, namespace: None
) -> None:
    helm("install", "netboot", str(CHART), "-f", str(ALONE), "-n", NAME, "--kubeconfig", str(control_plane.admin))
    why = wait_for(lambda: refusal(as_admin))
    assert 'violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true)' in why
    assert found(as_admin, f"{NAMESPACE}/pods/netboot-0") is None


def test_each_manifest_is_of_its_kind_s_schema(as_admin: Admin, tmp_path: Path) -> None:
    """By kubeconform, which knows no unknown key either."""
    assert kube_schemas.write(as_admin("GET", "/openapi/v2").json(), tmp_path) > 100
    for values in examples():
        text = rendered(values)
        checked, summary = conform(text, tmp_path)
        skipped = text.count("kind: ServiceMonitor")
        count = len([each for each in yaml.safe_load_all(text) if each])
        assert (checked, summary) == (0, {"valid": count - skipped, "invalid": 0, "errors": 0, "skipped": skipped})
    checked, summary = conform(rendered(ALONE).replace("serviceName:", "serviceNaem:"), tmp_path)
    assert (checked, summary["invalid"]) == (1, 1)


def conform(text: str, schemas: Path) -> tuple[int, dict[str, int]]:
    """Its status, and what it counts."""
    argv = [str(find("kubeconform", CACHE)), "-strict", "-summary", "-output", "json", "-skip", "ServiceMonitor"]
    argv += ["-schema-location", f"{schemas}/{kube_schemas.PATTERN}", "-"]
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)["summary"]


def found(admin: Admin, path: str) -> Any:
    answer = admin("GET", path)
    return answer.json() if answer.ok else None


def generation(admin: Admin) -> int:
    return int(found(admin, SET)["metadata"]["generation"])


def pods(admin: Admin) -> set[str]:
    return {each["metadata"]["name"] for each in admin("GET", f"{NAMESPACE}/pods").json()["items"]}


def claims(admin: Admin) -> set[str]:
    listed = admin("GET", f"{NAMESPACE}/persistentvolumeclaims").json()["items"]
    return {each["metadata"]["name"] for each in listed}


def refusal(admin: Admin) -> str:
    """Why the StatefulSet gets no Pod."""
    events = admin("GET", f"{NAMESPACE}/events").json()["items"]
    return next((each["message"] for each in events if each["reason"] == "FailedCreate"), "")
