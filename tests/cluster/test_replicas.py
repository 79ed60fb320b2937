"""Three whole services over one API server, machines that join by any of them, and what may happen to one of the three.

In a module of its own, with a control plane of its own: here no other approver may run beside them. What is promised
where is a table of docs/ha.md.
"""

import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from lab.kube import cluster as lab
from netboot.clock import moment_ms
from netboot.join.node_drains import DRAIN, DRAIN_ORDER
from tests.cluster.replicated import KINDS, LEASES, SECONDS, Machine, Replica, World
from tests.cluster.replicated_start import LEASE_SECONDS, replicated
from tests.cluster.test_holds import held, hold
from tests.cluster.test_resources import compacted
from tests.cluster.threats.chassis import Chassis
from tests.cluster.threats.live_site import NODES
from tests.processes import T, wait_for
from tests.sockets.join_site import Said

pytestmark = pytest.mark.cluster
APPROVED = ("Approved", "NetbootAttested")
TURNS = 16
"""Of machines that join while something happens."""
APART = " of this one: check NTP on both replicas"
HELD = ("held-200", "alice (hold/compacted)", "DIMM 4")
COLD = ("held-200", "alice (hold/cold)", "DIMM 4")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with replicated() as made:
        yield made


@pytest.fixture(autouse=True)
def afterwards(world: World) -> Iterator[None]:
    """After each test, as before it; whom one that failed has left ended is started for those that follow."""
    yield
    for each in world.replicas:
        if not each.runs:
            each.service.start()
    world.settle()


def once(world: World, *requests: str) -> None:
    """Each is approved, has its certificate, and was approved by one replica, one time."""
    assert {request: world.joined(request) for request in requests} == dict.fromkeys(requests, APPROVED)
    wait_for(lambda: set(requests) <= world.approvals().keys(), SECONDS)  # it is written down once it was done
    assert {request: world.approvals()[request] for request in requests} == dict.fromkeys(requests, 1)


def test_a_machine_begins_at_one_replica_reports_to_another_and_joins_at_the_third(world: World) -> None:
    alpha, beta, gamma = world.replicas
    machine = world.boots(alpha)
    phases = ["InitrdStarted", "ImageFetched", "ImageVerified", "Switched", "Joining"]
    assert machine.reports(beta, *phases) == [204] * 5
    machine.greets(beta)
    machine.proves(gamma)
    once(world, machine.asks())
    known = ["ScriptServed", *phases, "Attested", "TokenIssued", "CSRApproved"]
    for replica in world.replicas:  # each was told a part, and all know the whole
        wait_for(lambda at=replica: at.phases(machine.boot) == known, SECONDS)  # type: ignore[misc]
    assert len(world.certificates(machine)) == 1


@contextmanager
def joining(world: World) -> Iterator[list[str]]:
    """Machines join all the while, each step at the next replica that answers: their requests. They take turns: how
    many join until a replica has started depends on how fast this machine is, and only so many are declared."""
    joined: list[str] = []
    ends = threading.Event()
    replicas = itertools.cycle(itertools.chain(*itertools.permutations(world.replicas)))
    turns = [world.site.fresh() for _ in range(TURNS)]

    def run() -> None:
        for chassis in itertools.cycle(turns):
            if ends.is_set():
                break
            if len(joined) >= TURNS:
                world.joined(joined[-TURNS])  # its own: who boots again before that gives the certificate up
            machine = of_next(replicas, partial(world.reboots, chassis))
            of_next(replicas, machine.greets)
            of_next(replicas, machine.proves)
            joined.append(machine.asks())
        for request in joined[-TURNS:]:
            world.joined(request)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        try:
            yield joined
        finally:
            ends.set()
            running.result()


def of_next(replicas: Iterator[Replica], step: Callable[[Replica], T]) -> T:
    """What the next one answers; where nobody listens there, or it ends, whoever comes after it: a load balancer."""
    while True:
        with suppress(OSError):
            return step(next(replicas))


