"""Where channels point, and their rollouts, as objects of a real API server: by the account that writes them."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from lab.errors import EndedError
from lab.kube.accounts import apply_manifests
from lab.kube.binaries import find
from lab.kube.cluster import Cluster
from lab.kube.kubectl import Kubectl
from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.kube.accounts import make_kubeconfig
from netboot.kube.act_objects import NUMBERS, KubeRolloutObjects
from netboot.kube.connection import Connection, connect
from netboot.kube.errors import ClusterRefusedError
from netboot.kube.manifests import inventory_text
from netboot.kube.resources.definitions import definitions
from netboot.kube.resources.kinds import GROUP, ROLLOUT
from netboot.lifecycle.errors import RolloutRefusedError
from netboot.lifecycle.packed_members import LARGEST
from netboot.lifecycle.rollout import Member, MemberState, Rollout, RolloutState
from netboot.lifecycle.rollout_objects import RolloutObject, RolloutSaid, Said, said_of, spec_of
from netboot.lifecycle.rollout_store import Members, Note
from netboot.machines.strategy import Strategy
from netboot.stores.rollouts import make
from netboot.stores.shared_rollouts import SharedRollouts
from tests.cluster.conftest import CACHE
from tests.rollout_objects import AnyImages
from tests.rollouts import NEW, OLD, rollout

pytestmark = pytest.mark.cluster
NAME = f"{ROLLOUT.plural}.{GROUP}"
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
    made("wait", "--for=condition=Established", f"crd/{NAME}", "--timeout=180s")
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
    kubectl("delete", "-n", "netboot", NAME, "--all", "--ignore-not-found")


@pytest.fixture
def objects(reached: Callable[[str], Connection]) -> KubeRolloutObjects:
    return KubeRolloutObjects(partial(reached, "orders"), "netboot")


def members(*names: str, state: MemberState = MemberState.WAITING) -> Members:
    return {name: Member(machine=name, previous=OLD, state=state) for name in names}


def meant(number: int = 0, those: Members | None = None, **more: object) -> Said:
    """That a channel points to the old image; and a rollout of it."""
    said = Said(OLD, "tiny", "alice", START)
    if those is None:
        return said
    strategy = Strategy(max_unavailable="3", per_rack=1, auto_undo=True)
    begun = rollout().model_copy(update={"number": number, "started_ms": START, "strategy": strategy} | more)
    return said._replace(rollout=RolloutSaid(begun, those, (NOTE,)))


def said(found: RolloutObject | None) -> Said:
    assert found is not None
    assert found.spec is not None, found.fault
    return said_of(found.spec, {})


def test_what_a_channel_is_is_made_and_changed_by_its_version_and_others_words_stay(
    objects: KubeRolloutObjects, kubectl: Kubectl
) -> None:
    assert (objects.read("stable"), objects.all()) == (None, [])
    made = objects.write("stable", spec_of(meant()), None)
    assert (said(made), objects.read("stable"), objects.all()) == (meant(), made, [made])
    kubectl("label", "-n", "netboot", "rollout/stable", "team=gpu")
    kubectl("annotate", "-n", "netboot", "rollout/stable", "ticket=7")
    made = objects.all()[0]
    begun = meant(1, members("a", "b"))
    now = objects.write("stable", spec_of(begun), made)
    assert (said(now), now.generation) == (begun, 2)
    after = meant(1, members("a", state=MemberState.DONE), why="1 of 2", blocked=7, verdict="bad", ended_ms=START + 1)
    now = objects.write("stable", spec_of(after), now)
    assert said(now) == after
    assert said(objects.write("stable", spec_of(begun), now)) == begun, "nothing of what it said before is in it"
    for before in (None, made, now):
        with pytest.raises(ConflictError):
            objects.write("stable", spec_of(begun), before)
    [there] = objects.all()
    plain = meant(2, members("a"), strategy=Strategy())
    now = objects.write("stable", spec_of(plain), there)
    assert said(now) == plain, "nor what is left out where it is not so"
    assert said(objects.write("stable", spec_of(meant()), now)) == meant(), "nor of a rollout"
    kept = yaml.safe_load(kubectl("get", "-n", "netboot", "rollout/stable", "-o", "yaml"))["metadata"]
    assert (kept["labels"], kept["annotations"]["ticket"]) == ({"team": "gpu"}, "7")


def test_one_that_was_made_anew_is_another(objects: KubeRolloutObjects, kubectl: Kubectl) -> None:
    made = objects.write("stable", spec_of(meant()), None)
    kubectl("delete", "-n", "netboot", "rollout/stable")
    with pytest.raises(ConflictError):
        objects.write("stable", spec_of(meant(1, members("a"))), made)
    objects.write("stable", spec_of(meant()), None)
    with pytest.raises(ConflictError):
        objects.write("stable", spec_of(meant(1, members("a"))), made)


def test_the_largest_fleet_fits_into_an_object(objects: KubeRolloutObjects) -> None:
    chance = random.Random(1)
    many = {
        name: Member(machine=name, rack=f"r{number // 40}", previous=OLD, boot=_boot(chance), served=_boot(chance))
        for number, name in enumerate(f"node-{number:05}" for number in range(15_000))
    }
    spec = spec_of(meant(1, many))
    assert spec.rollout is not None
    assert 0.7 * LARGEST < len(spec.rollout.members) <= LARGEST
    made = objects.write("stable", spec, None)
    assert said(made) == meant(1, many)
    most = spec.model_copy(update={"rollout": spec.rollout.model_copy(update={"members": "A" * LARGEST})})
    assert objects.write("stable", most, made).spec == most


def _boot(chance: random.Random) -> str:
    digits = f"{chance.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ('{"spec": {"rollout": {"state": "resting"}}}', r"spec\.rollout\.state: Unsupported value"),
        ('{"spec": {"image": "next"}}', r"spec\.image"),
        ('{"spec": {"who": "two\\nlines"}}', r"spec\.who"),
        ('{"spec": {"rollout": {"number": 0}}}', r"spec\.rollout\.number"),
        ('{"spec": {"rollout": {"members": "\u00e9"}}}', r"spec\.rollout\.members"),
    ],
)
def test_what_no_rollout_says_is_refused_by_the_definition(
    objects: KubeRolloutObjects, kubectl: Kubectl, patch: str, why: str
) -> None:
    objects.write("stable", spec_of(meant(1, members("a"))), None)
    with pytest.raises(EndedError, match=why):
        kubectl("patch", "-n", "netboot", "rollout/stable", "--type=merge", "-p", patch)


def test_kubectl_tells_the_story(objects: KubeRolloutObjects, kubectl: Kubectl) -> None:
    those = members("a", state=MemberState.DONE) | members("b")
    objects.write("stable", spec_of(meant(12, those, why="1 waits")), None)
    shown = [line.split() for line in kubectl("get", "-n", "netboot", "nbro").splitlines()]
    assert shown[0] == ["NAME", "IMAGE", "SET", "BY", "ROLLOUT", "STATE", "TO", "DONE", "OF", "BY", "AGE"]
    assert shown[1][:9] == ["stable", "tiny", "alice", "12", "running", "next", "1", "2", "alice"]
    assert "netboot writes it" in kubectl("explain", "rollout.spec")


def test_numbers_are_given_once_and_never_below_what_is_known(
    objects: KubeRolloutObjects, reached: Callable[[str], Connection], kubectl: Kubectl, control_plane: Cluster
) -> None:
    other = KubeRolloutObjects(partial(reached, "orders"), "netboot")
    first = objects.number(1)
    assert [other.number(1), objects.number(1), other.number(first + 10)] == [first + 1, first + 2, first + 10]
    kubectl("patch", "-n", "netboot", f"configmap/{NUMBERS}", "--type=merge", "-p", '{"data": {"last": "many"}}')
    assert objects.number(7) == 7
    kubectl("delete", "-n", "netboot", f"configmap/{NUMBERS}")
    with pytest.raises(ClusterRefusedError) as caught:
        objects.number(1)
    assert str(caught.value) == (
        f"there is no ConfigMap netboot/{NUMBERS}, which numbers rollouts: `netboot cluster manifests --inventory "
        "| kubectl apply -f -` has it"
    )
    kubectl("apply", "--server-side", "--force-conflicts", "-f", str(control_plane.folder / "rollouts.yaml"))
    assert objects.number(9) == 9


def test_two_replicas_share_one(
    reached: Callable[[str], Connection], objects: KubeRolloutObjects, tmp_path: Path
) -> None:
    stores, images = list[SharedRollouts](), [AnyImages(), AnyImages()]
    for name, each in zip(("alpha", "beta"), images, strict=True):
        make(tmp_path / f"{name}.db").close()
        own = KubeRolloutObjects(partial(reached, "orders"), "netboot")
        stores.append(SharedRollouts(tmp_path / f"{name}.db", own, cast("Any", each), dict, lambda: START))
    alpha, beta = stores
    begun = alpha.start(rollout(), members("a", "b"), NOTE)
    with pytest.raises(RolloutRefusedError):
        beta.start(rollout(), members("a"), NOTE)
    beta.follow(objects.all(), START)
    assert beta.under_way() == [begun]
    done = members("a", state=MemberState.DONE)
    beta.change(begun.number, lambda was, those: (was, {**those, **done}), lambda *_: None)

    def over(was: Rollout, those: Members) -> tuple[Rollout, Members]:
        return was.model_copy(update={"state": RolloutState.COMPLETE, "ended_ms": START}), those

    alpha.change(begun.number, over, lambda *_: None)
    assert alpha.members(begun.number)["a"].state is MemberState.DONE, "what it did not know is not undone"
    beta.refresh()
    assert [each.channel("stable") for each in images] == [NEW, NEW]
    assert beta.assigned() == alpha.assigned()


def test_nobody_else_of_netboot_s_writes_them(reached: Callable[[str], Connection]) -> None:
    for role in ("inventory", "shipper", "issuer", "nodes"):
        others = KubeRolloutObjects(partial(reached, role), "netboot")
        with pytest.raises(ClusterUnavailableError, match=r"lacks a right: (rollouts\.netboot\.dev|configmaps) "):
            others.write("stable", spec_of(meant()), None)
        with pytest.raises(ClusterUnavailableError, match=r"lacks a right: (rollouts\.netboot\.dev|configmaps) "):
            others.number(1)
