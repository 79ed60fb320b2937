"""Conditions of machines as values, and where they are kept between two looks: the ports."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, Self

from pydantic import Field

from images.values.strict import Strict
from netboot.clock import rfc3339
from netboot.lifecycle.reasons import STATUSES, ConditionType, Reason, Status
from netboot.lifecycle.transitions import Trouble


def moment(at_ms: int) -> str:
    """As sentences have moments, and Kubernetes: RFC 3339, UTC, whole seconds."""
    return rfc3339(at_ms, "seconds")


class MachineCondition(Strict):
    """As Kubernetes has conditions. `since_ms`: when the status last changed, milliseconds since 1970; `said`: the
    machine's own words in `message`, as it said them; not written where there are none."""

    type: ConditionType
    status: Status
    reason: Reason
    message: str
    since_ms: int
    said: str = Field("", exclude_if=lambda said: not said)

    @classmethod
    def of(cls, kind: ConditionType, reason: Reason, message: str, now_ms: int, said: str = "") -> Self:
        """With the status that the table has for this reason; a reason that it has not is a defect."""
        status = STATUSES[kind][reason]
        return cls(type=kind, status=status, reason=reason, message=message, since_ms=now_ms, said=said)

    def after(self, before: "MachineCondition | None") -> "MachineCondition":
        """The same, with the moment of the transition: of before, unless the status is another; never an earlier one,
        whatever the clock says."""
        if before is None:
            return self
        since = before.since_ms if before.status == self.status else max(self.since_ms, before.since_ms)
        return self.model_copy(update={"since_ms": since})

    def document(self) -> dict[str, Any]:
        """As the API shows it, by the names that Kubernetes gives these fields."""
        fields = self.model_dump(mode="json", exclude={"since_ms"})
        return {**fields, "lastTransitionTime": moment(self.since_ms)}


class Timer(Strict):
    """What is waited for. `of`: what began it (another value begins it anew); `place`, `since`: the clock that counts,
    and what it showed then (`SeenTime`)."""

    of: str
    place: str
    since: int


class Ailment(Strict):
    """That a machine is not well, by what was observed, or said under its boot's own certificate: what may be acted on,
    and no claim alters (rule L3). `boot`: the one that proved itself; `since_ms`: when it was found; `message`: for
    people."""

    reason: Reason
    boot: str
    since_ms: int
    message: str


class Judged(Strict):
    """What was found of a machine at the last look, and what the next one needs of it."""

    machine: str
    conditions: tuple[MachineCondition, ...]
    """One of each type, in their order."""
    timers: dict[str, Timer]
    step: str = ""
    """The furthest of the boot that counts; empty: there is none."""
    boot: str = ""
    """Its id."""
    image: str = ""
    """What it was served; empty: not known."""
    trouble: Trouble = Trouble.NONE
    ailment: Ailment | None = Field(None, exclude_if=lambda ailment: ailment is None)
    """Not written where it is well."""

    def condition(self, kind: ConditionType) -> MachineCondition | None:
        """The one of that type."""
        return next((condition for condition in self.conditions if condition.type is kind), None)


class Conditions(Protocol):
    """What was found, for reading."""

    def conditions(self, names: Sequence[str] | None = None) -> dict[str, tuple[MachineCondition, ...]]:
        """Of these machines, or of all; one that was not judged yet is not in it.

        Raises:
            netboot.lifecycle.errors.StateUnavailableError: they cannot be read.
        """
        ...

    def judged(self, names: Sequence[str] | None = None) -> Mapping[str, Judged]:
        """All that was found of them. Raises as `conditions`."""
        ...


class JudgedMachines(Protocol):
    """The same for the one process that judges. Each method raises StateUnavailableError when the disk refuses."""

    def judged(self, names: Sequence[str]) -> dict[str, Judged]:
        """What was found of these at the last look."""
        ...

    def names(self) -> set[str]:
        """Every machine of which anything is kept."""
        ...

    def seen_time(self) -> dict[str, int]:
        """The clocks of `SeenTime` as they were kept last."""
        ...

    def keep(self, judged: Sequence[Judged], forget: Collection[str], seen_time: Mapping[str, int]) -> None:
        """All of it, or nothing. A power cut may take the last of it back: it is found again."""
        ...
