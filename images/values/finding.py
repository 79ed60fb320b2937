"""What a gate has to say."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing for which an image must not be built: the gate that found it, what is wrong, what to do about it."""

    gate: str
    cause: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.gate}: {self.cause}\n  {self.remedy}"
