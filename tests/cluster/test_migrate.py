"""What a site has on its disk is moved into a real API server, by one command: whole, again, interrupted, refused."""

import json
import re
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from images.store.store import Store
from lab.errors import EndedError
from lab.kube.binaries import find
from lab.kube.cluster import Cluster, cluster
from lab.kube.kubectl import Kubectl
from netboot.config import Config, load_config
from netboot.join.enrolment import Act, Import, OpenWindow, Release, Replace, Retire, parse_details
from netboot.kube.act_objects import KubeRolloutObjects
from netboot.kube.connection import connect
from netboot.kube.resources.definitions import definitions
from netboot.kube.resources.kinds import ALL, ENROLMENT, GROUP
from netboot.lifecycle.intents import PutOn
from netboot.lifecycle.rollout import Member, MemberState
from netboot.lifecycle.rollout_store import Note
from netboot.lifecycle.transitions import Mark
from netboot.machines.difference import differences
from netboot.machines.inventory import load_inventory
from netboot.stores import intents
from netboot.stores.audit import SqliteAudit
from netboot.stores.audit import make as make_audit
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.image_repository import open_image_repository
from netboot.stores.intents import SqliteIntents
from netboot.stores.lock import sole_instance
from netboot.stores.rollouts import SqliteRollouts
from netboot.stores.rollouts import make as make_rollouts
from netboot.stores.shared_rollouts import SharedRollouts
from tests.cluster.conftest import CACHE
from tests.contract.test_enrolments import A, B
from tests.processes import wait_for
from tests.rollouts import rollout
from tests.sites import INVENTORY, add_image, make_site
from tests.sockets.service import Service