def rotated(world: World, *step: str) -> bool:
    """Whether `netboot cluster keys rotate sealing` has done that, or says that it would; else it is to be waited."""
    given = ("--admin-kubeconfig", str(world.own.admin))
    answer = world.replicas[0].service.netboot("cluster", "keys", "rotate", "sealing", *step, *given)
    assert answer.returncode in (0, 5), answer.stderr
    return answer.returncode == 0


def step_done(world: World, *step: str) -> list[str]:
    """A step of a rotation, as soon as it may be done; machines join before it, all the while, and after: requests."""
    wait_for(lambda: rotated(world, *step, "--dry-run"), 2 * SECONDS, pause=1.0)
    with joining(world) as joined:
        more_join(joined)
        wait_for(lambda: rotated(world, *step), SECONDS, pause=1.0)
        more_join(joined)
    return joined


def more_join(joined: list[str]) -> None:
    before = len(joined)
    wait_for(lambda: len(joined) >= before + 2, SECONDS)


def test_the_sealing_key_is_rotated_while_machines_join_and_none_fails(world: World) -> None:
    [old] = world.replicas[0].keys()
    requests = step_done(world)
    for each in world.replicas:
        wait_for(lambda at=each: at.keys()[:1] == [old] and len(at.keys()) == 2, SECONDS)  # type: ignore[misc]
    requests += step_done(world, "--promote")
    for each in world.replicas:
        wait_for(lambda at=each: at.keys()[1:] == [old] and len(at.keys()) == 2, SECONDS)  # type: ignore[misc]
    once(world, *requests)


def test_of_a_leader_that_is_killed_another_leads_within_two_durations_and_joins_under_way_end_well(
    world: World,
) -> None:
    killed = world.elected("approver")
    second, third = world.others(killed)
    asked, proven, greeted, booted = (world.boots(each) for each in (killed, killed, killed, killed))
    for machine in (asked, proven, greeted):
        machine.greets(killed)
    proven.proves(killed)
    asked.proves(second)
    requests = [asked.asks()]
    before = time.time()
    killed.service.kill()
    requests.append(proven.asks())
    greeted.proves(third)
    requests += [greeted.asks(), booted.joins(second, third)]
    leader = world.elected("approver", second, third)
    since = world.admin("GET", f"{LEASES}/approver").json()["spec"]["acquireTime"]
    assert moment_ms(since) / 1000 - before < 2 * LEASE_SECONDS
    once(world, *requests)
    killed.service.start()
    world.settle()
    for kind in KINDS:
        wait_for(lambda of=kind: world.follows(of, killed), SECONDS)  # type: ignore[misc]
    assert world.elected("approver") is leader
    once(world, world.boots(killed).joins(killed, killed))


def test_a_leader_that_is_frozen_past_its_lease_does_nothing_late_and_follows(world: World) -> None:
    frozen = world.elected("approver")
    second, third = world.others(frozen)
    machines = [world.boots(each) for each in (frozen, second, third)]
    machines[0].greets(frozen)
    early = world.boots(frozen).joins(frozen, second)
    with frozen.frozen():
        world.elected("approver", second, third)
        machines[0].proves(second)
        late = [machines[0].asks(), *(machine.joins(third, second) for machine in machines[1:])]
        assert [world.joined(request) for request in (early, *late)] == [APPROVED] * 4
    wait_for(lambda: world.follows("approver", frozen), SECONDS)
    world.settle()
    once(world, early, *late)
    wait_for(lambda: frozen.logged("this replica leads approver-default no longer: "), SECONDS)
    assert [line for line in frozen.logged("approved: machine") if any(f"request={one} " in line for one in late)] == []
    once(world, world.boots(frozen).joins(frozen, frozen))


@contextmanager
def partitioned(replica: Replica) -> Iterator[None]:
    replica.relay.cut()
    try:
        yield
    finally:
        replica.relay.heal()


