"""The Helm chart: what is made of it is in the tree, its netboot.yaml is one, and wrong values are refused."""

from importlib import metadata
from pathlib import Path

import pytest
import yaml

from lab import chart, container
from lab.chart import CHART, PAGE, RENDERED, examples, helm, rendered
from lab.work import ROOT
from netboot.config import load_config
from netboot.join.node_drains import DRAIN
from netboot.machines.values import HELD, UNCHECKED
from tests.charts import ALONE, failed, objects, one, refused

pytestmark = pytest.mark.tools


@pytest.mark.parametrize("values", examples(), ids=lambda path: path.stem)
def test_manifests_in_the_tree_are_those_of_the_chart(values: Path) -> None:
    """Else: `python -m lab.chart write`."""
    kept = (RENDERED / f"{values.stem.removesuffix('-values')}.yaml").read_text(encoding="utf-8")
    assert kept == rendered(values)
    assert "1 chart(s) linted, 0 chart(s) failed" in helm("lint", "--strict", str(CHART), "-f", str(values))


def test_the_page_has_all_values_as_the_schema_describes_them() -> None:
    """Else: `python -m lab.chart write`."""
    text = PAGE.read_text(encoding="utf-8")
    assert text == chart.page(text)


def test_the_chart_is_of_this_version() -> None:
    described = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert described["version"] == described["appVersion"] == metadata.version("netboot")


@pytest.mark.parametrize("values", examples(), ids=lambda path: path.stem)
def test_its_netboot_yaml_is_one(values: Path, tmp_path: Path) -> None:
    (text,) = (each["data"]["netboot.yaml"] for each in objects(values=values) if each["kind"] == "ConfigMap")
    (tmp_path / "netboot.yaml").write_text(text)
    config = load_config(tmp_path / "netboot.yaml")
    assert (config.data, config.store) == (Path("/var/lib/netboot/data"), Path("/var/lib/netboot/store"))
    assert config.management.listen.wildcard == (values != ALONE)


def test_what_config_says_of_what_the_chart_mounts_counts_less() -> None:
    more = ("--set", "config.provisioning.workers=7", "--set", "config.provisioning.url=http://192.0.2.99:1")
    text = one("ConfigMap", *more)["data"]["netboot.yaml"]
    assert yaml.safe_load(text)["provisioning"] == {
        "listen": "[::]:8080",
        "url": "http://192.0.2.10:8080",
        "workers": 7,
    }


def test_the_account_of_the_pod_may_what_reads_the_inventory_may() -> None:
    shipped = yaml.safe_load_all((ROOT / "deploy/inventory/account.yaml").read_text(encoding="utf-8"))
    rules = {each["kind"]: each["rules"] for each in shipped if "rules" in each}
    assert {kind: one(kind)["rules"] for kind in ("Role", "ClusterRole")} == rules


def test_what_is_mounted_has_its_place_in_the_image() -> None:
    """The root file system is read-only: nothing can make one."""
    (pod,) = one("StatefulSet")["spec"]["template"]["spec"]["containers"]
    places = {mount["mountPath"] for mount in pod["volumeMounts"]}
    assert {place for place in places if place.startswith("/etc/netboot/")} <= {
        *(f"/{folder}" for folder in container.FOLDERS),
        "/etc/netboot/netboot.yaml",
    }


def test_the_pod_tolerates_netboot_s_own_taints() -> None:
    pod = one("StatefulSet", values=ALONE)["spec"]["template"]["spec"]
    assert [(each["key"], each["operator"], each.get("effect")) for each in pod["tolerations"]] == [
        (UNCHECKED, "Exists", None),
        (HELD, "Exists", None),
        (DRAIN, "Exists", None),
        ("readiness.k8s.io/netboot", "Exists", None),
        ("node-role.kubernetes.io/control-plane", "Exists", "NoSchedule"),
    ]


def test_where_no_policy_is_made_or_enforced_none_is_asked_for_ports() -> None:
    for of in ("networkPolicy.enabled=false", "hostNetwork=true"):
        assert objects("--set", f"{of},networkPolicy.egressPorts={{443}},networkPolicy.operators=null")


def test_what_machines_ask_is_not_for_the_policy_of_the_pod() -> None:
    """`endpoints` are of nodes; the service goes where its kubeconfigs lead, which are in Secrets."""
    assert objects("--set", "config.clusters.default.endpoints={https://a.example:7443}")


