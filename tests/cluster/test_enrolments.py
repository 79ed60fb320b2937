"""Enrolments as objects of a real API server: the contract of the store, by an account of people; what netboot's own
accounts may, and may not; and what becomes of replicas that race."""

import contextlib
import re
import shlex
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from images.store.store import Store
from lab.kube.accounts import Admin
from lab.kube.binaries import find
from lab.kube.cluster import Cluster, cluster
from lab.kube.kubectl import Kubectl
from netboot.clock import rfc3339
from netboot.config import load_config
from netboot.join.enrolment import (
    Act,
    Approve,
    EnrolmentStore,
    Import,
    OpenWindow,
    Order,
    Owner,
    Release,
    Replace,
    Retire,
)
from netboot.join.errors import ClusterUnavailableError, RefusedError
from netboot.join.object_enrolments import ObjectEnrolments
from netboot.kube.accounts import ENROLMENTS, make_kubeconfig
from netboot.kube.connection import Connection, connect
from netboot.kube.enrolment_objects import KubeEnrolmentObjects, lease_name
from netboot.kube.manifests import enrolments_text
from netboot.kube.resources.definitions import definitions
from netboot.kube.resources.kinds import ENROLMENT, GROUP, VERSION
from netboot.lifecycle.errors import CannotTellError
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.said_enrolments import recorded
from netboot.stores.snapshot import read_snapshot
from tests import soft_tpm
from tests.cluster.conftest import CACHE
from tests.cluster.test_resources import piped
from tests.contract.test_enrolments import (  # noqa: F401 - the contract, by the fixture `store` of this file
    A,
    B,
    test_a_boot_window_is_used_once,
    test_a_replaced_tpm_comes_back_through_no_window,
    test_an_ek_is_one_machines_and_a_conflict_names_both,
    test_from_window_to_pending_to_approved_to_retired_and_back,
    test_no_window_no_enrolment,
    test_nothing_is_on_record_of_a_machine_nobody_spoke_of,
    test_one_window_takes_one_tpm,
    test_orders_given_together_are_all_or_nothing,
    test_release_and_replace_raise_the_generation,
    test_retired_is_out_of_everything_until_approved_again,
    test_what_is_approved_is_what_was_shown,
    test_who_comes_back_is_what_it_was_before,
    test_windows_are_for_machines_without_a_tpm_on_record,
)
from tests.joining import declared
from tests.processes import wait_for
from tests.sites import JOINING, add_image, free_ports
from tests.sockets.join_site import JoinSite, Said, join_site, make_whole_site
from tests.sockets.service import Service, serving

pytestmark = pytest.mark.cluster
SECONDS = 180.0
NOW = 1_790_000_000_000
NAMESPACE = "netboot"
ENROLMENTS_PATH = f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/enrolments"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
ENROLLER = f"system:serviceaccount:{NAMESPACE}:netboot-enroller"
READER = f"system:serviceaccount:{NAMESPACE}:netboot-enrolments"
ISSUER = f"system:serviceaccount:{NAMESPACE}:netboot-issuer"


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Its own: definitions and policies stay there."""
    with cluster(find(CACHE), tmp_path_factory.mktemp("enrolments-cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def as_admin(control_plane: Cluster) -> Iterator[Admin]:
    admin = Admin(control_plane)
    yield admin
    admin.close()


@pytest.fixture(scope="module")
def kubectl(control_plane: Cluster) -> Kubectl:
    return Kubectl(find(CACHE) / "kubectl", control_plane.admin, control_plane.folder)


@pytest.fixture(scope="module")
def kubeconfigs(control_plane: Cluster, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of `reader` and `join`; definitions, rights and policies are applied."""
    folder = tmp_path_factory.mktemp("enrolments")
    file = folder / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(definitions()) + "---\n" + enrolments_text())
    kubectl("create", "namespace", NAMESPACE)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
    kubectl("wait", "--for=condition=Established", f"crd/{ENROLMENT.plural}.{GROUP}", "--timeout=180s")
    paths = {}
    for role in ENROLMENTS:
        paths[role] = folder / f"{role}.kubeconfig"
        paths[role].write_bytes(make_kubeconfig(control_plane.admin, role, NAMESPACE, 86_400).content)
        paths[role].chmod(0o600)
    return paths


