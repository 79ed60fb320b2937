"""The Helm chart with several replicas: what they want is asked for in words, and what keeps them apart is made."""

import re
from pathlib import Path
from typing import Any

import pytest

from netboot.config import Config, load_config
from netboot.confine.access import access_of
from tests.charts import ALL, ALONE, THREE, Object, failed, objects, one, refused

pytestmark = pytest.mark.tools

HOST = (
    "--set",
    "replicas=2,inventory.configMap=,inventory.kubernetes=true,inventory.holds=true,sharedKeys.kubeconfig=keys",
    "--set",
    "storage.data.hostPath=,storage.store.hostPath=",
)
"""Of the site in the host's network."""
STEPS = "(docs/helm.md, From one replica to three)"
NO_KEYS = f"a machine begins at one and goes on at another, by keys that all have: give sharedKeys.kubeconfig {STEPS}"
NO_ENROLMENTS = (
    "replicas: 3: with join.url all must know whose TPM is whose: give enrolments.joinKubeconfig and "
    f"enrolments.readerKubeconfig {STEPS}"
)
OWN_VOLUMES = (
    "replicas: 3: storage.{} is one volume, and each replica has its own: remove it, and a claim is made for each (of "
    "a Node's own disk: a storageClassName of local volumes)"
)
TWO_ACCOUNTS = (
    "enrolments.joinKubeconfig and enrolments.readerKubeconfig are of two accounts, and go together: give both"
)
MOUNTED = (
    "secrets: that of sharedKeys.secret is read by the account of sharedKeys.kubeconfig, and would be mounted for all "
    "processes: remove it"
)
ONE_FILE = (
    "{}: enrolments-join.kubeconfig is that of another account already: each has a file of its own, of `netboot "
    "cluster kubeconfigs`"
)
NO_NUMBER = "config.replicas has keys, as docs/configuration.md says, or is {}; how many there are is `replicas`"
CHARTS = "config.{} is the chart's to say: remove it, values of its own have what may be chosen"


def config(folder: Path, *more: str, values: Path = THREE) -> Config:
    """What the service reads."""
    (folder / "netboot.yaml").write_text(one("ConfigMap", *more, values=values)["data"]["netboot.yaml"])
    return load_config(folder / "netboot.yaml")


def pod(*more: str, values: Path = THREE) -> Object:
    found: Object = one("StatefulSet", *more, values=values)["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            "inventory.kubernetes=false,inventory.holds=false,inventory.configMap=x",
            "replicas: 3: all must know the same machines: set inventory.kubernetes",
        ),
        ("inventory.holds=false", "replicas: 3: what holds a machine must be known to all: set inventory.holds"),
        ("sharedKeys.kubeconfig=", f"replicas: 3: {NO_KEYS}"),
        ("enrolments.joinKubeconfig=,enrolments.readerKubeconfig=", NO_ENROLMENTS),
        ("enrolments.joinKubeconfig=", TWO_ACCOUNTS),
        ("enrolments.readerKubeconfig=", TWO_ACCOUNTS),
        ("storage.data.existingClaim=x", OWN_VOLUMES.format("data.existingClaim")),
        ("storage.store.existingClaim=x", OWN_VOLUMES.format("store.existingClaim")),
        ("storage.data.hostPath=/x", OWN_VOLUMES.format("data.hostPath")),
        ("secrets={a,netboot-keys}", MOUNTED),
        (
            "config.replicas.name=a",
            "config.replicas.name would be that of all replicas, which are named by their Pods: remove it",
        ),
        ("config.replicas=3", NO_NUMBER),
        ("config.replicas.count=3", "config.replicas.count is what `replicas` says: remove it"),
        ("enrolments.readerKubeconfig=enrolments-join.kubeconfig", ONE_FILE.format("enrolments.readerKubeconfig")),
        ("sharedKeys.kubeconfig=enrolments-join.kubeconfig", ONE_FILE.format("sharedKeys.kubeconfig")),
        ("inventory.shipperKubeconfig=enrolments-join.kubeconfig", ONE_FILE.format("inventory.shipperKubeconfig")),
        ("config.keys_kubernetes.replica=a", CHARTS.format("keys_kubernetes")),
        ("config.enrolments_kubernetes.namespace=a", CHARTS.format("enrolments_kubernetes")),
    ],
)
def test_what_several_want(given: str, why: str) -> None:
    assert refused("--set", given, values=THREE) == failed(why)


def test_one_that_asks_who_leads_wants_the_same(tmp_path: Path) -> None:
    """A step on the way to several: its volumes may be whatever those of one may be."""
    of = ("--set-json", "config.replicas={}", "--set", "replicas=1,storage.data.existingClaim=x")
    assert refused(*of, "--set", "sharedKeys.kubeconfig=", values=THREE) == failed(f"config.replicas: {NO_KEYS}")
    assert config(tmp_path, *of).replicas is not None


def test_one_asks_nobody_who_leads(tmp_path: Path) -> None:
    assert config(tmp_path, "--set", "replicas=1").replicas is None
    made = config(tmp_path, "--set", "config.replicas.lease_seconds=30").replicas
    assert made is not None
    assert (made.name, made.lease_seconds, made.count) == (None, 30, 3)


