"""Machines that are others by what is declared of them now: recognised by something else, or let in by another proof.

An inventory in which many are is no smaller accident, or attack, than one in which as many are gone.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from netboot.machines.values import Inventory, Machine


class Known(NamedTuple):
    """A machine as it is known. `by_profile`: what it is asked of PCRs is what its profile asks."""

    machine: Machine
    by_profile: bool


NONE: Mapping[str, Known] = {}


def known(inventory: Inventory) -> dict[str, Known]:
    """Its machines by their names."""
    policies = {profile.name: profile.pcrs or {} for profile in inventory.profiles}
    return {
        machine.name: Known(machine, machine.pcrs == policies.get(machine.profile)) for machine in inventory.machines
    }


def by_all_names(inventory: Inventory) -> dict[str, Known]:
    """Its machines by the names that they have and had."""
    machines = known(inventory).values()
    return {name: each for each in machines for name in (*each.machine.former_names, each.machine.name)}


def became_others(
    before: Inventory,
    after: Inventory,
    removed: Mapping[str, Known] | None = NONE,
    given_up: Mapping[str, Known] = NONE,
) -> Iterator[str]:
    """Names of machines of `after` that were there before, by whatever name, and are recognised otherwise (`match`),
    join at another level (`identity`, PCRs; below a TPM by other addresses), or as another Node.

    PCRs of a profile count where some are not asked any more: values are added there for each new image. `removed`:
    machines that went from `before` lately, and may be back; None: nobody can tell, and who is new may be one of them.
    `given_up`: names that machines had before and left lately, and whose these were: who has one now is another.
    """
    were, had = known(before), {**by_all_names(before), **given_up}
    for machine in known(after).values():
        names = machine.machine.name, *machine.machine.former_names
        was = next((were[name] for name in names if name in were), None)
        may_be = [name for name in (names if was is None else names[:1]) if name not in were]
        again = next((removed[name] for name in may_be if name in removed), None) if removed is not None else None
        left = next((had[name] for name in may_be if name in had), None)
        untold = removed is None and was is None
        if untold or any(each is not None and _others(each, machine) for each in (was, again, left)):
            yield machine.machine.name


def _others(was: Known, now: Known) -> bool:
    return _who(was.machine) != _who(now.machine) or _other_pcrs(was, now)


def _who(machine: Machine) -> tuple[object, ...]:
    match, node = machine.match, machine.node
    addresses = () if machine.identity == "tpm" else frozenset(node.addresses)
    named = "" if node.name in (None, machine.name) else node.name
    known_by = frozenset(match.macs), match.uuid, match.serial, match.ek_sha256
    return (*known_by, machine.identity, addresses, machine.cluster, named)


def _other_pcrs(was: Known, now: Known) -> bool:
    if was.by_profile and now.by_profile:
        return not was.machine.pcrs.keys() <= now.machine.pcrs.keys()
    return was.machine.pcrs != now.machine.pcrs
