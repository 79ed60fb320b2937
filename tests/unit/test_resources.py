"""An inventory declared by custom resources: what a bad one takes with it, and what is done where nobody can tell."""

import errno
import os
from collections.abc import Iterator, Set
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from images.errors import StoreError
from images.values import files
from images.values.strict import FaultsError
from netboot.cli.check import check_site
from netboot.config import Config, load_config
from netboot.controllers import resources as controllers
from netboot.controllers.inventory import InventoryInForce
from netboot.controllers.resources import (
    KEPT_SECONDS,
    LATE_SECONDS,
    ResourcesController,
)
from netboot.controllers.seen_objects import SETTLE_SECONDS, UNSETTLED_SECONDS
from netboot.kube.manifests import inventory_text
from netboot.kube.resources.kinds import ALL as ALL_KINDS
from netboot.kube.resources.kinds import GROUP, HOLD, KINDS, ORDER, ROLLOUT
from netboot.lifecycle.errors import CannotTellError
from netboot.machines.declarations import Judged
from netboot.machines.inventory import load_inventory
from netboot.machines.joining import Joining
from netboot.machines.maintenance import SHUT, may_act
from netboot.machines.removals import REMEMBERED_MS
from netboot.machines.resources import Changed, Listed, Resource, Same, Seen, fit, judged
from netboot.reread import AGAIN_SECONDS
from netboot.status.controllers import InventoryStatus, PendingInventory
from netboot.status.resources import Followed, ResourcesStatus
from netboot.stores.acceptance import Acceptance
from netboot.stores.inventory import place_of
from netboot.stores.resources import KeptResources
from tests.commands import Run
from tests.sites import make_site
from tests.sockets.join_site import write_kubeconfigs

WHERE = "namespace netboot"
UID = "0a0a0a0a"
REMOVED = (
    "the API server has removed objects with the definition of their kind, or with their namespace, and nobody meant "
    "them"
)
NO_MAC = "not a MAC address (twelve hexadecimal digits, with ':', '-' or nothing between)"
ALL = [f"gpu-{number:03}" for number in range(1, 7)]
SHARED = "spec.match.macs[0]: MAC 52:54:00:00:00:01 is of two machines"


def resource(kind: str, name: str, **spec: Any) -> Resource:
    return Resource(kind=kind, name=name, shown=f"{KINDS[kind].kind.lower()}/{name}", spec=spec)


def machine(number: int, mac: str = "", **spec: Any) -> Resource:
    match = {"macs": [mac or f"52:54:00:00:00:{number:02x}"]}
    return resource("machine", f"gpu-{number:03}", **{"match": match, "profile": "compute", **spec})


def fleet(machines: int = 6) -> list[Resource]:
    return [
        resource("channel", "stable"),
        resource("profile", "compute", channel="stable", pcrs={"none": []}),
        resource("window", "nights", start="22:00", end="05:00"),
        *(machine(number) for number in range(1, machines + 1)),
    ]


def replaced(resources: list[Resource], *others: Resource) -> list[Resource]:
    by_name = {each.shown: each for each in (*resources, *others)}
    return list(by_name.values())


def left_of(resources: list[Resource], joining: Joining | None = None) -> tuple[list[str], list[str]]:
    """Names of machines that are in the inventory, and what is wrong with what is not."""
    inventory, left_out, _ = judged(resources, WHERE, joining)
    return [each.name for each in inventory.machines], list(map(str, left_out))


