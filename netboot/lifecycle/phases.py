"""The phases of a boot, in order, and who may say that one was reached."""

from enum import StrEnum


class Source(StrEnum):
    """How we know. What we handed out, what the machine told us and what we saw are different facts and never mixed."""

    SERVED = "served"
    REPORTED = "reported"
    OBSERVED = "observed"
    """Proven to join, or seen in the cluster: nobody on the wire can claim it."""


class Phase(StrEnum):
    """Phases in the order in which a boot goes through them; FAILED may come from anywhere."""

    SCRIPT_SERVED = "ScriptServed"
    KERNEL_FETCHED = "KernelFetched"
    INITRD_FETCHED = "InitrdFetched"
    INITRD_STARTED = "InitrdStarted"
    IMAGE_FETCHED = "ImageFetched"
    IMAGE_VERIFIED = "ImageVerified"
    SWITCHED = "Switched"
    """Said by the first unit of the new root, so that it proves the switch."""
    BOOTED = "Booted"
    """systemd reached multi-user.target."""
    JOINING = "Joining"
    """Said by the agent when it begins; a machine that does not join stays at BOOTED."""
    ATTESTED = "Attested"
    TOKEN_ISSUED = "TokenIssued"  # noqa: S105 - a phase, no secret
    CSR_APPROVED = "CSRApproved"
    NODE_REGISTERED = "NodeRegistered"
    READY = "Ready"
    FAILED = "Failed"
    """Said by the machine, with words; it goes on trying, so a later phase may follow."""


SERVED_PHASES = frozenset({Phase.SCRIPT_SERVED, Phase.KERNEL_FETCHED, Phase.INITRD_FETCHED})
OBSERVED_PHASES = frozenset(
    {Phase.ATTESTED, Phase.TOKEN_ISSUED, Phase.CSR_APPROVED, Phase.NODE_REGISTERED, Phase.READY}
)
REPORTED_PHASES = frozenset(Phase) - SERVED_PHASES - OBSERVED_PHASES


def source_of(phase: Phase) -> Source:
    """Each phase has exactly one source."""
    if phase in OBSERVED_PHASES:
        return Source.OBSERVED
    return Source.SERVED if phase in SERVED_PHASES else Source.REPORTED