def test_a_leader_that_is_partitioned_from_the_api_server_boots_machines_says_why_and_is_in_order_after(
    world: World,
) -> None:
    cut = world.elected("approver")
    second, third = world.others(cut)
    begun = world.boots(second)
    begun.greets(cut)
    with partitioned(cut):
        machines = [world.boots(cut) for _ in range(3)]
        assert [machine.reports(cut, "InitrdStarted") for machine in machines] == [[204]] * 3
        world.elected("approver", second, third)
        refused = world.site.hello(machines[0].soft, cut.name)
        assert (refused.status, "Retry-After" in refused.headers) == (503, True), refused
        begun.proves(second)
        once(world, begun.asks(), machines[0].joins(second, third), machines[1].joins(third, third))
        why = "the apiserver 127.0.0.1:"
        wait_for(lambda: why in cut.troubles().get("approver-default", ""), SECONDS)
        wait_for(lambda: why in cut.troubles().get("join-0", ""), SECONDS)
        assert cut.service.readyz()["ready"] is True
        world.in_order(second, third)
        assert cut.service.outcome(machines[2].chassis.mac) == "boot"
    world.settle()
    wait_for(lambda: world.follows("approver", cut), SECONDS)
    once(world, machines[2].joins(cut, cut))


def test_a_leader_whose_disk_is_full_says_so_and_hands_over(world: World) -> None:
    full = world.elected("nodes")
    second, third = world.others(full)
    machine = world.boots(full)
    with full.full():
        wait_for(lambda: "0 MiB free" in full.troubles().get("disk", ""), SECONDS)
        requests = [machine.joins(second, third), *(world.boots(each).joins(third, each) for each in (second, third))]
        once(world, *requests)
        machine.registers(requests[0])
        world.elected("nodes", second, third)
        wait_for(
            lambda: full.logged("this replica lets another lead nodes-default, for it cannot do the work: "), SECONDS
        )
        wait_for(lambda: "NodeRegistered" in third.phases(machine.boot), SECONDS)  # to which it proved itself
        assert full.service.outcome(machine.chassis.mac) in ("boot", "unavailable")
        world.in_order(second, third)
    world.settle()
    wait_for(lambda: "CSRApproved" in full.phases(machine.boot), SECONDS)
    once(world, world.boots(full).joins(full, full))


def drained(world: World, machine: Machine) -> str:
    """By which order its Node is drained; "": by none."""
    node = world.admin("GET", f"{NODES}/{machine.chassis.name}").json()
    tainted = any(taint["key"] == DRAIN for taint in node["spec"].get("taints", ()))
    return str(node["metadata"].get("annotations", {}).get(DRAIN_ORDER, "")) if tainted else ""


def registered(world: World, first: Replica, second: Replica) -> tuple[Machine, str]:
    """A machine whose Node is Ready, as all know, and its path in the API."""
    machine = world.boots(first)
    request = machine.joins(first, second)
    once(world, request)
    machine.registers(request, ready=True)
    for each in world.replicas:
        wait_for(lambda at=each: "NodeRegistered" in at.phases(machine.boot), SECONDS)  # type: ignore[misc]
    return machine, f"/v1/machines/{machine.chassis.name}"


def ends(replica: Replica, path: str) -> list[str | None]:
    """Of orders of a machine, as a replica knows them."""
    return [one["end"] for one in replica.service.api(f"{path}/drains")["drains"]]


def how_far(replica: Replica, path: str) -> str:
    """The last order of a machine, as a replica has it: "": nothing is said of it."""
    [last, *_] = replica.service.api(f"{path}/drains")["drains"]
    return str((last["state"] or {}).get("state", ""))


