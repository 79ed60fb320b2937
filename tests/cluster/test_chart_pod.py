"""Pods of the chart as the API server has them, run by podman in place of a kubelet: they read their inventory with
their own account's token, and serve what objects declare; two of them are one service."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import yaml

from lab import container
from lab.chart import CHART, helm
from lab.container import Storage
from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from netboot.config import Config
from netboot.kube.accounts import KEYS, make_kubeconfig
from netboot.kube.manifests import keys_text
from netboot.kube.resources.definitions import definitions
from netboot.lifecycle.phases import Phase
from netboot.stores import bootkey
from tests.containers import Container, image, running
from tests.pods import Pod
from tests.processes import wait_for
from tests.sites import add_image, free_ports, make_site

pytestmark = pytest.mark.cluster
NAME, VERSION = "chart-pod", "0.1.0"
NAMESPACE = f"/api/v1/namespaces/{NAME}"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SHARED = "sharedKeys.kubeconfig=keys.kubeconfig"
BOOT = re.compile(r"(?<=boot=)[0-9a-f-]{36}")
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


@pytest.fixture(scope="module")
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
    installed(control_plane, config, "secrets={operator}")
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


def test_two_replicas_are_one_service_by_the_keys_of_a_secret(
    control_plane: Cluster, as_admin: Admin, namespace: None, storage: Storage, tmp_path: Path
) -> None:
    """The first was alone before, and its key of boot ids is that of both; the other comes with an empty volume."""
    config = make_site(tmp_path / "site", inventory="{}")
    given(as_admin, config, add_image(config))
    accounts(control_plane, as_admin)
    installed(control_plane, config, "secrets={operator,replicas}", "replicas=2,inventory.holds=true", SHARED)
    before = volume(tmp_path, 0, "data") / "data"
    before.mkdir(parents=True)
    (before / "boot-id.key").write_bytes(key := b"of boots under way".ljust(bootkey.LENGTH))
    (before / "boot-id.key").chmod(0o600)
    ports = [(config.provisioning.listen.port, config.management.listen.port), (free_ports()[0], free_ports()[1])]
    urls = [f"http://127.0.0.1:{provisioning}" for provisioning, _ in ports]

    def started(number: int) -> Container:
        found_pod = wait_for(lambda: found(as_admin, f"{NAMESPACE}/pods/netboot-{number}"))
        pod = Pod(found_pod, as_admin, tmp_path / f"netboot-{number}")
        shutil.copytree(config.store, volume(tmp_path, number, "store"), ignore=lambda *_: {"site"})
        options = ["--network=host", *pod.options()]
        # They share one network here, which Pods do not.
        file = pod.folder / "volumes/config/..now/netboot.yaml"
        file.write_text(listening(file.read_text(), ports[0], ports[number]))
        return stack.enter_context(running(storage, pod.container["image"], pod.folder, options, pod.container["args"]))

    with ExitStack() as stack:
        first, second = both = [started(number) for number in range(2)]
        for number in range(2):
            wait_for(partial(waits, volume(tmp_path, number, "data")))
        (made,) = yaml.safe_load_all(first.netboot("cluster", "keys", "push"))
        assert as_admin("POST", f"{NAMESPACE}/secrets", made).status_code == 201
        scripts = [wait_for(partial(script, one, url, config)) for one, url in zip(both, urls, strict=True)]
        alike = [text.replace(BOOT.findall(text)[0], "") for text in scripts]
        assert alike[0] == alike[1]
        for text, other in zip(scripts, reversed(urls), strict=True):
            boot = BOOT.findall(text)[0]
            assert [told(other, boot), told(other, f"{'0' * 8}{boot[8:]}")] == [204, 404]
        assert wait_for(partial(in_use, second)) == {"boot-id.key": ["netboot-0", "netboot-1"]}
        for one in both:
            one.podman.process.terminate()
        assert [one.podman.process.wait(180) for one in both] == [0, 0]
    for number in range(2):
        kept = volume(tmp_path, number, "data") / "shared-keys/boot-id.key"
        assert (kept.read_bytes(), kept.stat().st_mode & 0o777) == (key, 0o600)


def volume(folder: Path, number: int, name: str) -> Path:
    """Of a claim of one replica."""
    return folder / f"netboot-{number}/claims/{name}-netboot-{number}"


def installed(control_plane: Cluster, config: Config, *more: str) -> None:
    """A release `netboot`, with the addresses of `config`."""
    values = [
        f"image.repository={container.NAME}",
        "site=test",
        f"provisioning.url={config.provisioning.url},provisioning.port={config.provisioning.listen.port}",
        f"management.port={config.management.listen.port},inventory.server={control_plane.url}",
        f"networkPolicy.egressPorts={{{urlsplit(control_plane.url).port}}}",
        "keys.configMap=keys,siteBundle.configMap=bundle",
        "config.provisioning.workers=1",  # each reads the snapshot by itself, and probes may ask any
        *more,
    ]
    where = ("-n", NAME, "--kubeconfig", str(control_plane.admin))
    helm("install", "netboot", str(CHART), *where, "--set", ",".join(values))


def accounts(control_plane: Cluster, admin: Admin) -> None:
    """Of shared keys, and a Secret with its kubeconfig, as docs/helm.md has an operator make them."""
    for document in yaml.safe_load_all(keys_text(NAME)):
        if document["kind"] == "ConfigMap":
            put(admin, f"{NAMESPACE}/configmaps", "v1", "ConfigMap", document["metadata"]["name"], {})
        else:
            admin.apply(document)
    content = make_kubeconfig(control_plane.admin, KEYS, NAME, 3600).content.decode()
    put(admin, f"{NAMESPACE}/secrets", "v1", "Secret", "replicas", {"stringData": {"keys.kubeconfig": content}})


def listening(text: str, before: tuple[int, ...], after: tuple[int, ...]) -> str:
    """netboot.yaml with the ports of both listeners replaced; URLs stay."""
    for old, new in zip(before, after, strict=True):
        text, count = re.subn(rf"(listen: .*:){old}\b", rf"\g<1>{new}", text)
        assert count == 1
    return text


def waits(data: Path) -> bool:
    """Whether a replica says that it has no keys, and makes none up."""
    said = json.loads((data / "data/status/keys.json").read_text())["message"]
    return "there is no Secret chart-pod/netboot-keys" in said and not any((data / "shared-keys").iterdir())


def script(one: Container, url: str, config: Config) -> str:
    """That of a machine that may boot; "": not yet."""
    text = one.get(f"{url}/v1/boot?mac={MACS}1&arch=x86_64")
    return text if f"kernel {config.provisioning.url}/v1/blobs/" in text else ""


def told(url: str, boot: str) -> int:
    """The status of an event of this boot."""
    event = {"mac": f"{MACS}1", "machine": "gpu-001", "phase": Phase.INITRD_STARTED, "uptime_ms": 1}
    return requests.post(f"{url}/v1/boots/{boot}/events", json=event, timeout=60).status_code


def in_use(one: Container) -> dict[str, list[str]]:
    """Which replicas have which key, when both have said it."""
    keys = json.loads(one.netboot("cluster", "keys", "show", "--output", "json"))["keys"]
    return {each["name"]: each["replicas"] for each in keys} if all(len(each["replicas"]) == 2 for each in keys) else {}


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
