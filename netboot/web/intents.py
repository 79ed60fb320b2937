"""What operators want of machines: `POST /v1/machines/<name>/{hold,unhold,quarantine,readmit,accept,unaccept}`,
`/v1/intents`, `/v1/machines/<name>/intents`. They are so whatever the machine boots: docs/acts.md."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from images.values.strict import Strict
from netboot.lifecycle.errors import ActRefusedError, BadClaimError, NoSuchMachineError
from netboot.lifecycle.intent_rules import decide
from netboot.lifecycle.intents import (
    LONGEST_ACCEPTED_MS,
    LONGEST_MS,
    LONGEST_REASON,
    Entry,
    Exemption,
    Intent,
    Order,
    PutOn,
    TakeOff,
    Want,
    marks_of,
)
from netboot.lifecycle.transitions import Mark
from netboot.lifecycle.views import machine_named
from netboot.web import hold_objects, inputs
from netboot.web.binding import Shown, plain
from netboot.web.dependencies import dependencies
from netboot.web.moments import Moment
from netboot.web.operators import audit, operator, written
from netboot.web.pages import Paged
from netboot.web.selecting import SelectAsked, part

HISTORY_SHOWN = 20

MayBeWhy = Annotated[
    str, StringConstraints(max_length=LONGEST_REASON, strip_whitespace=True), AfterValidator(inputs.one_line)
]
Why = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST_REASON, strip_whitespace=True),
    AfterValidator(inputs.one_line),
]
Seconds = Annotated[int, Field(ge=60, le=LONGEST_MS // 1000)]


class PuttingOn(Strict):
    """The body of `hold` and `quarantine`. With `seconds`, from now, or `until` it ends by itself."""

    reason: Why
    seconds: Seconds | None = None
    until: Annotated[int, Moment] | None = None
    dry_run: bool = False

    @model_validator(mode="after")
    def _one_end(self) -> "PuttingOn":
        if self.seconds is not None and self.until is not None:
            raise ValueError("seconds and until are two ends: give one")
        return self

    def end(self, now_ms: int, longest_ms: int = LONGEST_MS) -> int | None:
        """When it ends.

        Raises:
            BadClaimError: in the past, or too far away.
        """
        end = self.until if self.seconds is None else now_ms + self.seconds * 1000
        if end is not None and not now_ms < end <= now_ms + longest_ms:
            name = "until" if self.seconds is None else "seconds"
            days = longest_ms // 86_400_000
            raise BadClaimError(f"the end must be in the future, and within {days} days", field=name)
        return end


class Accepting(PuttingOn):
    """The body of `accept`, which has an end."""

    @model_validator(mode="after")
    def _an_end(self) -> "Accepting":
        if self.seconds is None and self.until is None:
            raise ValueError("seconds or until: an acceptance has an end")
        return self


class Unholding(Strict):
    """The body of `unhold` and `unaccept`."""

    reason: MayBeWhy = ""
    dry_run: bool = False


class Readmitting(Strict):
    """The body of `readmit`."""

    reason: Why
    dry_run: bool = False


class Intents(Paged):
    """By machine."""

    intents: tuple[Intent, ...]


class IntentsOf(Shown):
    """What stands of one machine, and what was ordered of it, the latest first."""

    machine: str
    intents: tuple[Intent, ...]
    history: tuple[Entry, ...]


class IntentActed(Shown):
    """`did`: `put-on`, `extended` or `taken-off`, empty where it is so already; `concerned`: what that is about;
    `intents`: what stands then."""

    machine: str
    act: str
    did: str
    dry_run: bool
    concerned: tuple[Intent, ...]
    consequence: str
    intents: tuple[Intent, ...]


def hold(name: str, body: PuttingOn) -> IntentActed:
    """Its node takes no new work."""
    return _put_on(name, "hold", Mark.HELD, body)


def quarantine(name: str, body: PuttingOn) -> IntentActed:
    """It does not join."""
    return _put_on(name, "quarantine", Mark.QUARANTINED, body)


def unhold(name: str, body: Unholding) -> IntentActed:
    """Held no more, whoever held it."""
    return _do(name, "unhold", hold_objects.unholding(body.reason), dry_run=body.dry_run)


def readmit(name: str, body: Readmitting) -> IntentActed:
    """Out of quarantine, whoever put it there."""
    return _do(name, "readmit", TakeOff(Mark.QUARANTINED, body.reason), dry_run=body.dry_run)


def accept(name: str, body: Accepting) -> IntentActed:
    """Its gate opens in spite of its checks."""
    return _put_on(name, "accept", Exemption.ACCEPTED, body, LONGEST_ACCEPTED_MS)


def unaccept(name: str, body: Unholding) -> IntentActed:
    """Accepted no more, whoever accepted it."""
    return _do(name, "unaccept", TakeOff(Exemption.ACCEPTED, body.reason), dry_run=body.dry_run)


def listed(query: SelectAsked) -> Intents:
    """All that stands, by machine."""
    whole = dependencies().intents.all(dependencies().clock.now_ms())
    found, more = part(query, whole, lambda each: f"{each.machine} {each.mark} {each.owner}")
    return Intents(intents=tuple(found), next_page=more)


def shown(name: str) -> IntentsOf:
    """What stands of one machine, and what was ordered of it, the latest first."""
    deps = dependencies()
    _known(name)
    intents, history = deps.intents.of(name, deps.clock.now_ms()), deps.intents.history(name, HISTORY_SHOWN)
    return IntentsOf(machine=name, intents=tuple(intents), history=tuple(history))


def _put_on(name: str, act: str, mark: Want, body: PuttingOn, longest_ms: int = LONGEST_MS) -> IntentActed:
    deps = dependencies()
    machine_named(deps.live.view(), name)
    hold_objects.refuse_alone(name, act)
    now = deps.clock.now_ms()
    if deps.register.view(name, now).state == "retired":
        raise ActRefusedError(
            f"{name} is retired, and joins nothing: `netboot machine approve {name}` brings it back first"
        )
    return _do(name, act, PutOn(mark, body.reason, body.end(now, longest_ms)), dry_run=body.dry_run)


def _do(name: str, act: str, order: Order, *, dry_run: bool) -> IntentActed:
    deps, who = dependencies(), operator().who
    _known(name)
    now = deps.clock.now_ms()
    standing = deps.intents.of(name, now)
    was = marks(standing)
    change = decide(name, standing, order, who, now) if dry_run else deps.intents.order(name, order, who, now)
    hold_objects.refuse(name, order, change)
    if not dry_run:
        with written(act, machine=name, reason=order.reason, before=was):
            standing = deps.intents.of(name, now)
        after, did = marks(standing), bool(change.act)
        until = {"until_ms": order.until_ms if isinstance(order, PutOn) else None}
        audit(act, until, machine=name, reason=order.reason, before=was, after=after, changed=did)
    return IntentActed(
        machine=name,
        act=act,
        did=change.act,
        dry_run=dry_run,
        concerned=tuple(change.concerned),
        consequence=(hold_objects.still(order, change) or _consequence(act, standing)) if change.act else "",
        intents=tuple(standing),
    )


_CONSEQUENCES = {
    "hold": "its Node, and that of each boot to come, has netboot.dev/held=Held:NoSchedule: no new Pods; those that "
    "run there run on",
    "unhold": "its Node loses the taint netboot.dev/held",
    "quarantine": "its Node has netboot.dev/held=Quarantined:NoSchedule, and from its next boot on it gets no token, "
    "so no Node of it registers; Pods that run there run on",
    "readmit": "it may join again, as before",
    "accept": "until then its gate opens, and stays open, in spite of its checks, with each boot of it that proved "
    "itself; where that alone keeps it open, its Node has the label netboot.dev/accepted=true",
    "unaccept": "its gate is as its node says: where that alone would not have opened it, it closes",
}


_OVERRULED = {
    ("hold", Mark.QUARANTINED): "its Node has netboot.dev/held=Quarantined:NoSchedule; once it is readmitted, Held",
    ("unhold", Mark.QUARANTINED): "its Node keeps the taint netboot.dev/held, for it is in quarantine",
    ("readmit", Mark.HELD): "it may join again; its Node has netboot.dev/held=Held:NoSchedule, for it is held",
}
"""Where the other mark is on the machine too: a Node shows the gravest."""


def _consequence(act: str, standing: Sequence[Intent]) -> str:
    return next((_OVERRULED[act, mark] for mark in marks_of(standing) if (act, mark) in _OVERRULED), _CONSEQUENCES[act])


def marks(standing: Sequence[Intent]) -> dict[str, object]:
    """As the audit has them."""
    return {"intents": [plain(each) for each in standing]}


def _known(name: str) -> None:
    """A machine of the inventory, or one that was taken out of it and of which something is on record still.

    Raises:
        NoSuchMachineError: neither.
    """
    deps = dependencies()
    try:
        machine_named(deps.live.view(), name)
    except NoSuchMachineError:
        if not deps.intents.of(name, deps.clock.now_ms()):
            raise
