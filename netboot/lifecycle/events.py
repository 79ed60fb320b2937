"""What is journalled: one record for each fact, written by the process that learnt it, before it is acknowledged."""

from hashlib import sha256
from operator import not_
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from images.values.strict import Strict
from images.values.types import Name, Sha256
from netboot.lifecycle.hardware import HardwareReport
from netboot.lifecycle.health import HealthReport
from netboot.lifecycle.phases import REPORTED_PHASES, Phase
from netboot.machines.values import Mac

BootId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")]
SafeText = Annotated[str, StringConstraints(pattern=r"^[ -~]{0,300}$")]
"""Printable ASCII, at most 300 characters: safe in a log line, on a terminal and in a table."""

_Lines = Annotated[str, StringConstraints(pattern=r"^[\n -~]*$")]
"""Lines of printable ASCII: safe to show, whoever sent them."""
LONGEST_CRASH = 16 * 1024
CrashText = Annotated[_Lines, StringConstraints(max_length=LONGEST_CRASH)]
"""The end of the log of a kernel that crashed."""
LONGEST_CONSOLE = 4096
ConsoleText = Annotated[_Lines, StringConstraints(min_length=1, max_length=LONGEST_CONSOLE)]
"""The last lines of a console."""

LATEST_MS = 253_402_300_799_999
"""The end of the year 9999: beyond it neither SQLite nor a calendar has a place for a moment."""
Moment = Annotated[int, Field(ge=0, le=LATEST_MS)]
"""Milliseconds since 1970."""
Uptime = Annotated[int, Field(ge=0, le=10**12)]
"""Milliseconds since a kernel started, by its machine's clock."""


def _reported(phase: Phase) -> Phase:
    if phase not in REPORTED_PHASES:
        raise ValueError("a phase that only the service can know; a machine reports what it did itself")
    return phase


def digest_of(text: str) -> str:
    """The SHA-256 of a text, as hexadecimal digits."""
    return sha256(text.encode()).hexdigest()


class BootEvent(Strict):
    """The body that a machine posts to `/v1/boots/<id>/events`."""

    mac: Mac | None = None
    """Of the card that it booted from, where the command line names it (`BOOTIF`)."""
    machine: Name | None = None
    """What the kernel command line called it: for machines that are declared by UUID or serial, not by this MAC."""
    phase: Annotated[Phase, AfterValidator(_reported)]
    uptime_ms: Uptime | None = None
    detail: SafeText = ""
    """For people: which origin, how many bytes, what failed."""


class CrashReport(Strict):
    """The body that a machine posts to `/v1/boots/<id>/crashes`: what it found of a kernel that crashed before."""

    mac: Mac | None = None
    machine: Name | None = None
    """As in an event."""
    crashed_ms: Moment
    """By the clock of the machine as it crashed; where its firmware keeps no times, when the text was found."""
    text: CrashText


class ConsoleReport(Strict):
    """The body that a machine posts to `/v1/boots/<id>/console`: the last lines of its console, while it boots."""

    mac: Mac | None = None
    machine: Name | None = None
    """As in an event."""
    uptime_ms: Uptime
    """When it read them."""
    text: ConsoleText


Digits = Annotated[str, StringConstraints(pattern=r"^(|[0-9a-f]{16})$")]
"""The first 16 hexadecimal digits of a SHA-256; empty: an older netboot wrote this, and no digest."""


class ScriptRecord(Strict):
    """A script was served: a claim. `decision`, `script`: digests of what was decided from, and of the script without
    its boot id (`netboot.lifecycle.decided`)."""

    kind: Literal["script"] = "script"
    at_ms: Moment
    boot: BootId
    machine: Name
    cluster: Name
    image: Sha256
    profile: Name
    channel: Name
    decision: Digits = ""
    script: Digits = ""
    class_name: Name | None = Field(None, exclude_if=lambda name: name is None)
    """The machine's class then."""
    arguments: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")] | None = Field(
        None, exclude_if=lambda digest: digest is None
    )
    """Its kernel arguments, by `netboot.lifecycle.decided.arguments_digest`; None: recorded before that was."""
    peer: str
    """Address that asked."""


