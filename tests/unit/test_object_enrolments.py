"""Enrolments as objects: what another replica, people with kubectl, and an API server that is away may do meanwhile."""

import json
import logging
import shlex
from functools import partial
from pathlib import Path

import pytest
import yaml

from netboot.config import Config, Provisioning
from netboot.config_outside import EnrolmentsInKubernetes
from netboot.join.enrolment import (
    Act,
    Alert,
    Approve,
    Import,
    OpenWindow,
    Order,
    OrdersRefusedError,
    Owner,
    Release,
    Replace,
    Retire,
)
from netboot.join.enrolment_documents import EnrolmentSpec, EnrolmentStatus
from netboot.join.enrolment_objects import EnrolmentObject, record_of
from netboot.join.enrolments_moved import document, spec_of, status_of
from netboot.join.errors import ClusterUnavailableError, NotShownError, PendingError, RefusedError
from netboot.join.object_enrolments import ObjectEnrolments
from netboot.join.object_orders import by_kubectl
from netboot.join.register import Register
from netboot.kube.manifests import enrolments_text
from netboot.lifecycle.errors import CannotTellError, DoneInPartError
from netboot.machines.values import Inventory
from netboot.processes.join import left_nodes
from netboot.status import up_ms
from netboot.stores.said_enrolments import SaidEnrolments, SayEnrolments, recorded
from tests.enrolment_objects import AWAY, DAMAGED, MemoryObjects
from tests.enrolments import MemoryEnrolments
from tests.joining import Stage, boot_id, declared
from tests.soft_tpm import Machine

NOW = 1_790_000_000_000
A, B = "a1" * 32, "b2" * 32
ALICE = Act("alice", "new board")


@pytest.fixture
def objects() -> MemoryObjects:
    return MemoryObjects(NOW)


@pytest.fixture
def store(objects: MemoryObjects) -> ObjectEnrolments:
    return ObjectEnrolments(objects)


def do(store: ObjectEnrolments, machine: str, order: Order) -> None:
    store.apply([(machine, order)], ALICE, NOW)


def edit(objects: MemoryObjects, machine: str, **keys: object) -> None:
    """As people do with kubectl."""
    before = objects.objects.get(machine)
    spec = before.spec.model_dump() if before is not None else {}
    objects.write_spec(machine, EnrolmentSpec.model_validate(spec | keys), before, ALICE)


def window(store: ObjectEnrolments, machine: str = "gpu-001", kind: str = "enrol") -> None:
    assert kind in ("enrol", "boot")
    do(store, machine, OpenWindow(kind, "w1", NOW + 60_000))  # type: ignore[arg-type]


def test_what_changes_between_a_look_and_the_write_is_decided_anew(
    objects: MemoryObjects, store: ObjectEnrolments
) -> None:
    """Of a TPM that is proposed while somebody retires the machine, and of one that is approved after it was taken
    out."""
    window(store)

    def meanwhile(**keys: object) -> None:
        objects.before_write = lambda: None
        edit(objects, "gpu-001", **keys)

    objects.before_write = partial(meanwhile, retired=True)
    with pytest.raises(RefusedError, match="no window is open in which gpu-001 could enrol"):
        store.propose("gpu-001", A, "", NOW)
    edit(objects, "gpu-001", retired=False)
    assert store.propose("gpu-001", A, "", NOW).state == "pending", "its own window, used by itself"
    objects.before_write = partial(meanwhile, replaced=(A,))
    with pytest.raises(RefusedError, match="nothing of gpu-001 waits for approval"):
        do(store, "gpu-001", Approve(A))
    assert store.of("gpu-001").approved_ek is None


def test_of_two_that_read_an_open_boot_window_one_uses_it(objects: MemoryObjects, store: ObjectEnrolments) -> None:
    window(store, kind="boot")

    def first() -> None:
        objects.before_write = lambda: None
        objects.leases["gpu-001", "w1"] = ""

    objects.before_write = first
    assert store.use_window("gpu-001", "w1", NOW) is False


