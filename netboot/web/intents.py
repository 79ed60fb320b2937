"""What operators want of machines: `POST /v1/machines/<name>/{hold,unhold,quarantine,readmit}`, `/v1/intents`,
`/v1/machines/<name>/intents`. Held and in quarantine are what a machine *is* whatever it boots: docs/acts.md."""

from typing import Annotated

from flask import Response, jsonify
from pydantic import Field, StringConstraints, model_validator

from images.values.strict import Strict
from netboot.lifecycle.errors import ActRefusedError, BadClaimError, NoSuchMachineError
from netboot.lifecycle.intent_rules import decide
from netboot.lifecycle.intents import LONGEST_MS, LONGEST_REASON, Order, PutOn, TakeOff
from netboot.lifecycle.transitions import Mark
from netboot.lifecycle.views import machine_named
from netboot.web import inputs, render
from netboot.web.dependencies import dependencies
from netboot.web.inputs import parsed
from netboot.web.operators import audit, operator

HISTORY_SHOWN = 20

Why = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_REASON, strip_whitespace=True)]
MayBeWhy = Annotated[str, StringConstraints(max_length=LONGEST_REASON, strip_whitespace=True)]
Seconds = Annotated[int, Field(ge=60, le=LONGEST_MS // 1000)]


class PuttingOn(Strict):
    """The body of `hold` and `quarantine`. With `seconds`, from now, or `until_ms` it ends by itself."""

    reason: Why
    seconds: Seconds | None = None
    until_ms: int | None = None
    dry_run: bool = False

    @model_validator(mode="after")
    def _one_end(self) -> "PuttingOn":
        if self.seconds is not None and self.until_ms is not None:
            raise ValueError("seconds and until_ms are two ends: give one")
        return self

    def end(self, now_ms: int) -> int | None:
        """When it ends.

        Raises:
            BadClaimError: in the past, or too far away.
        """
        if self.seconds is not None:
            return now_ms + self.seconds * 1000
        if self.until_ms is not None and not now_ms < self.until_ms <= now_ms + LONGEST_MS:
            raise BadClaimError(f"until_ms: the end must be in the future, and within {LONGEST_MS // 86_400_000} days")
        return self.until_ms


class Unholding(Strict):
    """The body of `unhold`."""

    reason: MayBeWhy = ""
    dry_run: bool = False


class Readmitting(Strict):
    """The body of `readmit`."""

    reason: Why
    dry_run: bool = False


def hold(name: str) -> Response:
    """Its node takes no new work."""
    body = parsed(PuttingOn)
    return _put_on(name, "hold", Mark.HELD, body)


def quarantine(name: str) -> Response:
    """It does not join."""
    body = parsed(PuttingOn)
    return _put_on(name, "quarantine", Mark.QUARANTINED, body)


def unhold(name: str) -> Response:
    """Held no more, whoever held it."""
    body = parsed(Unholding)
    return _do(name, "unhold", TakeOff(Mark.HELD, body.reason), dry_run=body.dry_run)


def readmit(name: str) -> Response:
    """Out of quarantine, whoever put it there."""
    body = parsed(Readmitting)
    return _do(name, "readmit", TakeOff(Mark.QUARANTINED, body.reason), dry_run=body.dry_run)


def listed() -> Response:
    """All that stands, by machine."""
    inputs.only(())
    deps = dependencies()
    return jsonify({"intents": [render.plain(each) for each in deps.intents.all(deps.clock.now_ms())]})


def shown(name: str) -> Response:
    """What stands of one machine, and what was ordered of it, the latest first."""
    inputs.only(())
    deps = dependencies()
    _known(name)
    return jsonify(
        {
            "machine": name,
            "intents": [render.plain(each) for each in deps.intents.of(name, deps.clock.now_ms())],
            "history": [render.plain(each) for each in deps.intents.history(name, HISTORY_SHOWN)],
        }
    )


def _put_on(name: str, act: str, mark: Mark, body: PuttingOn) -> Response:
    deps = dependencies()
    machine_named(deps.live.view(), name)
    now = deps.clock.now_ms()
    if deps.register.view(name, now).state == "retired":
        raise ActRefusedError(
            f"{name} is retired, and joins nothing: `netboot machine approve {name}` brings it back first"
        )
    return _do(name, act, PutOn(mark, body.reason, body.end(now)), dry_run=body.dry_run)


def _do(name: str, act: str, order: Order, *, dry_run: bool) -> Response:
    inputs.only(())
    deps, who = dependencies(), operator().who
    _known(name)
    now = deps.clock.now_ms()
    if dry_run:
        change = decide(name, deps.intents.of(name, now), order, who, now)
    else:
        change = deps.intents.order(name, order, who, now)
        until = order.until_ms if isinstance(order, PutOn) else None
        audit(act, machine=name, reason=order.reason, until_ms=until, changed=bool(change.act))
    return jsonify(
        {
            "machine": name,
            "act": act,
            "did": change.act,
            "dry_run": dry_run,
            "concerned": [render.plain(each) for each in change.concerned],
            "consequence": _CONSEQUENCES[act] if change.act else "",
            "intents": [render.plain(each) for each in deps.intents.of(name, now)],
        }
    )


_CONSEQUENCES = {
    "hold": "from its next boot on its Node registers with netboot.dev/held=Held:NoSchedule; a Node that it has now is "
    "left as it is",
    "unhold": "its next boot's Node registers without netboot.dev/held; one that has the taint keeps it until then",
    "quarantine": "from its next boot on it gets no token, so no Node of it registers; a Node that it has now is left "
    "as it is",
    "readmit": "it may join again, as before",
}


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