def test_an_order_of_one_replica_is_carried_out_by_the_one_that_leads_and_taken_off_at_a_third(world: World) -> None:
    leader = world.elected("nodes")
    second, third = world.others(leader)
    machine, path = registered(world, second, third)
    given = second.service.order(f"{path}/drain", reason="DIMM 4")
    assert given.status_code == 200, given.text
    order = given.json()["drain"]["id"]
    again = third.service.order(f"{path}/drain", reason="fans")
    assert (again.json()["did"], again.json()["drain"]["id"]) == ("", order), "whoever is asked, one stands"
    wait_for(lambda: drained(world, machine) == order, SECONDS)
    asked = ("get", "-n", "netboot", f"order/{machine.chassis.name}", "-o", "jsonpath={.status.state}")
    wait_for(lambda: world.kubectl(*asked) == "drained", SECONDS)
    for each in world.replicas:
        wait_for(lambda at=each: how_far(at, path) == "drained", SECONDS)  # type: ignore[misc]
    off = third.service.order(f"{path}/undrain", reason="mended")
    assert (off.status_code, off.json()["did"]) == (200, "taken-off"), off.text
    wait_for(lambda: drained(world, machine) == "", SECONDS)
    for each in world.replicas:
        wait_for(lambda at=each: ends(at, path) == ["taken-off"], SECONDS)  # type: ignore[misc]


def test_a_leader_that_was_away_while_orders_came_and_went_carries_none_of_them_out(world: World) -> None:
    leader = world.elected("nodes")
    second, third = world.others(leader)
    machine, path = registered(world, second, third)
    assert leader.service.order(f"{path}/drain", reason="DIMM 4").status_code == 200
    wait_for(lambda: drained(world, machine) != "", SECONDS)
    for each in (second, third):  # who never heard of it leaves its Node as it is for five minutes
        wait_for(lambda at=each: ends(at, path) == [None], SECONDS)  # type: ignore[misc]
    leader.service.kill()
    assert third.service.order(f"{path}/undrain", reason="mended").json()["did"] == "taken-off"
    assert second.service.order(f"{path}/drain", reason="fans").json()["did"] == "ordered"
    assert second.service.order(f"{path}/undrain", reason="mended").json()["did"] == "taken-off"
    world.elected("nodes", second, third)
    wait_for(lambda: drained(world, machine) == "", SECONDS)
    leader.service.start()
    world.settle()
    for each in world.replicas:
        wait_for(lambda at=each: ends(at, path)[:1] == ["taken-off"], SECONDS)  # type: ignore[misc]
        assert None not in ends(each, path)
    assert drained(world, machine) == ""


def test_an_order_whose_object_is_deleted_is_taken_off_everywhere(world: World) -> None:
    leader = world.elected("nodes")
    second, third = world.others(leader)
    machine, path = registered(world, second, third)
    assert second.service.order(f"{path}/drain", reason="DIMM 4").status_code == 200
    wait_for(lambda: drained(world, machine) != "", SECONDS)
    world.kubectl("delete", "-n", "netboot", f"order/{machine.chassis.name}")
    for each in world.replicas:
        wait_for(lambda at=each: ends(at, path) == ["taken-off"], SECONDS)  # type: ignore[misc]
    wait_for(lambda: drained(world, machine) == "", SECONDS)
    assert third.service.order(f"{path}/undrain", reason="mended").json()["did"] == ""


def booted(world: World, chassis: Chassis, first: Replica, second: Replica) -> None:
    """A machine, which joins no cluster, boots by one replica and tells another that it is up."""
    machine = world.reboots(chassis, first)
    phases = ("InitrdStarted", "ImageFetched", "ImageVerified", "Switched", "Booted")
    assert machine.reports(second, *phases) == [204] * len(phases)


def is_up(replica: Replica, chassis: Chassis) -> bool:
    """Whether a replica says so of a machine that joins nothing."""
    conditions = replica.service.api(f"/v1/machines/{chassis.name}").get("conditions") or []
    return any(each["type"] == "Booted" and each["status"] == "True" for each in conditions)


def rolled(replica: Replica, path: str) -> tuple[str, int]:
    """How far a rollout is, as a replica says it; ("", 0): it knows none."""
    said = replica.service.api(path)
    return said.get("state", ""), said.get("machines", {}).get("done", 0)


