"""Bringing machines of a rollout back to what they had, by an operator's word or a verdict on the image. Pure."""

from collections.abc import Callable, Mapping

from netboot.lifecycle.rollout import ANEW, APART, Member, MemberState, Rollout, RolloutState


def brought_back(
    rollout: Rollout, members: Mapping[str, Member], verdict: str = ""
) -> tuple[Rollout, dict[str, Member]]:
    """Every machine boots what it had from now on, and those that run another image are brought back within the
    budgets. `verdict`: why, where nobody ordered it."""
    now = {"undoing": True, "state": RolloutState.RUNNING, "why": "", "blocked": None, "verdict": verdict}
    back = {name: _back(each, rollout.clock_ms) for name, each in members.items()}
    return rollout.model_copy(update=now), back


def no_way_back(rollout: Rollout, members: Mapping[str, Member], unusable: Callable[[str], str | None]) -> str:
    """Why machines would not boot with what they had, and what to do; "": they would, or are back with it. `unusable`:
    of an image, why it cannot be used."""
    through = APART | {MemberState.DONE} if rollout.undoing else APART
    for digest in sorted({each.previous for each in members.values() if each.state not in through}):
        if (fault := unusable(digest)) is not None:
            why = f"machines would have to go back to image {digest[:12]}, which cannot be used: {fault}"
            return f"{why}; `netboot channel set {rollout.channel} IMAGE --force` gives all of them another one"
    return ""


def _back(member: Member, clock_ms: int) -> Member:
    """One that is away says nothing of the way back, whatever becomes of it."""
    if member.state in APART:
        return member
    gone = member.state in (MemberState.OUT, MemberState.FAILED)
    state = MemberState.OUT if gone else MemberState.WAITING
    return member.model_copy(
        update={**ANEW, "state": state, "since": clock_ms, "tries": 0, "canary": False, "why": "", "accepted": gone}
    )
