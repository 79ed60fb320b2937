"""Which machine this is, and on which assurance level it stands: `tpm` > `nonce` > `address`.

Identity is the pinned endorsement key. What a machine calls itself (MAC, UUID, serial) are hints: they tell an operator
whom a stranger claims to be, and on the lower assurance levels they are all that there is.
"""

from typing import NamedTuple

from netboot.join.errors import PendingError, RefusedError, UnknownMachineError
from netboot.join.messages import Identifiers
from netboot.join.ports import Enrolment, Enrolments
from netboot.lifecycle.published import View
from netboot.machines.values import Machine


class Identified(NamedTuple):
    """A machine of the inventory and what is on record of it.

    `enrols`: the id of its open enrolment window, for a TPM that is not on record: it is no more than a candidate, gets
    no token, and becomes pending once it has proven itself.
    """

    machine: Machine
    enrolment: Enrolment
    enrols: str = ""


def by_tpm(view: View, enrolments: Enrolments, ek_sha256: str, hints: Identifiers, now_ms: int) -> Identified:
    """The machine to which this EK is pinned; or the one that a stranger may enrol as, in the window of an operator.

    Changes nothing: an EK's public half is public, and whoever shows it has proven nothing.

    Raises:
        UnknownMachineError, PendingError, RefusedError: with words for the machine's console.
    """
    pinned, enrolled = view.index.by_ek(ek_sha256), enrolments.by_ek(ek_sha256)
    if pinned is None and enrolled is None:
        return _candidate(view, enrolments, ek_sha256, hints, now_ms)
    name = pinned.name if pinned is not None else enrolled.machine if enrolled is not None else ""
    if enrolled is not None and enrolled.machine != name:
        raise RefusedError(
            f"this TPM is {name}'s by the inventory and {enrolled.machine}'s by enrolment: correct match.ek_sha256"
        )
    machine = view.index.named(name)
    if machine is None:
        raise UnknownMachineError(f"this TPM is enrolled as {name}, which the inventory does not have (any more)")
    if machine.match.ek_sha256 not in (None, ek_sha256):
        raise RefusedError(f"the inventory pins another TPM to {name} than was enrolled: correct match.ek_sha256")
    known = Identified(machine, enrolments.of(name))
    _in_service(known)
    if enrolled is not None and enrolled.state == "retired":
        raise RefusedError(f"this TPM was taken out of {name} by an operator's word; it is not let in again")
    if pinned is None and enrolled is not None and enrolled.approved_ek != ek_sha256:
        raise pending(name, ek_sha256)
    return known


def by_hints(view: View, enrolments: Enrolments, hints: Identifiers) -> Identified:
    """The one machine that the hints name, for a machine that says it has no TPM.

    Raises:
        UnknownMachineError: they name none. RefusedError: several, or one that has a TPM on record.
    """
    named = _named(view, hints)
    if not named:
        raise UnknownMachineError("no machine of the inventory has this MAC, UUID or serial")
    if len(named) > 1:
        raise RefusedError(f"one machine cannot be {' and '.join(named)}: correct the inventory")
    machine = named[next(iter(named))]
    known = Identified(machine, enrolments.of(machine.name))
    _in_service(known)
    if has_tpm(known.machine, known.enrolment):
        raise RefusedError(
            f"{machine.name} has a TPM on record and never joins without it: see that its firmware shows it, or "
            f"`netboot machine replace {machine.name} --part tpm`"
        )
    if machine.identity == "tpm":
        raise RefusedError(
            f"{machine.name} must prove itself by its TPM (its `identity` in the inventory), and says it has none"
        )
    return known


def has_tpm(machine: Machine, enrolment: Enrolment) -> bool:
    """Whether a TPM is on record of the machine, pinned or enrolled, approved or not."""
    return machine.match.ek_sha256 is not None or enrolment.ek_sha256 is not None


def _in_service(known: Identified) -> None:
    name = known.machine.name
    if not known.machine.enabled:
        raise RefusedError(f"{name} is disabled: set `enabled: true` in the inventory to let it join")
    if known.enrolment.state == "retired":
        raise RefusedError(f"{name} is retired: `netboot machine approve {name}` brings it back")


def hints_of(machine: Machine) -> Identifiers:
    """What a machine would call itself that is as the inventory declares it."""
    return Identifiers(macs=machine.match.macs, uuid=machine.match.uuid, serial=machine.match.serial)


def _candidate(view: View, enrolments: Enrolments, ek_sha256: str, hints: Identifiers, now_ms: int) -> Identified:
    short = ek_sha256[:12]
    named = _named(view, hints)
    if len(named) != 1:
        claimed = f"claims to be {' and '.join(named)}" if named else "has no MAC, UUID or serial of the inventory"
        raise UnknownMachineError(f"no machine has the TPM {short}..., which {claimed}")
    machine = named[next(iter(named))]
    known, name = Identified(machine, enrolments.of(machine.name)), machine.name
    if has_tpm(known.machine, known.enrolment):
        raise RefusedError(
            f"this machine claims to be {name}, whose TPM is another one than {short}...: if it was replaced, "
            f"`netboot machine replace {name} --part tpm`"
        )
    _in_service(known)
    window = known.enrolment
    if window.window == "enrol" and now_ms < window.window_until_ms:
        return known._replace(enrols=window.window_id)
    raise UnknownMachineError(
        f"no machine has the TPM {short}..., which claims to be {name}: `netboot machine enroll {name}` lets it enrol"
    )


def pending(name: str, ek_sha256: str) -> PendingError:
    """What the machine is told until an operator has approved its TPM."""
    return PendingError(
        f"the TPM {ek_sha256[:12]}... waits for approval as {name}: compare it on the machine, then "
        f"`netboot machine approve {name}`"
    )


def _named(view: View, hints: Identifiers) -> dict[str, Machine]:
    """Every machine that any hint names."""
    macs = hints.macs or (None,)
    matches = [match for mac in macs for match in view.index.find(mac, hints.uuid, hints.serial)]
    return dict(sorted((match.machine.name, match.machine) for match in matches))