def turn(replicas: list[Replica], image: str, machines: Collection[str]) -> str:
    """Which of these machines boots the image next, whichever of these replicas it asks; "": none yet. Who asks for a
    script begins a boot, so that is not asked."""
    uses = [set(each.service.api(f"/v1/images/{image}/uses")["boots"]) for each in replicas]
    return next(iter(set.intersection(*uses) & set(machines)), "")


def all_say(replicas: list[Replica], path: str, state: str, done: int) -> None:
    for each in replicas:
        wait_for(lambda at=each: rolled(at, path) == (state, done), SECONDS)  # type: ignore[misc]


def test_a_rollout_goes_on_whoever_leads_and_its_channel_points_to_its_image_everywhere(world: World) -> None:
    leader = world.elected("rollouts")
    second, third = world.others(leader)
    some, more = (world.site.fresh("r") for _ in range(2))
    for chassis in (some, more):
        booted(world, chassis, second, third)
        for each in world.replicas:
            wait_for(lambda at=each, of=chassis: is_up(at, of), SECONDS)  # type: ignore[misc]
    wish = {"channel": "rolled", "image": "next", "on_next_boot": True, "strategy": {"bake": 0}}
    begun = second.service.order("/v1/rollouts", **wish, reason="CVE")
    assert begun.ok, begun.text
    path, image = f"/v1/rollouts/{begun.json()['number']}", begun.json()["image"]
    all_say(world.replicas, path, "running", 0)
    assert third.service.order("/v1/rollouts", **wish).status_code == 409, "one of a channel, whoever is asked"
    machines = {each.name: each for each in (some, more)}
    # by who drives it: what anybody may claim of a boot goes from replica to replica a line a minute
    booted(world, machines.pop(wait_for(lambda: turn(world.replicas, image, machines), SECONDS)), leader, leader)
    all_say(world.replicas, path, "running", 1)
    leader.service.kill()
    assert third.service.order(f"{path}/pause", reason="lunch").ok
    assert second.service.order(f"{path}/resume").ok
    heir = world.elected("rollouts", second, third)
    booted(world, machines.pop(wait_for(lambda: turn([second, third], image, machines), SECONDS)), heir, heir)
    all_say([second, third], path, "complete", 2)
    leader.service.start()
    world.settle()
    all_say(world.replicas, path, "complete", 2)
    for each in world.replicas:
        assert each.service.api("/v1/channels/rolled")["image"] == image
        wait_for(lambda at=each: image in at.script(some.mac).text, SECONDS)  # type: ignore[misc]
    assert machines == {}
    asked = ("get", "-n", "netboot", "rollout/rolled", "-o", "jsonpath={.spec.image} {.spec.who}")
    assert world.kubectl(*asked) == f"{image} rollout {begun.json()['number']}"


def test_a_channel_that_is_set_at_one_replica_is_so_at_all_and_where_one_was_away_then(world: World) -> None:
    alpha, beta, gamma = world.replicas
    [there] = {each.service.api("/v1/channels/rolled")["image"] for each in world.replicas}
    names = {one["image"]: one["name"] for one in alpha.service.api("/v1/images")["images"]}
    [(image, name)] = [(digest, name) for digest, name in names.items() if digest != there]
    gamma.service.kill()
    set_ = alpha.service.netboot("channel", "set", "rolled", name)
    assert set_.returncode == 0, set_.stderr
    wait_for(lambda: beta.service.api("/v1/channels/rolled")["image"] == image, SECONDS)
    gamma.service.start()
    wait_for(lambda: gamma.service.api("/v1/channels/rolled")["image"] == image, SECONDS)


def at_once(*acts: Callable[[], Said]) -> list[Said]:
    """What is answered to all of these, which begin at the same moment."""
    begin = threading.Barrier(len(acts))

    def one(act: Callable[[], Said]) -> Said:
        begin.wait()
        return act()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(one, acts))


