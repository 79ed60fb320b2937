"""A machine that begins one boot after another and is never where it should be; and whose word that is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.lifecycle.judge import judge
from netboot.lifecycle.known import MOST_COUNTED, Known, Node, counted
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import BOOTS_KEPT, CLAIMS_KEPT, MachineState, Standing
from netboot.lifecycle.trace import Trace, apply
from netboot.lifecycle.transitions import Act
from netboot.machines.boot_limit import DEFAULT, MOST, BootLimit
from tests.lifecycle_world import World, declared
from tests.records import boot_id, event, script

JOIN = (Phase.ATTESTED, Phase.NODE_REGISTERED, Phase.READY)
MACHINE = "gpu-001"


def began(world: World, number: int, *phases: Phase, detail: str = "") -> None:
    """Its `number`-th boot, four minutes after the one before, came so far."""
    told = [event(MACHINE, number, phase, detail=detail) for phase in phases]
    world.take(script(MACHINE, number), *told)
    world.judge()


def message(world: World, kind: str = "Booted") -> str:
    return next(each.message for each in world.kept.conditions()[MACHINE] if each.type == kind)


def of_a_class(limit: int) -> dict[str, Any]:
    return {MACHINE: declared(MACHINE, boot_limit=BootLimit(limit, "class hgx"))}


def test_one_that_panics_in_its_initrd_and_boots_again_every_four_minutes_is_in_a_loop_and_recovers() -> None:
    world = World()
    for number in range(240, 240 * 6, 240):
        began(world, number, Phase.INITRD_STARTED)
        assert world.found() == ("False", "Booting")
        world.pass_seconds(240)
    began(world, 240 * 6, Phase.INITRD_STARTED, Phase.FAILED, detail="no link")
    assert world.found() == ("False", "BootLoop")
    assert world.found("Joined") == ("False", "BootLoop")
    assert message(world) == message(world, "Joined")
    assert message(world) == (
        "6 boots by their own word, in 20m, and none was Ready: more than 5 (default) are a loop; the furthest "
        f"phase of all is InitrdStarted, the newest is boot {boot_id(MACHINE, 1440)}; last heard: Failed at "
        "2023-11-14T22:37:20Z, 'no link'"
    )
    assert ("Booted", "BootLoop", 1) in world.loop.status().conditions
    began(world, 240 * 7, Phase.SWITCHED, *JOIN)
    world.nodes = {"default": {MACHINE: Node.IN_SERVICE}}
    world.judge()
    assert (world.found(), world.found("Joined")) == (("True", "Booted"), ("True", "Joined"))
    began(world, 240 * 8, Phase.INITRD_STARTED)
    world.nodes = {"default": {MACHINE: Node.NOT_READY}}
    world.pass_seconds(1_201)
    assert world.found() == ("False", "Stuck"), "boots of before it was Ready count no more"


def test_whoever_hangs_in_the_end_is_stuck_and_then_the_loop_goes_on() -> None:
    world = World()
    for number in range(1, 8):
        began(world, number, Phase.INITRD_STARTED)
    assert world.found() == ("False", "BootLoop")
    world.pass_seconds(901)
    assert world.found() == ("False", "Stuck")
    began(world, 8, Phase.INITRD_STARTED)
    assert world.found() == ("False", "BootLoop")


@pytest.mark.parametrize(
    ("phases", "word", "kind"),
    [
        ((), "scripts that were served in its name, to whoever asked", "Booted"),
        ((Phase.KERNEL_FETCHED,), "scripts that were served in its name, to whoever asked", "Booted"),
        ((Phase.INITRD_STARTED,), "boots by their own word", "Booted"),
        ((Phase.BOOTED, Phase.ATTESTED), "boots that proved themselves", "Joined"),
    ],
)
def test_the_sentence_says_by_whose_word_they_are_counted(phases: tuple[Phase, ...], word: str, kind: str) -> None:
    world = World()
    for number in range(1, 7):
        began(world, number, *phases)
    assert world.found(kind) == ("False", "BootLoop")
    furthest = phases[-1] if phases else Phase.SCRIPT_SERVED
    count = f"6 {word}, in 1m, and none was Ready: more than 5 (default) are a loop"
    assert message(world, kind).startswith(f"{count}; the furthest phase of all is {furthest},")


def test_no_script_that_is_served_and_no_report_adds_to_a_machine_that_is_ready_or_on_its_way_by_proof() -> None:
    """Anybody on the wire has them: of a Ready machine they alter nothing, and to boots that proved themselves they add
    none."""
    world = World()
    began(world, 1, Phase.SWITCHED, *JOIN)
    world.nodes = {"default": {MACHINE: Node.IN_SERVICE}}
    world.judge()
    calm = world.kept.conditions()[MACHINE]
    for number in range(2, 30):
        began(world, number, *([Phase.INITRD_STARTED] if number % 2 else []))
    assert [(each.type, each.status, each.reason) for each in world.kept.conditions()[MACHINE]] == [
        (each.type, each.status, each.reason) for each in calm
    ]
    began(world, 30, Phase.BOOTED, Phase.ATTESTED)
    world.nodes = {"default": {}}
    world.judge()
    assert (world.found(), world.found("Joined")) == (("True", "Booted"), ("False", "Joining"))


def test_no_number_of_reports_hides_a_loop_of_boots_that_proved_themselves() -> None:
    world = World()
    for number in range(1, 7):
        began(world, number, Phase.BOOTED, Phase.ATTESTED)
    for number in range(7, 7 + 2 * BOOTS_KEPT):
        began(world, number, *([Phase.INITRD_STARTED] if number % 2 else []))
    assert world.found("Joined") == ("False", "BootLoop")
    assert message(world, "Joined").startswith("6 boots that proved themselves, in 1m")


def test_no_more_are_counted_than_are_kept_of_claims_and_every_limit_can_be_passed() -> None:
    assert MOST < MOST_COUNTED == CLAIMS_KEPT
    world = World()
    for number in range(1, 40):
        began(world, number)
    assert message(world).startswith("at least 16 scripts that were served in its name, to whoever asked, in 1m, and")


@pytest.mark.parametrize(("limit", "expected"), [(1, "BootLoop"), (2, "Booting"), (0, "Booting")])
def test_a_class_says_how_many_are_too_many(limit: int, expected: str) -> None:
    world = World()
    world.declared = of_a_class(limit)
    began(world, 1, Phase.INITRD_STARTED)
    assert world.found() == ("False", "Booting")
    began(world, 2, Phase.INITRD_STARTED)
    assert world.found() == ("False", expected)
    if limit == 1:
        assert "more than 1 (class hgx) are a loop" in message(world)


def test_one_that_joins_nothing_is_where_it_should_be_when_it_is_up() -> None:
    world = World()
    world.declared = {MACHINE: declared(MACHINE, joins=False)}
    for number in range(1, 7):
        began(world, number, Phase.BOOTED)
    began(world, 7, Phase.SWITCHED)
    assert world.found() == ("False", "Booting")
    for number in range(8, 13):
        began(world, number, Phase.SWITCHED)
    assert world.found() == ("False", "BootLoop")
    assert ", and none was up: more than 5 (default)" in message(world)
    began(world, 13, Phase.BOOTED)
    assert world.found() == ("True", "Booted")


def test_of_a_retired_machine_nothing_is_awaited() -> None:
    world = World()
    world.acts = {MACHINE: (Act.RETIRE,)}
    began(world, 1, Phase.SWITCHED, *JOIN)
    world.nodes = {"default": {MACHINE: Node.NOT_READY}}
    world.pass_seconds(1_205)
    assert (world.found(), world.found("Joined")) == (("Unknown", "Retired"), ("Unknown", "Retired"))
    assert message(world) == (
        f"it is retired, and nothing is awaited of it; boot {boot_id(MACHINE, 1)}: its Node has not been Ready for 20m "
        "(default); last heard: Ready at 2023-11-14T22:13:21Z"
    )
    began(world, 2, Phase.BOOTED, Phase.JOINING)
    world.pass_seconds(905)
    assert world.found("Joined") == ("Unknown", "Retired")
    assert world.loop.status().overdue == {}
    for number in range(3, 12):
        began(world, number, Phase.INITRD_STARTED)
    assert world.found() == ("False", "Booting")
    world.acts = {}
    world.judge()
    assert world.found() == ("False", "BootLoop")


# -- a boot that only reports, after one that proved itself and was never Ready ---------------------------------------


def test_a_proven_boot_that_is_stuck_and_a_newer_one_that_only_reports_are_both_said() -> None:
    world = World()
    began(world, 1, Phase.BOOTED, Phase.ATTESTED, Phase.TOKEN_ISSUED)
    world.pass_seconds(300)
    began(world, 2, Phase.INITRD_STARTED)
    assert world.found("Joined") == ("False", "Joining")
    world.pass_seconds(305)
    assert world.found("Joined") == ("False", "Stuck")
    stuck = (
        f"boot {boot_id(MACHINE, 1)} reached TokenIssued at 2023-11-14T22:13:21Z and nothing beyond in 10m (default): "
        "it has its token, and no certificate was approved: its kubelet does not ask, or is refused; last heard: "
        f"TokenIssued at 2023-11-14T22:13:21Z; since then boot {boot_id(MACHINE, 2)}, which only reports, reached "
        "InitrdStarted"
    )
    assert message(world, "Joined") == f"{stuck}; its next phase may take 15m (default)"
    world.pass_seconds(600)
    assert message(world, "Joined") == (
        f"{stuck} and nothing beyond in 15m (default): its initrd runs and has not fetched the root image: the "
        "network, or every origin of it"
    )
    assert world.loop.status().overdue == {"TokenIssued": 1}
    world.take(event(MACHINE, 2, Phase.FAILED, 700, "no link"))
    world.judge()
    assert message(world, "Joined").endswith(", which only reports, says that it failed after InitrdStarted: no link")
    world.take(event(MACHINE, 2, Phase.ATTESTED, 900))
    world.judge()
    assert world.found("Joined") == ("False", "Joining")


def test_a_proven_boot_that_failed_says_the_newer_one_too() -> None:
    world = World()
    began(world, 1, Phase.BOOTED, Phase.ATTESTED, Phase.FAILED, detail="no token")
    began(world, 2, Phase.INITRD_STARTED)
    assert world.found("Joined") == ("False", "Failed")
    assert message(world, "Joined").endswith(
        f": no token; since then boot {boot_id(MACHINE, 2)}, which only reports, reached InitrdStarted; its next phase "
        "may take 15m (default)"
    )


# -- the rule of what is counted --------------------------------------------------------------------------------------


def boot(number: int, *phases: Phase) -> Trace:
    trace = apply(None, script(MACHINE, number))
    for phase in phases:
        trace = apply(trace, event(MACHINE, number, phase))
    return trace


@pytest.mark.parametrize(
    ("current", "pending", "claim", "node", "expected"),
    [
        (None, None, None, None, None),
        (None, None, boot(1), None, Standing.CLAIMED),
        (boot(1, Phase.INITRD_STARTED), None, boot(2), None, Standing.REPORTED),
        (boot(1, *JOIN), None, None, Node.NOT_READY, None),
        (boot(1, *JOIN), None, boot(2), Node.NOT_READY, Standing.CLAIMED),
        (boot(1, *JOIN), None, boot(1, *JOIN), Node.NOT_READY, None),
        (boot(1, *JOIN), boot(2, Phase.SWITCHED), boot(3), Node.NOT_READY, Standing.REPORTED),
        (boot(1, *JOIN), boot(2, Phase.SWITCHED), boot(3), Node.GATED, None),
        (boot(1, Phase.ATTESTED), boot(2, Phase.SWITCHED), boot(3), None, Standing.PROVEN),
    ],
)
def test_boots_count_of_the_standing_of_the_one_that_explains(
    current: Trace | None, pending: Trace | None, claim: Trace | None, node: Node | None, expected: Standing | None
) -> None:
    state = MachineState(machine=MACHINE, current=current, pending=pending)
    assert counted(declared(MACHINE), state, claim, node) is expected
    assert counted(declared(MACHINE, boot_limit=BootLimit(0, "class hgx")), state, claim, node) is None


@given(st.integers(0, MOST_COUNTED), st.sampled_from([Phase.INITRD_STARTED, Phase.ATTESTED, Phase.READY]))
def test_a_loop_is_told_of_that_many_boots_and_never_of_one_that_is_ready(many: int, phase: Phase) -> None:
    tries = [boot(number, Phase.INITRD_STARTED, phase) for number in range(many, 0, -1)]
    state = MachineState(machine=MACHINE, current=tries[0] if tries else None)
    verdict = judge(Known(declared(MACHINE), state, tries=tuple(tries)), None, {}, 0)
    told = {each.reason.value for each in verdict.judged.conditions}
    assert ("BootLoop" in told) is (many > DEFAULT and phase is not Phase.READY)