def test_a_node_may_have_no_ipv6() -> None:
    config = yaml.safe_load(one("ConfigMap", "--set", "ipv6=false")["data"]["netboot.yaml"])
    assert [config[listener]["listen"] for listener in ("provisioning", "management", "join")] == [
        "0.0.0.0:8080",
        "0.0.0.0:8081",
        "0.0.0.0:8443",
    ]


def test_without_a_certificate_operators_come_by_loopback() -> None:
    of = ("--set", "management.tlsSecret=", "--set", "serviceMonitor.enabled=false")
    config = yaml.safe_load(one("ConfigMap", *of)["data"]["netboot.yaml"])
    assert config["management"] == {"listen": "127.0.0.1:8081"}
    assert [each["metadata"]["name"] for each in objects(*of) if each["kind"] == "Service"] == [
        "netboot-pods",
        "netboot",
    ]


SCHEMA = "Error: values don't meet the specifications of the schema(s) in the following chart(s):\nnetboot:\n"


UNREACHED = (
    "serviceMonitor.enabled: Prometheus cannot reach a listener of loopback: give management.tlsSecret, or "
    "management.plainHttp behind a mesh of your own"
)
NO_JOIN = "config.join has no certificate and no port without join.url: give that, and join.tlsSecret"
UNSCRAPED = (
    "serviceMonitor.enabled: the NetworkPolicy lets nobody in to take metrics: name Prometheus in "
    "networkPolicy.operators"
)
NO_WAY_TO = "{} is asked on port {}, which networkPolicy.egressPorts lacks: add it"
NO_WAY = NO_WAY_TO.replace("{}", "upstream.place", 1)
TWO_INVENTORIES = (
    "inventory.configMap has files, and with inventory.kubernetes none are read: remove it, or set "
    "inventory.kubernetes to false"
)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("replicas=0", "- at '/replicas': minimum: got 0, want 1"),
        ("image.tga=1", "- at '/image': additional properties 'tga' not allowed"),
        ("provisioning.port=80", "- at '/provisioning/port': minimum: got 80, want 1,024"),
        (
            "provisioning.url=192.0.2.1",
            "- at '/provisioning/url': '192.0.2.1' does not match pattern '^http://[^/?#@]+$'",
        ),
        (
            "keys.configMap=",
            "- at '/keys/configMap': '' does not match pattern '^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$'",
        ),
        (
            "storage.data.size=much",
            "- at '/storage/data/size': 'much' does not match pattern '^[1-9][0-9]*(Ki|Mi|Gi|Ti|Pi)?$'",
        ),
    ],
)
def test_what_the_schema_refuses(given: str, why: str) -> None:
    assert refused("--set", given) == f"{SCHEMA}{why}\n\n"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            "management.plainHttp=true",
            "management.tlsSecret and management.plainHttp exclude each other: remove one of them",
        ),
        (
            "management.tlsSecret=",
            UNREACHED,
        ),
        ("join.tlsSecret=", "join.url: give join.tlsSecret too, a Secret with tls.crt, tls.key and ca.crt"),
        ("config.data=/x", "config.data is the chart's to say: remove it, values of its own have what may be chosen"),
        ("inventory.kubernetes=false", "inventory.holds are custom resources: set inventory.kubernetes"),
        (
            "inventory.configMap=x",
            TWO_INVENTORIES,
        ),
        (
            "authorities.configMap=,upstream.authority=ca.crt",
            "upstream.authority is a file of authorities.configMap: give that",
        ),
        ("join.url=,config.join.issuer_seconds=1", NO_JOIN),
        (
            "serviceAccount.create=false",
            "serviceAccount.create is false: give serviceAccount.name, an account that is there",
        ),
        ("networkPolicy.operators=null", UNSCRAPED),
        ("networkPolicy.egressPorts={443,6443}", NO_WAY.format(5000)),
        ("upstream.place=http://cache.example/v1", NO_WAY.format(80)),
        ("inventory.server=https://api.example:7443", NO_WAY_TO.format("inventory.server", 7443)),
        ("upstream.place=https://[2001:db8::50]:5001/v1", NO_WAY.format(5001)),
        (
            "upstream.place=registry.example/images,networkPolicy.egressPorts={6443},inventory.server=https://a:6443",
            NO_WAY.format(443),
        ),
        (
            "storage.data.existingClaim=x,storage.data.hostPath=/x",
            "storage.data.existingClaim and storage.data.hostPath exclude each other: remove one of them",
        ),
    ],
)
def test_values_that_do_not_go_together(given: str, why: str) -> None:
    assert refused("--set", given) == failed(why)
