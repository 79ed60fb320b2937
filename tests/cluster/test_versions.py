"""Three whole services over one API server become another version one by one, and the one before again, while machines
join: what docs/ha.md promises of upgrades. Which version is the one before says `tests.versions`.

The tests are in the order of an upgrade and the way back; each brings the three to the versions that it begins with.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.work import ROOT
from netboot.kube.resources.kinds import ALL, ENROLMENT, GROUP, VERSION
from tests.cluster.replicated import KINDS, SECONDS, Machine, Replica, World
from tests.cluster.replicated_start import applied, replicated
from tests.cluster.test_holds import held, hold
from tests.cluster.test_replicas import (
    all_say,
    booted,
    drained,
    ends,
    is_up,
    joining,
    more_join,
    once,
    registered,
    rolled,
    turn,
)
from tests.processes import wait_for
from tests.sockets.service import Service
from tests.versions import BEFORE, packages_of

pytestmark = pytest.mark.cluster
OBJECTS = f"/apis/{GROUP}/{VERSION}/namespaces/netboot"
QUIET_SECONDS = 6
ROLLED = 2
"""Machines of the rollout."""


@pytest.fixture(scope="module")
def before() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="netboot-before-") as folder:
        yield packages_of(BEFORE, Path(folder).resolve())


@pytest.fixture(scope="module")
def world(before: Path) -> Iterator[World]:
    with replicated(before) as made:
        yield made


@dataclass
class Given:
    """What was given to the version before, and is to be known over all that follows."""

    machine: Machine
    """Whose Node is drained by an order that stands."""
    order: str
    rollout: str
    image: str
    """Of the rollout: what its channel is to point to in the end."""
    chassis: dict[str, Any]
    """Machines of the rollout that have yet to boot its image."""

    @property
    def path(self) -> str:
        return f"/v1/machines/{self.machine.chassis.name}"


@pytest.fixture(scope="module")
def given(world: World) -> Given:
    alpha, beta, gamma = world.replicas
    world.kubectl.apply("hold", hold("before", "held-200", by="alice"))
    chassis = [world.site.fresh("r") for _ in range(ROLLED)]
    for each in chassis:
        booted(world, each, alpha, beta)
    machine, path = registered(world, alpha, gamma)
    order = beta.service.order(f"{path}/drain", reason="DIMM 4").json()["drain"]["id"]
    for at in world.replicas:
        for each in chassis:
            wait_for(lambda at=at, each=each: is_up(at, each), SECONDS)  # type: ignore[misc]
    begun = gamma.service.order("/v1/rollouts", channel="rolled", image="next", on_next_boot=True, strategy={"bake": 0})
    assert begun.ok, begun.text
    path = f"/v1/rollouts/{begun.json()['number']}"
    made = Given(machine, order, path, begun.json()["image"], {each.name: each for each in chassis})
    known(world, made)
    return made


def known(world: World, given: Given) -> None:
    """Until all know what was given: a boot, a Hold, an order that is carried out, how far the rollout is."""
    phases = ["ScriptServed", "Attested", "TokenIssued", "CSRApproved", "NodeRegistered"]
    for each in world.replicas:
        wait_for(lambda at=each: set(phases) <= set(at.phases(given.machine.boot)), SECONDS)  # type: ignore[misc]
        wait_for(lambda at=each: [one[0] for one in held(at.service)] == ["held-200"], SECONDS)  # type: ignore[misc]
        wait_for(lambda at=each: ends(at, given.path)[:1] == [None], SECONDS)  # type: ignore[misc]
    left = len(given.chassis)
    all_say(world.replicas, given.rollout, "running" if left else "complete", ROLLED - left)
    assert drained(world, given.machine) == given.order


def declared(world: World) -> dict[tuple[str, str], Any]:
    """What people and netboot have declared: uid and `spec` of each object."""
    found = dict[tuple[str, str], Any]()
    for kind in (*ALL.values(), ENROLMENT):
        for each in world.admin("GET", f"{OBJECTS}/{kind.plural}").json()["items"]:
            each["spec"].get("rollout", {}).pop("clock", None)  # goes on while it is under way
            found[kind.plural, each["metadata"]["name"]] = each["metadata"]["uid"], each["spec"]
    return found


def becomes(world: World, replica: Replica, packages: Path, joined: list[str] | None = None) -> None:
    """It is stopped, and started as that version. `joined`: requests of machines that join meanwhile."""
    if joined is not None:
        more_join(joined)
    assert replica.service.stop() == 0
    if joined is not None:
        more_join(joined)
    replica.becomes(packages)
    replica.service.start()
    world.lets_join(replica)
    assert replica.runs_of() == packages


def are(world: World, *versions: Path) -> None:
    """They are of these versions; those that are of another one become it."""
    for each, packages in zip(world.replicas, versions, strict=True):
        if not each.runs or each.runs_of() != packages:
            if not each.runs:
                each.service.start()
            becomes(world, each, packages)
    world.settle()


def writes(world: World, machine: Machine) -> int:
    """How often the status of a machine is written in the seconds that follow."""
    path = f"{OBJECTS}/machines"
    name = machine.chassis.name
    version = world.admin("GET", f"{path}/{name}").json()["metadata"]["resourceVersion"]
    asked = f"watch=1&fieldSelector=metadata.name={name}&resourceVersion={version}&timeoutSeconds={QUIET_SECONDS}"
    events = [json.loads(line) for line in world.admin("GET", f"{path}?{asked}").text.splitlines()]
    assert {each["type"] for each in events} <= {"MODIFIED"}
    return len(events)


def side_by_side(world: World, odd: Replica) -> None:
    """One is of another version than the two: what is begun at either goes on at the other."""
    led = {kind: world.lease(kind)[0] for kind in (*KINDS, "shipper")}
    assert odd.name not in led.values(), led
    first, second = world.others(odd)
    machine = world.boots(first)
    phases = ["InitrdStarted", "ImageFetched", "ImageVerified", "Switched", "Joining"]
    assert machine.reports(odd, *phases) == [204] * 5
    machine.greets(odd)
    machine.proves(second)
    other = world.boots(odd)
    other.greets(second)
    other.proves(odd)
    once(world, machine.asks(), other.asks())
    whole = ["ScriptServed", *phases, "Attested", "TokenIssued", "CSRApproved"]
    for each in world.replicas:
        wait_for(lambda at=each: at.phases(machine.boot) == whole, SECONDS)  # type: ignore[misc]
    wait_for(lambda: writes(world, machine) == 0, SECONDS)
    world.settle()  # nor does anybody say that another one writes against it


def acted_on(world: World, given: Given, at: Replica, image: str) -> None:
    """At one of another version than who leads the order is taken off and given anew, the rollout paused and resumed,
    a channel set: so it is at all."""
    other = world.others(at)[0]
    given.machine.beats()
    assert at.service.order(f"{given.path}/undrain", reason="mended").json()["did"] == "taken-off"
    wait_for(lambda: drained(world, given.machine) == "", SECONDS)
    for each in world.replicas:
        wait_for(lambda at=each: ends(at, given.path)[0] == "taken-off", SECONDS)  # type: ignore[misc]
    given.order = at.service.order(f"{given.path}/drain", reason="fans").json()["drain"]["id"]
    wait_for(lambda: drained(world, given.machine) == given.order, SECONDS)
    assert at.service.order(f"{given.rollout}/pause", reason="lunch").ok
    for each in world.replicas:
        wait_for(lambda at=each: rolled(at, given.rollout)[0] == "paused", SECONDS)  # type: ignore[misc]
    assert other.service.order(f"{given.rollout}/resume").ok
    set_ = at.service.netboot("channel", "set", "stable", image)
    assert set_.returncode == 0, set_.stderr
    names = {one["image"]: one["name"] for one in at.service.api("/v1/images")["images"]}
    for each in world.replicas:
        wait_for(lambda at=each: names[at.service.api("/v1/channels/stable")["image"]] == image, SECONDS)  # type: ignore[misc]


def rolls(world: World, given: Given) -> None:
    """The next machine of the rollout boots its image, by who drives it: what anybody may claim of a boot goes from
    replica to replica a line a minute."""
    name, driver = (
        wait_for(lambda: turn(world.replicas, given.image, given.chassis), SECONDS),
        world.elected("rollouts"),
    )
    booted(world, given.chassis.pop(name), driver, driver)


def test_definitions_of_the_next_version_come_first_and_change_nothing_for_the_one_that_runs(
    world: World, given: Given, before: Path
) -> None:
    are(world, before, before, before)
    alpha, beta, gamma = world.replicas
    there = declared(world)
    applied(Service(alpha.service.config, alpha.service.file), world.own, world.kubectl)
    once(world, world.boots(alpha).joins(beta, gamma))
    known(world, given)
    world.settle()
    assert declared(world) == there


def test_one_after_the_other_becomes_the_next_version_while_machines_join_and_none_fails(
    world: World, given: Given, before: Path
) -> None:
    are(world, before, before, before)
    alpha, beta, gamma = world.replicas
    with joining(world) as joined:
        becomes(world, gamma, ROOT, joined)
    known(world, given)
    side_by_side(world, gamma)
    acted_on(world, given, gamma, "next")
    known(world, given)
    requests = joined
    with joining(world) as joined:
        for each in (beta, alpha):
            becomes(world, each, ROOT, joined)
    world.settle()
    once(world, *requests, *joined)
    rolls(world, given)
    known(world, given)


def test_all_become_the_version_before_again_one_of_them_with_nothing_on_its_disk_and_go_on(
    world: World, given: Given, before: Path
) -> None:
    """As where it cannot read what a later version left there: what replicas share comes back from the API server."""
    are(world, ROOT, ROOT, ROOT)
    alpha, beta, gamma = world.replicas
    assert alpha.service.stop() == 0
    for path in (alpha.root / "data").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    alpha.becomes(before)
    alpha.service.start()
    world.lets_join(alpha)
    known(world, given)
    side_by_side(world, alpha)
    acted_on(world, given, alpha, "tiny")
    with joining(world) as joined:
        for each in (beta, gamma):
            becomes(world, each, before, joined)
    world.settle()
    once(world, *joined, world.boots(beta).joins(gamma, alpha))
    rolls(world, given)
    known(world, given)
