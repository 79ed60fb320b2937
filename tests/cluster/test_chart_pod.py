"""The Pod of the chart as the API server has it, run by podman in place of a kubelet: it reads its inventory with its
own account's token, and serves what objects declare."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import container
from lab.chart import CHART, helm
from lab.container import Storage
from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from netboot.config import Config
from netboot.kube.resources.definitions import definitions
from tests.containers import image, running
from tests.pods import Pod
from tests.processes import wait_for
from tests.sites import add_image, make_site

pytestmark = pytest.mark.cluster
NAME, VERSION = "chart-pod", "0.1.0"
NAMESPACE = f"/api/v1/namespaces/{NAME}"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MACS = "52:54:00:00:00:0"
OBJECTS = f"/apis/netboot.dev/v1alpha1/namespaces/{NAME}"


@pytest.fixture
def namespace(as_admin: Admin) -> Iterator[None]:
    """With the definitions of the inventory."""
    made = definitions()
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    put(as_admin, "/api/v1/namespaces", "v1", "Namespace", NAME, {}, labels=labels)
    for definition in made:
        assert as_admin("POST", DEFINITIONS, definition).status_code == 201
    plurals = [definition["spec"]["names"]["plural"] for definition in made]
    wait_for(lambda: all(as_admin("GET", f"{OBJECTS}/{plural}").ok for plural in plurals))
    yield
    as_admin("DELETE", NAMESPACE)
    wait_for(lambda: as_admin("GET", NAMESPACE).status_code == 404)
    for definition in made:
        as_admin("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")
    wait_for(lambda: not any(as_admin("GET", f"{OBJECTS}/{plural}").ok for plural in plurals))


@pytest.fixture
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with image(tmp_path_factory.mktemp("container"), VERSION) as (storage, _):
        yield storage


def test_a_pod_serves_what_objects_declare(
    control_plane: Cluster, as_admin: Admin, namespace: None, storage: Storage, tmp_path: Path
) -> None:
    config = make_site(tmp_path / "site", inventory="{}")
    digest = add_image(config)
    given(as_admin, config, digest)
    (tmp_path / "claims").mkdir()
    config.store.rename(store := tmp_path / "claims/store-netboot-0")
    (store / "site").unlink()  # it comes by the chart
    values = [
        f"image.repository={container.NAME}",
        "site=test",
        f"provisioning.url={config.provisioning.url},provisioning.port={config.provisioning.listen.port}",
        f"management.port={config.management.listen.port},inventory.server={control_plane.url}",
        "keys.configMap=keys,siteBundle.configMap=bundle,secrets={operator}",
        "config.provisioning.workers=1",  # each reads the snapshot by itself, and probes may ask any
    ]
    helm(
        "install",
        "netboot",
        str(CHART),
        "-n",
        NAME,
        "--kubeconfig",
        str(control_plane.admin),
        "--set",
        ",".join(values),
    )
    pod = Pod(wait_for(lambda: found(as_admin, f"{NAMESPACE}/pods/netboot-0")), as_admin, tmp_path)
    options = ["--network=host", *pod.options()]
    with running(storage, pod.container["image"], tmp_path, options, pod.container["args"]) as one:
        where = config.provisioning.url
        asked = f"{where}/v1/boot?mac={MACS}1&arch=x86_64"
        wait_for(lambda: f"kernel {where}/v1/blobs/" in one.get(asked))
        assert '"site":"test"' in one.get(f"{where}/v1/site/bundle.json")
        assert probes(pod, one.get, where) == {"startupProbe", "readinessProbe", "livenessProbe"}
        assert as_admin("DELETE", f"{OBJECTS}/machines/gpu-001").ok
        wait_for(lambda: f"kernel {where}/v1/blobs/" not in one.get(asked))
        one.podman.process.terminate()
        assert one.podman.process.wait(180) == 0
        said = one.podman.output.path.read_text()
    assert ("not confined" in said, "others can read" in said, "Permission denied" in said) == (False, False, False)


def given(admin: Admin, config: Config, digest: str) -> None:
    """What docs/helm.md has an operator make beforehand, and an inventory of two machines."""
    (bundle, signature) = (config.store / "site/bundle.json", config.store / "site/bundle.sig")
    keys = {path.name: path.read_text() for path in config.keys.glob("*.pub")}
    maps = {"keys": keys, "bundle": {"bundle.json": bundle.read_text(), "bundle.sig": signature.read_text()}}
    for name, data in maps.items():
        put(admin, f"{NAMESPACE}/configmaps", "v1", "ConfigMap", name, {"data": data})
    secret = {"stringData": {"operator.token": config.management.token_file.read_text()}}
    put(admin, f"{NAMESPACE}/secrets", "v1", "Secret", "operator", secret)
    declared: list[tuple[str, str, str, Any]] = [
        ("channels", "Channel", "stable", {"image": digest}),
        ("profiles", "Profile", "compute", {"channel": "stable"}),
        *(
            ("machines", "Machine", f"gpu-00{number}", {"match": {"macs": [f"{MACS}{number}"]}, "profile": "compute"})
            for number in (1, 2)
        ),
    ]
    for plural, kind, name, spec in declared:
        put(admin, f"{OBJECTS}/{plural}", "netboot.dev/v1alpha1", kind, name, {"spec": spec})


def probes(pod: Pod, get: Any, where: str) -> set[str]:
    """Those of the container that are answered."""
    named = {name: probe["httpGet"] for name, probe in pod.container.items() if name.endswith("Probe")}
    assert {probe["port"] for probe in named.values()} == {"provisioning"}
    return {name for name, probe in named.items() if get(f"{where}{probe['path']}")}


def put(admin: Admin, path: str, version: str, kind: str, name: str, more: Any, **metadata: Any) -> None:
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, **more}
    answer = admin("POST", path, document)
    assert answer.status_code == 201, answer.text


def found(admin: Admin, path: str) -> Any:
    answer = admin("GET", path)
    return answer.json() if answer.ok else None