def test_who_is_always_overtaken_gives_up_and_may_try_again(objects: MemoryObjects, store: ObjectEnrolments) -> None:
    window(store)
    busy = objects.before_write

    def again() -> None:
        objects.before_write = busy
        edit(objects, "gpu-001", generation=objects.objects["gpu-001"].spec.generation + 1)
        objects.before_write = again

    objects.before_write = again
    with pytest.raises(ClusterUnavailableError) as caught:
        do(store, "gpu-001", Retire())
    assert str(caught.value) == "the Enrolment of gpu-001 is written by others all the time; try again"


def test_a_window_that_one_tpm_used_is_no_others_though_statuses_are_lost(
    objects: MemoryObjects, store: ObjectEnrolments
) -> None:
    for name in ("gpu-001", "gpu-002"):
        window(store, name)
    window(store, "gpu-003", "boot")
    store.propose("gpu-001", A, '{"serial": "S1"}', NOW)
    do(store, "gpu-001", Approve(A))
    store.propose("gpu-002", B, "", NOW)
    assert store.use_window("gpu-003", "w1", NOW)
    objects.lose_statuses()
    assert (store.of("gpu-001").approved_ek, store.of("gpu-002").state) == (A, "none")
    with pytest.raises(RefusedError) as caught:
        store.propose("gpu-002", "c3" * 32, "", NOW)
    assert str(caught.value) == (
        "the window in which gpu-002 could enrol was used by another TPM; `netboot machine enroll gpu-002` opens one"
    )
    assert store.propose("gpu-002", B, "", NOW).state == "pending"
    assert store.use_window("gpu-003", "w1", NOW) is False
    edit(objects, "gpu-003", window={"kind": "boot", "id": "w1", "until": "2099-01-01T00:00:00Z"})
    assert (store.of("gpu-003").window, store.use_window("gpu-003", "w1", NOW)) == (None, False)


def test_one_tpm_of_two_machines_lets_neither_in_and_both_are_said(
    objects: MemoryObjects, store: ObjectEnrolments
) -> None:
    """Pending at both it is people's to say whose it is; approved for both it is nobody's."""
    for name in ("gpu-001", "gpu-002"):
        window(store, name)
    spied = ObjectEnrolments(objects)
    store.propose("gpu-001", A, "", NOW)
    found = objects.objects["gpu-001"]
    objects.objects["gpu-002"] = objects.objects["gpu-002"]._replace(status=found.status)  # a race
    assert [spied.of(name).state for name in ("gpu-001", "gpu-002")] == ["pending", "pending"]
    edit(objects, "gpu-002", ek_sha256=A)
    whose = store.by_ek(A)
    assert (whose and whose.machine, store.of("gpu-002").approved_ek) == ("gpu-002", A)
    edit(objects, "gpu-001", ek_sha256=A)
    with pytest.raises(RefusedError) as caught:
        store.by_ek(A)
    assert str(caught.value) == (
        "the TPM (EK a1a1a1a1a1a1a1a1...) is approved for gpu-001 and gpu-002: an EK belongs to one machine, and none "
        "of them joins until only one Enrolment has it as spec.ek_sha256"
    )
    assert [store.of(name).approved_ek for name in ("gpu-001", "gpu-002")] == [None, None]
    register = Register(store, lambda: Inventory(machines=(declared("gpu-001"), declared("gpu-002"))))
    words = "EK a1a1a1a1a1a1a1a1... is on record of {}, too: none of them joins until one has it"
    assert [view.conflict for view in register.views(NOW)] == [words.format("gpu-002"), words.format("gpu-001")]
    assert register.view("gpu-001", NOW).conflict == words.format("gpu-002")
    edit(objects, "gpu-001", ek_sha256=None)
    assert store.of("gpu-002").approved_ek == A


def test_with_the_api_server_away_it_cannot_be_told_and_nobody_is_unknown(objects: MemoryObjects) -> None:
    machine = Machine(boot_id("gpu-001"))
    store = ObjectEnrolments(objects)
    stage = Stage(machines=(declared(match={"macs": machine.macs}),), now_ms=NOW, enrolments=store)
    window(store)
    answer = stage.hello(machine)
    with pytest.raises(PendingError):
        stage.attest(machine, answer)
    do(store, "gpu-001", Approve(machine.ek_sha256))
    objects.away = True
    asked = (lambda: stage.hello(machine), lambda: store.of("gpu-001"), lambda: store.by_ek(B), store.records)
    for ask in asked:
        with pytest.raises(ClusterUnavailableError, match=AWAY):
            ask()
    objects.away = False
    assert stage.join(machine)["token"]


