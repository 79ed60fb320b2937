"""Several services over the same clusters: what netboot.yaml says of it, what is applied for it, what is measured."""

from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client import generate_latest
from prometheus_client.core import CollectorRegistry

from images.values.strict import FaultsError
from netboot.config import Config, load_config
from netboot.config_replicas import Replicas
from netboot.confine.access import access_of
from netboot.controllers.led import Led
from netboot.join.errors import ClusterUnavailableError, NotLeadingError
from netboot.kube.manifests import manifests
from netboot.lifecycle.election import Times
from netboot.process import ProcessSpec
from netboot.processes import approver, nodes
from netboot.processes.controllers import journals
from netboot.processes.leading import leading, times_of
from netboot.status import up_ms
from netboot.status.approver import ApproverStatus
from netboot.status.leading import LeaderStatus
from netboot.status.resources import ShipperStatus
from netboot.web.metrics_clusters import Read, clusters

SITE = """site: test
provisioning: {url: "http://192.0.2.1:8080"}
clusters: {default: {endpoints: ["https://192.0.2.2:6443"], authority: ca.crt}}
"""
SHARED = "inventory_kubernetes: {holds: true}\n"


def configured(folder: Path, text: str) -> Config:
    (folder / "netboot.yaml").write_text(SITE + text)
    return load_config(folder / "netboot.yaml")


def test_without_the_key_there_is_one_replica_that_leads(tmp_path: Path) -> None:
    alone = leading(configured(tmp_path, ""), "approver", "default")
    assert (alone.elector, alone.leads()) == (None, True)
    with alone.acting():
        pass


def test_the_defaults_are_client_go_s(tmp_path: Path) -> None:
    config = configured(tmp_path, SHARED + "replicas: {name: alpha}\n")
    assert config.replicas is not None
    assert times_of(config.replicas) == Times(15_000, 10_000, 2_000)
    one = leading(config, "nodes", "default")
    assert one.elector is not None
    assert (one.elector.identity.partition("_")[0], one.leads(), one.long_seconds) == ("alpha", False, 30.0)


def test_a_replica_is_called_as_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "boot-1.example")
    assert Replicas().called == "boot-1.example"


