"""The phases of a boot, in order, and who may say that one was reached."""

from enum import StrEnum


class Source(StrEnum):
    """How we know. What we handed out and what the machine told us are different facts and never mixed."""

    SERVED = "served"
    REPORTED = "reported"


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
    FAILED = "Failed"
    """Said by the machine, with words; it goes on trying, so a later phase may follow."""


SERVED_PHASES = frozenset({Phase.SCRIPT_SERVED, Phase.KERNEL_FETCHED, Phase.INITRD_FETCHED})
REPORTED_PHASES = frozenset(Phase) - SERVED_PHASES


def source_of(phase: Phase) -> Source:
    """Each phase has exactly one source."""
    return Source.SERVED if phase in SERVED_PHASES else Source.REPORTED
