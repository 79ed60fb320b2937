"""Several shippers and one API server, real: each replica has its own state in SQLite, its own journal and projection.

Partitions are of the replica: its connection cannot be used. What is decided by clocks alone is in
`tests/unit/test_shipper_replicas.py`."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.errors import EndedError
from lab.kube.accounts import Admin
from lab.kube.binaries import find
from lab.kube.cluster import Cluster, cluster
from lab.kube.kubectl import Kubectl
from netboot.clock import SystemClock
from netboot.controllers.projection import ProjectionController
from netboot.controllers.records import KNOWS
from netboot.controllers.several import Several
from netboot.controllers.sharing import Sharing
from netboot.controllers.shipper import ShipperController
from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.kube.connection import Connection, connect
from netboot.kube.machine_objects import MANAGER, KubeMachineObjects
from netboot.kube.manifests import inventory_text
from netboot.kube.resources.definitions import definitions
from netboot.lifecycle.events import AnyRecord
from netboot.lifecycle.object_status import Facts
from netboot.lifecycle.objects import MachineObject
from netboot.lifecycle.phases import Phase
from netboot.machines.resources import declared_as
from netboot.stores.facts import Facts as Journal
from netboot.stores.state import SqliteStates
from netboot.stores.state_writer import SqliteProjection
from tests.cluster.conftest import CACHE
from tests.processes import wait_for
from tests.records import IMAGE, boot_id, event, script
from tests.replicas import NAME, SPEC
from tests.unit.test_object_status import judged

pytestmark = pytest.mark.cluster
SECONDS = 120.0
PATH = f"/apis/netboot.dev/v1alpha1/namespaces/netboot/machines/{NAME}"
JOURNALS = ("boot-0", "join-0", "nodes-default", "shipper")
WIPE = '[{"op": "replace", "path": "/status", "value": {}}]'
WHOLE = ["ScriptServed", "InitrdStarted", "Switched", "Attested", "NodeRegistered", "Ready"]


class Cut(KubeMachineObjects):
    """With a connection that can be cut."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, "netboot", versioned=True)
        self.cut = False

    def write(self, machine: MachineObject, status: Mapping[str, Any]) -> MachineObject:
        if self.cut:
            raise ClusterUnavailableError("the apiserver cannot be reached")
        return super().write(machine, status)


class Replica:
    """One; `leads`: it writes how machines are."""

    def __init__(self, folder: Path, objects: Cut, *, leads: bool) -> None:
        self.objects, self._folder = objects, folder
        (folder / "journal").mkdir(parents=True)
        self._journals = {each: Journal(folder / "journal" / f"{each}.db") for each in JOURNALS}
        self._stopping, self._thread = threading.Event(), threading.Thread(target=self._project, daemon=True)
        self._thread.start()
        self.states = SqliteStates(folder / "state.db")
        several = Several(MANAGER, lambda: leads, 3, Sharing(self.states, self, SystemClock()))
        self.controller = ShipperController(self, lambda: self.objects, SystemClock(), several=several)

    def _project(self) -> None:
        writer = SqliteProjection(self._folder / "state.db")
        owned = [f"{each}.db" for each in JOURNALS]
        projection = ProjectionController(self._folder / "journal", writer, owned=owned)
        while not self._stopping.wait(0.05):
            projection.step()
        writer.close()

    def append(self, *records: AnyRecord) -> None:
        self._journals["shipper"].append(*records)

    def says(self, number: int, *phases: Phase) -> None:
        self._journals["boot-0"].append(script(NAME, number))
        for place, phase in enumerate(phases):
            owner = next(kind for kind, known in KNOWS.items() if phase in known)
            journal = next(each for each in JOURNALS if each.startswith(owner))
            self._journals[journal].append(event(NAME, number, phase, 500 + place))
        wait_for(lambda: self.states.boot(boot_id(NAME, number)) is not None, SECONDS)

    def changed(self) -> set[str]:
        return {NAME}

    def facts(self, names: Sequence[str]) -> Mapping[str, Facts | None]:
        machine, state = declared_as(NAME, SPEC), self.states.machines([NAME]).get(NAME)
        assert machine is not None
        boots = [self.states.boot(each) for each in reversed(self.states.proven([NAME]).get(NAME, ()))]
        there = tuple(each for each in boots if each is not None)
        since = {boot: each for boot, (each, _) in self.states.numbers([each.boot for each in there]).items()}
        found = judged(state.current if state is not None else None)
        return {name: Facts(machine, found, there, IMAGE, since=since) for name in names}

    def of_now(self) -> bool:
        return False

    def known(self) -> Any:
        state = self.states.machines([NAME]).get(NAME)
        boots = self.states.boots(NAME, 10)
        numbers = self.states.numbers([each.boot for each in boots])
        told = [(each.boot, [str(one.phase) for one in each.reached], numbers[each.boot]) for each in boots]
        return state.current.boot if state is not None and state.current is not None else "", told

    def close(self) -> None:
        self.controller.stop()
        self._stopping.set()
        self._thread.join()
        for each in self._journals.values():
            each.close()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(find(CACHE), tmp_path_factory.mktemp("replicas-cluster")) as running:
        kubectl = Kubectl(find(CACHE) / "kubectl", running.admin, running.folder)
        kubectl("create", "namespace", "netboot")
        yield running