@pytest.fixture(scope="module")
def stores(
    control_plane: Cluster, kubeconfigs: dict[str, Path], kubectl: Kubectl
) -> Iterator[dict[str, ObjectEnrolments]]:
    """By role: `reader` and `join`, as netboot has them, and `people`, who may all."""
    paths = {**kubeconfigs, "people": control_plane.admin}
    connections = {role: connect(path, read=60) for role, path in paths.items()}  # a busy machine answers slowly
    objects = {role: KubeEnrolmentObjects(partial(_same, one), NAMESPACE) for role, one in connections.items()}
    found = {role: ObjectEnrolments(each) for role, each in objects.items()}
    wait_for(lambda: _judged(kubectl, control_plane), SECONDS)
    yield found
    kubectl("delete", "-n", NAMESPACE, f"enrolments.{GROUP}", "--all")
    for one in connections.values():
        one.close()


def _same(connection: Connection) -> Connection:
    return connection


def _judged(kubectl: Kubectl, control_plane: Cluster) -> bool:
    """Whether the policies are in force: an API server takes them up within a second or two."""
    admin = Admin(control_plane)
    try:
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "other"}}
        made = admin("POST", f"{LEASES}?dryRun=All", lease, user=ENROLLER)
        kubectl("get", "enrolments", "-n", NAMESPACE)
        probe = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Enrolment", "metadata": {"name": "probe"}, "spec": {}}
        masters = admin("POST", f"{ENROLMENTS_PATH}?dryRun=All", probe, user=ISSUER, group="system:masters")
        return made.status_code == 422 and masters.status_code == 422
    finally:
        admin.close()


@pytest.fixture
def store(stores: dict[str, ObjectEnrolments], kubectl: Kubectl) -> Iterator[EnrolmentStore]:
    yield stores["people"]
    kubectl("delete", "-n", NAMESPACE, f"enrolments.{GROUP}", "--all")
    kubectl("delete", "-n", NAMESPACE, "leases", "-l", "netboot.dev/window")


def do(store: EnrolmentStore, machine: str, order: Order) -> None:
    store.apply([(machine, order)], Act("alice", "new board"), NOW)


def spec(ek: str) -> dict[str, Any]:
    return {"spec": {"ek_sha256": ek}}


def body(name: str, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Enrolment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        **more,
    }


def test_the_issuers_account_proposes_and_cannot_approve(
    stores: dict[str, ObjectEnrolments], store: EnrolmentStore, as_admin: Admin
) -> None:
    """By RBAC, and where somebody bound more to it, by admission."""
    join = stores["join"]
    do(store, "gpu-001", OpenWindow("enrol", "w1", NOW + 60_000))
    assert join.propose("gpu-001", A, '{"serial": "S1"}', NOW).state == "pending"
    join.alert("gpu-001", "other-key", "a thief", NOW)
    with pytest.raises(ClusterUnavailableError, match='cannot patch resource "enrolments" in API group'):
        do(join, "gpu-001", Approve(A))
    with pytest.raises(ClusterUnavailableError, match='cannot create resource "enrolments" in API group'):
        do(join, "gpu-002", OpenWindow("enrol", "w1", NOW + 60_000))
    path, by = f"{ENROLMENTS_PATH}/gpu-001", {"user": ENROLLER, "group": "system:masters"}
    merged = "?fieldManager=x&force=true"
    refusals = {
        "approves": as_admin("PATCH", path + merged, body("gpu-001", **spec(A)), **by),
        "makes": as_admin("POST", ENROLMENTS_PATH, body("gpu-003", **spec(A)), **by),
        "deletes": as_admin("DELETE", path, **by),
        "shows another": as_admin("PATCH", f"{path}/status{merged}", body("gpu-001", status=shown(B, "w1")), **by),
    }
    assert {name: answer.status_code for name, answer in refusals.items()} == dict.fromkeys(refusals, 422)
    assert "is for people to write" in refusals["approves"].text
    assert "stays until people take it out" in refusals["shows another"].text
    do(store, "gpu-002", OpenWindow("boot", "w1", NOW + 60_000))
    other = as_admin("PATCH", f"{ENROLMENTS_PATH}/gpu-002/status{merged}", body("gpu-002", status=shown(B, "w1")), **by)
    assert (other.status_code, "is proposed in the enrol window" in other.text) == (422, True), other.text
    status = as_admin("PATCH", f"{path}/status{merged}", body("gpu-001", **spec(A)), **by)
    assert "ek_sha256" not in status.json()["spec"], "who writes a status writes no spec"
    assert store.of("gpu-001").approved_ek is None
    do(store, "gpu-001", Approve(A))
    assert join.of("gpu-001").approved_ek == A


