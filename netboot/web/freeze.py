"""`/v1/freeze`: whether what acts by itself may begin anything now, by a freeze, a signal from outside and maintenance
windows."""

from netboot.lifecycle.intents import permission
from netboot.machines import maintenance
from netboot.machines.maintenance import Freeze, Window
from netboot.stores.signal import SaidSignal
from netboot.web import render
from netboot.web.binding import Shown
from netboot.web.dependencies import dependencies
from netboot.web.intents import PuttingOn, Unholding
from netboot.web.operators import audit, operator


class MayAct(Shown):
    """Whether what acts by itself may begin anything; `until_ms`: until when it is so, null where that is open."""

    may: bool
    reason: str
    until_ms: int | None


class SignalShown(Shown):
    """What somebody outside says; `age_seconds`: null where it is not known."""

    may: bool
    reason: str
    age_seconds: float | None


class WindowShown(Window):
    """`closes_ms`: while it is open; `opens_ms`: when it does next, null where that cannot be told."""

    closes_ms: int | None
    opens_ms: int | None


class FreezeShown(Shown):
    """`did`: of an act, `put-on`, `extended` or `taken-off`, empty where it was so already; `concerned`: the freeze
    that this is about; `signal`: null where nobody is asked."""

    did: str
    dry_run: bool
    concerned: Freeze | None
    may_act: MayAct
    signal: SignalShown | None
    windows: tuple[WindowShown, ...]


def shown() -> FreezeShown:
    """As it is now."""
    return _answer("")


def frozen(body: PuttingOn) -> FreezeShown:
    """From now on nothing that acts by itself begins anything."""
    deps = dependencies()
    now = deps.clock.now_ms()
    asked = Freeze(who=operator().who, reason=body.reason, since_ms=now, until_ms=body.end(now))
    if body.dry_run:
        freeze, did = maintenance.frozen(deps.freezes.standing(now), asked)
    else:
        was = deps.freezes.standing(now)
        freeze, did = deps.freezes.put(asked)
        audit("freeze", {"until_ms": asked.until_ms}, reason=body.reason, before=was, after=freeze, changed=bool(did))
    return _answer(did, dry_run=body.dry_run, concerned=freeze)


def ended(body: Unholding) -> FreezeShown:
    """The freeze ends."""
    deps = dependencies()
    now = deps.clock.now_ms()
    before = deps.freezes.standing(now) if body.dry_run else deps.freezes.end(now)
    if not body.dry_run:
        audit("unfreeze", reason=body.reason, before=before, changed=before is not None)
    return _answer("taken-off" if before is not None else "", dry_run=body.dry_run, concerned=before)


def _answer(did: str, *, dry_run: bool = False, concerned: Freeze | None = None) -> FreezeShown:
    deps = dependencies()
    now, windows = deps.clock.now_ms(), deps.live.view().snapshot.inventory.maintenance
    return FreezeShown(
        did=did,
        dry_run=dry_run,
        concerned=concerned,
        may_act=MayAct(**permission(deps.freezes, deps.signals, windows, now)._asdict()),
        signal=_signal(deps.signals),
        windows=tuple(
            render.grown(WindowShown, window, closes_ms=window.opened(now), opens_ms=window.opens(now))
            for window in windows
        ),
    )


def _signal(signals: SaidSignal) -> SignalShown | None:
    """What somebody outside says, and how old that is; None: nobody is asked."""
    said, status = signals.said(), signals.status()
    if said is None:
        return None
    return SignalShown(**said._asdict(), age_seconds=status.age_seconds if status is not None else None)
