"""What a gate finds in an image, and the error that lists it."""

from collections.abc import Sequence
from dataclasses import dataclass

from images.errors import ImageError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing for which an image must not be built: the gate that found it, what is wrong, what to do about it."""

    gate: str
    cause: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.gate}: {self.cause}\n  {self.remedy}"


class GateError(ImageError):
    """What was built must not be booted: every finding, with cause and remedy (docs/gates.md)."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        count = "1 finding" if len(self.findings) == 1 else f"{len(self.findings)} findings"
        super().__init__(
            "\n".join([f"this image must not be booted, and was not stored; {count}:", *map(str, findings)])
        )


class BudgetError(GateError):
    """The image is larger than its recipe allows, or takes more memory than its machines have."""