def shown(ek: str, window: str) -> dict[str, Any]:
    return {"proposed": {"ek_sha256": ek, "window": window, "since": "2026-11-24T08:00:00Z", "details": {}}}


def test_of_a_status_admission_takes_what_a_machine_showed_in_its_window_and_no_more(
    stores: dict[str, ObjectEnrolments], store: EnrolmentStore, as_admin: Admin
) -> None:
    """Whatever was bound to an account of netboot's beside what it has: one refusal for each clause of the policy."""
    c, now = "c3" * 32, NOW + 60_000
    do(store, "shown", OpenWindow("enrol", "w1", now))
    stores["join"].propose("shown", A, '{"serial": "S1"}', NOW)
    do(store, "open", OpenWindow("enrol", "w1", now))
    do(store, "boot", OpenWindow("boot", "w1", now))
    window = {"kind": "enrol", "id": "w1", "until": rfc3339(now)}
    more: dict[str, dict[str, Any]] = {
        "none": {},
        "approved": {"ek_sha256": B},
        "retired": {"retired": True},
        "gone": {"replaced": [c]},
    }
    for name, keys in more.items():
        made = body(name, spec=keys if name == "none" else {**keys, "window": window})
        assert as_admin("POST", ENROLMENTS_PATH, made).status_code == 201

    def refused(machine: str, status: Any, user: str = ENROLLER) -> tuple[int, str]:
        path = f"{ENROLMENTS_PATH}/{machine}"
        found = as_admin("GET", path).json()
        merged = {**found.get("status", {}), **status} if status is not None else {}
        kept = {key: value for key, value in merged.items() if value is not None}
        changed = {**found, "status": kept}
        answer = as_admin("PUT", f"{path}/status", changed, user=user, group="system:masters")
        return answer.status_code, answer.json().get("message", "").rpartition("denied request: ")[2]

    first = as_admin("GET", f"{ENROLMENTS_PATH}/shown").json()["status"]["proposed"]
    alerts = [{"kind": "other-key", "first": rfc3339(NOW), "last": rfc3339(NOW), "count": 1, "said": "a thief"}]
    stays = "a TPM that was shown stays until people take it out of the machine (spec.replaced)"
    whose = "the status of an Enrolment is for netboot-enroller alone to write"
    as_shown = "what is said of a TPM that was shown stays as it was when people compared it"
    where = "a TPM is proposed in the enrol window that spec.window says, of a machine in service that has none"
    fewer = "how many TPMs were proposed never falls"
    cases: list[tuple[str, str, Any, str]] = [
        ("by another account", "open", {"alerts": alerts}, whose),
        ("another TPM", "shown", shown(B, "w1"), stays),
        ("taken away", "shown", {"proposed": None}, stays),
        ("all taken away", "shown", None, stays),
        ("another serial", "shown", {"proposed": {**first, "details": {"serial": "S2"}}}, as_shown),
        ("another window", "shown", {"proposed": {**first, "window": "w2"}}, as_shown),
        ("another time", "shown", {"proposed": {**first, "since": "2020-01-01T00:00:00Z"}}, as_shown),
        ("fewer", "shown", {"proposals": 0}, fewer),
        ("no window", "none", shown(c, "w1"), where),
        ("a boot window", "boot", shown(c, "w1"), where),
        ("no such window", "open", shown(c, "w2"), where),
        ("approved", "approved", shown(c, "w1"), where),
        ("retired", "retired", shown(c, "w1"), where),
        ("taken out", "gone", shown(c, "w1"), where),
    ]
    for what, machine, status, words in cases:
        code, message = refused(machine, status, READER if words == whose else ENROLLER)
        assert (code, words in message) == (422, True), (what, code, message)
    assert refused("open", shown(c, "w1"))[0] == 200, "what a machine shows in its window"
    assert refused("shown", {"alerts": alerts})[0] == 200, "what is beside it"
    stores["join"].alert("shown", "counters", "cleared?", NOW)
    assert [alert.kind for alert in store.alerts("shown")] == ["counters", "other-key"]


