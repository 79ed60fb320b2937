"""Machines that run something else than they would boot now: image, arguments, profile or class. Pure.

What a boot was served is by our own record of its script. Of boots that an older netboot served, arguments and class
are not known, and not compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from images.values.strict import Strict
from netboot.lifecycle.boot_facts import Script
from netboot.lifecycle.conditions import MachineCondition
from netboot.lifecycle.decided import arguments_digest
from netboot.lifecycle.published import View, image_of
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.state import MachineState
from netboot.lifecycle.trace import Trace
from netboot.machines.values import Machine

What = Literal["image", "arguments", "profile", "class"]


class Drift(Strict):
    """One thing in which a machine is not as it is declared. `since_ms`: since when it is known to be another, or when
    the boot began that is so."""

    machine: str
    what: What
    runs: str
    wanted: str
    why: str
    boot: str
    since_ms: int


class Drifts(Strict):
    """`machines`: how many were looked at; `untold`: of these what their boot was served is not known; `unknown`: those
    that may boot and of which no boot is known."""

    machines: int
    drift: tuple[Drift, ...]
    untold: tuple[str, ...]
    unknown: tuple[str, ...]


def drifts(
    view: View, states: Mapping[str, MachineState], conditions: Mapping[str, Sequence[MachineCondition]]
) -> Drifts:
    """Of every machine of which a boot is known."""
    found: list[Drift] = []
    untold, unknown, looked = [], [], 0
    for machine in view.snapshot.inventory.machines:
        state = states.get(machine.name)
        if state is None or state.current is None:
            unknown += [machine.name] if machine.enabled else []
            continue
        looked += 1
        if state.current.script is None:
            untold.append(machine.name)
            continue
        found += _of(view, machine, state.current, state.current.script, conditions.get(machine.name, ()))
    return Drifts(machines=looked, drift=tuple(found), untold=tuple(untold), unknown=tuple(unknown))


def _of(
    view: View, machine: Machine, boot: Trace, script: Script, conditions: Sequence[MachineCondition]
) -> Iterator[Drift]:
    wanted = image_of(view.snapshot, machine.name, view.profiles[machine.profile].channel)
    same_image = wanted == script.image
    if wanted is not None and not same_image:
        why, since = _by(view, machine, wanted), _since(boot, conditions)
        yield _drift(machine, boot, "image", script.image[:12], wanted[:12], why, since)
    if script.profile != machine.profile:
        why = f"the inventory says profile {machine.profile} now"
        yield _drift(machine, boot, "profile", script.profile, machine.profile, why)
    if script.arguments is None:
        return
    if script.class_name != machine.class_name:
        runs, now = script.class_name or "none", machine.class_name or "none"
        yield _drift(machine, boot, "class", runs, now, f"the inventory says class {now} now")
    image = view.snapshot.images.get(script.image)
    if same_image and image is not None:  # another image has arguments of its own
        words = view.kernel_arguments(machine, image)
        if arguments_digest(words) != script.arguments:
            why = f"its profile, class or image says others now: {' '.join(words) or 'none'}"
            yield _drift(machine, boot, "arguments", script.arguments, arguments_digest(words), why)


def _by(view: View, machine: Machine, wanted: str) -> str:
    channel, assigned = view.profiles[machine.profile].channel, view.snapshot.assigned.get(machine.name)
    image = view.snapshot.images.get(wanted)
    name = f"image {image.name} {wanted[:12]}" if image is not None else f"image {wanted[:12]}, which cannot be used"
    if assigned is None:
        return f"channel {channel} is {name} now"
    return f"rollout {assigned.rollout} of channel {channel} assigned {name}"


def _since(boot: Trace, conditions: Sequence[MachineCondition]) -> int:
    found = next((each for each in conditions if each.type is ConditionType.UP_TO_DATE), None)
    return found.since_ms if found is not None and found.reason is Reason.OTHER_IMAGE else boot.started_ms


def _drift(
    machine: Machine, boot: Trace, what: What, runs: str, wanted: str, why: str, since_ms: int | None = None
) -> Drift:
    since = boot.started_ms if since_ms is None else since_ms
    return Drift(machine=machine.name, what=what, runs=runs, wanted=wanted, why=why, boot=boot.boot, since_ms=since)
