"""Machines that are others by what is declared of them now: recognised by something else, or let in by another proof.

An inventory in which many are is no smaller accident, or attack, than one in which as many are gone.
"""

from collections.abc import Iterator, Mapping

from netboot.machines.values import Inventory, Machine, PcrPolicy

_Policies = Mapping[str, PcrPolicy]


def became_others(before: Inventory, after: Inventory) -> Iterator[str]:
    """Names of machines of `after` that were there before, by whatever name, and are recognised otherwise (`match`),
    join at another level (`identity`, PCRs; below a TPM by other addresses), or as another Node.

    PCRs of a profile count where some are not asked any more: values are added there for each new image.
    """
    were = {machine.name: machine for machine in before.machines}
    policies = _policies(before), _policies(after)
    for machine in after.machines:
        names = machine.name, *machine.former_names
        was = next((were[name] for name in names if name in were), None)
        if was is not None and (_who(was) != _who(machine) or _other_pcrs(was, machine, *policies)):
            yield machine.name


def _policies(inventory: Inventory) -> _Policies:
    return {profile.name: profile.pcrs or {} for profile in inventory.profiles}


def _who(machine: Machine) -> tuple[object, ...]:
    match, node = machine.match, machine.node
    addresses = () if machine.identity == "tpm" else frozenset(node.addresses)
    named = "" if node.name in (None, machine.name) else node.name
    known_by = frozenset(match.macs), match.uuid, match.serial, match.ek_sha256
    return (*known_by, machine.identity, addresses, machine.cluster, named)


def _other_pcrs(was: Machine, machine: Machine, before: _Policies, after: _Policies) -> bool:
    if was.pcrs == before.get(was.profile) and machine.pcrs == after.get(machine.profile):
        return not was.pcrs.keys() <= machine.pcrs.keys()
    return was.pcrs != machine.pcrs
