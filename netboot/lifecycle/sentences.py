"""What conditions say, for people: the same sentence in the command line, the API and the log. No sentence holds what
changes by itself (an age), so that it is written once for each change."""

from collections.abc import Mapping, Sequence

from images.values.durations import in_words
from netboot.lifecycle.conditions import moment
from netboot.lifecycle.phases import REPORTED_PHASES, Phase
from netboot.lifecycle.reasons import Reason
from netboot.lifecycle.state import CLAIMS_KEPT, Standing, standing
from netboot.lifecycle.trace import Trace
from netboot.lifecycle.transitions import PLACE, Gate, Step, Trouble
from netboot.machines.boot_limit import BootLimit
from netboot.machines.deadlines import Deadline

STUCK: Mapping[Step, str] = {
    Phase.SCRIPT_SERVED: "it has its script and has not fetched its kernel: its firmware stopped, or lost the network",
    Phase.KERNEL_FETCHED: "it has its kernel and has not fetched its initrd: its firmware stopped, or lost the network",
    Phase.INITRD_FETCHED: (
        "it has kernel and initrd, and its initrd has said nothing: the kernel hangs, or has no network"
    ),
    Phase.INITRD_STARTED: "its initrd runs and has not fetched the root image: the network, or every origin of it",
    Phase.IMAGE_FETCHED: "it has the root image and has not verified it: it is damaged, or the memory is too small",
    Phase.IMAGE_VERIFIED: "it has verified the root image and has not switched to it: see its console",
    Phase.SWITCHED: "it runs the root image, and has not reached multi-user.target: a unit hangs, or the kernel",
    Phase.BOOTED: "it is up and does not begin to join: the image has no agent, or the agent's unit failed",
    Phase.JOINING: "it asks to join and has not proven itself: see `netboot machine show`, and its agent's journal",
    Phase.ATTESTED: "it has proven itself and got no token: see the log of the join server",
    Phase.TOKEN_ISSUED: "it has its token, and no certificate was approved: its kubelet does not ask, or is refused",
    Phase.CSR_APPROVED: "its certificate is approved, and no Node registered: its kubelet does not reach the cluster",
    Phase.NODE_REGISTERED: "its Node is there and was never Ready: its kubelet, or the network of Pods, is not up",
    Gate.HEALTH_GATED: "its Node is Ready and may not take work: netboot.dev/unchecked is still on it",
}
"""Of a boot that got no further than this, by the deadline: what is known, and what is likely."""
HEARD = "; last heard: "
"""Between what was found of a boot and the last fact of it."""


def lasting(deadline: Deadline) -> str:
    """A deadline, and by whose word."""
    return f"{in_words(deadline.seconds)} ({deadline.said_by or 'default'})"


def last_heard(trace: Trace) -> str:
    """The last fact of a boot, by the time at which it came."""
    at_ms, what, detail = _last(trace)
    return f"{what} at {moment(at_ms)}" + (f", {detail!r}" if detail else "")


def said_last(trace: Trace) -> str:
    """The machine's own words in `last_heard`, as it said them; empty: it said none, or the fact is not by its word."""
    _, what, detail = _last(trace)
    return detail if what in REPORTED_PHASES else ""


def _last(trace: Trace) -> tuple[int, str, str]:
    facts = [(reached.at_ms, str(reached.phase), reached.detail) for reached in trace.reached]
    facts += [(failure.at_ms, str(Phase.FAILED), failure.detail) for failure in trace.failures]
    facts += [(crash.at_ms, "a crash that it found", "") for crash in trace.crashes]
    if not facts and trace.console is not None:  # it comes again and again, and tells of no step
        facts.append((trace.console.first_ms, "the first lines of its console", ""))
    if not facts:  # of a boot that came to other replicas: what is issued is told to all
        facts += [(issued.at_ms, "a client certificate", "") for issued in trace.certificates]
    return max(reversed(facts), key=lambda fact: fact[0])