pytestmark = pytest.mark.cluster
C = "c3" * 32
SITE = (
    INVENTORY
    + """\
racks:
  - {name: r1}
maintenance:
  - {name: nights, start: "22:00", end: "05:00"}
"""
)
UNTIL = 4_070_908_800_000
CRDS = "`netboot cluster crds | kubectl apply -f -`"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(find(CACHE), tmp_path_factory.mktemp("migrate-cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def kubectl(own: Cluster) -> Kubectl:
    kubectl = Kubectl(find(CACHE) / "kubectl", own.admin, own.folder)
    file = own.folder / "definitions.yaml"
    file.write_text(yaml.safe_dump_all(definitions()))
    kubectl("apply", "--server-side", "-f", str(file))
    names = [f"crd/{kind.plural}.{GROUP}" for kind in (*ALL.values(), ENROLMENT)]
    kubectl("wait", "--for=condition=Established", *names, "--timeout=180s")
    return kubectl


@pytest.fixture
def space(kubectl: Kubectl, tmp_path: Path) -> str:
    """A namespace of a test's own."""
    name = f"site-{tmp_path.name.replace('_', '-')[-40:].strip('-')}"
    kubectl("create", "namespace", name)
    return name


def begun(config: Config) -> None:
    """A rollout, of which a machine is done."""
    old, new = add_image(config), add_image(config, name="next", salt="2")
    Store(config.store).set_channel("stable", old)
    make_rollouts(config.data / "rollouts.db").close()
    disk = SqliteRollouts(config.data / "rollouts.db")
    those = {name: Member(machine=name, previous=old) for name in ("gpu-001", "gpu-002")}
    which = {"image": new, "image_name": "next", "base": old, "operator": "alice"}
    disk.start(rollout().model_copy(update=which), those, Note(1, "alice", "start", "CVE"))
    done = those["gpu-001"].model_copy(update={"state": MemberState.DONE, "boot": "b-1"})
    disk.change(1, lambda was, _: (was, {**those, "gpu-001": done}), lambda *_: None)


@pytest.fixture
def site(tmp_path: Path) -> Service:
    """A site that ran, and is stopped: with TPMs of every state, machines that people hold, a rollout under way."""
    config = make_site(tmp_path / "site", inventory=SITE)
    config.data.mkdir()
    now = time.time_ns() // 1_000_000
    begun(config)
    disk = SqliteEnrolments(config.data / "enrolment.db")
    for name, order in (
        ("gpu-001", OpenWindow("enrol", "w1", now + 3_600_000)),
        ("gpu-003", Import(A)),
        ("gpu-003", Release()),
        ("gpu-003", Retire()),
        ("gpu-004", Import(C)),
        ("gpu-004", Replace("w4", now + 3_600_000)),
        ("gpu-005", Import("d4" * 32, '{"serial": "S5"}')),
    ):
        disk.apply([(name, order)], Act("alice"), now)
    disk.propose("gpu-001", B, '{"serial": "S2"}', now)
    disk.alert("gpu-001", "other-key", "a thief", now)
    with closing(intents.make(config.data / "intents.db")), closing(make_audit(config.data / "audit.db")):
        pass
    wanted = SqliteIntents(config.data / "intents.db")
    for machine, put_on in (
        ("gpu-001", PutOn(Mark.HELD, "DIMM 4", UNTIL)),
        ("gpu-002", PutOn(Mark.HELD, "fan 3")),
        ("gpu-002", PutOn(Mark.HELD, "a remedy's", owner="remedy")),
        ("off-001", PutOn(Mark.QUARANTINED, "unknown device")),
    ):
        wanted.order(machine, put_on, "alice", now)
    return Service(config, tmp_path / "site" / "netboot.yaml")


def migrate(site: Service, own: Cluster, space: str, *more: str) -> subprocess.CompletedProcess[str]:
    where = ("--to", "kubernetes", "--admin-kubeconfig", str(own.admin), "--namespace", space)
    return site.netboot("migrate", *where, *more)


def told(answer: subprocess.CompletedProcess[str]) -> dict[str, tuple[int, int]]:
    """Of each kind: made, there already."""
    assert answer.returncode == 0, answer.stderr
    return {each["kind"]: (each["made"], each["there"]) for each in json.loads(answer.stdout)["kinds"]}


def there(kubectl: Kubectl, space: str) -> dict[tuple[str, str], Any]:
    plurals = ",".join(f"{kind.plural}.{GROUP}" for kind in (*ALL.values(), ENROLMENT))
    found = json.loads(kubectl("get", "-n", space, plurals, "-o", "json"))["items"]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


ALL_OF_IT = {
    "Channel": 1,
    "Rack": 1,
    "MaintenanceWindow": 1,
    "Profile": 1,
    "Machine": 3,
    "Hold": 2,
    "Enrolment": 6,
}
WITH_ROLLOUTS = ALL_OF_IT | {"Rollout": 1}


def test_a_whole_site_is_moved_and_moved_again(site: Service, own: Cluster, kubectl: Kubectl, space: str) -> None:
    first = told(migrate(site, own, space, "-o", "json"))
    assert first == {kind: (count, 0) for kind, count in ALL_OF_IT.items()}
    found = there(kubectl, space)
    assert found["Hold", "gpu-001"]["spec"] == {
        "machine": "gpu-001",
        "reason": "DIMM 4",
        "by": "alice",
        "until": "2099-01-01T00:00:00.000Z",
    }
    assert found["Enrolment", "gpu-003"]["spec"] == {
        "ek_sha256": A,
        "source": "imported",
        "generation": 1,
        "retired": True,
    }
    status = found["Enrolment", "gpu-001"]["status"]
    assert (status["proposed"]["ek_sha256"], status["alerts"][0]["said"]) == (B, "a thief")
    assert told(migrate(site, own, space, "-o", "json")) == {kind: (0, count) for kind, count in ALL_OF_IT.items()}
    assert there(kubectl, space) == found, "and nothing was touched"


def test_where_channels_point_and_rollouts_are_moved_and_replicas_go_on_with_them(
    site: Service, own: Cluster, space: str, tmp_path: Path
) -> None:
    moved = migrate(site, own, space, "--rollouts", "-o", "json")
    assert told(moved) == {kind: (count, 0) for kind, count in WITH_ROLLOUTS.items()}
    said = json.loads(moved.stdout)
    assert said["configuration"] == {"state": {"kubernetes": {"namespace": space}}}
    assert not [each for each in said["stays"] if "rollouts" in each["what"] or "channels" in each["what"]]
    again = told(migrate(site, own, space, "--rollouts", "-o", "json"))
    assert again == {kind: (0, count) for kind, count in WITH_ROLLOUTS.items()}
    disk, file = SqliteRollouts(site.config.data / "rollouts.db"), tmp_path / "shared-rollouts.db"
    make_rollouts(file).close()
    connection = connect(own.admin)
    try:
        objects = KubeRolloutObjects(lambda: connection, space)
        shared = SharedRollouts(file, objects, open_image_repository(site.config), dict, lambda: 2)
        assert shared.follow(objects.all(), 2) == []
        assert shared.under_way() == disk.under_way()
        assert (shared.members(1), shared.assigned()) == (disk.members(1), disk.assigned())
        assert shared.history(1, 9) == disk.history(1, 9)
        shared.change(1, lambda was, those: (was.model_copy(update={"why": "goes on"}), those), lambda *_: None)
    finally:
        connection.close()
    other = migrate(site, own, space, "--rollouts")
    assert (other.returncode, other.stdout) == (4, "")
    assert "rollout/stable: spec.rollout says another thing there" in other.stderr


def test_a_dry_run_says_the_same_and_writes_nothing(site: Service, own: Cluster, kubectl: Kubectl, space: str) -> None:
    """Also beside a service that runs."""
    with sole_instance(site.config.data / "lock"):
        tried = migrate(site, own, space, "--dry-run", "-o", "json")
        assert told(tried) == {kind: (count, 0) for kind, count in ALL_OF_IT.items()}
        running = migrate(site, own, space)
    assert (running.returncode, running.stdout) == (1, "")
    assert f"already serves {site.config.data}; stop it first" in running.stderr
    assert there(kubectl, space) == {}
    shown = migrate(site, own, space, "--dry-run").stdout
    assert shown.endswith(f"\nNothing was written. The API server would take 15 objects of namespace {space}.\n")


def test_who_is_interrupted_goes_on(site: Service, own: Cluster, kubectl: Kubectl, space: str) -> None:
    """By an API server that takes no more on the way, which it does not say of one object that is tried alone."""
    refuse(kubectl, space, "gpu-002")
    stopped = migrate(site, own, space)
    assert (stopped.returncode, stopped.stdout) == (4, "")
    assert stopped.stderr.startswith("Error: 10 of 15 objects were made, and then none: 422 Invalid: enrolments.")
    assert "no more of them" in stopped.stderr
    assert "Remedy: put right what is named, then give the same command again" in stopped.stderr
    before = there(kubectl, space)
    assert len(before) == 10
    allow(kubectl, space)
    # as where it was killed between an object and its status
    kubectl("patch", "-n", space, f"enrolments.{GROUP}/gpu-001", "--subresource=status", "--type=json", "-p", NO_STATUS)
    again = told(migrate(site, own, space, "-o", "json"))
    assert again == {kind: (0, count) for kind, count in ALL_OF_IT.items()} | {"Enrolment": (5, 1)}
    after = there(kubectl, space)
    assert after["Enrolment", "gpu-001"]["status"] == before["Enrolment", "gpu-001"]["status"]
    assert {key: after[key] for key in before if key != ("Enrolment", "gpu-001")} == {
        key: each for key, each in before.items() if key != ("Enrolment", "gpu-001")
    }
    acts = SqliteAudit(site.config.data / "audit.db").records(None, None, 5)
    assert [(each.act, each.result, each.before, each.after) for _, each in acts] == [
        ("migrate", "done", {"made": {}}, {"made": {"Enrolment": 6}}),
        ("migrate", "done-in-part", {"made": {}}, {"made": {**ALL_OF_IT, "Enrolment": 1}}),
    ]


def refuse(kubectl: Kubectl, space: str, name: str) -> None:
    """Have the API server take no Enrolment of that name, but where it is only tried."""
    rules = [{"apiGroups": [GROUP], "apiVersions": ["*"], "resources": ["enrolments"], "operations": ["CREATE"]}]
    expression = f"(has(request.dryRun) && request.dryRun) || object.metadata.name != '{name}'"
    policy = {"validations": [{"expression": expression, "message": "no more of them"}]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": space}}
    for kind, spec in (
        ("", {**policy, "matchConstraints": {"resourceRules": rules}}),
        (
            "Binding",
            {"policyName": space, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": selector}},
        ),
    ):
        document = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"ValidatingAdmissionPolicy{kind}"}
        kubectl.apply(f"policy{kind}", {**document, "metadata": {"name": space}, "spec": spec})
    probe = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Enrolment", "metadata": {"name": name, "namespace": space}}
    (kubectl.folder / "probe.json").write_text(json.dumps({**probe, "spec": {}}))
    wait_for(lambda: taken(kubectl) is False, 180.0)


def allow(kubectl: Kubectl, space: str) -> None:
    """Take that back. An API server goes by a policy, and without it, a moment after it was told."""
    kubectl("delete", "validatingadmissionpolicybinding", space)
    wait_for(lambda: taken(kubectl) is True, 180.0)


def taken(kubectl: Kubectl) -> bool | None:
    """Whether the API server takes what `refuse` is about now; None: it says something else."""
    file = str(kubectl.folder / "probe.json")
    try:
        kubectl("create", "-f", file)
    except EndedError as error:
        return False if "no more of them" in str(error) else None
    kubectl("delete", "-f", file)
    return True


NO_STATUS = '[{"op": "remove", "path": "/status"}]'


def test_an_object_that_says_another_thing_is_not_touched(
    site: Service, own: Cluster, kubectl: Kubectl, space: str
) -> None:
    def made(kind: str, name: str, spec: dict[str, Any]) -> None:
        document = {"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "spec": spec}
        kubectl.apply(f"{kind}-{name}", {**document, "metadata": {"name": name, "namespace": space}})

    made("Machine", "gpu-001", {"match": {"macs": ["52:54:00:00:00:99"]}, "profile": "compute"})
    made("Machine", "gpu-002", {"match": {"serial": "S2", "macs": ["52-54-00-00-00-02"]}, "profile": "compute"})
    made("Machine", "gpu-900", {"match": {"macs": ["52:54:00:00:09:00"]}, "profile": "compute"})
    made("Hold", "gpu-001", {"machine": "gpu-001", "reason": "another", "by": "alice"})
    made("Enrolment", "gpu-003", {"ek_sha256": A, "source": "imported", "generation": 1})
    made("Enrolment", "gpu-777", {"ek_sha256": "d4" * 32})
    before = there(kubectl, space)
    refused = migrate(site, own, space)
    assert (refused.returncode, refused.stdout) == (4, "")
    assert refused.stderr == (
        "Error: nothing was written:\n"
        "machine/gpu-001: spec.match says another thing there\n"
        "hold/gpu-001: spec.reason says another thing there\n"
        "enrolment/gpu-003: spec.retired says another thing there\n"
        "machine/gpu-900: is there, and is declared by no file\n"
        "enrolment/gpu-005 and enrolment/gpu-777: spec.ek_sha256: the TPM d4d4d4d4d4d4d4d4... would be approved for "
        "both, and neither could join\n"
        "Remedy: look at each with `kubectl get -o yaml`; change it, or the file, until both say the same, or delete "
        "it where it is not meant, then give the command again\n"
    )
    assert there(kubectl, space) == before


def test_what_the_api_server_would_refuse_is_named_before_anything_is_written(
    site: Service, own: Cluster, kubectl: Kubectl, space: str
) -> None:
    """Files are read more kindly."""
    file = site.config.inventory / "more.yaml"
    file.write_text('machines:\n  - {name: a..b, match: {macs: ["52:54:00:00:00:0a"]}, profile: compute}\n')
    refused = migrate(site, own, space)
    assert (refused.returncode, there(kubectl, space)) == (4, {})
    assert refused.stderr.startswith("Error: nothing was written:\nmachine/a..b: 422 Invalid: ")


def test_what_has_to_be_there_first(site: Service, own: Cluster, kubectl: Kubectl, space: str, tmp_path: Path) -> None:
    absent = migrate(site, own, "nowhere")
    assert (absent.returncode, absent.stderr) == (
        4,
        "Error: there is no namespace nowhere: `kubectl create namespace nowhere`\n",
    )
    definition = f"crd/racks.{GROUP}"
    whole = kubectl.get(definition)
    spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/topology"
    kubectl("patch", definition, "--type=json", "-p", f'[{{"op": "remove", "path": "{spec}"}}]')
    try:
        older = migrate(site, own, space)
        assert (older.returncode, older.stderr) == (
            4,
            f"Error: the definition racks.{GROUP} is of another netboot: apply {CRDS}\n",
        )
        kubectl("delete", definition)
        none = migrate(site, own, space)
        assert (none.returncode, none.stderr) == (
            4,
            f"Error: the API server has no racks.{GROUP}: apply {CRDS}\n",
        )
    finally:
        for key in ("resourceVersion", "uid", "managedFields", "creationTimestamp", "generation"):
            whole["metadata"].pop(key, None)
        kubectl("delete", definition, "--ignore-not-found")
        kubectl.apply("racks", {key: each for key, each in whole.items() if key != "status"})
        kubectl("wait", "--for=condition=Established", definition, "--timeout=180s")
    file = tmp_path / "away.kubeconfig"
    file.write_text(own.admin.read_text().replace(own.url, "https://127.0.0.1:1"))
    away = site.netboot("migrate", "--to", "kubernetes", "--admin-kubeconfig", str(file))
    assert (away.returncode, "cannot be reached" in away.stderr) == (5, True), away.stderr


def test_what_the_configuration_has_as_objects_is_not_moved_again(
    site: Service, own: Cluster, kubectl: Kubectl, space: str
) -> None:
    """Files of before would bring back what was deleted since."""
    with site.file.open("a") as file:
        file.write(f"inventory_kubernetes: {{namespace: {space}}}\nenrolments_kubernetes: {{namespace: {space}}}\n")
    moved = migrate(Service(load_config(site.file), site.file), own, space, "-o", "json")
    assert told(moved) == {"Hold": (2, 0)}
    assert json.loads(moved.stdout)["configuration"] == {"inventory_kubernetes": {"namespace": space, "holds": True}}
    assert {kind for kind, _ in there(kubectl, space)} == {"Hold"}


def test_what_it_says_at_its_end(site: Service, own: Cluster, space: str) -> None:
    said = migrate(site, own, space)
    assert (said.returncode, said.stderr) == (0, "")
    assert [line.split() for line in said.stdout.splitlines()[:8]] == [
        ["kind", "made", "there", "already"],
        *([kind, str(count), "0"] for kind, count in ALL_OF_IT.items()),
    ]
    assert (
        said.stdout.partition("\n\n")[2]
        == f"""\
Verified: 15 objects of namespace {space} were read back as the service reads them, and say what the disk says.

Stays on this host, of each replica its own:
  rollouts, and the images that they assign to machines: data/rollouts.db
  images of channels that `netboot channel set` set: store/channels
  boots, conditions and their history: data/state.db, data/conditions.db, data/history.db
  quarantine, acceptances, freezes, drains, remedies; holds of others than people: data/intents.db
  the history of enrolments and of holds; the audit: data/enrolment.db, data/intents.db, data/audit.db

Next, into netboot.yaml:
  inventory_kubernetes: {{namespace: {space}, holds: true}}
  enrolments_kubernetes: {{namespace: {space}}}
then:
  netboot cluster manifests --inventory | kubectl apply -f -
  netboot cluster kubeconfigs --inventory --admin-kubeconfig {own.admin}
  netboot cluster manifests --enrolments | kubectl apply -f -
  netboot cluster kubeconfigs --enrolments --admin-kubeconfig {own.admin}
  netboot config check
  systemctl start netboot

Held by an object and, as before, by command: gpu-001, gpu-002. {BOTH}
"""
    )


BOTH = "To let one go later takes both: `netboot machine unhold`, and `kubectl delete hold`."


def test_from_files_to_objects_and_back(site: Service, own: Cluster, space: str, tmp_path: Path) -> None:
    """Onto a host that has nothing, and onto the one that it came from."""
    assert migrate(site, own, space).returncode == 0
    folder = tmp_path / "exported"
    where = ("--to", str(folder), "--kubeconfig", str(own.admin), "--namespace", space)
    exported = site.netboot("export", *where)
    assert (exported.returncode, exported.stderr) == (0, "")
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.yaml")) == [
        "enrolments.yaml",
        "holds.yaml",
        "inventory/channels.yaml",
        "inventory/machines.yaml",
        "inventory/maintenance.yaml",
        "inventory/profiles.yaml",
        "inventory/racks.yaml",
    ]
    twice = site.netboot("export", *where)
    assert (twice.returncode, "is there already" in twice.stderr) == (1, True)
    same = differences(load_inventory(site.config.inventory), load_inventory(folder / "inventory"))
    assert [kind for kind, each in same.items() if each.added or each.changed or each.removed] == []

    other = make_site(tmp_path / "other", inventory=SITE)
    service = Service(other, tmp_path / "other" / "netboot.yaml")
    back = ("migrate", "--to", "files", "--from", str(folder), "-o", "json")
    would = service.netboot(*back, "--dry-run")
    counts: dict[str, dict[str, Any]] = {
        "enrolments": {"changed": 4, "same": 0, "gone": []},
        "holds": {"changed": 2, "same": 0},
    }
    assert (would.returncode, counted(would)) == (0, {"dry_run": True, **counts}), would.stderr
    assert not other.data.exists()
    done = service.netboot(*back)
    assert (done.returncode, counted(done)) == (0, {"dry_run": False, **counts}), done.stderr
    ours, theirs = (SqliteEnrolments(each.data / "enrolment.db") for each in (site.config, other))
    assert enrolled(theirs) == enrolled(ours)
    wanted = SqliteIntents(other.data / "intents.db").all(0)
    assert [(one.machine, one.who, one.reason, one.until_ms) for one in wanted] == [
        ("gpu-001", "alice", "DIMM 4", UNTIL),
        ("gpu-002", "alice", "fan 3", None),
    ]
    none = {name: {**each, "changed": 0, "same": each["changed"]} for name, each in counts.items()}
    for at_home in (service, site):
        assert counted(at_home.netboot(*back)) == {"dry_run": False, **none}
    assert [entry.act for entry in ours.history(None, 100)].count("migrated") == 0


def counted(answer: subprocess.CompletedProcess[str]) -> Any:
    """What it says, but what becomes of which machine."""
    said = json.loads(answer.stdout)
    assert len(said["enrolments"].pop("machines")) == said["enrolments"]["changed"]
    assert said.pop("read_of_objects") == []
    return said


def enrolled(store: SqliteEnrolments) -> list[Any]:
    """All but when, and how often something changed."""
    records = store.records()
    return [
        [(one.enrolment(), one.retired_from, parse_details(one.details), store.alerts(one.machine)) for one in records],
        store.replaced(),
        [store.owner(ek) for ek in (A, B, C)],
    ]


def test_an_export_that_cannot_be_whole_says_so(
    site: Service, own: Cluster, kubectl: Kubectl, space: str, tmp_path: Path
) -> None:
    assert migrate(site, own, space).returncode == 0
    where = ("--kubeconfig", str(own.admin), "--namespace", space)
    bad = {"match": {"macs": ["52:54:00:00:00:01"]}, "profile": "compute"}
    meta = {"name": "gpu-900", "namespace": space}
    kubectl.apply("bad", {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Machine", "metadata": meta, "spec": bad})
    folder = tmp_path / "exported"
    partly = site.netboot("export", "--to", str(folder), *where)
    assert partly.returncode == 1
    assert "machine/gpu-900: spec.match.macs[0]: MAC 52:54:00:00:00:01 is of two machines" in partly.stderr
    left_out = yaml.safe_load((folder / "left-out.yaml").read_text())["items"]
    assert {each["metadata"]["name"] for each in left_out} == {"gpu-001", "gpu-900"}
    assert bad in [each["spec"] for each in left_out]
    assert load_inventory(folder / "inventory").machines[0].name == "gpu-002"
    file = tmp_path / "away.kubeconfig"
    file.write_text(own.admin.read_text().replace(own.url, "https://127.0.0.1:1"))
    away = site.netboot("export", "--to", str(tmp_path / "away"), "--kubeconfig", str(file))
    assert (away.returncode, (tmp_path / "away").exists()) == (5, False)
    nothing = site.netboot("export", "--to", str(tmp_path / "away"))
    assert (nothing.returncode, "by the configuration nothing is in objects" in nothing.stderr) == (2, True)


@pytest.fixture
def in_objects(site: Service, own: Cluster, space: str) -> Service:
    """The site, moved, with its keys and accounts in the configuration."""
    assert migrate(site, own, space, "--rollouts").returncode == 0
    accounts = ", ".join(f"{role}: secrets/{role}.kubeconfig" for role in ("shipper", "orders"))
    with site.file.open("a") as file:
        file.write(f"inventory_kubernetes: {{namespace: {space}, holds: true, {accounts}}}\n")
        file.write(f"enrolments_kubernetes: {{namespace: {space}}}\nreplicas: {{}}\n")
    moved = Service(load_config(site.file), site.file)
    for which in ("--inventory", "--enrolments"):
        manifests = own.folder / f"{space}.yaml"
        manifests.write_text(moved.netboot("cluster", "manifests", which).stdout)
        Kubectl(find(CACHE) / "kubectl", own.admin, own.folder)("apply", "-f", str(manifests))
        made = moved.netboot("cluster", "kubeconfigs", which, "--admin-kubeconfig", str(own.admin))
        assert made.returncode == 0, made.stderr
    return moved


KEPT = {
    "objects/machines.yaml": 3,
    "objects/profiles.yaml": 1,
    "objects/channels.yaml": 1,
    "objects/machineclasses.yaml": 0,
    "objects/racks.yaml": 1,
    "objects/maintenancewindows.yaml": 1,
    "objects/holds.yaml": 2,
    "objects/enrolments.yaml": 6,
    "objects/rollouts.yaml": 1,
    "objects/orders.yaml": 0,
}


def test_a_backup_has_the_objects_and_a_restore_puts_them_beside(
    in_objects: Service, own: Cluster, kubectl: Kubectl, space: str, tmp_path: Path
) -> None:
    """By the accounts that the service has, and by nobody where it has none."""
    file, home = tmp_path / "site.tar.gz", in_objects.file.parent
    made = in_objects.netboot("backup", str(file), "-o", "json")
    assert (made.returncode, made.stderr, json.loads(made.stdout)["lacks"]) == (0, "", {})
    with tarfile.open(file) as archive:
        kept = {name: archive.extractfile(name) for name in archive.getnames() if name.startswith("objects/")}
        counts = {name: len(yaml.safe_load(data)["items"]) for name, data in kept.items() if data is not None}
        assert "file/enrolments_kubernetes.reader" in archive.getnames()
    assert counts == KEPT
    before = there(kubectl, space)
    back = in_objects.netboot("restore", str(file), "--force")
    assert back.returncode == 0, back.stderr
    assert f"objects of the cluster are in {home}/restored-objects, and were not written there" in back.stdout
    assert there(kubectl, space) == before
    kubectl("delete", "namespace", space)
    kubectl("create", "namespace", space)
    kubectl("create", "-f", str(home / "restored-objects"))
    kubectl("replace", "--subresource=status", "-f", str(home / "restored-objects/enrolments.yaml"))
    after = there(kubectl, space)
    assert {key: each["spec"] for key, each in after.items()} == {key: each["spec"] for key, each in before.items()}
    assert after["Enrolment", "gpu-001"]["status"] == before["Enrolment", "gpu-001"]["status"]


def test_a_backup_that_lacks_objects_is_made_and_says_so(
    in_objects: Service, kubectl: Kubectl, space: str, tmp_path: Path
) -> None:
    kubectl("delete", "-n", space, "rolebinding/netboot-enrolments")
    refused = in_objects.netboot("backup", str(tmp_path / "one.tar.gz"))
    assert refused.returncode == 4
    assert "one.tar.gz is made, and lacks objects of the kinds Enrolment: the account of" in refused.stderr
    for role in ("inventory", "enrolments-reader", "orders"):
        account = in_objects.file.parent / f"secrets/{role}.kubeconfig"
        account.write_text(re.sub("https://127.0.0.1:[0-9]+", "https://127.0.0.1:1", account.read_text()))
    away = in_objects.netboot("backup", str(tmp_path / "two.tar.gz"), "-o", "json")
    assert (away.returncode, set(json.loads(away.stdout)["lacks"])) == (5, {*WITH_ROLLOUTS, "MachineClass", "Order"})
    assert in_objects.netboot("restore", "--check", str(tmp_path / "two.tar.gz")).returncode == 0