@pytest.fixture(scope="module")
def kubectl(own: Cluster) -> Kubectl:
    """Where definitions and manifests are applied."""
    made = Kubectl(find(CACHE) / "kubectl", own.admin, own.folder)
    made.apply("crds", {"apiVersion": "v1", "kind": "List", "items": definitions()})
    made("wait", "--for=condition=Established", "crd/machines.netboot.dev", f"--timeout={SECONDS:.0f}s")
    path = own.folder / "inventory.yaml"
    path.write_text(inventory_text())
    made("apply", "-f", str(path))
    return made


@contextmanager
def replicas(own: Cluster, kubectl: Kubectl, folder: Path) -> Iterator[list[Replica]]:
    """Three, of which the first leads, and the Machine."""
    metadata = {"name": NAME, "namespace": "netboot"}
    document = {"apiVersion": "netboot.dev/v1alpha1", "kind": "Machine", "metadata": metadata, "spec": SPEC}
    wait_for(lambda: applied(kubectl, document), SECONDS)
    with ExitStack() as stack:
        found = []
        for number in range(3):
            connection = stack.enter_context(closing(connect(own.admin)))
            each = stack.enter_context(closing(Replica(folder / str(number), Cut(connection), leads=number == 0)))
            each.controller.start()
            found.append(each)
        yield found
    kubectl("delete", "-n", "netboot", f"machine.netboot.dev/{NAME}")


def applied(kubectl: Kubectl, document: Any) -> bool:
    kubectl.apply("machine", document)
    return True


def status(admin: Admin) -> Any:
    return admin("GET", PATH).json().get("status", {})


def steps(admin: Admin, number: int) -> list[str]:
    boots = [each for each in status(admin).get("boots", ()) if each["id"] == boot_id(NAME, number)]
    return [each["phase"] for boot in boots for each in boot["steps"]]


def test_parts_of_one_boot_that_a_partition_kept_apart_end_equal_everywhere(
    own: Cluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    with replicas(own, kubectl, tmp_path) as found, closing(Admin(own)) as admin:
        wait_for(lambda: "conditions" in status(admin), SECONDS)
        for each in found:
            each.objects.cut = True
        one, two, three = found
        one.says(1, Phase.INITRD_STARTED)
        two.says(1, Phase.SWITCHED, Phase.ATTESTED)
        three.says(1, Phase.NODE_REGISTERED, Phase.READY)
        three.says(2, Phase.ATTESTED)
        wait_for(lambda: all(not each.controller.status().ok for each in found), SECONDS)
        assert steps(admin, 1) == []
        for each in found:
            each.objects.cut = False
        wait_for(lambda: steps(admin, 1) == WHOLE and all(each.known() == one.known() for each in found), SECONDS)
        assert one.known()[0] == boot_id(NAME, 2)
        wait_for(lambda: status(admin)["boot"] == boot_id(NAME, 2), SECONDS)
        whole = status(admin)["boots"]
        assert [each["id"] for each in whole] == [boot_id(NAME, 2), boot_id(NAME, 1)]
        kubectl(
            "patch", "-n", "netboot", f"machine.netboot.dev/{NAME}", "--subresource=status", "--type=json", "-p", WIPE
        )
        wait_for(lambda: status(admin).get("boots") == whole, SECONDS)
        wait_for(lambda: all(each.controller.status().ok for each in found), SECONDS)


def test_what_was_worked_out_from_another_version_is_a_conflict_and_takes_nothing_away(
    own: Cluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    with replicas(own, kubectl, tmp_path) as found, closing(Admin(own)) as admin:
        wait_for(lambda: "conditions" in status(admin), SECONDS)
        one, two, _ = found
        (stale,) = two.controller._differences.objects([NAME])
        one.says(1, Phase.ATTESTED)
        wait_for(lambda: steps(admin, 1), SECONDS)
        with pytest.raises(ConflictError, match="409"):
            two.objects.write(stale, {})
        assert steps(admin, 1) == ["ScriptServed", "Attested"]
        wait_for(lambda: two.known() == one.known(), SECONDS)


def test_the_account_may_take_part_in_the_election_and_write_no_other_lease(kubectl: Kubectl) -> None:
    who = "--as=system:serviceaccount:netboot:netboot-shipper"
    for verb, what, said in (
        ("get", "leases.coordination.k8s.io/shipper", "yes"),
        ("patch", "leases.coordination.k8s.io/shipper", "yes"),
        ("update", "leases.coordination.k8s.io/shipper", "no"),
        ("delete", "leases.coordination.k8s.io/shipper", "no"),
        ("patch", "leases.coordination.k8s.io/nodes", "no"),
        ("create", "leases.coordination.k8s.io", "no"),
    ):
        try:
            answer = kubectl("auth", "can-i", verb, what, "-n", "netboot-leaders", who)
        except EndedError as error:
            answer = str(error)
        assert (answer.strip() == "yes") == (said == "yes"), (verb, what, answer)