def test_a_used_window_is_taken_back_by_no_account_of_ours(
    stores: dict[str, ObjectEnrolments], store: EnrolmentStore, as_admin: Admin
) -> None:
    do(store, "gpu-001", OpenWindow("boot", "w1", NOW + 60_000))
    assert stores["join"].use_window("gpu-001", "w1", NOW) is True
    path = f"{LEASES}/{lease_name('gpu-001', 'w1')}"
    found = as_admin("GET", path).json()
    for user in (ENROLLER, READER, ISSUER):
        by = {"user": user, "group": "system:masters"}
        assert as_admin("DELETE", path, **by).status_code == 422, user
        assert as_admin("PUT", path, {**found, "spec": {"holderIdentity": "x"}}, **by).status_code == 422, user
    other = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "netboot-shipper"}}
    assert as_admin("POST", LEASES, other, user=ENROLLER).status_code == 422
    assert store.of("gpu-001").window is None
    assert stores["join"].use_window("gpu-001", "w1", NOW) is False


def test_the_approvers_account_reads_and_cannot_propose(
    stores: dict[str, ObjectEnrolments], store: EnrolmentStore
) -> None:
    reader = stores["reader"]
    do(store, "gpu-001", OpenWindow("enrol", "w1", NOW + 60_000))
    assert (reader.of("gpu-001").window, reader.by_ek(A)) == ("enrol", None)
    with pytest.raises(ClusterUnavailableError, match='cannot create resource "leases"'):
        reader.propose("gpu-001", A, "", NOW)
    with pytest.raises(ClusterUnavailableError, match='cannot patch resource "enrolments/status"'):
        reader.alert("gpu-001", "other-key", "a thief", NOW)
    with pytest.raises(ClusterUnavailableError, match='cannot patch resource "enrolments"'):
        do(reader, "gpu-001", OpenWindow("enrol", "w2", NOW + 60_000))


def test_of_replicas_that_race_one_uses_a_window(stores: dict[str, ObjectEnrolments], store: EnrolmentStore) -> None:
    do(store, "gpu-001", OpenWindow("boot", "w1", NOW + 60_000))
    do(store, "gpu-002", OpenWindow("enrol", "w1", NOW + 60_000))
    barrier, won, proposed = threading.Barrier(6), list[bool](), list[str | None]()
    failed: list[Exception] = []

    def work(number: int) -> None:
        barrier.wait()
        try:
            won.append(stores["join"].use_window("gpu-001", "w1", NOW))
            proposed.append(stores["join"].propose("gpu-002", f"{number:064x}", "", NOW).ek_sha256)
        except RefusedError:
            proposed.append(None)
        except Exception as error:  # noqa: BLE001 - of a thread: it is said below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(won) == [False] * 5 + [True]
    assert len([ek for ek in proposed if ek is not None]) == 1
    assert store.of("gpu-002").ek_sha256 in proposed


