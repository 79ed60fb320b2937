"""Draining and rebooting, by a service that is killed at each call it makes: no second reboot, nothing held for
good."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from netboot.controllers.drains import AndDrains, finish, released
from netboot.controllers.nodes.drainer import UNKNOWN_SECONDS
from netboot.controllers.nodes.draining import Known, Write, decide, ordered, sorted_out, tainted, undone
from netboot.controllers.nodes.proven_boots import ProvenBoots
from netboot.join.errors import ClusterUnavailableError
from netboot.join.node_said import KURED
from netboot.lifecycle.drains import Drain, DrainsStatus, End, State
from netboot.lifecycle.errors import CannotTellError
from netboot.status.controllers import RolloutsStatus
from tests.drain_world import BUDGET, FOREIGN, World, pod
from tests.drains import MINUTE, START, MemoryDrains, drain
from tests.records import boot_id

PODS = (pod("a"), pod("b"), pod("agent", "DaemonSet", local=True), pod("static", "Node", mirror=True))


def states(world: World) -> tuple[str, str]:
    state = world.said.drains["n-1"]
    return state.state, state.words


def test_a_drain_takes_what_may_go_and_stays_until_it_is_taken_off() -> None:
    world = World(*PODS, pod("done", "", over=True))
    one = world.order()
    world.run(1)
    assert (world.value(), world.evicted) == ("Draining", []), "no new Pods first"
    world.run(20)
    assert sorted(world.evicted) == ["a", "b"]
    assert sorted(world.pods_) == ["agent", "done", "static"]
    assert (world.value(), states(world)[0]) == ("Drained", "drained")
    world.run(40 * 60)
    assert (world.value(), world.reboots, world.last().end) == ("Drained", [], None), "the deadline is over"
    world.drains.finish(one.id, "taken-off", "", world.now_ms())
    world.run(2)
    assert world.node_ is not None
    assert world.node_.taints == (FOREIGN,)


def test_a_reboot_drains_tells_the_machine_once_and_ends_with_its_next_boot() -> None:
    world = World(*PODS)
    one = world.order("reboot")
    world.run(180)
    assert world.reboots == [boot_id("n-1", 1)]
    assert (world.last().id, world.last().end) == (one.id, "rebooted")
    assert world.last().words == f"its boot is {boot_id('n-1', 2)} now"
    assert world.node_ is not None
    assert (world.node_.taints, world.node_.annotations) == ((FOREIGN,), {})
    world.run(40 * 60)
    assert world.reboots == [boot_id("n-1", 1)]


def test_who_was_told_to_reboot_is_on_its_way_while_its_node_is_gone_and_its_next_boot_is_not_known() -> None:
    """Else a rollout that is done with it would withdraw the order, for its machine was not told as it seems."""
    world = World(*PODS)
    world.order("reboot")
    world.run(60)
    assert states(world) == (
        "ordered",
        "it was told to reboot, and its Node is not Ready: it is on its way",
    )
    world.deaf, world.starting, world.node_ = True, 0.0, None  # join deletes it before it gives the next boot its token
    world.run(10)
    assert states(world) == ("ordered", "it was told to reboot, and the cluster has no Node of it: it is on its way")
    world.boot = 2
    known, world.know = world.know, lambda *_records: None  # type: ignore[method-assign]
    world.register()
    world.run(10)
    its = "its Node is not known to be of its current boot"
    assert states(world) == ("ordered", f"it was told to reboot, and {its}: it is on its way")
    world.know = known  # type: ignore[method-assign]
    world.register()
    world.run(10)
    assert (world.last().end, world.reboots) == ("rebooted", [boot_id("n-1", 1)])


def test_who_was_told_to_reboot_and_never_comes_back_is_not_waited_for_for_ever() -> None:
    world = World()
    world.order("reboot")
    world.run(60)
    world.deaf, world.starting, world.node_ = True, 0.0, None
    world.run(41 * 60)
    assert (world.last().end, world.last().words) == (
        "undone",
        "it was told to reboot, and did not come back: the cluster has no Node of it",
    )


def calls_of(what: str) -> int:
    world = World(*PODS)
    world.order(what)
    world.run(300)
    return world.calls


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_killed_at_any_call_of_a_reboot_it_reboots_once_and_is_let_go(before: bool) -> None:
    for call in range(1, calls_of("reboot") + 1):
        world = World(*PODS, kill=(call, before))
        world.order("reboot")
        world.run(300)
        assert world.reboots == [boot_id("n-1", 1)], call
        assert (world.last().end, world.value()) == ("rebooted", None), call
        assert world.calls >= call


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_killed_at_any_call_of_a_drain_that_comes_to_nothing_it_is_undone(before: bool) -> None:
    def run(kill: tuple[int, bool] | None) -> World:
        world = World(*PODS, kill=kill)
        world.refuses = {"b"}
        world.order("reboot", deadline_ms=START + MINUTE)
        world.run(90)
        return world

    for call in range(1, run(None).calls + 1):
        world = run((call, before))
        assert (world.last().end, world.value(), world.reboots) == ("undone", None, []), call
        assert "b" in world.pods_, "nothing is forced"


def test_past_its_deadline_a_drain_is_undone_and_says_what_was_in_its_way() -> None:
    world = World(*PODS)
    world.refuses = {"b"}
    world.order(deadline_ms=START + MINUTE)
    world.run(30)
    refused = f"default/b are left; default/b may not go now: {BUDGET}"
    assert states(world) == ("draining", refused)
    assert world.evicted.count("b") > 3, "it is tried again"
    world.run(40, settling=False)
    assert (world.last().end, world.value()) == (None, None), "nobody has ended the order yet"
    world.run(1)
    assert world.last().end == "undone"
    assert world.last().words == f"it was not drained by its deadline: {refused}"
    world.refuses = set()
    world.run(60)
    assert "b" in world.pods_


@pytest.mark.parametrize(
    ("blocking", "allow", "words"),
    [
        (pod("bare", ""), "bare", "default/bare have no controller that would start them elsewhere: only with "),
        (pod("db", "StatefulSet", local=True), "local", "default/db have data in an emptyDir: only with "),
    ],
)
def test_what_would_be_lost_blocks_and_disturbs_nobody(blocking: Any, allow: str, words: str) -> None:
    world = World(*PODS, blocking)
    world.order()
    world.run(20)
    assert world.evicted == []
    assert states(world) == ("draining", f"{words}--allow-{'bare' if allow == 'bare' else 'local-data'}")
    world.order(bare=allow == "bare", local=allow == "local")
    world.run(20)
    assert sorted(world.evicted) == ["a", "b", blocking.name]
    assert world.value() == "Drained"


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        ({"annotations": {KURED: "2026-01-01"}}, f"kured reboots it (annotation {KURED})"),
        ({"cordoned": True}, "somebody cordoned it (kubectl uncordon)"),
        (
            {"labels": {"netboot.dev/managed-by": "netboot", "dgxc.nvidia.com/nvsentinel-state": "draining"}},
            "NVSentinel has it (dgxc.nvidia.com/nvsentinel-state)",
        ),
        (
            {"annotations": {"netboot.dev/gate": "manual"}},
            "somebody has taken it into their own hands (annotation netboot.dev/gate=manual)",
        ),
    ],
)
def test_a_node_that_somebody_else_has_is_left_alone_and_by_whom_is_said(taken: dict[str, Any], words: str) -> None:
    world = World(*PODS)
    assert world.node_ is not None
    before = world.node_
    world.alter(**taken)
    world.order("reboot")
    world.run(60)
    assert (world.evicted, world.value(), world.reboots) == ([], None, [])
    assert states(world) == ("waiting", f"{words}: netboot leaves the Node alone until it is let go")
    world.alter(annotations=before.annotations, labels=before.labels, cordoned=False)
    world.run(60)
    assert world.reboots == [boot_id("n-1", 1)]


def test_a_node_that_is_not_ready_is_never_drained() -> None:
    world = World(*PODS)
    world.alter(ready=False)
    world.order("reboot", deadline_ms=START + 5 * MINUTE)
    world.run(60)
    assert (world.evicted, world.value()) == ([], None)
    assert states(world) == ("waiting", "its Node is not Ready: nothing there could answer")
    world.run(300)
    assert (world.last().end, world.evicted, world.reboots) == ("undone", [], [])


def test_an_order_that_nobody_takes_is_undone_and_one_that_was_taken_is_waited_for() -> None:
    world = World(*PODS)
    world.deaf = True
    world.order("reboot", deadline_ms=START + 5 * MINUTE)
    world.run(390)
    assert states(world) == ("ordered", "its Node is drained, and it is told to reboot")
    world.run(60)
    assert (world.last().end, world.value()) == ("undone", None)
    assert world.last().words.startswith("it did not take the order to reboot: ")
    slow = World(*PODS)
    slow.order("reboot", deadline_ms=START + MINUTE)
    slow.run(40)
    assert slow.starting
    slow.starting += 3600
    slow.run(3000)
    assert states(slow) == ("ordered", "it was told to reboot, and its Node is not Ready: it is on its way")
    slow.run(900)
    assert (slow.last().end, len(slow.reboots)) == ("rebooted", 1)


def test_a_pod_that_comes_between_two_looks_is_seen_before_the_machine_is_told() -> None:
    world = World()
    world.order("reboot")
    world.run(6)
    world.pods_["late"] = pod("late")
    world.refuses = {"late"}
    world.run(60)
    assert (world.reboots, states(world)[0]) == ([], "draining")


def test_a_node_that_was_given_away_keeps_what_it_has() -> None:
    """Admission lets the nodes account change none that is not netboot's."""
    world = World(*PODS)
    world.order(deadline_ms=START + MINUTE)
    world.refuses = {"a"}
    world.run(30)
    world.alter(labels={})
    world.run(60)
    assert (world.value(), world.last().end, world.said.problem) == ("Draining", "undone", "")