def test_objects_are_what_the_same_files_are(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(
        "channels: [{name: stable}]\n"
        "profiles: [{name: compute, channel: stable, pcrs: none}]\n"
        "classes: [{name: hgx, architecture: arm64}]\n"
        "racks: [{name: r1}]\n"
        'maintenance: [{name: nights, start: "22:00", end: "05:00"}]\n'
        'machines: [{name: gpu-001, match: {macs: ["52-54-00-00-00-01"]}, profile: compute, class: hgx, rack: r1}]\n'
    )
    declared = [
        *fleet(0),
        resource("class", "hgx", architecture="arm64"),
        resource("rack", "r1"),
        machine(1, "52-54-00-00-00-01", **{"class": "hgx", "rack": "r1"}),
    ]
    assert judged(declared, WHERE, None) == (load_inventory(tmp_path), (), frozenset())


def test_a_bad_object_takes_out_itself_and_no_other() -> None:
    bad = replaced(fleet(3), machine(2, "none"), resource("machine", "gpu-004", match={"macs": []}, profil="compute"))
    kept, faults = left_of(bad)
    assert kept == ["gpu-001", "gpu-003"]
    assert faults == [
        f"machine/gpu-002: spec.match.macs[0]: {NO_MAC}",
        "machine/gpu-004: spec.match: needs at least one of macs, uuid and serial: nothing could be recognised by this",
        "machine/gpu-004: spec.profil: unknown key; did you mean 'profile'?",
        "machine/gpu-004: spec.profile: this key is required",
    ]


def test_one_that_is_too_large_is_out_and_nothing_of_it_is_declared() -> None:
    """Also where nothing has to be said: a rack, whose name is enough."""
    spec = {"origins": ["http://192.0.2.7:8080/" + "x" * 65_536]}
    large = [fit(resource(kind, name, **spec)) for kind, name in (("machine", "gpu-004"), ("rack", "r1"))]
    inventory, faults, _ = judged([*fleet(3), *large, machine(5, rack="r1")], WHERE, None)
    assert ([each.name for each in inventory.machines], inventory.racks) == (ALL[:3], ())
    why = "spec: has 65,575 bytes, and one object has at most 65,536: leave out what it need not say"
    assert list(map(str, faults)) == [
        f"machine/gpu-004: {why}",
        "machine/gpu-005: spec.rack: the rack 'r1' is left out, for its own faults",
        f"rack/r1: {why}",
    ]


def test_two_that_share_a_mac_are_both_out_and_all_others_stay() -> None:
    kept, faults = left_of(replaced(fleet(4), machine(3, "52-54-00-00-00-01")))
    assert kept == ["gpu-002", "gpu-004"]
    assert faults == [
        f"machine/gpu-001: {SHARED}, 'gpu-001' and 'gpu-003' in machine/gpu-003",
        f"machine/gpu-003: {SHARED}, 'gpu-003' and 'gpu-001' in machine/gpu-001",
    ]


def test_three_that_share_a_node_s_name_are_all_out() -> None:
    named = [machine(number, node={"name": "n-1"}) for number in (1, 2, 3)]
    assert left_of(replaced(fleet(4), *named))[0] == ["gpu-004"]


def test_what_refers_to_a_bad_object_is_out_with_it_however_far() -> None:
    other = [resource("channel", "edge", image="no digest"), resource("profile", "edge", channel="edge")]
    kept, faults = left_of([*fleet(2), *other, machine(9, profile="edge"), machine(10, profile="nobody")])
    assert kept == ["gpu-001", "gpu-002"]
    assert faults[1:] == [
        "machine/gpu-009: spec.profile: the profile 'edge' is left out, for its own faults",
        "machine/gpu-010: spec.profile: no profile is named 'nobody'; declared profiles: compute, edge",
        "profile/edge: spec.channel: the channel 'edge' is left out, for its own faults",
    ]


def test_a_machine_of_another_architecture_than_its_class_is_out_alone() -> None:
    arm = resource("class", "hgx", architecture="arm64")
    kept, _ = left_of(
        [*fleet(1), arm, machine(8, **{"class": "hgx"}), machine(9, architecture="amd64", **{"class": "hgx"})]
    )
    assert kept == ["gpu-001", "gpu-008"]


def test_where_machines_join_the_one_that_says_no_policy_is_out() -> None:
    joining = Joining({"default": [ip_network("10.96.0.0/12")]})
    silent = resource("profile", "silent", channel="stable")
    asked = [*fleet(1), silent, machine(7, profile="silent"), machine(8, profile="silent", pcrs={"none": []})]
    asked.append(machine(9, node={"addresses": ["10.96.0.1"]}))
    assert left_of(asked)[0] == ["gpu-001", "gpu-007", "gpu-008", "gpu-009"]
    kept, faults = left_of(asked, joining)
    assert kept == ["gpu-001", "gpu-008"]
    assert faults[0].startswith(
        "machine/gpu-007: spec: neither it nor its profile says which PCRs it must show to join:"
    )
    assert faults[1].startswith("machine/gpu-009: spec.node.addresses[0]: 10.96.0.1 is in 10.96.0.0/12, which Services")


def test_in_the_place_of_a_bad_window_stands_one_that_is_shut() -> None:
    """Without any, what acts by itself would act at any time."""
    inventory, left_out, absent = judged(replaced(fleet(1), resource("window", "nights", start="25:00")), WHERE, None)
    assert inventory.maintenance == (SHUT,)
    assert (SHUT.opened(1_767_225_600_000), len(left_out), absent) == (None, 2, frozenset({"classes", "racks"}))
    said = may_act(inventory.maintenance, None, None, 1_767_225_600_000)
    shut = "no maintenance window is open; those with faults are shut: `netboot config check`"
    assert (said.may, said.reason) == (False, shut)


def test_an_object_without_a_spec_is_a_fault_of_its_own() -> None:
    none = Resource(kind="machine", name="gpu-009", shown="machine/gpu-009", spec=None)
    assert left_of([*fleet(1), none])[0] == ["gpu-001"]


def test_nothing_at_all_is_no_inventory() -> None:
    with pytest.raises(FaultsError) as caught:
        judged([], WHERE, None)
    assert str(caught.value) == (
        "namespace netboot: has no object of netboot.dev: `netboot cluster inventory` prints the files of a site as "
        "such objects"
    )


def test_a_namespace_has_no_dot(tmp_path: Path) -> None:
    file = make_site(tmp_path).keys.parent / "netboot.yaml"
    file.write_text(file.read_text() + "inventory_kubernetes: {namespace: net.boot}\n")
    with pytest.raises(FaultsError, match=r"inventory_kubernetes\.namespace: must be a namespace: lower-case letters"):
        load_config(file)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    file = make_site(tmp_path).keys.parent / "netboot.yaml"
    file.write_text(file.read_text() + "inventory_kubernetes: {}\n")
    return load_config(file)


def test_files_and_objects_are_not_both_the_inventory(config: Config) -> None:
    file = config.keys.parent / "netboot.yaml"
    file.write_text(file.read_text() + "inventory_writable: true\n")
    with pytest.raises(FaultsError, match="is of files, and with inventory_kubernetes there are none"):
        load_config(file)


def test_a_site_is_in_order_before_its_objects_were_read_for_the_first_time(config: Config) -> None:
    file = config.keys.parent / "netboot.yaml"
    account = config.keys.parent / "secrets" / "inventory.kubeconfig"
    found = check_site(file)
    [fault] = found.faults
    assert str(fault) == (
        f"{account}: inventory_kubernetes.kubeconfig: {account} cannot be read (No such file or directory): make it "
        "with `netboot cluster kubeconfigs --inventory`"
    )
    write_kubeconfigs(account.parent, 6443)
    found = check_site(file)
    assert (found.faults, found.inventory) == ([], None)
    assert found.overlooked == ["the objects of the inventory are not known before the service has read them"]
    KeptResources(config.data, "netboot").write([*fleet(2), machine(3, profile="compote")])
    account.chmod(0o640)
    found = check_site(file)
    assert found.inventory is not None
    assert [each.name for each in found.inventory.machines] == ["gpu-001", "gpu-002"]
    assert sorted(map(str, found.faults)) == [
        f"{account}: others can read inventory_kubernetes.kubeconfig (mode 0640): `chmod 600 {account}`",
        "machine/gpu-003: spec.profile: no profile is named 'compote'; did you mean 'compute'?",
    ]
    [words] = found.overlooked
    assert words.startswith("not read, for the inventory is custom resources (inventory_kubernetes): ")


def test_the_account_s_commands_want_a_site_whose_inventory_is_there(
    config: Config, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config.keys.parent)
    assert run("cluster", "manifests", "--inventory").out == inventory_text()
    named = run("cluster", "manifests", "--inventory", "--name", "default")
    assert (named.status, named.err.splitlines()[-1]) == (
        2,
        "Error: --inventory has the namespace of `inventory_kubernetes`: leave --name out",
    )
    file = Path("netboot.yaml")
    file.write_text(file.read_text().replace("inventory_kubernetes: {}\n", ""))
    for words in (("manifests",), ("kubeconfigs", "--admin-kubeconfig", "netboot.yaml")):
        refused = run("cluster", *words, "--inventory")
        assert (refused.status, refused.out) == (1, "")
        assert "the configuration has no `inventory_kubernetes`, so files are the inventory" in refused.err


def test_where_something_is_declared(config: Config) -> None:
    KeptResources(config.data, "netboot").write(fleet(1))
    assert place_of(config, "channel", "stable") == "channel/stable"
    assert place_of(config, "channel", "nobody") == WHERE
    files = config.model_copy(update={"inventory_kubernetes": None})
    assert place_of(files, "channel", "stable") == f"{config.inventory}/site.yaml:8"


class InForce:
    """What is in force of objects that are written onto the disk."""

    def __init__(self, config: Config) -> None:
        self.kept, self.now = KeptResources(config.data, "netboot"), 1_000.0
        self.config, self.inventory = config, InventoryInForce(config, None, lambda: self.now, self.now_ms)

    def now_ms(self) -> int:
        return 1_767_225_600_000 + round(self.now * 1000)

    def reads(self, resources: list[Resource]) -> InventoryStatus:
        self.kept.write(resources)
        return self.looks()

    def looks(self) -> InventoryStatus:
        self.now += 1
        self.inventory.step(now=False)
        return self.inventory.status(None)

    def restarts(self) -> InventoryStatus:
        self.inventory = InventoryInForce(self.config, self.inventory.value, lambda: self.now, self.now_ms)
        return self.looks()

    @property
    def machines(self) -> list[str]:
        assert self.inventory.value is not None
        return [each.name for each in self.inventory.value.machines]


@pytest.fixture
def in_force(config: Config) -> InForce:
    made = InForce(config)
    assert made.reads(fleet()) == InventoryStatus(ok=True, valid=True, message="in force")
    return made


def test_what_is_left_out_is_said_and_the_rest_is_in_force(in_force: InForce) -> None:
    status = in_force.reads(replaced(fleet(7), machine(1, profile="compote")))
    assert status == InventoryStatus(
        ok=False,
        valid=False,
        message="1 faults; objects that are named are left out, all others are in force",
        remedy="correct the objects that are named: `netboot config check` has all faults",
        faults=("machine/gpu-001: spec.profile: no profile is named 'compote'; did you mean 'compute'?",),
        left_out=1,
        lately=1,
    )
    assert in_force.machines == [f"gpu-{number:03}" for number in range(2, 8)]
    assert in_force.reads(fleet(7)) == InventoryStatus(ok=True, valid=True, message="in force")


def test_a_large_removal_waits_for_a_person(in_force: InForce) -> None:
    status = in_force.reads(fleet(0))
    goes = "removes 6 of 6 machines (gpu-001, gpu-002, gpu-003, …)"
    assert (
        status.message == f"its objects changed: it {goes}; the one before stays in force until an operator accepts it"
    )
    assert status.remedy == "look with `netboot config diff`; then `netboot config accept`, or put the objects back"
    assert len(in_force.machines) == 6


def test_another_mac_for_each_machine_waits_though_no_name_goes(in_force: InForce) -> None:
    others = [machine(number, f"52:54:00:00:01:{number:02x}") for number in range(1, 7)]
    status = in_force.reads(replaced(fleet(), *others))
    goes = "changes by what 6 of 6 machines are recognised or prove themselves (gpu-001, gpu-002, gpu-003, …)"
    kept = "the one before stays in force until an operator accepts it"
    assert status.message == f"its objects changed: it {goes}; {kept}"
    assert status.pending is not None
    assert (status.pending.removed, status.pending.others, len(status.pending.other_names)) == (0, 6, 6)
    assert in_force.restarts() == status, "nor after a restart"
    Acceptance(in_force.config.data).write(status.pending.digest)
    assert in_force.looks().ok


def test_a_profile_without_its_pcrs_waits_and_one_with_another_channel_does_not(in_force: InForce) -> None:
    other = [resource("channel", "edge"), resource("profile", "compute", channel="edge", pcrs={"7": ["ab" * 32]})]
    assert in_force.reads(replaced(fleet(), *other)).ok
    status = in_force.reads(
        replaced(fleet(), other[0], resource("profile", "compute", channel="edge", pcrs={"none": []}))
    )
    assert status.pending is not None
    assert status.pending.others == 6


def test_machines_that_become_others_step_by_step_count_together_and_with_those_that_go(in_force: InForce) -> None:
    now = fleet()
    for number in range(1, 6):
        now = replaced(now, machine(number, f"52:54:00:00:01:{number:02x}"))
        assert in_force.reads(now).lately == number
    status = in_force.reads([each for each in now if each.name != "gpu-006"])
    assert status.pending is not None
    assert (status.pending.removed, status.pending.others, status.pending.lately) == (1, 0, 5)
    assert "it removes 1 of 6 machines (gpu-006), after 5 within the last hour; the one" in status.message
    in_force.now += REMEMBERED_MS / 1000
    assert in_force.reads([each for each in now if each.name not in ("gpu-006", "gpu-005")]).ok


def test_a_kind_of_which_nothing_is_left_waits_too(in_force: InForce) -> None:
    """Its definition was removed, and with it every object: of windows, all that held acts back."""
    status = in_force.reads([each for each in fleet() if each.kind != "window"])
    assert isinstance(status.pending, PendingInventory)
    assert (status.pending.removed, status.pending.lists) == (0, ("maintenance",))
    assert "it removes all that was declared of maintenance; the one before stays in force" in status.message
    assert in_force.inventory.value is not None
    assert [each.name for each in in_force.inventory.value.maintenance] == ["nights"]
    Acceptance(in_force.config.data).write(status.pending.digest)
    assert in_force.looks().ok
    assert in_force.inventory.value.maintenance == ()


def test_a_profile_that_went_bad_with_all_its_machines_waits(in_force: InForce) -> None:
    status = in_force.reads(replaced(fleet(), resource("profile", "compute", channel="stabel")))
    assert (status.pending is not None, status.left_out, len(in_force.machines)) == (True, 7, 6)
    assert status.faults[-1] == "profile/compute: spec.channel: no channel is named 'stabel'; did you mean 'stable'?"


@pytest.mark.parametrize("damaged", [b"", b"{", b'{"namespace": "netboot"}'])
def test_what_cannot_be_told_changes_nothing_over_restarts_too(in_force: InForce, damaged: bytes) -> None:
    path = next(iter(in_force.kept.paths()))
    staged = path.with_suffix(".new")
    staged.write_bytes(damaged)
    staged.replace(path)
    status = in_force.looks()
    assert status.faults == (f"objects of {WHERE}: cannot be told: {path} is not what this version writes",)
    assert status.message == "1 faults; the one before stays in force"
    assert (in_force.restarts().valid, len(in_force.machines)) == (False, 6)
    path.unlink()
    assert in_force.looks().faults == (
        f"objects of {WHERE}: have not been read yet: see `resources` of `netboot doctor`",
    )
    assert len(in_force.machines) == 6


def test_objects_of_another_namespace_are_none_of_ours(in_force: InForce) -> None:
    KeptResources(in_force.config.data, "other").write(fleet(3))
    assert "is of namespace other" in in_force.looks().faults[0]
    assert len(in_force.machines) == 6


class Clock:
    """That of the disk's words."""

    def __init__(self) -> None:
        self.ms = 1_767_225_600_000

    def now_ms(self) -> int:
        return self.ms


class Follower:
    """The controller, told by hand what the API server says; and the time."""

    def __init__(self, data: Path, written: tuple[Resource, ...] | None = None, seen: Followed | None = None) -> None:
        self.now, self.clock, self.kept = 1_000.0, Clock(), KeptResources(data, "netboot")
        self.seen: list[Followed] = []
        if written is not None:
            self.kept.read()
        kinds = list(KINDS)
        self.standing: Set[str] | CannotTellError = frozenset(KINDS)
        self.of = UID
        self.controller = ResourcesController(
            kinds, lambda: self, self.kept, written, seen, self.seen.append, self.clock, lambda: self.now
        )
        self.heard()

    def heard(self, problem: str | None = None, kind: str = "") -> None:
        """What is wrong with following each kind, or one."""
        for name, each in self.controller._reflectors.items():
            each.problem = problem if kind in ("", name) else each.problem

    def watch(self, _kind: str, _seconds: float) -> Iterator[Seen]:
        raise AssertionError

    def uid(self) -> str:
        return self.of

    def kinds(self) -> Set[str]:
        if isinstance(self.standing, CannotTellError):
            raise self.standing
        return self.standing

    def lists(self, resources: list[Resource]) -> None:
        for kind in KINDS:
            self.controller.take(kind, Listed(tuple(each for each in resources if each.kind == kind)))

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.clock.ms += round(seconds * 1000)
        self.controller.step()

    def written(self) -> set[str]:
        return {each.shown for each in self.kept.read()}


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    return Follower(tmp_path)


def test_nothing_is_written_before_every_kind_was_listed(follower: Follower) -> None:
    for kind in list(KINDS)[:-1]:
        follower.controller.take(kind, Listed(()))
        follower.passes(10)
    with pytest.raises(FaultsError):
        follower.kept.read()
    follower.controller.take(list(KINDS)[-1], Listed(()))
    follower.passes(SETTLE_SECONDS)
    assert follower.written() == set()


def test_what_is_applied_together_is_written_together(follower: Follower) -> None:
    follower.lists(fleet(1))
    follower.passes(SETTLE_SECONDS)
    for number in (2, 3):
        follower.controller.take("machine", Changed(machine(number), there=True))
        follower.passes(SETTLE_SECONDS / 2)
        assert "machine/gpu-002" not in follower.written()
    follower.passes(SETTLE_SECONDS / 2)
    assert {"machine/gpu-002", "machine/gpu-003"} < follower.written()


def test_what_changes_for_ever_is_written_all_the_same(follower: Follower) -> None:
    follower.lists(fleet(1))
    follower.passes(SETTLE_SECONDS)
    step, written = SETTLE_SECONDS / 2, list[bool]()
    for change in range(round(UNSETTLED_SECONDS / step) + 2):
        follower.controller.take("machine", Changed(machine(9, architecture=f"a{change}"), there=True))
        follower.passes(step)
        written.append("machine/gpu-009" in follower.written())
    assert (written[0], written[-1]) == (False, True)


def test_one_that_is_deleted_is_gone_and_a_list_says_of_others_what_no_event_did(follower: Follower) -> None:
    follower.lists(fleet(3))
    follower.controller.take("machine", Changed(machine(2), there=False))
    follower.passes(SETTLE_SECONDS)
    assert {"machine/gpu-001", "machine/gpu-003"} < follower.written() and "machine/gpu-002" not in follower.written()
    follower.lists(fleet(1))
    follower.passes(SETTLE_SECONDS)
    assert "machine/gpu-003" not in follower.written()


def test_what_is_on_the_disk_already_is_not_written_again(tmp_path: Path) -> None:
    KeptResources(tmp_path, "netboot").write(fleet(1))
    [path] = KeptResources(tmp_path, "netboot").paths()
    before = path.stat().st_ino
    ordered = tuple(sorted(fleet(1), key=lambda each: (list(KINDS).index(each.kind), each.name)))
    again = Follower(tmp_path, written=ordered)
    again.lists(fleet(1))
    again.passes(SETTLE_SECONDS)
    assert path.stat().st_ino == before


def test_how_old_it_is_is_known_over_restarts(tmp_path: Path, follower: Follower) -> None:
    follower.lists(fleet(1))
    follower.passes(SETTLE_SECONDS)
    follower.passes(KEPT_SECONDS)
    [first, *_] = follower.seen
    assert first == Followed(seen_ms=1_767_225_600_000, came_ms=1_767_225_600_000)
    follower.clock.ms += 60_000
    for kind in KINDS:
        follower.controller.take(kind, Same())
    follower.passes(0)
    assert follower.controller.status().age_seconds == 0
    after = Follower(tmp_path, follower.kept.read(), first)
    after.heard("objects of kind machine have not been looked at yet", "machine")
    after.clock.ms = first.seen_ms + 3_600_000
    said = after.controller.status()
    assert (said.ok, said.age_seconds, said.objects["machine"]) == (False, 3600, 1)
    assert said.message == (
        "objects of kind machine have not been looked at yet; what counts is what there was at 2026-01-01T00:00:00Z"
    )


def test_a_disk_that_takes_nothing_is_said_and_tried_again(follower: Follower) -> None:
    follower.kept._path.parent.parent.mkdir(exist_ok=True)
    follower.kept._path.parent.write_text("in the way")
    follower.lists(fleet(1))
    follower.passes(SETTLE_SECONDS)
    for reflector in follower.controller._reflectors.values():
        reflector.problem = None
    assert "resources" in follower.controller.status().message
    os.unlink(follower.kept._path.parent)
    follower.passes(SETTLE_SECONDS)
    assert "machine/gpu-001" in follower.written()
    assert follower.controller.status().message == "as the API server has them"


def followed(follower: Follower) -> ResourcesStatus:
    """What it says where the API server is heard."""
    for reflector in follower.controller._reflectors.values():
        reflector.problem = None
    return follower.controller.status()


def test_a_file_that_somebody_took_away_is_written_again(follower: Follower) -> None:
    follower.lists(fleet(1))
    follower.passes(SETTLE_SECONDS)
    [path] = follower.kept.paths()
    for harm in (path.unlink, lambda: path.write_text("{}")):
        harm()
        follower.passes(KEPT_SECONDS)
        follower.passes(SETTLE_SECONDS)
        assert "machine/gpu-001" in follower.written()


def test_of_a_full_disk_the_age_is_that_of_what_is_on_it(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    follower.lists(fleet(1))
    follower.passes(SETTLE_SECONDS)
    full = "No space left on device"

    def refuses(*_: object, **__: object) -> None:
        raise StoreError(full)

    with monkeypatch.context() as patched:
        patched.setattr(files, "write", refuses)
        follower.controller.take("machine", Changed(machine(1), there=False))
        for _ in range(60):
            follower.passes(60)
            for kind in KINDS:
                follower.controller.take(kind, Same())
        said = followed(follower)
        assert said.message == f"{full}; what counts is what there was at 2026-01-01T00:00:00Z"
        assert said.remedy == "see whether the disk that has `data` is full, or hangs"
        assert said.age_seconds is not None
        assert said.age_seconds >= 3600
    follower.controller.take("machine", Changed(machine(1), there=True))
    follower.passes(SETTLE_SECONDS)
    said = followed(follower)
    assert (said.ok, said.age_seconds) == (True, 0.5)


def test_a_disk_that_hangs_is_said(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def hangs(*_: object, **__: object) -> None:
        for seconds in (LATE_SECONDS, 1):
            follower.now += seconds
            said.append(followed(follower).message)
        raise StoreError("it ends")

    monkeypatch.setattr(files, "write", hangs)
    follower.lists(fleet(1))
    follower.passes(SETTLE_SECONDS)
    unknown = "nobody can tell of which moment what counts is"
    assert said == ["as the API server has them", f"the disk has not taken them for 61 s; {unknown}"]


def test_a_defect_is_said_and_does_not_end_who_writes(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def fails() -> None:
        tries.append(1)
        if len(tries) == 2:
            follower.controller.stop()
        raise RecursionError

    monkeypatch.setattr(controllers, "KEPT_SECONDS", 0.0)
    monkeypatch.setattr(follower.controller, "step", fails)
    follower.controller._work()
    assert len(tries) == 2
    said = followed(follower)
    assert (said.ok, said.message.partition(";")[0]) == (False, "a defect, see the log (RecursionError)")


def test_a_definition_that_is_being_removed_takes_no_object_with_it(follower: Follower) -> None:
    """However long its objects take to go, one by one; and changes of other kinds wait as long."""
    follower.lists(fleet(3))
    follower.passes(SETTLE_SECONDS)
    before = follower.written()
    follower.standing = frozenset(KINDS) - {"machine"}
    for number in (1, 2):
        follower.controller.take("machine", Changed(machine(number), there=False))
        follower.controller.take("rack", Changed(resource("rack", f"r{number}"), there=True))
        follower.passes(UNSETTLED_SECONDS)
    assert follower.written() == before
    said = follower.controller.status()
    assert (said.ok, said.message) == (
        False,
        f"{REMOVED}: machine; what counts is what there was at 2026-01-01T00:00:00Z",
    )
    follower.standing = CannotTellError("it is away")
    follower.passes(2 * UNSETTLED_SECONDS)
    assert "whether objects that went were meant cannot be told: it is away" in follower.controller.status().message
    assert follower.written() == before
    follower.standing = frozenset(KINDS)
    follower.passes(2 * UNSETTLED_SECONDS)
    assert before - follower.written() == {"machine/gpu-001", "machine/gpu-002"}
    assert follower.controller.status().message == "as the API server has them"


def test_what_was_removed_and_is_back_is_said_no_more(follower: Follower) -> None:
    follower.lists(fleet(1))
    follower.passes(SETTLE_SECONDS)
    follower.standing = frozenset()
    follower.controller.take("machine", Changed(machine(1), there=False))
    follower.passes(SETTLE_SECONDS)
    assert not follower.controller.status().ok
    follower.controller.take("machine", Changed(machine(1), there=True))
    follower.passes(UNSETTLED_SECONDS + SETTLE_SECONDS)
    assert follower.controller.status().ok


def test_nothing_is_written_while_one_kind_cannot_be_told(follower: Follower) -> None:
    follower.lists(fleet(3))
    follower.passes(SETTLE_SECONDS)
    before = follower.written()
    follower.heard("the apiserver has no racks.netboot.dev", "rack")
    follower.controller.take("machine", Changed(machine(1), there=False))
    follower.passes(UNSETTLED_SECONDS)
    assert follower.written() == before
    follower.heard()
    follower.passes(SETTLE_SECONDS)
    assert before - follower.written() == {"machine/gpu-001"}


def test_objects_say_which_namespace_and_which_moment_they_are_of(tmp_path: Path, follower: Follower) -> None:
    follower.controller._connected()
    follower.lists(fleet(1))
    follower.passes(SETTLE_SECONDS)
    kept = KeptResources(tmp_path, "netboot")
    written = kept.read()
    assert (kept.uid, kept.at_ms) == (UID, 1_767_225_600_000)
    after = Follower(tmp_path, written, Followed(seen_ms=kept.at_ms))
    after.of = "0b0b0b0b"
    after.controller._connected()
    assert after.controller.status().message == (
        f"what is on the disk is of another namespace of that name (uid {UID}, and now 0b0b0b0b); what counts is what "
        "there was at 2026-01-01T00:00:00Z"
    )
    after.lists(fleet(1))
    after.passes(SETTLE_SECONDS)
    assert (after.kept.uid, after.controller.status().ok) == ("0b0b0b0b", True)


def test_a_clock_that_is_set_back_hides_no_age(follower: Follower) -> None:
    follower.lists(fleet(1))
    follower.passes(SETTLE_SECONDS)
    follower.clock.ms -= 86_400_000
    follower.now += 900
    assert follower.controller.status().age_seconds == 900


def test_where_files_are_in_force_what_objects_said_is_forgotten(tmp_path: Path) -> None:
    """Else it would count once more where they are the inventory again, months later, until an API server is heard."""
    config = load_config(make_site(tmp_path).keys.parent / "netboot.yaml")
    kept = KeptResources(config.data, "netboot")
    kept.write(fleet(3))
    (config.inventory / "bad.yaml").write_text("machines: [")
    inventory = InventoryInForce(config, None)
    inventory.step(now=True)
    inventory.published()
    assert kept.there(), "nothing else is in force yet"
    (config.inventory / "bad.yaml").unlink()
    inventory.step(now=True)
    inventory.published()
    assert (inventory.valid, kept.there()) == (True, False)


def test_what_could_not_be_read_is_read_again_though_it_looks_the_same(
    in_force: InForce, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = in_force.machines

    def refuses(*_: object) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(files, "bytes_of", refuses)
        in_force.kept.write(fleet(len(before) + 1))
        assert "Too many open files" in in_force.looks().faults[0]
    in_force.now += AGAIN_SECONDS
    assert in_force.looks().ok
    assert len(in_force.machines) == len(before) + 1


def test_what_changes_while_it_is_read_was_read_whole(in_force: InForce, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what changes for ever would never count."""
    judged, count = KeptResources.judged, len(in_force.machines)

    def and_changes(self: KeptResources, joining: Joining | None) -> Judged:
        found = judged(self, joining)
        self.write(fleet(len(found.inventory.machines) + 1))
        return found

    monkeypatch.setattr(KeptResources, "judged", and_changes)
    in_force.kept.write(fleet(count + 1))
    for number in range(1, 4):
        in_force.looks()
        assert len(in_force.machines) == count + number


def test_more_than_an_inventory_may_be_is_not_written(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower.kept, "_most", 400)
    with pytest.raises(ValueError, match="bytes, and an inventory has at most 400"):
        follower.kept.write(fleet(9))


def test_the_accounts_may_read_the_kinds_and_write_the_status_of_machines_and_nothing_else() -> None:
    printed = list(yaml.safe_load_all(inventory_text("site")))
    leaders = [each for each in printed if "site-leaders" in each["metadata"].values()]
    documents = [each for each in printed if each not in leaders]
    for leader, lease, by in (
        (leaders[:4], "rollouts", "netboot-orders"),
        (leaders[4:], "shipper", "netboot-shipper"),
    ):
        assert [each["kind"] for each in leader] == ["Namespace", "Lease", "Role", "RoleBinding"]
        assert leader[1]["metadata"]["name"] == lease
        assert leader[2]["rules"] == [
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "resourceNames": [lease],
                "verbs": ["get", "patch"],
            }
        ]
        assert leader[3]["subjects"] == [{"kind": "ServiceAccount", "name": by, "namespace": "site"}]
    roles = {each["metadata"]["name"]: each["rules"] for each in documents if each["kind"] == "Role"}
    assert roles == {
        "netboot-inventory": [
            {
                "apiGroups": [GROUP],
                "resources": [kind.plural for kind in ALL_KINDS.values()],
                "verbs": ["list", "watch"],
            },
            {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
        ],
        "netboot-orders": [
            {"apiGroups": [GROUP], "resources": ["orders"], "verbs": ["get", "list", "create", "update"]},
            {"apiGroups": [GROUP], "resources": ["rollouts"], "verbs": ["get", "list", "create", "patch"]},
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": ["netboot-rollouts"],
                "verbs": ["get", "patch"],
            },
        ],
        "netboot-shipper": [
            {"apiGroups": [GROUP], "resources": ["machines"], "verbs": ["list", "watch"]},
            {
                "apiGroups": [GROUP],
                "resources": ["machines/status", "holds/status", "orders/status"],
                "verbs": ["patch"],
            },
            {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "resourceNames": ["netboot-shipper"],
                "verbs": ["patch"],
            },
        ],
    }
    account = ["ServiceAccount", "Role", "RoleBinding"]
    policy = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
    of_all = ["ClusterRole", "ClusterRoleBinding"]
    kinds = [*account, *of_all, *account, "ConfigMap", *account, "Lease", *policy]
    assert [each["kind"] for each in documents] == kinds, "no namespace of the inventory to delete"
    within = [each for each in documents if each["kind"] not in (*policy, *of_all)]
    definition = {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]}
    acts = [f"{kind.plural}.{GROUP}" for kind in (HOLD, ORDER, ROLLOUT)]
    assert documents[3]["rules"] == [{**definition, "resourceNames": acts}]
    assert documents[4]["subjects"] == documents[2]["subjects"]
    assert {each["metadata"]["namespace"] for each in within} == {"site"}
    conditions = documents[-2]["spec"]["matchConditions"]
    assert "system:serviceaccount:site:netboot-shipper" in conditions[0]["expression"]