def test_alerts_are_written_once_a_minute_and_counted(
    objects: MemoryObjects, store: ObjectEnrolments, caplog: pytest.LogCaptureFixture
) -> None:
    window(store)
    before = objects.writes
    for at in range(100):
        store.alert("gpu-001", "other-key", f"another key ({at})", NOW + at)
    assert objects.writes - before == 1
    store.alert("gpu-001", "other-key", "the last", NOW + 60_000)
    store.alert("gpu-001", "counters", "cleared?" * 1000, NOW + 60_001)
    counters, other = store.alerts("gpu-001")
    assert other == Alert(
        machine="gpu-001", kind="other-key", first_ms=NOW, last_ms=NOW + 60_000, count=101, said="the last"
    )
    assert (counters.kind, len(counters.said)) == ("counters", 1000)
    assert store.latest_alerts() == {"other-key": NOW + 60_000, "counters": NOW + 60_001}
    with caplog.at_level(logging.WARNING):
        store.alert("gpu-002", "other-key", "a thief", NOW)
    assert caplog.messages == ["alert: not written down: there is no Enrolment of gpu-002"]


def test_who_may_not_write_what_people_want_says_the_command_that_does(objects: MemoryObjects) -> None:
    people = ObjectEnrolments(objects)
    ours = ObjectEnrolments(objects, partial(by_kubectl, "site"))

    def command(machine: str, order: Order) -> str:
        with pytest.raises(OrdersRefusedError) as caught:
            do(ours, machine, order)
        words, _, rest = str(caught.value).partition("`")
        assert words == (
            "enrolments are objects of Kubernetes here (enrolments_kubernetes), and netboot may not write what people "
            "want of them. Who may write Enrolments does it by "
        )
        return rest.removesuffix("`")

    made = shlex.split(command("gpu-001", OpenWindow("enrol", "w1", NOW + 60_000)))
    assert made[:5] == ["kubectl", "create", "-f", "-", "<<<"]
    assert json.loads(made[5]) == {
        "apiVersion": "netboot.dev/v1alpha1",
        "kind": "Enrolment",
        "metadata": {"name": "gpu-001", "namespace": "site"},
        "spec": {"window": {"kind": "enrol", "id": "w1", "until": "2026-09-21T14:14:20.000Z"}},
    }
    window(people)
    ours.propose("gpu-001", A, "", NOW)
    version = objects.objects["gpu-001"].version
    assert command("gpu-001", Approve(A)) == (
        f'kubectl patch -n site enrolments.netboot.dev/gpu-001 --type=merge -p \'{{"metadata": {{"resourceVersion": '
        f'"{version}"}}, "spec": {{"ek_sha256": "{A}", "source": "first-use", "window": null}}}}\''
    )
    with pytest.raises(OrdersRefusedError) as caught:
        do(ours, "gpu-001", Approve(B))
    assert isinstance(caught.value.refusals[0][1], NotShownError), "what was not shown has no command"
    do(people, "gpu-001", Approve(A))
    assert '"replaced": ["a1a1' in command("gpu-001", Replace("w2", NOW + 60_000))
    assert '"spec": {"retired": true}' in command("gpu-001", Retire())
    assert '"spec": {"generation": 1}' in command("gpu-001", Release())


def test_whoever_may_write_nothing_is_told_of_every_order(objects: MemoryObjects) -> None:
    ours = ObjectEnrolments(objects, partial(by_kubectl, "site"))
    with pytest.raises(OrdersRefusedError) as caught:
        ours.apply([("gpu-001", Import(A)), ("gpu-002", Import(B))], ALICE, NOW)
    assert [number for number, _ in caught.value.refusals] == [0, 1]
    assert [ek in str(error) for ek, (_, error) in zip((A, B), caught.value.refusals, strict=True)] == [True, True]