def test_by_kubectl_a_tpm_is_approved_and_statuses_may_be_lost(
    stores: dict[str, ObjectEnrolments], store: EnrolmentStore, kubectl: Kubectl, as_admin: Admin
) -> None:
    do(store, "gpu-001", OpenWindow("enrol", "w1", NOW + 60_000))
    do(store, "gpu-002", OpenWindow("enrol", "w1", NOW + 60_000))
    do(store, "gpu-003", OpenWindow("boot", "w1", NOW + 60_000))
    stores["join"].propose("gpu-001", A, '{"serial": "S1"}', NOW)
    stores["join"].propose("gpu-002", B, "", NOW)
    assert stores["join"].use_window("gpu-003", "w1", NOW)
    said = kubectl("patch", "-n", NAMESPACE, "nbe/gpu-001", "--type=merge", "-p", f'{{"spec":{{"ek_sha256":"{A}"}}}}')
    assert said == "enrolment.netboot.dev/gpu-001 patched\n"
    heading, first = kubectl("get", "-n", NAMESPACE, "nbe").splitlines()[:2]
    assert heading.split() == ["NAME", "APPROVED", "PROPOSED", "SINCE", "RETIRED", "WINDOW", "UNTIL", "AGE"]
    assert first.split()[:3] == ["gpu-001", A, A]
    assert "To approve one that is pending is to write it here" in kubectl(
        "explain", "enrolments.netboot.dev.spec.ek_sha256"
    ).replace("\n    ", " ")
    objects = kubectl.get("-n", NAMESPACE, "nbe")["items"]
    kubectl("delete", "-n", NAMESPACE, f"enrolments.{GROUP}", "--all")
    for each in objects:  # as a backup brings them back: what is created has no status
        metadata = {"name": each["metadata"]["name"], "namespace": NAMESPACE}
        assert as_admin("POST", ENROLMENTS_PATH, {**each, "metadata": metadata}).status_code == 201
    join = stores["join"]
    assert (join.of("gpu-001").approved_ek, join.by_ek(B), join.of("gpu-002").window) == (A, None, "enrol")
    with pytest.raises(RefusedError, match="the window in which gpu-002 could enrol was used by another TPM"):
        join.propose("gpu-002", "c3" * 32, "", NOW)
    assert join.propose("gpu-002", B, "", NOW).state == "pending"
    assert (join.of("gpu-003").window, join.use_window("gpu-003", "w1", NOW)) == (None, False)


def test_an_api_server_refuses_what_nobody_should_mean(
    store: EnrolmentStore, as_admin: Admin, kubectl: Kubectl
) -> None:
    path = f"{ENROLMENTS_PATH}?fieldValidation=Strict&dryRun=All"
    bad = [
        {"ek_sha256": "A1"},
        {"ek_sha256": A, "replaced": [A]},
        {"window": {"kind": "enrol", "id": "w1"}},
        {"window": {"kind": "enrol", "id": "w1", "until": "tomorrow"}},
        {"window": {"kind": "enrol", "id": "w1", "until": "2099-01-01T00:00:00+25:00"}},
        {"window": {"kind": "enrol", "id": "w1", "until": "2099-01-01T00:00:00+23:60"}},
        {"window": {"kind": "enrol", "id": "w1", "until": "0000-01-01T00:00:00Z"}},
        {"window": {"kind": "enrol", "id": "two words", "until": "2099-01-01T00:00:00Z"}},
        {"generation": -1},
        {"approved": A},
    ]
    found = [as_admin("POST", path, body("gpu-001", spec=each)).status_code for each in bad]
    assert [status for status in found if status not in (400, 422)] == [], found
    assert as_admin("POST", path, body("gpu-001", spec={"ek_sha256": None, "window": None})).status_code == 201
    do(store, "gpu-001", OpenWindow("enrol", "w1", NOW + 60_000))
    patch = "patch", "-n", NAMESPACE, "nbe/gpu-001", "--type=merge", "-p"
    kubectl(*patch, '{"spec":{"generation":2}}')
    for less in ("1", "null"):
        answer = as_admin("GET", f"{ENROLMENTS_PATH}/gpu-001").json()
        answer["spec"]["generation"] = yaml.safe_load(less)
        refused = as_admin("PUT", f"{ENROLMENTS_PATH}/gpu-001", answer)
        assert (refused.status_code, "never falls" in refused.text) == (422, True), refused.text


