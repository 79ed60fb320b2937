"""Whether a rollout has to stop, and whether its image is why. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from netboot.lifecycle.rollout import Member, MemberState
from netboot.lifecycle.rollout_batch import Batch, racks_of

TWO = 2
"""Machines, and racks, that a verdict on an image needs."""
SHARE = 10
"""Of so many that were tried with it one has to have failed, where nobody looks before all are brought back."""


class Stop(NamedTuple):
    """`why`: in words; `failed`: those that failed with the image, none where it has another cause; `served`: how many
    are in service with it; `advice`: to whom it is paused for."""

    why: str
    failed: Sequence[Member] = ()
    served: int = 0
    advice: str = ""

    @property
    def no_verdict(self) -> str:
        """Why it may be the fault of machines, or of a rack, and not the image's; "": that would be much chance."""
        failed, tried = len(self.failed), len(self.failed) + self.served
        if len(racks_of(self.failed)) < TWO:
            return "machines of one rack are no verdict on an image"
        if failed * SHARE < tried:
            return f"{failed} of {tried} are no verdict on an image, for machines break by themselves"
        return ""


def stop(batch: Batch, obstacle: str) -> Stop | None:
    """Why it goes no further; None: it does. `obstacle`: what is in its way, whatever machines do."""
    rollout, failed = batch.rollout, _failed(batch)
    if why := obstacle or _in_vain(batch):
        return Stop(why)
    if not failed or (rollout.undoing and not rollout.verdict):
        return None
    first = f"{failed[0].machine}: {failed[0].why}"
    most = max(TWO, batch.most)
    if rollout.undoing:  # by itself: nobody looks after it
        several = f"{len(failed)} machines did not come back from the undo, and {most} stop it; {first}"
        return Stop(several) if len(failed) >= most else None
    if why := _against(batch, failed, most):
        return Stop(f"{why}{first}", failed, len(_of(batch, MemberState.DONE)))
    if control := [each for each in failed if each.named]:
        return Stop(f"a machine of a control plane failed, and one stops it; {control[0].machine}: {control[0].why}")
    return None


def outnumbered(batch: Batch) -> Stop | None:
    """Of a rollout that is through: whether more failed than are in service with the image."""
    failed, done = _of(batch, MemberState.FAILED), _of(batch, MemberState.DONE)
    if len(failed) <= len(done):
        return None
    why = f"{len(failed)} machines failed, and {len(done)} are in service with it"
    return Stop(why, _failed(batch), len(done), ": undo it")


def _against(batch: Batch, failed: list[Member], most: int) -> str:
    rollout = batch.rollout
    if rollout.unproven:
        return "one machine failed, and without a second rack one stops it: "
    canaries = [each for each in failed if each.canary]
    if not rollout.rolling and len(canaries) >= TWO and len(racks_of(canaries)) >= TWO:
        return f"{len(canaries)} canaries in {len(racks_of(canaries))} racks failed, which is the image's fault; "
    if len(failed) >= most:
        return f"{len(failed)} machines failed, and {most} stop it; "
    later, served = _behind_canaries(failed), _behind_canaries(_of(batch, MemberState.DONE))
    if rollout.rolling and len(later) >= max(TWO, len(served)):  # whatever the budget: it may be the whole fleet
        return f"{len(later)} machines failed after the canaries, and {len(served)} came into service with it; "
    return ""


def _in_vain(batch: Batch) -> str:
    """Whether orders come to nothing: whoever is drained and not rebooted is disturbed for nothing."""
    vain = [each for each in _of(batch, MemberState.SKIPPED) if each.undone and not each.accepted]
    most = max(TWO, batch.most if batch.rollout.rolling else TWO)
    if len(vain) < most:
        return ""
    return f"{len(vain)} machines were not rebooted, and {most} stop it; {vain[0].machine}: {vain[0].why}"


def _of(batch: Batch, state: MemberState) -> list[Member]:
    return [each for each in batch.members.values() if each.state is state]


def _failed(batch: Batch) -> list[Member]:
    """Those of which no operator has said since that it is to go on."""
    return [each for each in _of(batch, MemberState.FAILED) if not each.accepted]


def _behind_canaries(members: list[Member]) -> list[Member]:
    return [each for each in members if not each.canary]
