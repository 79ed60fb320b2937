"""What a trace has beside phases: the script that was served, what it found of crashes and sent of its
console, the certificates that were signed for it."""

from pydantic import Field

from images.values.strict import Strict
from images.values.types import Name, Sha256
from netboot.lifecycle.bootid import AHEAD_MS, minted_ms
from netboot.lifecycle.events import CertificateRecord, ConsoleRecord, CrashRecord, CrashText, ScriptRecord

MOST_CERTIFICATES = 16
"""Certificates kept for each boot: those that end last. Twice as many as the approver lets live at a time."""


class Script(Strict):
    """What was decided when the script was served. `decision`, `script`: digests, as its record has them; ""
    where an older netboot kept none."""

    at_ms: int
    cluster: Name
    image: Sha256
    profile: Name
    channel: Name
    peer: str
    decision: str = ""
    script: str = ""
    class_name: Name | None = Field(None, exclude_if=lambda name: name is None)
    arguments: str | None = Field(None, exclude_if=lambda digest: digest is None)
    """Both as `ScriptRecord` has them."""


class Crash(Strict):
    """What this boot found of a kernel that had crashed: `at_ms` by our clock, `crashed_ms` by the machine's. Its text
    is long and lies elsewhere (`States.crash_texts`), for a trace is read and written with each event."""

    at_ms: int
    crashed_ms: int
    begins: CrashText
    sha256: Sha256
    peer: str = ""

    @property
    def which(self) -> tuple[int, str, str]:
        """Tells a crash from the others that a boot found; sorts them by when they happened."""
        return self.crashed_ms, self.begins, self.sha256


class Console(Strict):
    """The last lines of its console that this boot sent: `at_ms` by our clock, `uptime_ms` by its own, whatever that
    is. Its text lies elsewhere (`States.console`), as those of crashes do. `first_ms`: when the first came."""

    first_ms: int
    at_ms: int
    uptime_ms: int
    sha256: Sha256
    peer: str = ""

    @property
    def which(self) -> tuple[int, str]:
        """Tells what was sent once from what was sent at other times."""
        return self.uptime_ms, self.sha256


def decided(record: ScriptRecord) -> Script:
    """What the record of a script says of the decision."""
    return Script(**{name: getattr(record, name) for name in Script.model_fields})


class Certificate(Strict):
    """A client certificate of the boot: `at_ms` when the approver saw it, by our clock; `until_ms`: when it ends."""

    at_ms: int
    sha256: Sha256
    until_ms: int


def with_certificate(known: tuple[Certificate, ...], record: CertificateRecord) -> tuple[Certificate, ...]:
    """With one more, by when they end. Of one that is told again the earliest stays."""
    new = Certificate(at_ms=record.at_ms, sha256=record.sha256, until_ms=record.until_ms)
    kept: dict[tuple[int, str], Certificate] = {}
    for each in sorted({*known, new}, key=lambda each: each.at_ms):
        kept.setdefault((each.until_ms, each.sha256), each)
    return tuple(kept[which] for which in sorted(kept)[-MOST_CERTIFICATES:])


def crash_of(record: CrashRecord) -> Crash:
    """What a trace has of it."""
    return Crash(
        at_ms=record.at_ms,
        crashed_ms=record.crashed_ms,
        begins=record.begins,
        sha256=record.sha256,
        peer=record.peer,
    )


def newest_console(console: Console | None, record: ConsoleRecord) -> Console:
    """By the machine's uptime, as far as it can be believed: no kernel runs for longer than its boot has its id. Of the
    same that is sent again the earliest stays."""
    at_ms, minted = record.at_ms, minted_ms(record.boot)
    new = Console(first_ms=at_ms, at_ms=at_ms, uptime_ms=record.uptime_ms, sha256=record.sha256, peer=record.peer)
    known = console or new

    def newest_first(one: Console) -> tuple[int, str, int, int, str]:
        believed = min(one.uptime_ms, one.at_ms - minted + AHEAD_MS)
        return -believed, one.sha256, one.at_ms, one.uptime_ms, one.peer

    newest = min(known, new, key=newest_first)
    return newest.model_copy(update={"first_ms": min(known.first_ms, at_ms)})
