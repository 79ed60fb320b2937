"""`/v1/freeze`: whether what acts by itself may begin anything now, by a freeze, a signal from outside and maintenance
windows."""

from flask import Response, jsonify

from netboot.lifecycle.intents import permission
from netboot.machines import maintenance
from netboot.machines.maintenance import Freeze
from netboot.stores.signal import SaidSignal
from netboot.web import inputs, render
from netboot.web.dependencies import dependencies
from netboot.web.inputs import parsed
from netboot.web.intents import PuttingOn, Unholding
from netboot.web.operators import audit, operator


def shown() -> Response:
    """As it is now."""
    inputs.only(())
    return _answer("")


def frozen() -> Response:
    """From now on nothing that acts by itself begins anything."""
    inputs.only(())
    body, deps = parsed(PuttingOn), dependencies()
    now = deps.clock.now_ms()
    asked = Freeze(who=operator().who, reason=body.reason, since_ms=now, until_ms=body.end(now))
    if body.dry_run:
        freeze, did = maintenance.frozen(deps.freezes.standing(now), asked)
    else:
        was = deps.freezes.standing(now)
        freeze, did = deps.freezes.put(asked)
        audit("freeze", {"until_ms": asked.until_ms}, reason=body.reason, before=was, after=freeze, changed=bool(did))
    return _answer(did, dry_run=body.dry_run, concerned=freeze)


def ended() -> Response:
    """The freeze ends."""
    inputs.only(())
    body, deps = parsed(Unholding), dependencies()
    now = deps.clock.now_ms()
    before = deps.freezes.standing(now) if body.dry_run else deps.freezes.end(now)
    if not body.dry_run:
        audit("unfreeze", reason=body.reason, before=before, changed=before is not None)
    return _answer("taken-off" if before is not None else "", dry_run=body.dry_run, concerned=before)


def _answer(did: str, *, dry_run: bool = False, concerned: Freeze | None = None) -> Response:
    deps = dependencies()
    now, windows = deps.clock.now_ms(), deps.live.view().snapshot.inventory.maintenance
    return jsonify(
        {
            "did": did,
            "dry_run": dry_run,
            "concerned": render.plain(concerned) if concerned is not None else None,
            "may_act": permission(deps.freezes, deps.signals, windows, now)._asdict(),
            "signal": _signal(deps.signals),
            "windows": [
                {**render.plain(window), "closes_ms": window.opened(now), "opens_ms": window.opens(now)}
                for window in windows
            ],
        }
    )


def _signal(signals: SaidSignal) -> dict[str, object] | None:
    """What somebody outside says, and how old that is; None: nobody is asked."""
    said, status = signals.said(), signals.status()
    if said is None:
        return None
    return {**said._asdict(), "age_seconds": status.age_seconds if status is not None else None}