class EventRecord(Strict):
    """A boot reached a phase, or failed."""

    kind: Literal["event"] = "event"
    at_ms: Moment
    boot: BootId
    machine: Name
    phase: Phase
    uptime_ms: Uptime | None = None
    detail: SafeText = ""
    peer: str
    sha256: Sha256 | Literal[""] = Field("", exclude_if=not_)
    """Of what proves it: the TPM's quote (`Attested`)."""


class DiscoveryRecord(Strict):
    """A machine asked that the inventory does not know, or that it may not boot."""

    kind: Literal["discovery"] = "discovery"
    at_ms: Moment
    outcome: Literal["unknown", "refused"]
    mac: Mac | None
    uuid: str | None
    serial: str | None
    architecture: str | None
    reason: SafeText
    peer: str


class WaitRecord(Strict):
    """A machine of the inventory asked, and was told to wait: there is no usable image for it. A claim, as a script
    is: whoever asks in its name is told so."""

    kind: Literal["wait"] = "wait"
    at_ms: Moment
    machine: Name
    reason: SafeText
    peer: str
    """Address that asked."""


class HardwareRecord(Strict):
    """A machine that nobody has declared said what it is made of."""

    kind: Literal["hardware"] = "hardware"
    at_ms: Moment
    boot: BootId
    """Of the discovery; of no machine."""
    peer: str
    report: HardwareReport


class HealthRecord(Strict):
    """A machine reported the results of its health checks."""

    kind: Literal["health"] = "health"
    at_ms: Moment
    boot: BootId
    machine: Name
    peer: str
    report: HealthReport


class CrashRecord(Strict):
    """A boot found what a kernel of its machine left when it crashed: that of an earlier boot."""

    kind: Literal["crash"] = "crash"
    at_ms: Moment
    boot: BootId
    """Which found it."""
    machine: Name
    crashed_ms: Moment
    text: CrashText
    peer: str

    @property
    def begins(self) -> str:
        """The first characters of its text: the kernel's uptime, which sorts the crashes of one second."""
        return self.text[:16]

    @property
    def sha256(self) -> str:
        """By it a trace names the text."""
        return digest_of(self.text)


class ConsoleRecord(Strict):
    """A boot sent the last lines of its console."""

    kind: Literal["console"] = "console"
    at_ms: Moment
    boot: BootId
    machine: Name
    uptime_ms: Uptime
    text: ConsoleText
    peer: str

    @property
    def sha256(self) -> str:
        """By it a trace names the text."""
        return digest_of(self.text)


class CertificateRecord(Strict):
    """A client certificate was signed for a boot: who shows it is the Node of that boot. The approver's alone."""

    kind: Literal["certificate"] = "certificate"
    at_ms: Moment
    boot: BootId
    machine: Name
    sha256: Sha256
    """Of its DER."""
    until_ms: Moment
    """When it ends."""


Shared = Annotated[int, Field(ge=1, le=1_000 * LATEST_MS + 10**15)]
"""A number of `netboot.lifecycle.arrivals`: above what any clock says, and below 18 digits whatever follows it."""


class SharedRecord(Strict):
    """What another replica was told of a boot, as the object of its machine says it. The shipper's alone. `at_ms`: when
    it was read, by our clock; `since`: the number of the fact that gave the boot its standing; `arrived`: of `health`,
    an excerpt of its report."""

    kind: Literal["shared"] = "shared"
    at_ms: Moment
    boot: BootId
    machine: Name
    since: Shared
    facts: Annotated[tuple[ScriptRecord | EventRecord, ...], Field(max_length=64)]
    arrived: Shared = 1
    health: HealthRecord | None = None


TraceRecord = ScriptRecord | EventRecord | CrashRecord | ConsoleRecord | CertificateRecord | SharedRecord
"""What a boot's trace is made of."""
AnyRecord = TraceRecord | DiscoveryRecord | WaitRecord | HardwareRecord | HealthRecord
Record = Annotated[AnyRecord, Field(discriminator="kind")]
