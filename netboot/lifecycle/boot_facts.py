"""What a trace has beside phases: the script that was served, the certificates that were signed for the boot."""

from pydantic import Field

from images.values.strict import Strict
from images.values.types import Name, Sha256
from netboot.lifecycle.events import CertificateRecord, ScriptRecord

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