def test_a_drain_outlives_a_boot_and_has_as_long_again_there() -> None:
    world = World(*PODS)
    world.order(deadline_ms=START + MINUTE)
    world.run(120)
    world.boot = 2
    world.register()
    world.pods_["c"] = pod("c")
    world.refuses = {"c"}
    world.run(30)
    assert (world.value(), world.last().end) == ("Draining", None)
    world.refuses = set()
    world.run(9)
    assert "c" not in world.pods_
    world.run(120)
    assert (world.value(), world.last().end) == ("Drained", None)
    world.boot, world.refuses = 3, {"d"}
    world.register()
    world.pods_["d"] = pod("d")
    world.run(62)
    assert (world.value(), world.last().end, "d" in world.pods_) == (None, "undone", True)


def test_a_drain_of_long_ago_outlives_a_boot_whose_node_is_made_or_known_late() -> None:
    world = World(*PODS)
    world.order()
    world.run(3 * 3600)
    assert (world.value(), world.last().end) == ("Drained", None)
    world.node_ = None  # join deletes it before it gives the next boot its token
    world.run(60)
    assert (states(world), world.last().end) == (("waiting", "the cluster has no Node of it"), None)
    world.boot = 2
    known, world.know = world.know, lambda *_records: None  # type: ignore[method-assign]
    world.register()
    world.know = known  # type: ignore[method-assign]
    world.run(60)
    assert (states(world)[1], world.value()) == ("its Node is not known to be of its current boot", None)
    world.register()
    world.run(30)
    assert (world.value(), world.last().end) == ("Drained", None)
    world.drains.finish(world.last().id, "taken-off", "", world.now_ms())
    world.run(5)
    assert world.value() is None


