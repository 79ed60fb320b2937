"""The assurance levels below `tpm`: a boot window's nonce, and in labs the address. Weaker, and tainted so."""

from netboot.addresses import same_address
from netboot.join.errors import RefusedError, StaleError
from netboot.join.exchange import Exchange
from netboot.join.identify import Known
from netboot.join.messages import Named
from netboot.join.state import unseal_nonce
from netboot.machines.values import AssuranceLevel


def assurance_of(
    exchange: Exchange, known: Known, hints: Named, nonce: bytes | None, peer: str, now_ms: int
) -> tuple[AssuranceLevel, str]:
    """The assurance, and the boot window that it is of (assurance `nonce`).

    Raises:
        RefusedError: with the rule that is not met. CannotTellError: no key to open a nonce with.
    """
    machine = known.machine
    name = machine.name
    if nonce is None and machine.identity == "nonce":
        raise RefusedError(f"{name} has neither a TPM nor the nonce of a boot window: open one, then reboot it")
    if not set(hints.macs) & set(machine.match.macs):
        raise RefusedError(f"{name} is not known by any MAC that this machine has")
    if not _is_its_address(known, peer):
        raise RefusedError(f"{peer} is not an address of {name} (node.addresses in the inventory)")
    if nonce is None:
        if not exchange.addresses_attest:
            raise RefusedError("an address proves nothing here: join.addresses_attest is off in netboot.yaml")
        return "address", ""
    if machine.match.serial is None or hints.serial != machine.match.serial:
        raise RefusedError(f"{name} must show the serial number that the inventory gives it, to use a boot window")
    found = unseal_nonce(exchange.nonce_keyset(), exchange.site, nonce, now_ms)
    if found.machine != name or found.mac not in hints.macs or not same_address(found.address, peer):
        raise RefusedError(f"the nonce was not made for {name} at {peer}")
    return "nonce", found.window


def recheck(exchange: Exchange, known: Known, assurance: AssuranceLevel, peer: str) -> None:
    """That attest comes from where hello came from, and the assurance level is still allowed.

    Raises:
        RefusedError, StaleError.
    """
    machine = known.machine
    if not _is_its_address(known, peer):
        raise RefusedError(f"{peer} is not an address of {machine.name} (node.addresses in the inventory)")
    allowed = machine.identity == "address" and exchange.addresses_attest if assurance == "address" else True
    if machine.identity == "tpm" or not allowed:
        raise StaleError(f"how {machine.name} proves itself was changed since hello: begin again")


def window_open(known: Known, window: str, now_ms: int) -> bool:
    """Whether that boot window of the machine is open now."""
    enrolment = known.enrolment
    return enrolment.window == "boot" and enrolment.window_id == window and now_ms < enrolment.window_until_ms


def _is_its_address(known: Known, peer: str) -> bool:
    return any(same_address(peer, address) for address in known.machine.node.addresses)