def test_of_two_that_issue_for_one_machine_at_the_same_moment_one_credential_is_left_and_is_used_once(
    world: World,
) -> None:
    alpha, beta, _ = world.replicas
    machine = world.boots(alpha)
    site, soft = world.site, machine.soft
    answers = {each: site.hello(soft, each.name).body for each in (alpha, beta)}
    said = at_once(*(partial(site.attest, soft, answers[each], each.name) for each in (alpha, beta)))
    assert {each.status for each in said} <= {200, 409, 503}, said
    left = {each.body["token"] for each in said if each.status == 200 and site.has_token(each.body["token"])}
    assert len(left) <= 1
    if not left:  # both lost: what an agent does then
        machine.proves(alpha)
        left = {machine.token}
    [machine.token] = left
    once(world, machine.asks())
    wait_for(lambda: not site.has_token(machine.token), SECONDS)
    assert len(world.certificates(machine)) == 1


def test_of_two_keys_in_one_boot_that_are_issued_for_at_the_same_moment_one_has_the_credential(world: World) -> None:
    _, beta, gamma = world.replicas
    owner = world.boots(beta)
    thief = Machine(world, owner.chassis, owner.boot)
    owner.greets(beta)
    thief.greets(gamma)
    said = at_once(*(partial(each.tries, at) for each, at in ((owner, beta), (thief, gamma))))
    assert sorted(each.status for each in said) == [200, 409], said
    won = next(each for each in (owner, thief) if each.token)
    once(world, won.asks())
    assert len(world.certificates(owner) + world.certificates(thief)) == 1


@contextmanager
def ended(world: World, part: str) -> Iterator[None]:
    """A part of the control plane is killed, does not run while in the block, and is started again on its data."""
    process = world.own.processes[part]
    process.kill()
    process.wait()
    try:
        yield
    finally:
        lab._start(world.own, part, list(process.args))  # type: ignore[arg-type]
        wait_for(lambda: world.admin("GET", "/readyz").status_code == 200, SECONDS)


@pytest.mark.parametrize("part", ["kube-apiserver", "etcd"])
def test_the_api_server_or_etcd_is_restarted_and_one_of_each_kind_leads_again(world: World, part: str) -> None:
    alpha, beta, gamma = world.replicas
    machine = world.boots(alpha)
    machine.greets(beta)
    leader = world.elected("approver")
    with ended(world, part):
        assert machine.reports(beta, "InitrdStarted") == [204]
        wait_for(lambda: not leader.leader("approver").get("leads", True), SECONDS)
        assert [each.service.outcome(machine.chassis.mac) for each in world.replicas] == ["boot"] * 3
        refused = world.site.attest(machine.soft, machine.hello, gamma.name)
        assert (refused.status, "Retry-After" in refused.headers) == (503, True), refused
    machine.proves(gamma)
    once(world, machine.asks(), world.boots(gamma).joins(alpha, beta))
    world.settle()


def test_what_etcd_has_compacted_while_they_watched_is_listed_anew_and_nothing_is_missed(world: World) -> None:
    """The watches of two find nothing where they were; the third's are as they were."""
    alpha, beta, gamma = world.replicas
    machine = world.boots(alpha)
    machine.greets(beta)
    machine.proves(gamma)
    with partitioned(alpha), partitioned(beta), partitioned(gamma):
        request = machine.asks()
        world.kubectl.apply("hold", hold("compacted", "held-200", by="alice"))
        with ended(world, "kube-apiserver"):
            compacted(world.own)
    once(world, request)
    for each in world.replicas:
        wait_for(lambda at=each: held(at.service) == [HELD], SECONDS)  # type: ignore[misc]
    world.kubectl("delete", "-n", "netboot", "hold/compacted")
    for each in world.replicas:
        wait_for(lambda at=each: held(at.service) == [], SECONDS)  # type: ignore[misc]
    once(world, world.boots(gamma).joins(alpha, beta))