def test_of_replaced_tpms_an_object_keeps_so_many_and_says_so(objects: MemoryObjects, store: ObjectEnrolments) -> None:
    edit(objects, "gpu-001", ek_sha256=A, replaced=tuple(f"{number:064x}" for number in range(64)))
    with pytest.raises(RefusedError) as caught:
        do(store, "gpu-001", Replace("w2", NOW + 60_000))
    assert str(caught.value) == (
        "gpu-001 has had 64 TPMs taken out of it, and its Enrolment keeps no more: take those that are destroyed out "
        "of spec.replaced first"
    )


def test_a_replacement_takes_out_what_the_machine_showed_before_too(
    objects: MemoryObjects, store: ObjectEnrolments
) -> None:
    """People approved another by kubectl meanwhile."""
    window(store)
    store.propose("gpu-001", A, "", NOW)
    edit(objects, "gpu-001", ek_sha256=B)
    do(store, "gpu-001", Replace("w2", NOW + 60_000))
    assert objects.objects["gpu-001"].spec.replaced == (B, A)
    assert (store.of("gpu-001").state, store.of("gpu-001").window) == ("none", "enrol")


def test_what_was_taken_out_of_another_machine_a_moment_ago_is_not_proposed(objects: MemoryObjects) -> None:
    """It outranks what another machine showed: replicas that race may have let it."""
    store = ObjectEnrolments(objects, seconds=lambda: 0.0)
    window(store)
    window(store, "gpu-003")
    assert store.by_ek(A) is None, "what is replaced is remembered from here on"
    edit(objects, "gpu-002", replaced=(A,))
    with pytest.raises(RefusedError, match="gpu-001 shows the TPM of gpu-002"):
        store.propose("gpu-001", A, "", NOW)
    assert objects.leases == {}, "its window is not used up"
    edit(objects, "gpu-002", replaced=())
    fresh = ObjectEnrolments(objects)
    fresh.propose("gpu-001", A, "", NOW)
    edit(objects, "gpu-002", replaced=(A,))
    fresh = ObjectEnrolments(objects)
    whose = fresh.by_ek(A)
    assert whose is not None
    assert (whose.machine, whose.state, fresh.owner(A)) == ("gpu-002", "retired", Owner("gpu-002", replaced=True))


def test_whose_tpms_were_taken_out_cannot_be_told_where_one_object_cannot_be_read(
    objects: MemoryObjects, store: ObjectEnrolments
) -> None:
    objects.damaged = True
    with pytest.raises(ClusterUnavailableError, match=DAMAGED):
        store.by_ek(A)


def test_a_window_that_a_tpm_used_which_was_taken_out_is_closed(
    objects: MemoryObjects, store: ObjectEnrolments
) -> None:
    window(store)
    store.propose("gpu-001", A, "", NOW)
    edit(objects, "gpu-001", replaced=(A,))
    assert (store.of("gpu-001").window, store.records()[0].window) == (None, None)
    edit(objects, "gpu-001", window={"kind": "enrol", "id": "w2", "until": "2099-01-01T00:00:00Z"})
    assert (store.of("gpu-001").window, store.records()[0].window) == ("enrol", "enrol")


