"""What the inventory says of endorsement keys, and what that makes of operators' orders. Pure."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from netboot.join.enrolment import Approve, Import, OpenWindow, Order, Record, Reinstate, Replace, short
from netboot.join.errors import NotShownError, RefusedError
from netboot.machines.values import Inventory


class Pins(NamedTuple):
    """EKs of an inventory, both ways round."""

    inventory: Inventory | None
    by_ek: Mapping[str, str]
    by_machine: Mapping[str, str]
    by_tpm: frozenset[str]
    """Machines that may prove themselves by nothing less."""


NO_PINS = Pins(None, {}, {}, frozenset())


def pins_of(inventory: Inventory) -> Pins:
    """The pins of an inventory."""
    by_machine = {
        machine.name: machine.match.ek_sha256 for machine in inventory.machines if machine.match.ek_sha256 is not None
    }
    by_tpm = frozenset(machine.name for machine in inventory.machines if machine.identity == "tpm")
    return Pins(inventory, {ek: name for name, ek in by_machine.items()}, by_machine, by_tpm)


def permitted(pins: Pins, name: str, order: Order, record: Callable[[str], Record]) -> Order | None:
    """The order for the store; None: the inventory has carried it out already. `record`: what is on record of one.

    Raises:
        RefusedError: with the rule and the remedy. NotShownError: what was shown to the operator is not so any more.
    """
    if isinstance(order, OpenWindow) and order.kind == "boot" and name in pins.by_tpm:
        raise RefusedError(
            f"{name} proves itself by its TPM; to let it join without one, set `identity: nonce` in the inventory"
        )
    if isinstance(order, Approve):
        return _approval(pins, record(name), order)
    if isinstance(order, Import):
        _check_owner(pins, name, order.ek_sha256)
    pinned = pins.by_machine.get(name)
    if pinned is None:
        return order
    if isinstance(order, Import) and order.ek_sha256 == pinned:
        return None
    if isinstance(order, OpenWindow | Import | Replace):
        raise RefusedError(f"the inventory pins the TPM of {name} (EK {short(pinned)}): change match.ek_sha256 there")
    return order


def _approval(pins: Pins, record: Record, order: Approve) -> Order:
    """Approve the key that was shown, or bring a retired machine back, which approves nothing."""
    name, pinned = record.machine, pins.by_machine.get(record.machine)
    shown = pinned or record.ek_sha256
    if order.ek_sha256 != shown or order.revision not in (None, record.revision):
        raise NotShownError(name, short(shown))
    if record.state == "retired":
        return Reinstate(record.revision)
    if pinned is not None:
        raise RefusedError(f"{name} is approved by the inventory already (EK {short(pinned)})")
    if order.ek_sha256 is not None:
        _check_owner(pins, name, order.ek_sha256)
    return order


def _check_owner(pins: Pins, name: str, ek_sha256: str) -> None:
    owner = pins.by_ek.get(ek_sha256, name)
    if owner != name:
        raise RefusedError(f"EK {short(ek_sha256)} is the TPM of {owner} by the inventory, not of {name}")
