"""What operators are shown, as values: the inventory, and what is known of its machines."""

import difflib
from collections.abc import Iterable, Mapping

from images.values.strict import Strict
from netboot.lifecycle.decide import Decision, decide_machine
from netboot.lifecycle.errors import NoSuchMachineError
from netboot.lifecycle.published import View
from netboot.lifecycle.state import Checked, Claims, MachineState
from netboot.lifecycle.trace import Trace
from netboot.machines.identity import parse_mac
from netboot.machines.values import Machine


class MachineView(Strict):
    """A machine of the inventory and what is known of it."""

    machine: Machine
    current: Trace | None = None
    """Its current boot; None: it has not reported anything yet."""
    pending: Trace | None = None
    """A newer one that has not proven itself."""
    claims: Claims = Claims()
    checked: Checked | None = None
    """How the current boot's health checks turned out."""


class MachineDetail(Strict):
    """The same, with what it would be served now and its latest boots."""

    machine: Machine
    current: Trace | None = None
    pending: Trace | None = None
    claims: Claims = Claims()
    decision: Decision
    boots: tuple[Trace, ...] = ()


def machine_views(machines: Iterable[Machine], states: Mapping[str, MachineState]) -> list[MachineView]:
    """These machines, with what is known of them."""
    empty = MachineState(machine="")
    views = []
    for machine in machines:
        state = states.get(machine.name, empty)
        known = {"current": state.current, "pending": state.pending, "claims": state.claims, "checked": state.checked}
        views.append(MachineView(machine=machine, **known))
    return views


def machine_detail(view: View, name: str, state: MachineState | None, boots: tuple[Trace, ...]) -> MachineDetail:
    """One machine.

    Raises:
        NoSuchMachineError: naming the nearest that there is.
    """
    machine = machine_named(view, name)
    known = state or MachineState(machine=name)
    return MachineDetail(
        machine=machine,
        current=known.current,
        pending=known.pending,
        claims=known.claims,
        decision=decide_machine(view, machine),
        boots=boots,
    )


def machine_named(view: View, name: str) -> Machine:
    """The machine of that name.

    Raises:
        NoSuchMachineError: naming what it is called now, or the nearest that there is.
    """
    machine = view.index.named(name)
    if machine is None and (renamed := view.index.formerly(name)) is not None:
        raise NoSuchMachineError(f"the machine {name} was renamed: it is {renamed.name} now")
    if machine is None and (words := _by_mac(view, name)):
        raise NoSuchMachineError(words)
    if machine is None:
        near = difflib.get_close_matches(name, [declared.name for declared in view.snapshot.inventory.machines], n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {len(view.index)} machines"
        raise NoSuchMachineError(f"the inventory has no machine of that name; {hint}")
    return machine


def _by_mac(view: View, name: str) -> str:
    """Where a MAC stands in the place of a name: whose it is, or how it comes to have one; empty: it is none."""
    try:
        mac = parse_mac(name)
    except ValueError:
        return ""
    if (owner := view.index.by_mac(mac)) is not None:
        return f"no machine is named {mac}; it is a MAC of {owner.name}"
    return f"no machine has the name or MAC {mac}; `netboot machine declare {mac}` declares one that asked"


def pcr_policy(machine: Machine) -> str:
    """The policy in words; its absence is said, not left out."""
    if not machine.pcrs:
        return "no PCR policy"
    return ", ".join(
        f"PCR {index}: {len(values)} allowed" for index, values in sorted(machine.pcrs.items(), key=_number)
    )


def _number(item: tuple[str, object]) -> int:
    return int(item[0])