def test_who_is_retired_is_not_remembered_of_a_cluster_that_says_nothing(
    store: ObjectEnrolments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the file does not change: it is old."""
    given = Provisioning.model_validate({"listen": "127.0.0.1:8080", "url": "http://127.0.0.1:8080"})
    config = Config(site="test", data=tmp_path, provisioning=given, enrolments_kubernetes=EnrolmentsInKubernetes())
    do(store, "gpu-003", Retire())
    SayEnrolments(config, store, lambda: NOW).tell()
    clock = [up_ms()]
    said = SaidEnrolments(tmp_path / "status", lambda: clock[0])
    monkeypatch.setattr("netboot.processes.join.recorded", lambda _: said)
    nodes = left_nodes(config)
    assert list(nodes.retired()) == ["gpu-003"]
    clock[0] += 10**9
    with pytest.raises(CannotTellError, match="no join server has read them lately"):
        nodes.retired()


def test_policies_of_another_namespace_have_other_names() -> None:
    found = [each for each in yaml.safe_load_all(enrolments_text("two")) if each["kind"].startswith("Validating")]
    names = ["netboot-enrolments-two"] * 2 + ["netboot-windows-two"] * 2
    assert [each["metadata"]["name"] for each in found] == names
    assert [each["spec"]["policyName"] for each in found if "policyName" in each["spec"]] == names[::2]


def test_of_many_orders_what_is_done_is_said(objects: MemoryObjects, store: ObjectEnrolments) -> None:
    calls = iter(range(10))

    def then_away() -> None:
        objects.away = next(calls) == 0

    objects.before_write = then_away
    with pytest.raises(DoneInPartError) as caught:
        store.apply([("gpu-001", Import(A)), ("gpu-002", Import(B))], ALICE, NOW)
    assert str(caught.value) == f"done of gpu-001, and then no further: {AWAY}"


def test_who_asks_no_api_server_goes_by_what_was_said_lately(
    objects: MemoryObjects, store: ObjectEnrolments, tmp_path: Path
) -> None:
    given = Provisioning.model_validate({"listen": "127.0.0.1:8080", "url": "http://127.0.0.1:8080"})
    config = Config(site="test", data=tmp_path, provisioning=given, enrolments_kubernetes=EnrolmentsInKubernetes())
    with pytest.raises(CannotTellError, match="no join server has read them lately"):
        recorded(config).records()
    window(store, "gpu-001", "boot")
    window(store, "gpu-002", "boot")
    do(store, "gpu-003", Retire())
    store.use_window("gpu-002", "w1", NOW)
    says = SayEnrolments(config, store, lambda: NOW)
    says.tell()
    said = [(one.machine, one.state, one.open_window(NOW), one.window_id) for one in recorded(config).records()]
    assert said == [("gpu-001", "none", "boot", "w1"), ("gpu-003", "retired", None, "")]
    written = (tmp_path / "status" / "enrolments.json").stat().st_mtime_ns
    says.tell()
    assert (tmp_path / "status" / "enrolments.json").stat().st_mtime_ns == written, "the same is not written again"
    objects.away = True
    says.tell()
    assert says.problem == f"enrolments cannot be read: {AWAY}"
    later = SaidEnrolments(tmp_path / "status", lambda: 10**15)
    with pytest.raises(CannotTellError, match="no join server has read them lately"):
        later.records()


def test_what_is_on_record_on_disk_is_the_same_as_objects() -> None:
    """Retired stays retired, approved stays approved, pending stays pending, a TPM that was taken out stays out, and a
    window that was used is in no object."""
    disk = MemoryEnrolments()

    def ordered(machine: str, *orders: Order) -> None:
        for order in orders:
            disk.apply([(machine, order)], ALICE, NOW)

    ordered("approved", OpenWindow("enrol", "w", NOW + 1000))
    disk.propose("approved", A, '{"serial": "S1"}', NOW)
    ordered("approved", Approve(A))
    ordered("pending", OpenWindow("enrol", "w", NOW + 1000))
    disk.propose("pending", B, '{"serial": "S2"}', NOW)
    ordered("retired", Import("c3" * 32), Release(), Retire())
    ordered("open", OpenWindow("boot", "w-open", NOW + 1000))
    ordered("used", OpenWindow("boot", "w-used", NOW + 1000))
    assert disk.use_window("used", "w-used", NOW)
    disk.alert("pending", "other-key", "a thief", NOW)
    ordered("replaced", Import("d4" * 32), Replace("", 0))
    for record in disk.records():
        gone = ("d4" * 32,) if record.machine == "replaced" else ()
        spec, status = spec_of(record, gone), status_of(record, disk.alerts(record.machine))
        found = EnrolmentObject(record.machine, "u", "1", 1, NOW, spec, status)
        moved = record_of(record.machine, found)
        assert moved.enrolment() == record.enrolment()
        assert (moved.details, moved.retired_from) == (record.details, record.retired_from)
        assert spec.replaced == gone
        made = document(record.machine, "netboot", spec, status)
        assert EnrolmentSpec.model_validate(made["spec"]) == spec
        assert EnrolmentStatus.model_validate(made["status"]) == status
    assert status_of(disk.record("pending"), disk.alerts("pending")).alerts[0].said == "a thief"
