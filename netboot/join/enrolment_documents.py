"""What an Enrolment says, as a custom resource: `spec` by people, `status` by netboot (docs/decisions/289)."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from images.values.strict import Strict
from images.values.types import Sha256
from netboot.clock import Moment

MOST_REPLACED = 64
"""TPMs that one machine may have had."""


WindowId = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
_Text = Annotated[str, StringConstraints(max_length=500)]


class Window(Strict):
    """Lets the machine enrol its TPM on first use, or join once without one."""

    kind: Literal["enrol", "boot"]
    """enrol: the first TPM that it shows waits for approval. boot: it joins once without a TPM."""
    id: WindowId
    """Of this window alone: what was used once by this id stays used."""
    until: Moment
    """When it ends, by the clock of the hosts that netboot runs on."""


class Described(Strict):
    """What is said of a machine with its TPM, for whoever approves it: never identity."""

    ek_certificate: Annotated[str, StringConstraints(max_length=16_384)] | None = None
    """Of the endorsement key, base64 of DER."""
    ek_public: Annotated[str, StringConstraints(max_length=4096)] | None = None
    """The endorsement key, base64 of TPM2B_PUBLIC."""
    uuid: Annotated[str, StringConstraints(max_length=64)] | None = None
    """Of its firmware."""
    serial: Annotated[str, StringConstraints(max_length=128)] | None = None
    """Of its firmware."""
    macs: Annotated[tuple[Annotated[str, StringConstraints(max_length=32)], ...], Field(max_length=64)] = ()
    """Of its network cards."""
    peer: Annotated[str, StringConstraints(max_length=64)] = ""
    """The address from which it asked."""
    said: _Text = ""
    """Anything else."""


class EnrolmentSpec(Strict):
    """By which TPM a machine may join, and whether it may. People write it, and netboot never does."""

    ek_sha256: Sha256 | None = None
    """The TPM that is approved: SHA-256 of its endorsement key. To approve one that is pending is to write it here."""
    source: Literal["first-use", "imported"] | None = None
    """Where it is known from; left out: first-use if the machine has shown it here, else imported."""
    details: Described | None = None
    """What is known of that TPM beforehand, of a list of the maker."""
    generation: Annotated[int, Field(ge=0)] = 0
    """Rises with each release and replacement: what the machine's Lease says of an older one binds nobody."""
    retired: bool = False
    """Out of service: no tokens, no renewals."""
    replaced: Annotated[tuple[Sha256, ...], Field(max_length=MOST_REPLACED)] = ()
    """TPMs that were taken out of the machine: no window lets them in again."""
    window: Window | None = None
    """While it is open, and no TPM is approved or pending."""

    @model_validator(mode="after")
    def _in_or_out(self) -> Self:
        if self.ek_sha256 is not None and self.ek_sha256 in self.replaced:
            raise ValueError("a TPM that was taken out of the machine is not let in: take it out of replaced first")
        return self


class Proposed(Strict):
    """The TPM that the machine showed in a window."""

    ek_sha256: Sha256
    """What `spec.ek_sha256` has to be for this one to join: compare it on the machine first."""
    window: WindowId
    """Of the window that it used up."""
    since: Moment
    """When it was first shown."""
    details: Described = Described()
    """What the machine said of itself."""


class AlertTold(Strict):
    """What may be an attack on the machine, all of one kind together."""

    kind: Annotated[str, StringConstraints(max_length=32)]
    """window-used, counters, reissues, other-key or weaker: docs/join.md."""
    first: Moment
    """When it was noticed first."""
    last: Moment
    """And last."""
    count: Annotated[int, Field(ge=1)]
    """How often, at least."""
    said: Annotated[str, StringConstraints(max_length=1000)]
    """Of the last, for people."""


class EnrolmentStatus(Strict):
    """What machines showed. netboot alone writes it, nobody is let in by it, and it may be lost."""

    proposed: Proposed | None = None
    """Pending until `spec.ek_sha256` says the same; it stays for what it says of the TPM."""
    proposals: Annotated[int, Field(ge=0)] = 0
    """How many there were."""
    alerts: Annotated[tuple[AlertTold, ...], Field(max_length=8)] = ()
    """One of each kind, of the last ninety days."""