def test_a_reboot_that_came_by_itself_is_the_one_that_was_wanted() -> None:
    world = World(*PODS)
    world.refuses = {"a"}
    world.order("reboot")
    world.run(20)
    world.boot = 2
    world.register()
    world.run(20)
    assert (world.last().end, world.reboots, world.value()) == ("rebooted", [], None)


def test_an_order_that_is_taken_off_leaves_nothing_on_the_node_whoever_reads_it_late() -> None:
    world = World()
    world.deaf = True
    one = world.order("reboot")
    world.run(30)
    assert world.node_ is not None
    assert ordered(world.node_, one.id) is not None
    world.drains.finish(one.id, "taken-off", "", world.now_ms())
    world.run(3)
    assert (world.node_.taints, world.node_.annotations) == ((FOREIGN,), {})
    world.deaf = False
    world.run(60)
    assert world.reboots == []


def test_a_node_of_another_boot_is_never_written_to_and_its_machine_is_waited_for() -> None:
    world = World(*PODS)
    one = drain("n-1", "1", "reboot", boot=boot_id("n-1", 1))
    known = Known(boot_id("n-1", 1), its=False)
    for now, state in ((START, "waiting"), (START + 39 * MINUTE, "waiting"), (START + 40 * MINUTE, "undone")):
        step = decide(one, world.node_, known, now)
        assert (step.state, step.write) == (state, None), now