def test_how_many_there_are_each_is_told(tmp_path: Path) -> None:
    """By that the shipper divides what may be written in a second."""
    made = config(tmp_path, "--set", "replicas=5").replicas
    assert made is not None
    assert made.count == 5


def test_as_many_as_the_service_takes() -> None:
    assert "- at '/replicas': maximum: got 26, want 25" in refused("--set", "replicas=26", values=THREE)


@pytest.mark.parametrize("value", ["enrolments", "inventory", "sharedKeys"])
def test_what_is_taken_away_whole_is_asked_for(value: str) -> None:
    assert f"missing property '{value}'" in refused("--set-json", f"{value}=null", values=THREE)


def test_shared_keys_are_on_the_volume_and_beside_what_other_processes_read(tmp_path: Path) -> None:
    """In a folder that the service makes: the volume is mounted where both of them are."""
    made = config(tmp_path)
    assert made.keys_kubernetes is not None
    folder = made.keys_kubernetes.place(made.data)
    assert folder == Path("/var/lib/netboot/shared-keys")
    (container,) = pod()["containers"]
    assert {"name": "data", "mountPath": str(folder.parent)} in container["volumeMounts"]
    reach = {
        kind: [*(access := access_of(kind, kind, "", made)).read, *access.write] for kind in ("keys", "boot", "join")
    }
    assert [kind for kind, paths in reach.items() if any(folder.is_relative_to(path) for path in paths)] == ["keys"]


def test_kubeconfigs_are_files_of_secrets(tmp_path: Path) -> None:
    """The Pod's own account gets nothing that it did not have with one replica."""
    made = config(tmp_path)
    assert made.keys_kubernetes is not None and made.enrolments_kubernetes is not None
    files = (made.keys_kubernetes.kubeconfig, made.enrolments_kubernetes.join, made.enrolments_kubernetes.reader)
    assert [str(path.relative_to(tmp_path)) for path in files] == [
        "secrets/keys.kubeconfig",
        "secrets/enrolments-join.kubeconfig",
        "secrets/enrolments-reader.kubeconfig",
    ]
    assert [one(kind, values=THREE)["rules"] for kind in ("Role", "ClusterRole")] == [
        one(kind)["rules"] for kind in ("Role", "ClusterRole")
    ]


def test_they_go_one_by_one() -> None:
    spec = one("StatefulSet", values=THREE)["spec"]
    assert (spec["replicas"], spec["updateStrategy"]) == (3, {"type": "RollingUpdate"})
    assert [claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]] == ["data", "store"]
    assert "sessionAffinity" not in service("netboot")


def service(name: str, *more: str) -> Object:
    (found,) = (
        each["spec"]
        for each in objects(*more, values=THREE)
        if each["kind"] == "Service" and each["metadata"]["name"] == name
    )
    spec: Object = found
    return spec


def test_a_person_stays_at_one_replica() -> None:
    assert service("netboot-management")["sessionAffinity"] == "ClientIP"
    assert "sessionAffinity" not in service("netboot-management", "--set", "replicas=1")


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ("replicas=3", 1),
        ("replicas=1", 0),
        ("replicas=3,podDisruptionBudget.enabled=false", 0),
        ("replicas=1,podDisruptionBudget.enabled=true", 1),
    ],
)
def test_several_have_a_budget_of_disruptions(given: str, count: int) -> None:
    made = [each["spec"] for each in objects("--set", given, values=THREE) if each["kind"] == "PodDisruptionBudget"]
    labels = one("StatefulSet", values=THREE)["spec"]["selector"]
    kept = {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": labels}
    assert made == [kept] * count


def test_they_prefer_nodes_and_zones_of_their_own() -> None:
    selector = one("StatefulSet", values=THREE)["spec"]["selector"]
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    zones = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": selector}
    assert pod()["affinity"] == {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    assert pod()["topologySpreadConstraints"] == [{"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **zones}]
    assert "topologySpreadConstraints" not in pod(values=ALL)
    own: list[Any] = [{"maxSkew": 2}]
    assert pod("--set", "topologySpreadConstraints[0].maxSkew=2")["topologySpreadConstraints"] == own


def test_in_the_host_s_network_each_has_a_node() -> None:
    selector = one("StatefulSet", values=ALONE)["spec"]["selector"]
    assert pod(*HOST, values=ALONE)["affinity"] == {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
            ]
        }
    }
    assert "preferredDuringSchedulingIgnoredDuringExecution" in pod(values=ALONE)["affinity"]["podAntiAffinity"]


def test_each_replica_is_a_target_of_prometheus() -> None:
    """By the Service that all of them are behind; one certificate is for its name."""
    monitor = one("ServiceMonitor", values=THREE)["spec"]
    assert monitor["endpoints"][0]["tlsConfig"]["serverName"] == "netboot-management.netboot.svc"
    labels = {**monitor["selector"]["matchLabels"]}
    assert labels.pop("app.kubernetes.io/component") == "management"
    assert service("netboot-management")["selector"] == labels
    assert one("NetworkPolicy", values=THREE)["spec"]["podSelector"] == {"matchLabels": labels}


def test_the_page_names_the_steps() -> None:
    """As refusals do."""
    page = (Path(__file__).parents[3] / "docs/helm.md").read_text(encoding="utf-8")
    assert re.search(r"^## From one replica to three$", page, re.MULTILINE)