def test_a_process_of_several_replicas_acts_only_while_it_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over every connection on which it writes."""
    config = configured(tmp_path, SHARED + "replicas: {name: alpha}\n")
    (config.data / "journal").mkdir(parents=True)
    connections: list[Any] = []

    def run(led: Any, *_: object) -> None:
        assert isinstance(led, Led)
        connections.append(led)

    def connected(_kubeconfig: Path, acting: Any = None, **_: object) -> Any:
        connections.append(acting)
        raise ClusterUnavailableError("there is none")

    monkeypatch.setattr("netboot.controllers.runner.run", run)
    for module, thread in ((nodes, "Teller"), (nodes, "Drainer"), (nodes, "ControlPlaneLook"), (approver, "Approver")):
        monkeypatch.setattr(getattr(module, thread), "start", lambda _self: None)
        monkeypatch.setattr(module, "connect", connected)
    for process, kind in ((nodes, "nodes"), (approver, "approver")):
        connections.clear()
        spec = {"kind": kind, "name": f"{kind}-default", "cluster": "default", "config": config}
        process.run(ProcessSpec.model_validate(spec | {"ready": -1, "supervisor": 1}))
        (led,) = connections
        with pytest.raises(ClusterUnavailableError):
            led._controller._connect()
        with pytest.raises(NotLeadingError) as caught, connections[1]():
            pass
        words = f"this replica (alpha) does not lead {kind}-default: who leads cannot be told"
        assert str(caught.value) == words


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("replicas: {}\n", "replicas want one inventory and its Holds: `inventory_kubernetes` with `holds: true`"),
        (
            "inventory_kubernetes: {}\nreplicas: {}\n",
            "replicas want one inventory and its Holds: `inventory_kubernetes` with `holds: true`",
        ),
        (
            SHARED + "replicas: {renew_seconds: 12.1}\n",
            "renew_seconds must be at most four fifths of lease_seconds, for clocks do not go alike",
        ),
        (
            SHARED + "replicas: {retry_seconds: 5.1}\n",
            "retry_seconds must be at most half of renew_seconds: one renewal that fails is not the end",
        ),
        (
            SHARED + "replicas: {name: -a}\n",
            "must be a name of letters, digits, '.', '_' and '-', at most 63, as a host's is",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(FaultsError) as caught:
        configured(tmp_path, text)
    assert fault in str(caught.value)


def test_a_namespace_has_room_for_another_beside_it(tmp_path: Path) -> None:
    name = "n" * 56
    cluster = (
        f'clusters: {{default: {{endpoints: ["https://192.0.2.2:6443"], authority: ca.crt, namespace: {name}}}}}\n'
    )
    text = SITE[: SITE.index("clusters")] + cluster + SHARED + "replicas: {}\n"
    (tmp_path / "netboot.yaml").write_text(text)
    with pytest.raises(FaultsError) as caught:
        load_config(tmp_path / "netboot.yaml")
    assert f"clusters.default.namespace is too long for another beside it: {name}-leaders" in str(caught.value)


def of_elections(namespace: str) -> dict[tuple[str, str], dict[str, Any]]:
    there = [each for each in manifests(namespace) if each["metadata"].get("namespace") == f"{namespace}-leaders"]
    return {(each["kind"], each["metadata"]["name"]): each for each in there}


def test_each_account_may_write_the_lease_of_its_own_kind_and_no_other() -> None:
    documents = of_elections("elsewhere")
    assert {name for kind, name in documents if kind == "Lease"} == {"approver", "nodes"}
    for kind in ("approver", "nodes"):
        assert documents["Role", f"netboot-{kind}"]["rules"] == [
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "resourceNames": [kind],
                "verbs": ["get", "patch"],
            }
        ]
        (subject,) = documents["RoleBinding", f"netboot-{kind}"]["subjects"]
        assert subject == {"kind": "ServiceAccount", "name": f"netboot-{kind}", "namespace": "elsewhere"}
    assert len(documents) == 6


def test_leases_are_applied_without_a_holder() -> None:
    """Whoever applies them again takes the lead from nobody."""
    assert [each.keys() for (kind, _), each in of_elections("netboot").items() if kind == "Lease"] == [
        {"apiVersion", "kind", "metadata"}
    ] * 2


@pytest.mark.parametrize(("leads", "lines"), [(True, ("1.0", "0.0")), (False, ("0.0", "12.5"))])
def test_who_leads_is_measured(leads: bool, lines: tuple[str, str]) -> None:
    vacant = 0.0 if leads else 12.5
    leader = LeaderStatus(replica="a", leads=leads, leader="a_1", epoch=7, since_ms=1, vacant_seconds=vacant)
    text = exposed(leader)
    assert f'netboot_leader{{process="approver-default"}} {lines[0]}' in text
    assert 'netboot_leader_epoch{process="approver-default"} 7.0' in text
    assert f'netboot_leader_vacant_seconds{{process="approver-default"}} {lines[1]}' in text


def test_who_says_nothing_any_more_is_not_measured_as_who_leads() -> None:
    """It is stuck, or gone; its file is there still."""
    leader = LeaderStatus(replica="a", leads=True, leader="a_1", epoch=7, since_ms=1, vacant_seconds=0.0)
    text = exposed(leader, ago_ms=600_000)
    assert 'netboot_leader{process="approver-default"} 0.0' in text
    assert "netboot_leader_vacant_seconds{" not in text


def test_one_replica_has_no_leader_to_measure() -> None:
    assert "netboot_leader" not in exposed(None)


def exposed(leader: LeaderStatus | None, ago_ms: int = 0) -> str:
    said = ApproverStatus(
        at_ms=1, ok=True, message="", decided=(), unavailable=0, waiting=0, oldest_seconds=0, leader=leader
    ).model_copy(update={"up_ms": up_ms() - ago_ms})
    registry = CollectorRegistry()

    class Families:
        def collect(self) -> Any:
            return clusters(["approver-default"], cast("Read", lambda _process, _model: said))

    registry.register(Families())
    return generate_latest(registry).decode()


SHIPS = "inventory_kubernetes: {holds: true, namespace: inventory, shipper: secrets/shipper.kubeconfig}\n"


def test_a_shipper_of_several_has_a_journal_of_its_own_and_one_alone_has_none(tmp_path: Path) -> None:
    for text, shares in ((SHIPS + "replicas: {}\n", True), (SHIPS, False), (SHARED + "replicas: {}\n", False)):
        config = configured(tmp_path, text)
        assert ("shipper.db" in journals(config)) is shares
        mine = access_of("shipper", "shipper", "", config).databases
        assert mine == ((config.data / "journal" / "shipper.db",) if shares else ())
        assert config.shares_facts is shares


def test_who_leads_of_shippers_is_elected_beside_the_inventory_and_measured(tmp_path: Path) -> None:
    one = leading(configured(tmp_path, SHIPS + "replicas: {name: alpha}\n"), "shipper", "")
    assert one.elector is not None
    assert (one.elector._what, one.leads()) == ("shipper", False)
    counts = {"objects": 0, "behind": 0, "written": 0, "events_waiting": 0, "events_dropped": 0}
    counts |= {"failed": 0, "refused": 0, "overwritten": 0}
    status = ShipperStatus(at_ms=1, ok=True, message="", remedy="", lag_seconds=0.0, a_second=15.0, **counts)

    class Writes:
        """How it is."""

        def start(self) -> None:
            """It is not."""

        def stop(self) -> None:
            """It was never started."""

        def status(self) -> ShipperStatus:
            return status

    said = Led(Writes(), one.elector, one.long_seconds).status()
    assert isinstance(said, ShipperStatus)
    assert said.leader is not None
    assert (said.leader.replica, said.leader.leads) == ("alpha", False)
    registry = CollectorRegistry()

    class Families:
        def collect(self) -> Any:
            return clusters(["shipper"], cast("Read", lambda _process, _model: said))

    registry.register(Families())
    assert 'netboot_leader{process="shipper"} 0.0' in generate_latest(registry).decode()
