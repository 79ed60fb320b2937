"""What the loop that drives rollouts says of them: history, audit, log, `/readyz` and metrics."""

import logging
from collections.abc import Mapping, Sequence

from netboot.controllers.audited import audit
from netboot.lifecycle.remedies import WHO
from netboot.lifecycle.rollout import Member, MemberState, Rollout, RolloutState
from netboot.lifecycle.rollout_counts import by_state
from netboot.lifecycle.rollout_store import Members, Note, Summed
from netboot.status.controllers import RolloutStatus

log = logging.getLogger(__name__)


def undone_now(before: Rollout, now: Rollout) -> bool:
    """Whether it was undone by itself between these."""
    return bool(now.verdict) and not before.verdict


def noted(before: Rollout, now: Rollout, now_ms: int) -> Note | None:
    """The line of its history; None: none."""
    if undone_now(before, now):
        return Note(now_ms, WHO, "auto-undo", now.verdict)
    if before.state is not now.state:
        return Note(now_ms, WHO, str(now.state), now.why)
    return Note(now_ms, WHO, "the canaries are in service", now.why) if now.rolling and not before.rolling else None


def tell(before: Rollout, now: Rollout, changed: Sequence[Member]) -> None:
    """In the log."""
    about = f"rollout {now.number} of channel {now.channel}"
    fields = {"rollout": now.number, "channel": now.channel}
    for each in changed:
        if each.state in (MemberState.FAILED, MemberState.SKIPPED):
            words, named = (about, each.machine, each.state, each.why), {"machine": each.machine, **fields}
            log.warning("%s: %s %s: %s", *words, extra={"fields": named})
    if before.state is not now.state:
        level = logging.WARNING if now.state is RolloutState.PAUSED else logging.INFO
        log.log(level, "%s is %s: %s", about, now.state, now.why, extra={"fields": fields})


def tell_undone(rollout: Rollout) -> None:
    """In the log, and in that of audit: nobody ordered it. Each process says it once, for the one before may have been
    killed before it had."""
    audit("rollout-auto-undo", rollout=rollout.number, channel=rollout.channel, reason=rollout.verdict)
    log.error("rollout %d of channel %s undoes itself: %s", rollout.number, rollout.channel, rollout.verdict)


def status_of(rollout: Rollout, members: Members) -> RolloutStatus:
    """One that is under way."""
    return _status(rollout, by_state(members.values()))


def summed_up(found: Summed) -> RolloutStatus:
    """The same, by what is counted of it."""
    return _status(found.rollout, found.counts.machines)


def _status(rollout: Rollout, machines: Mapping[MemberState, int]) -> RolloutStatus:
    return RolloutStatus(
        number=rollout.number,
        channel=rollout.channel,
        state=str(rollout.state),
        undoing=rollout.undoing,
        machines={str(state): count for state, count in machines.items()},
    )