def reached(trace: Trace, step: Step) -> str:
    """Which boot, and how far."""
    fact = trace.phase(step) if isinstance(step, Phase) else None
    return f"boot {trace.boot} reached {step}" + (f" at {moment(fact.at_ms)}" if fact is not None else "")


def booting(trace: Trace, step: Step, deadline: Deadline) -> str:
    """On its way."""
    limit = f"; the next phase may take {lasting(deadline)}" if deadline.seconds else ""
    return f"{reached(trace, step)}{limit}"


def newer(trace: Trace, step: Step, trouble: Trouble, deadline: Deadline) -> str:
    """Of a boot that began while the one that proved itself is in trouble."""
    which = f"boot {trace.boot}, which only reports,"
    if trouble is Trouble.STUCK:
        return f"{which} reached {step} and nothing beyond in {lasting(deadline)}: {STUCK[step]}"
    if trouble is Trouble.FAILED:
        return f"{which} says that it failed after {step}: {trace.reason or 'not why'}"
    limit = f"; its next phase may take {lasting(deadline)}" if deadline.seconds else ""
    return f"{which} reached {step}{limit}"


WORD: Mapping[Standing, str] = {
    Standing.CLAIMED: "scripts that were served in its name, to whoever asked",
    Standing.REPORTED: "boots by their own word",
    Standing.PROVEN: "boots that proved themselves",
}
"""By whose word boots are counted."""


def looping(tries: Sequence[Trace], limit: BootLimit, *, joins: bool) -> str:
    """Too many boots that came to nothing, newest first."""
    trace, began = tries[0], [each.started_ms for each in tries]
    many = "at least " if len(tries) >= CLAIMS_KEPT else ""
    minutes = max(1, -((min(began) - max(began)) // 60_000))  # rounded up
    reached = (fact.phase for each in tries for fact in each.reached)
    furthest = max(reached, key=PLACE.__getitem__, default=Phase.SCRIPT_SERVED)
    limits = f"more than {limit.boots} ({limit.said_by or 'default'}) are a loop"
    return (
        f"{many}{len(tries)} {WORD[min(standing(each) for each in tries)]}, in {in_words(60 * minutes)}, and none was "
        f"{'Ready' if joins else 'up'}: {limits}; the furthest phase of all is {furthest}, the newest is boot "
        f"{trace.boot}{HEARD}{last_heard(trace)}"
    )


def stuck(trace: Trace, step: Step, deadline: Deadline) -> str:
    """Its deadline is past."""
    return f"{reached(trace, step)} and nothing beyond in {lasting(deadline)}: {STUCK[step]}{HEARD}{last_heard(trace)}"


def overdue(trace: Trace, step: Step, deadline: Deadline) -> str:
    """The same of a boot that proved itself, by what was observed alone."""
    return f"{reached(trace, step)} and nothing beyond in {lasting(deadline)}: {STUCK[step]}"


def not_ready(trace: Trace, deadline: Deadline) -> str:
    """Its Node is there, and is not Ready."""
    return f"boot {trace.boot}: its Node has not been Ready for {lasting(deadline)}"


def checks_failed(trace: Trace) -> str:
    """Its node says so itself."""
    return f"boot {trace.boot}: its node says, under a certificate of this boot, that a check failed"


def failed(trace: Trace, step: Step) -> str:
    """It says so itself."""
    failure = trace.failures[-1]
    return (
        f"boot {trace.boot} says that it failed after {step}, at {moment(failure.at_ms)}: {failure.detail or 'not why'}"
    )


def lost(trace: Trace, deadline: Deadline, *, joins: bool) -> str:
    """It was up, and is not heard of any more."""
    what = "its Node has not been Ready" if joins else "it has sent no health report"
    return f"boot {trace.boot}: {what} for {lasting(deadline)}{HEARD}{last_heard(trace)}"


def without(message: str, said: str, reason: str) -> str:
    """What a condition says but for the machine's own words in it, which begin where `said` is found first: all that
    stands before them is ours."""
    words = f": {said}" if reason == Reason.FAILED else f", {said!r}"
    return message.replace(words, "", 1) if said else message
