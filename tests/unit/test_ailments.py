"""Which machines are not well by what may be acted on: no report and no claim makes one so, and none hides it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.controllers.nodes.observed import ObservedFile
from netboot.lifecycle.ailments import Ailing
from netboot.lifecycle.conditions import Ailment, Judged
from netboot.lifecycle.judge import Verdict, judge
from netboot.lifecycle.known import Known, Node, NodeWord
from netboot.lifecycle.phases import OBSERVED_PHASES, Phase
from netboot.lifecycle.reached import ORDER
from netboot.lifecycle.reasons import Reason
from netboot.lifecycle.state import Checked, MachineState
from netboot.lifecycle.trace import Trace, apply
from netboot.lifecycle.transitions import Act, Mark
from tests.lifecycle_world import World, declared
from tests.records import START, boot_id, checked, event, script
from tests.unit.test_lifecycle_loop import Said

HOUR = 3_600_000
BOOT = boot_id("gpu-001", 1)
UP = (Phase.BOOTED, Phase.ATTESTED, Phase.NODE_REGISTERED, Phase.READY)
FAILED = NodeWord(failed=BOOT)


def boot(*phases: Phase, number: int = 1) -> Trace:
    trace = apply(None, script("gpu-001", number))
    for phase in phases:
        trace = apply(trace, event("gpu-001", number, phase))
    return trace


def known(current: Trace | None, node: Node | None = None, **more: Any) -> Known:
    state = MachineState(machine="gpu-001", current=current, **more.pop("state", {}))
    return Known(more.pop("declared", declared("gpu-001")), state, node=node, **more)


def shows(ms: int) -> dict[str, int]:
    return dict.fromkeys(declared("gpu-001").places, ms)


def after(of: Known, ms: int, before: Judged | None = None) -> Verdict:
    first = judge(of, before, shows(0), START)
    return judge(of, first.judged, shows(ms), START + ms)


def found(of: Known, ms: int = 4 * HOUR) -> Reason | None:
    ailment = after(of, ms).judged.ailment
    return ailment.reason if ailment is not None else None


def test_a_node_of_the_proven_boot_that_is_not_ready_by_the_deadline() -> None:
    of = known(boot(*UP), Node.NOT_READY)
    assert after(of, 20 * 60_000 - 1).judged.ailment is None
    verdict = after(of, 20 * 60_000)
    message = f"boot {BOOT}: its Node has not been Ready for 20m (default)"
    ailment = Ailment(reason=Reason.NODE_NOT_READY, boot=BOOT, since_ms=START + 20 * 60_000, message=message)
    assert verdict.judged.ailment == ailment
    assert verdict.ailing == Ailing(ailment, of.declared, ready=False, holder="")
    assert found(known(boot(*UP), None)) is None, "a Node that is gone is nobody's to judge by"
    assert found(known(boot(*UP), Node.IN_SERVICE)) is None


def test_since_when_is_of_that_boot() -> None:
    first = judge(known(boot(*UP), Node.IN_SERVICE, word=FAILED), None, shows(0), START).judged
    second = NodeWord(failed=boot_id("gpu-001", 2))
    for of, since in (
        (known(boot(*UP), Node.IN_SERVICE, word=FAILED), START),
        (known(boot(*UP, number=2), Node.IN_SERVICE, word=second), START + HOUR),
    ):
        ailment = judge(of, first, shows(HOUR), START + HOUR).judged.ailment
        assert ailment is not None
        assert (ailment.reason, ailment.since_ms) == (Reason.CHECKS_FAILED, since)


@pytest.mark.parametrize("phase", sorted(OBSERVED_PHASES - {Phase.READY}))
def test_a_boot_that_proved_itself_and_comes_no_further(phase: Phase) -> None:
    of = known(boot(*ORDER[1 : ORDER.index(phase) + 1]))
    limit = of.declared.deadlines[phase]
    assert after(of, limit.seconds * 1000 - 1).judged.ailment is None
    ailment = after(of, limit.seconds * 1000).judged.ailment
    assert ailment is not None
    assert ailment.reason is Reason.STUCK
    assert ailment.message.startswith(f"boot {BOOT} reached {phase} at 2023-11-14T22:13:21Z and nothing beyond in ")


def test_a_node_that_says_under_its_boots_certificate_that_a_check_failed() -> None:
    of = known(boot(*UP), Node.GATED, word=NodeWord(failed=BOOT, holder="kured"))
    assert after(of, 0).judged.ailment == Ailment(
        reason=Reason.CHECKS_FAILED,
        boot=BOOT,
        since_ms=START,
        message=f"boot {BOOT}: its node says, under a certificate of this boot, that a check failed",
    )
    assert after(of, 0).ailing == Ailing(after(of, 0).judged.ailment, of.declared, ready=True, holder="kured")  # type: ignore[arg-type]
    assert found(known(boot(*UP), Node.GATED, word=NodeWord(failed=boot_id("gpu-001", 2)))) is None
    assert found(known(boot(*UP), Node.NOT_READY, word=FAILED)) is Reason.NODE_NOT_READY


def test_since_when_goes_on_while_it_is_the_same() -> None:
    of = known(boot(*UP), Node.GATED, word=FAILED)
    first = judge(of, None, shows(0), START)
    later = judge(of, first.judged, shows(HOUR), START + HOUR)
    assert later.judged == first.judged
    gone = judge(known(boot(*UP), Node.NOT_READY), later.judged, shows(HOUR), START + HOUR)
    assert gone.judged.ailment is None
    again = judge(of, gone.judged, shows(HOUR), START + 2 * HOUR).judged.ailment
    assert again is not None
    assert again.since_ms == START + 2 * HOUR


def test_of_who_is_retired_disabled_or_joins_nothing_nothing_is_awaited() -> None:
    lost = known(boot(*UP), Node.NOT_READY)
    assert found(lost) is Reason.NODE_NOT_READY
    for changed in ({"enabled": False}, {"joins": False}):
        assert found(known(boot(*UP), Node.NOT_READY, declared=declared("gpu-001", **changed))) is None
    assert found(known(boot(*UP), Node.NOT_READY, marks=frozenset({Mark.RETIRED}))) is None


CLAIMS = st.lists(st.sampled_from([phase for phase in Phase if phase not in OBSERVED_PHASES]), max_size=8)
NODES = st.sampled_from([None, *Node])


@given(CLAIMS, CLAIMS, NODES, st.sampled_from([None, "fail", "pass"]), st.sampled_from([0, HOUR, 400 * HOUR]))
def test_no_report_makes_a_machine_unwell(
    phases: list[Phase], others: list[Phase], node: Node | None, health: str | None, ms: int
) -> None:
    more = {"checked": Checked.model_validate({"status": health, "at_ms": START})} if health else {}
    state = {"pending": boot(*others, number=2), **more}
    assert found(known(boot(*phases), node, state=state), ms) is None
    assert found(known(None, node, claim=boot(*phases), state=state), ms) is None


@given(CLAIMS, CLAIMS, st.sampled_from([Phase.ATTESTED, Phase.READY]))
def test_no_report_hides_one_either(phases: list[Phase], others: list[Phase], upto: Phase) -> None:
    """Whoever knows the id of the boot says that it failed, or that another began."""
    observed = [phase for phase in ORDER[1 : ORDER.index(upto) + 1] if phase in OBSERVED_PHASES]
    quiet, loud = boot(*observed), boot(*observed, *phases)
    node = Node.NOT_READY if upto is Phase.READY else None
    state = {"pending": boot(*others, number=2)}
    told = after(known(loud, node, state=state), 4 * HOUR).judged.ailment
    assert told == after(known(quiet, node), 4 * HOUR).judged.ailment
    assert told is not None


def test_the_loop_tells_who_is_not_well_once_all_were_judged() -> None:
    world = World("gpu-001", "gpu-002")
    for name in ("gpu-001", "gpu-002"):
        world.take(script(name, 1), *(event(name, 1, phase) for phase in UP), checked(name, 1, "fail"))
    world.nodes = {"default": dict.fromkeys(("gpu-001", "gpu-002"), Node.IN_SERVICE)}
    assert world.loop.ailing() is None
    world.judge()
    assert world.loop.ailing() == {}
    world.words = {"default": {"gpu-002": NodeWord(failed=boot_id("gpu-002", 1))}}
    world.judge()
    ailing = world.loop.ailing()
    assert ailing is not None
    assert {name: each.ailment.reason for name, each in ailing.items()} == {"gpu-002": Reason.CHECKS_FAILED}
    world.start()  # what was found outlives the process, and since when
    world.now_ms_ += HOUR
    world.judge()
    assert world.loop.ailing() == ailing
    world.acts = {"gpu-002": (Act.RETIRE,)}
    world.judge()
    assert world.loop.ailing() == {}
    world.acts = {}
    world.judge()
    world.declared = {"gpu-001": declared("gpu-001")}
    world.judge()
    assert (world.loop.ailing(), list(world.loop.declared())) == ({}, ["gpu-001"])


def test_what_else_is_to_be_seen_on_nodes_comes_with_them(tmp_path: Any) -> None:
    said = Said(tmp_path)
    file = ObservedFile(said.folder, "default")
    words = {"a": NodeWord(failed=BOOT), "b": NodeWord(holder="kured reboots it")}
    file.write({"a": Node.GATED, "b": Node.IN_SERVICE}, words)
    assert said.eyes.look(1).words == {"default": words}
    file.write({"a": Node.GATED, "b": Node.IN_SERVICE}, {})
    assert said.eyes.look(1).words == {"default": {}}