def test_after_a_power_cut_of_everything_all_boot_machines_by_their_disks_and_join_goes_on_with_the_api_server(
    world: World,
) -> None:
    """The machines of the control plane boot first, from these three, whose state is in that control plane."""
    alpha, beta, gamma = world.replicas
    epochs = {kind: world.lease(kind)[1] for kind in KINDS}
    before = world.boots(alpha)
    world.kubectl.apply("hold", hold("cold", "held-200", by="alice"))
    for each in world.replicas:
        wait_for(lambda at=each: held(at.service) == [COLD], SECONDS)  # type: ignore[misc]
    with ended(world, "kube-apiserver"):
        for each in world.replicas:
            each.service.kill()
        for each in world.replicas:
            each.service.start()
        machines = [world.boots(each) for each in world.replicas]
        assert [each.image(machines[0].chassis.mac) for each in world.replicas] == [[200] * 6] * 3
        reported = [one.reports(at, "InitrdStarted") for one, at in zip(machines, (beta, gamma, alpha), strict=True)]
        assert reported == [[204]] * 3
        assert before.reports(gamma, "InitrdStarted") == [204]
        for each in world.replicas:
            refused = world.site.hello(machines[0].soft, each.name)
            assert (refused.status, "Retry-After" in refused.headers) == (503, True), refused
            assert held(each.service) == [COLD]
            wait_for(lambda at=each: not at.detail("approver-default").get("ok", True), SECONDS)  # type: ignore[misc]
            assert each.service.readyz()["ready"] is True
    world.settle()
    requests = [one.joins(at, gamma) for one, at in zip(machines, world.replicas, strict=True)]
    once(world, before.joins(beta, gamma), *requests)
    whole = ["ScriptServed", "InitrdStarted", "Attested", "TokenIssued", "CSRApproved"]
    for each in world.replicas:
        assert held(each.service) == [COLD]
        for machine in (before, *machines):
            wait_for(lambda at=each, one=machine: set(whole) <= set(at.phases(one.boot)), SECONDS)  # type: ignore[misc]
    assert all(world.lease(kind)[1] > epochs[kind] for kind in KINDS)
    world.kubectl("delete", "-n", "netboot", "hold/cold")
    for each in world.replicas:
        wait_for(lambda at=each: held(at.service) == [], SECONDS)  # type: ignore[misc]


def test_clocks_that_are_half_a_minute_apart_change_nothing_and_of_more_it_is_said_what_to_do(world: World) -> None:
    """Thirty seconds are what docs/http-join.md allows."""
    early, late, right = world.replicas
    led = {kind: world.lease(kind) for kind in KINDS}
    try:
        for replica, seconds in ((early, 14), (late, -14)):
            replica.set_clock(seconds)
        requests = [
            machine.joins(first, second)
            for first, second in ((early, late), (late, early), (early, right), (right, late))
            for machine in (world.boots(early), world.boots(late))
        ]
        once(world, *requests)
        assert {kind: world.lease(kind) for kind in KINDS} == led
        world.settle()
        machine = world.boots(right)
        early.set_clock(40)
        machine.greets(early)
        refused = machine.tries(late)
        assert (refused.status, refused.message.partition(" s ahead")[2]) == (410, APART), refused
    finally:
        for replica in (early, late):
            replica.set_clock(0)


def test_the_old_sealing_key_is_retired_while_machines_join_and_none_fails(world: World) -> None:
    """The last one: three minutes after all have sealed with the new one, which it waits for."""
    if len(world.replicas[0].keys()) == 1:
        test_the_sealing_key_is_rotated_while_machines_join_and_none_fails(world)
    new, _ = world.replicas[0].keys()
    requests = step_done(world, "--retire")
    for each in world.replicas:
        wait_for(lambda at=each: at.keys() == [new], SECONDS)  # type: ignore[misc]
    once(world, *requests)