def test_an_object_that_cannot_be_read_stops_none_but_its_own_machine(
    stores: dict[str, ObjectEnrolments], store: EnrolmentStore, as_admin: Admin, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a definition that is older: whose TPMs were taken out cannot be told, and who is retired can."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{ENROLMENT.plural}.{GROUP}"
    before = as_admin("GET", path).json()

    def defined(**change: Any) -> bool:
        made = as_admin("GET", path).json()
        until = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["window"]
        until["properties"]["until"] |= change
        return as_admin("PUT", path, made).status_code == 200

    was = before["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["window"]
    window = {"kind": "boot", "id": "w1", "until": "2099-01-01T00:00:00+25:00"}
    do(store, "gpu-001", Retire())
    wait_for(lambda: defined(pattern="^.*$"), SECONDS)
    try:
        bad = body("gpu-002", spec={"retired": True, "window": window})
        wait_for(lambda: as_admin("POST", ENROLMENTS_PATH, bad).status_code in (201, 409), SECONDS)
        assert [record.machine for record in store.noticed()] == ["gpu-001"]
        words = "enrolment/gpu-002: spec.window.until: is a moment of no calendar: correct it there"
        assert words in caplog.messages
        assert [record.machine for record in store.records()] == ["gpu-001"]
        with pytest.raises(ClusterUnavailableError, match="is a moment of no calendar"):
            stores["reader"].by_ek("e5" * 32)
    finally:
        as_admin("DELETE", f"{ENROLMENTS_PATH}/gpu-002")
        wait_for(lambda: defined(pattern=was["properties"]["until"]["pattern"]), SECONDS)


def test_what_is_approved_twice_lets_nobody_in(store: EnrolmentStore, as_admin: Admin) -> None:
    for name in ("gpu-001", "gpu-002"):
        assert as_admin("POST", ENROLMENTS_PATH, body(name, **spec(A))).status_code == 201
    with pytest.raises(RefusedError) as caught:
        store.by_ek(A)
    assert str(caught.value) == (
        "the TPM (EK a1a1a1a1a1a1a1a1...) is approved for gpu-001 and gpu-002: an EK belongs to one machine, and none "
        "of them joins until only one Enrolment has it as spec.ek_sha256"
    )
    assert [(one.machine, one.approved_ek) for one in map(store.of, ("gpu-001", "gpu-002"))] == [
        ("gpu-001", None),
        ("gpu-002", None),
    ]
    assert store.holders(A) == ("gpu-001", "gpu-002")
    assert [record.state for record in store.records()] == ["pending", "pending"]


@pytest.fixture
def sites(
    stores: dict[str, ObjectEnrolments], kubeconfigs: dict[str, Path], tmp_path: Path
) -> Iterator[tuple[JoinSite, JoinSite]]:
    """Two services, each on its own disk, with the keys of one site."""
    with contextlib.ExitStack() as stack:
        made = []
        for name in ("one", "two"):
            site = stack.enter_context(join_site(tmp_path / name))
            for role, path in kubeconfigs.items():
                shutil.copy2(path, site.folder / "secrets" / f"enrolments-{role}.kubeconfig")
            file = site.folder / "netboot.yaml"
            file.write_text(f"{file.read_text()}enrolments_kubernetes: {{}}\n")
            site.config = load_config(file)
            made.append(site)
        one, two = made
        one.boot()  # its key
        for key in ("data/boot-id.key", "secrets/sealing.keys", "secrets/nonce.keys"):
            shutil.copy2(one.folder / key, two.folder / key)
        yield one, two


def test_shown_to_one_service_approved_by_kubectl_joined_at_the_other(
    sites: tuple[JoinSite, JoinSite], store: EnrolmentStore, kubectl: Kubectl
) -> None:
    """Join servers as processes, machines with a TPM in software; what opens windows is another account."""
    one, two = sites
    machine, now = soft_tpm.Machine(one.boot()), time.time_ns() // 1_000_000
    for site in sites:
        site.publish(declared("gpu-001", match={"macs": machine.macs}), declared("gpu-002", match={"serial": "S2"}))
        site.start()
    assert settled(lambda: one.hello(machine)).status == 404, "no window is open"
    kubectl.apply("enrolment", {**body("gpu-001"), "spec": {"window": opened("enrol", now)}})
    kubectl.apply("other", {**body("gpu-002"), "spec": {"window": opened("boot", now), "retired": False}})
    refused = settled(lambda: attested(one, machine))
    assert (refused.status, "waits for approval as gpu-001" in refused.message) == (403, True)
    assert settled(lambda: two.hello(machine)).status == 403, "pending there, too"
    shown = kubectl.get("-n", NAMESPACE, "nbe/gpu-001")["status"]["proposed"]
    assert (shown["ek_sha256"], shown["window"], shown["details"]["peer"]) == (machine.ek_sha256, "w1", "127.0.0.1")
    patch = f'{{"spec":{{"ek_sha256":"{shown["ek_sha256"]}"}}}}'
    kubectl("patch", "-n", NAMESPACE, "nbe/gpu-001", "--type=merge", "-p", patch)
    joined = settled(lambda: attested(two, machine))
    assert (joined.status, joined.body["node_name"]) == (200, "gpu-001")
    said = wait_for(lambda: windows_of(two), SECONDS)
    assert said == ["w1"], "the open boot window of gpu-002, for the publisher"
    kubectl("patch", "-n", NAMESPACE, "nbe/gpu-001", "--type=merge", "-p", '{"spec":{"retired":true}}')
    assert [settled(partial(site.hello, machine)).status for site in sites] == [403, 403]
    assert (store.of("gpu-001").state, store.of("gpu-001").ek_sha256) == ("retired", machine.ek_sha256)


def settled(ask: Callable[[], Said]) -> Said:
    """What is said once it can be told: the API server of a busy machine may be too slow for a single request."""

    def once() -> Said | None:
        said = ask()
        return said if said.status != 503 else None

    return wait_for(once, SECONDS)


def attested(site: JoinSite, machine: soft_tpm.Machine) -> Said:
    """What attest says, or hello where it refuses: a request that timed out may have been carried out."""
    said = site.hello(machine)
    return site.attest(machine, said.body) if said.status == 200 else said


def windows_of(site: JoinSite) -> list[str] | None:
    """Those of which processes know; None: it cannot be told yet."""
    try:
        return [record.window_id for record in recorded(site.config).records()]
    except CannotTellError:
        return None


def opened(kind: str, now_ms: int) -> dict[str, str]:
    return {"kind": kind, "id": "w1", "until": rfc3339(now_ms + 3_600_000)}


def test_with_the_api_server_away_a_machine_is_told_to_come_back(
    sites: tuple[JoinSite, JoinSite], stores: dict[str, ObjectEnrolments]
) -> None:
    """It has another address by now: neither unknown nor refused, and the service says why."""
    [nobody] = free_ports(1)
    site = sites[0]
    file = site.folder / "secrets" / "enrolments-join.kubeconfig"
    there = re.sub(r"https://[0-9.]+:[0-9]+", f"https://127.0.0.1:{nobody}", file.read_text())
    file.write_text(there)
    machine = soft_tpm.Machine(site.boot())
    site.publish(declared("gpu-001", match={"macs": machine.macs}))
    site.start()
    answer = site.hello(machine)
    assert (answer.status, "Retry-After" in answer.headers) == (503, True)
    assert f"the apiserver 127.0.0.1:{nobody} cannot be reached" in answer.message
    wait_for(lambda: not site.ready(), SECONDS)


def test_what_was_on_disk_is_moved_by_commands(
    control_plane: Cluster, kubeconfigs: dict[str, Path], store: EnrolmentStore, kubectl: Kubectl, tmp_path: Path
) -> None:
    """Definitions, rights and accounts are applied as docs/custom-resources.md has it; nothing that was is lost."""
    with join_site(tmp_path / "site") as site:
        file = site.folder / "netboot.yaml"
        file.write_text(f"{file.read_text()}enrolments_kubernetes: {{}}\n")
        service = Service(load_config(file), file)
        disk, now = SqliteEnrolments(site.config.data / "enrolment.db"), time.time_ns() // 1_000_000
        for name, order in (
            ("gpu-002", OpenWindow("enrol", "w2", now + 3_600_000)),
            ("gpu-003", Import(A)),
            ("gpu-003", Release()),
            ("gpu-003", Retire()),
            ("gpu-004", Import("c3" * 32)),
            ("gpu-004", Replace("w4", now + 3_600_000)),
        ):
            disk.apply([(name, order)], Act("alice"), now)
        disk.propose("gpu-002", B, '{"serial": "S2"}', now)
        disk.alert("gpu-002", "other-key", "a thief", now)
        for words in (("crds",), ("manifests", "--enrolments")):
            piped(service, kubectl, *words)
        there = tmp_path / "objects.yaml"
        there.write_text(printed(service, "enrolments"))
        kubectl("create", "-f", str(there))
        said = tmp_path / "statuses.yaml"
        said.write_text(printed(service, "enrolments", "--status"))
        kubectl("replace", "--subresource=status", "-f", str(said))
        made = service.netboot("cluster", "kubeconfigs", "--enrolments", "--admin-kubeconfig", str(control_plane.admin))
        assert (made.returncode, "netboot-enroller, until" in made.stdout) == (0, True), made.stderr
        assert [
            record.enrolment() for record in store.records() if record.revision and record.machine != "gpu-001"
        ] == [record.enrolment() for record in disk.records()]
        assert (store.record("gpu-002").details, store.alerts("gpu-002")) == (
            '{"serial": "S2"}',
            disk.alerts("gpu-002"),
        )
        assert store.owner("c3" * 32) == Owner("gpu-004", replaced=True)
        (site.config.data / "enrolment.db").unlink()
        nothing = service.netboot("cluster", "enrolments")
        assert (nothing.returncode, nothing.stdout) == (1, "")
        assert "enrolment.db is not there, so nothing is on record here" in nothing.stderr


def printed(service: Service, *words: str) -> str:
    answer = service.netboot("cluster", *words)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_a_whole_service_shows_objects_and_says_who_may_change_them(
    control_plane: Cluster, kubeconfigs: dict[str, Path], store: EnrolmentStore, kubectl: Kubectl, tmp_path: Path
) -> None:
    """Each of its processes within its walls; what an operator is told to type is what does it."""
    port = urlsplit(control_plane.url).port or 443
    inventory = JOINING.replace("profile: compute", "profile: compute, identity: nonce")
    file = make_whole_site(tmp_path, port, inventory=inventory, workers=1, more="enrolments_kubernetes: {}\n")
    for role, path in kubeconfigs.items():
        shutil.copy2(path, tmp_path / "secrets" / f"enrolments-{role}.kubeconfig")
    config = load_config(file)
    Store(config.store).set_channel("stable", add_image(config))
    now = time.time_ns() // 1_000_000
    do(store, "gpu-001", OpenWindow("boot", "w1", now + 3_600_000))
    with serving(config, file) as service:
        shown = service.api("/v1/machines/gpu-001/enrolment")["enrolment"]
        assert (shown["window"], shown["window_id"], shown["state"]) == ("boot", "w1", "none")
        windows = wait_for(lambda: read_snapshot(config.data / "snapshot.json").windows, SECONDS)
        assert {name: window.id for name, window in windows.items()} == {"gpu-001": "w1"}
        refused = service.order("/v1/machines/gpu-001/retire", reason="sold")
        assert refused.status_code == 403, refused.text
        command = refused.json()["detail"].partition("does it by `")[2].rstrip("`")
        assert shlex.split(command)[:3] == ["kubectl", "patch", "-n"]
        kubectl(*shlex.split(command)[1:])
        assert service.api("/v1/machines/gpu-001/enrolment")["enrolment"]["state"] == "retired"
        states = [(one["machine"], one["state"]) for one in service.api("/v1/enrolments")["enrolments"]]
        assert ("gpu-001", "retired") in states
        told = "gpu-001" in service.netboot("machine", "enrolments", "--state", "retired").stdout
        assert told, service.netboot("machine", "enrolments", "--state", "retired").stderr
        wait_for(lambda: not read_snapshot(config.data / "snapshot.json").windows, SECONDS)
