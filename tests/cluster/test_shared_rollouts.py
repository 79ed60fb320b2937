"""Rollouts, and where channels point, as objects of a real API server: by the account that writes them."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from lab.errors import EndedError
from lab.kube.accounts import apply_manifests
from lab.kube.binaries import find
from lab.kube.cluster import Cluster
from lab.kube.kubectl import Kubectl
from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.kube.accounts import make_kubeconfig
from netboot.kube.act_objects import KubeAssignmentObjects, KubeRolloutObjects
from netboot.kube.connection import Connection, connect
from netboot.kube.manifests import inventory_text
from netboot.kube.resources.definitions import definitions
from netboot.kube.resources.kinds import ASSIGNMENT, GROUP, ROLLOUT
from netboot.lifecycle import assignment_objects
from netboot.lifecycle.errors import RolloutRefusedError
from netboot.lifecycle.packed_members import LARGEST
from netboot.lifecycle.rollout import Member, MemberState, RolloutState
from netboot.lifecycle.rollout_objects import RolloutSaid, spec_of
from netboot.lifecycle.rollout_store import Members, Note
from netboot.machines.strategy import Strategy
from netboot.stores.rollouts import make
from netboot.stores.shared_rollouts import SharedRollouts
from tests.cluster.conftest import CACHE
from tests.rollouts import NEW, OLD, rollout

pytestmark = pytest.mark.cluster
NAMES = [f"{kind.plural}.{GROUP}" for kind in (ROLLOUT, ASSIGNMENT)]
START = 1_767_225_600_000
NOTE = Note(START, "alice", "start", "CVE")


@pytest.fixture(scope="module")
def kubectl(control_plane: Cluster) -> Kubectl:
    """Rights, policies and definitions are applied."""
    apply_manifests(control_plane)
    made = Kubectl(find(CACHE) / "kubectl", control_plane.admin, control_plane.folder)
    file = control_plane.folder / "rollouts.yaml"
    file.write_text("---\n".join([yaml.safe_dump_all(definitions()), inventory_text()]))
    made("apply", "--server-side", "--force-conflicts", "-f", str(file))
    made("wait", "--for=condition=Established", *(f"crd/{name}" for name in NAMES), "--timeout=180s")
    return made


@pytest.fixture
def reached(control_plane: Cluster, kubectl: Kubectl, tmp_path: Path) -> Iterator[Callable[[str], Connection]]:
    """A connection by the account of a role."""
    opened = []

    def by(role: str) -> Connection:
        file = tmp_path / f"{role}.kubeconfig"
        file.touch(0o600)
        file.write_bytes(make_kubeconfig(control_plane.admin, role, "netboot", 3600).content)
        opened.append(connect(file, manifests="inventory"))
        return opened[-1]

    yield by
    for each in opened:
        each.close()
    for name in NAMES:
        kubectl("delete", "-n", "netboot", name, "--all", "--ignore-not-found")


@pytest.fixture
def objects(reached: Callable[[str], Connection]) -> KubeRolloutObjects:
    return KubeRolloutObjects(partial(reached, "orders"), "netboot")


def members(*names: str, state: MemberState = MemberState.WAITING) -> Members:
    return {name: Member(machine=name, previous=OLD, state=state) for name in names}


def said(number: int, those: Members, **more: object) -> RolloutSaid:
    strategy = Strategy(max_unavailable="3", per_rack=1, auto_undo=True)
    begun = rollout().model_copy(update={"number": number, "started_ms": START, "strategy": strategy} | more)
    return RolloutSaid(begun, those, (NOTE,))


def test_a_rollout_is_made_changed_by_its_version_and_deleted(objects: KubeRolloutObjects) -> None:
    assert (objects.read(1), objects.all()) == (None, [])
    begun = said(1, members("a", "b"))
    made = objects.write(1, spec_of(begun), None)
    assert (made.said, objects.read(1), objects.all()) == (begun, made, [made])
    after = said(1, members("a", state=MemberState.DONE), why="1 of 2", blocked=7, verdict="bad", ended_ms=START + 1)
    now = objects.write(1, spec_of(after), made)
    assert (now.said, now.generation) == (after, 2)
    for before in (None, made):
        with pytest.raises(ConflictError):
            objects.write(1, spec_of(begun), before)
    assert objects.write(10, spec_of(said(10, members("c"))), None).number == 10
    assert [each.number for each in objects.all()] == [1, 10]
    with pytest.raises(ConflictError):
        objects.delete(made)
    objects.delete(now)
    assert [each.number for each in objects.all()] == [10]


def test_the_largest_fleet_fits_into_an_object(objects: KubeRolloutObjects) -> None:
    rng = random.Random(1)
    many = {
        f"m-{number:05}": Member(machine=f"m-{number:05}", rack=f"r{number // 40}", previous=OLD, boot=_boot(rng))
        for number in range(10_000)
    }
    begun = said(1, many)
    spec = spec_of(begun)
    assert 0.3 * LARGEST < len(spec.members) <= LARGEST
    made = objects.write(1, spec, None)
    assert made.said == begun
    assert objects.write(1, spec.model_copy(update={"members": "A" * LARGEST}), made).fault.startswith("rollout/1: ")


def _boot(rng: random.Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def test_what_no_rollout_says_is_refused_by_the_definition(objects: KubeRolloutObjects, kubectl: Kubectl) -> None:
    objects.write(1, spec_of(said(1, members("a"))), None)
    with pytest.raises(EndedError, match=r"spec\.state: Unsupported value"):
        _patched(kubectl, '{"spec": {"state": "resting"}}')
    with pytest.raises(EndedError, match=r"spec\.image: "):
        _patched(kubectl, '{"spec": {"image": "next"}}')
    with pytest.raises(EndedError, match=r"spec\.operator"):
        _patched(kubectl, '{"spec": {"operator": "two\\nlines"}}')


def _patched(kubectl: Kubectl, patch: str) -> str:
    return kubectl("patch", "-n", "netboot", "rollout/1", "--type=merge", "-p", patch)


def test_kubectl_tells_the_story(
    objects: KubeRolloutObjects, reached: Callable[[str], Connection], kubectl: Kubectl
) -> None:
    objects.write(12, spec_of(said(12, members("a", state=MemberState.DONE) | members("b"), why="1 waits")), None)
    channels = KubeAssignmentObjects(partial(reached, "orders"), "netboot")
    channels.write("stable", assignment_objects.spec_of(NEW, "next", "alice", START), None)
    shown = [line.split() for line in kubectl("get", "-n", "netboot", "nbro,nba").splitlines() if line]
    assert shown[0] == ["NAME", "CHANNEL", "IMAGE", "STATE", "DONE", "OF", "BY", "WHY", "AGE"]
    assert shown[1][:7] == ["rollout.netboot.dev/12", "stable", "next", "running", "1", "2", "alice"]
    assert shown[2] == ["NAME", "IMAGE", "DIGEST", "BY", "AGE"]
    assert shown[3][:4] == ["assignment.netboot.dev/stable", "next", NEW, "alice"]
    assert "netboot writes it" in kubectl("explain", "rollout.spec")


def test_two_replicas_share_one(
    reached: Callable[[str], Connection], objects: KubeRolloutObjects, tmp_path: Path
) -> None:
    stores = []
    for name in ("alpha", "beta"):
        (tmp_path / name).mkdir()
        make(tmp_path / name / "rollouts.db").close()
        own = KubeRolloutObjects(partial(reached, "orders"), "netboot")
        stores.append(SharedRollouts(tmp_path / name / "rollouts.db", own, dict[str, str]().get, lambda: START))
    alpha, beta = stores
    begun = alpha.start(rollout(), members("a", "b"), NOTE)
    with pytest.raises(RolloutRefusedError):
        beta.start(rollout(), members("a"), NOTE)
    beta.follow(objects.all(), START)
    assert beta.under_way() == [begun]
    beta.change(1, lambda was, those: (was, {**those, **members("a", state=MemberState.DONE)}), lambda *_: None)
    over = begun.model_copy(update={"state": RolloutState.UNDONE, "ended_ms": START})
    alpha.change(1, lambda _was, those: (over, those), lambda *_: None)
    assert alpha.members(1)["a"].state is MemberState.DONE, "what it did not know is not undone"
    assert alpha.start(rollout(), members("a"), NOTE).number == 2
    assert [each.number for each in objects.all()] == [1, 2]


def test_a_channel_s_object_is_made_and_changed_by_its_version(reached: Callable[[str], Connection]) -> None:
    channels = KubeAssignmentObjects(partial(reached, "orders"), "netboot")
    assert channels.read("stable") is None
    made = channels.write("stable", assignment_objects.spec_of(OLD, "tiny", "alice", START), None)
    assert (made.image, channels.read("stable")) == (OLD, made)
    now = channels.write("stable", assignment_objects.spec_of(NEW, "next", "rollout 7", START), made)
    assert (now.image, now.generation) == (NEW, 2)
    for before in (None, made):
        with pytest.raises(ConflictError):
            channels.write("stable", assignment_objects.spec_of(OLD, "tiny", "bob", START), before)


def test_nobody_else_of_netboot_s_writes_them(reached: Callable[[str], Connection]) -> None:
    for role in ("inventory", "shipper", "issuer", "nodes"):
        with pytest.raises(ClusterUnavailableError, match="403"):
            KubeRolloutObjects(partial(reached, role), "netboot").write(1, spec_of(said(1, members("a"))), None)
        with pytest.raises(ClusterUnavailableError, match="403"):
            channels = KubeAssignmentObjects(partial(reached, role), "netboot")
            channels.write("stable", assignment_objects.spec_of(OLD, "tiny", "alice", START), None)