def test_which_rights_are_lacking_is_said_and_asked_again_now_and_then() -> None:
    world, asked = World(*PODS), list[float]()
    answers = iter(["the account may not: create pods/eviction", None, "", ""])

    def lacks() -> str:
        asked.append(world.seconds)
        answer = next(answers)
        if answer is None:
            raise ClusterUnavailableError("it is away")
        return answer

    world.drainer.lacks = lacks
    said = []
    for seconds in (1, 30, 30, 300):
        world.run(seconds)
        said.append(world.said.lacks)
    assert said == [
        "the account may not: create pods/eviction",
        "whether the nodes account has its rights cannot be told: it is away",
        "",
        "",
    ]
    assert asked == [1.0, 31.0, 61.0, 361.0]


def test_pods_are_sorted_by_what_may_become_of_them() -> None:
    pods = [*PODS, pod("gone", "", leaving=True), pod("job", "Job", over=True)]
    found = sorted_out(drain("n-1", "1"), pods)
    assert [one.name for one in found.evict] == ["a", "b"]
    assert [one.name for one in found.left] == ["a", "b", "gone"]


def test_a_node_without_our_label_is_not_drained() -> None:
    world = World(*PODS)
    world.order()
    world.alter(labels={})
    world.run(60)
    assert (world.evicted, world.value()) == ([], None)
    assert states(world) == ("waiting", "its Node has not the label netboot.dev/managed-by=netboot")


def test_what_somebody_has_taken_into_their_own_hands_is_not_put_back() -> None:
    node = World().node_
    assert node is not None
    drained = node._replace(taints=tainted(node, "Draining"))
    assert undone(drained) == Write((FOREIGN,))
    assert undone(drained._replace(annotations={"netboot.dev/gate": "manual"})) is None


def test_where_it_cannot_be_told_what_was_ordered_elsewhere_nothing_is_begun_and_that_is_said() -> None:
    world, why = World(*PODS), "what other replicas ordered was read 400 s ago"
    world.drainer.untold = lambda: why
    world.order("reboot")
    with pytest.raises(CannotTellError, match=f"^orders wait: {why}$"):
        world.drainer.step()
    assert (world.said.problem, world.said.leads) == (f"orders wait: {why}", True)
    assert (world.value(), world.evicted) == (None, [])
    why = ""
    world.run(20)
    assert sorted(world.evicted) == ["a", "b"]
    evicted, why = list(world.evicted), "again"
    world.drains.finish(world.last().id, "taken-off", "", world.now_ms())
    with pytest.raises(CannotTellError):
        world.drainer.step()
    assert world.value() is not None, "whether nobody wants it drained cannot be told either"
    assert world.evicted == evicted


def test_a_taint_by_an_order_that_does_not_come_to_be_known_here_is_taken_off() -> None:
    """As of a leader whose disk is new, where its object was deleted meanwhile."""
    world, why = World(*PODS), ""
    world.order()
    world.drainer.given = lambda machine: {one.id for one in world.drains.of(machine, 9)}
    world.drainer.untold = lambda: why
    world.run(20)
    world.drains = world.drains.__class__()
    world.drainer.orders = world.drains.standing
    unknown = "n-1 is being drained by an order that this replica does not have"
    for _ in range(2):
        with pytest.raises(CannotTellError) as caught:
            world.drainer.step()
        assert str(caught.value) == f"{unknown}: unless it comes to know it, that ends in five minutes"
        world.seconds += UNKNOWN_SECONDS - 1
        why = "" if why else "read 400 s ago"
        with pytest.raises(CannotTellError):
            world.drainer.step()
        why, world.seconds = "", world.seconds - UNKNOWN_SECONDS + 2
    world.seconds += UNKNOWN_SECONDS
    world.drainer.step()
    assert world.value() is None


def test_among_replicas_a_reboot_is_over_with_a_boot_that_is_known_to_be_later_and_not_with_another() -> None:
    """The order is of a boot of which another replica was told."""
    world = World(*PODS)
    world.drainer.boots = ProvenBoots(world.states, several=True)
    first, second, third = (boot_id("n-1", number) for number in (1, 2, 3))
    world.drains.order(drain("n-1", "1", "reboot", boot=second))
    world.run(20)
    words = f"whether its boot {first} came after {second}, that of the order, is not known here"
    assert (states(world), world.evicted, world.value()) == (("waiting", words), [], None)
    for boot in (second, third):
        world.boot += 1
        world.register()
        world.pods_ = {}
        world.deaf = True
        world.run(5)
        assert world.last().end == (None if boot == second else "rebooted")
    assert world.last().words == f"its boot is {third} now"


def test_among_replicas_a_reboot_of_a_boot_that_never_becomes_known_is_undone_by_its_deadline() -> None:
    world = World(*PODS)
    world.drainer.boots = ProvenBoots(world.states, several=True)
    world.drains.order(drain("n-1", "1", "reboot", boot=boot_id("n-1", 2), deadline_ms=START + MINUTE))
    world.run(59)
    assert world.last().end is None
    world.run(20 * 60)
    assert (world.last().end, world.evicted) == ("undone", [])


def test_an_order_that_cannot_be_ended_keeps_no_other_and_none_is_tried_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, ended, seconds = World(), list[str](), 0.0

    class Store(MemoryDrains):
        def finish(self, drain: str, end: End, words: str, now_ms: int) -> Drain | None:
            nonlocal seconds
            seconds += 9
            ended.append(drain)
            if drain == "1":
                raise ClusterUnavailableError("order/a: it is away")
            return super().finish(drain, end, words, now_ms)

    store = Store()
    over: list[tuple[str, End, str]] = []
    for number in range(1, 5):
        store.order(drain(f"n-{number}", str(number)))
        over.append((str(number), "undone", "late"))
    with (
        monkeypatch.context() as in_turn,
        pytest.raises(ClusterUnavailableError, match=r"^order/a: it is away$"),
    ):
        in_turn.setattr("random.shuffle", lambda _turns: None)
        finish(store, over, world.now_ms(), lambda: seconds)
    assert len(ended) == 3, "and no more within its time"
    for _ in range(50):  # whichever comes first: none is left out for ever
        if [each.id for each in store.standing()] == ["1"]:
            break
        with pytest.raises(CannotTellError):
            finish(store, over, world.now_ms(), lambda: seconds)
    assert [each.id for each in store.standing()] == ["1"]
    with pytest.raises(CannotTellError, match=r"^orders take long to end, and go on with the next look$"):
        finish(store, over[1:] * 3, world.now_ms(), lambda: seconds)


def test_orders_of_machines_that_left_are_ended() -> None:
    store = MemoryDrains()
    store.order(drain("n-1", "1"))
    assert released(store, lambda names: dict.fromkeys(names, "it left")) == [("1", "undone", "it left")]
    assert released(MemoryDrains(), broken) == []


def broken(_names: Sequence[str]) -> Mapping[str, str]:
    raise AssertionError


def test_what_keeps_one_reason_to_end_orders_from_being_told_keeps_no_other() -> None:
    store, world, steps = MemoryDrains(), World(), list[int]()

    class Rollouts:
        def step(self) -> None:
            steps.append(1)

        def status(self) -> RolloutsStatus:
            return RolloutsStatus(at_ms=START, rollouts=())

    def cannot(_names: object) -> Mapping[str, str]:
        raise CannotTellError("conditions.db cannot be read")

    for number in (1, 2):
        store.order(drain(f"n-{number}", str(number), "reboot", owner="remedy/1"))
    states = {
        f"n-{number}": State(id=str(number), state=state, words="w", since_ms=START)
        for number, state in ((1, "rebooted"), (2, "drained"))
    }
    said = DrainsStatus(at_ms=START, drains=states)
    loop = AndDrains(Rollouts(), store, lambda: [said], cannot, lambda orders: dict.fromkeys(orders, "no"), world)
    loop.step()
    assert [one.end for number in (1, 2) for one in store.of(f"n-{number}", 1)] == ["rebooted", "withdrawn"]
    assert (loop.status().problem, steps) == ("conditions.db cannot be read", [1])
    loop.step()
    assert (loop.status().problem, steps) == ("", [1, 1]), "nothing stands any more"
