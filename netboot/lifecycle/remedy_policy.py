"""Which remedy is due, and what withholds it. Pure: the same facts come to the same, in whatever order they came.

What a class says is done one after the other, with its wait before each; a Node that is not Ready is never drained,
for nothing there could answer. Whatever somebody else has taken in hand is left alone.
"""

from bisect import bisect_right
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from images.values.faults import first_few
from netboot.lifecycle.budget import BY_ITSELF, Out, Places, Refusal, by_whom
from netboot.lifecycle.intents import Exemption
from netboot.lifecycle.reasons import Reason
from netboot.lifecycle.remedies import DAY_MS, WHO, Books, Case, End, Fleet, Pause, Remedy, Standing
from netboot.machines.remedies import Action, Rules

TOGETHER, TOGETHER_MS = 3, 600_000
"""So many machines, in two racks at least, that fail for the same reason within so long have one cause, which no remedy
of a machine takes away."""
NAMED = 5


class Decision(NamedTuple):
    """`what`: the next one; None: there is none; `due`: its time has come; `words`: what withholds it; `now`: the rest
    of the sentence, which changes all the time and is not kept."""

    what: Action | None
    due: bool
    words: str
    now: str = ""

    @property
    def acts(self) -> bool:
        """It is to be taken now."""
        return self.what is not None and self.due and not self.words


def decide(case: Case, books: Books, fleet: Fleet) -> Decision:
    """What is to be done about a machine."""
    if words := _taken_in_hand(case, books):
        return Decision(None, due=False, words=words)
    what = _next(case, books)
    if what is None:
        return Decision(None, due=False, words=f"nothing more is done about it today{_said_by(case.rules)}")
    if case.waited_ms < case.rules.remedies.wait * 1000:
        return Decision(what, due=False, words="")
    if words := _withheld(case, books, fleet):
        return Decision(what, due=True, words=words)
    full = room(case, books, fleet)
    return Decision(what, True, full.limit, full.out) if full is not None else Decision(what, due=True, words="")


def _taken_in_hand(case: Case, books: Books) -> str:
    """Who does something about it already; "": nobody."""
    ours = {remedy.owner: remedy for remedy in books.taken} | {each.drain: each for each in books.taken if each.drain}
    if (drain := books.drains.get(case.machine)) is not None:
        by = f"remedy {ours[drain.id].id}" if drain.id in ours else drain.who
        return f"it is to be {'rebooted' if drain.what == 'reboot' else 'drained'}, by {by}: {drain.reason}"
    for intent in books.intents.get(case.machine, ()):
        accepted = intent.mark is Exemption.ACCEPTED
        if not accepted or case.ailment.reason is Reason.CHECKS_FAILED:
            by = f"remedy {ours[intent.owner].id}" if intent.owner in ours else intent.who
            return f"it is {intent.mark.value.lower()}, by {by}: {intent.reason}"
    return ""


def _next(case: Case, books: Books) -> Action | None:
    rest = list(case.rules.remedies.actions)
    for each in _today(case.machine, books):  # what stood before it in the list was passed over, and is over too
        rest = rest[rest.index(each.what) + 1 :] if each.what in rest else []
    return next((action for action in rest if case.ready or action == "quarantine"), None)


def _today(machine: str, books: Books) -> list[Remedy]:
    """Those of the last day; a clock that was set back makes none of them older."""
    return [each for each in books.taken if each.machine == machine and books.now_ms - each.at_ms < DAY_MS]


def _withheld(case: Case, books: Books, fleet: Fleet) -> str:
    if not case.rules.remedies.act:
        return f"it is not to act by itself{_said_by(case.rules)}: `remedies: {{act: true}}`"
    if case.rules.replicas:
        return "of several replicas none acts by itself, for the others would not know of it (docs/ha.md)"
    if books.pause is not None and books.pause.stands:
        return paused(books.pause)
    return case.unseen or case.elsewhere or fleet.withheld


def room(case: Case, books: Books, fleet: Fleet) -> Refusal | None:
    """Why no further machine may be put under a remedy now; None: this one may."""
    remedies = case.rules.remedies
    under = {each.machine: f"by remedy {each.id}" for each in books.taken if each.end is None}
    by = dict(fleet.out) | under | by_whom(books.drains.values(), chain(*books.intents.values()))
    out = {name: Out(fleet.racks[name], said) for name, said in by.items() if name in fleet.racks}
    out.pop(case.machine, None)
    said_by = _said_by(case.rules)
    return Places(remedies.most(fleet.machines), remedies.per_rack, out, said_by=said_by).refusal(case.rack)


def unrecorded(out: Iterable[str], ailing: Container[str], elsewhere: Mapping[str, str]) -> dict[str, str]:
    """Who is out of service by no word that `Books` have, for `Fleet`. Who waits for a remedy fills no place of it, or
    two machines of a rack would wait for each other."""
    return {name: elsewhere.get(name, BY_ITSELF) for name in out if name in elsewhere or name not in ailing}


def under_remedy(taken: Iterable[Remedy]) -> set[str]:
    """Machines that are, until they are back."""
    return {remedy.machine for remedy in taken if remedy.end is None}


def paused(pause: Pause) -> str:
    """Why, in words."""
    return f"remedies are paused by {pause.who}: {pause.reason}"


def fleet_wide(pause: Pause | None) -> str:
    """The cause for which netboot paused them itself; "": it did not, or somebody resumed."""
    return paused(pause) if pause is not None and pause.stands and pause.who == WHO else ""


def common_cause(cases: Collection[Case], books: Books) -> str:
    """Why machines that are not well are a matter of the fleet and not theirs; "": they are not, or nothing would be
    done about any of them. Those that somebody has taken in hand say nothing, nor does what was found before somebody
    resumed; a machine without a rack is taken for one in a rack of its own."""
    resumed = books.pause.since_ms if books.pause is not None and not books.pause.stands else 0
    untouched = [case for case in cases if case.ailment.since_ms > resumed and not _taken_in_hand(case, books)]
    for reason in sorted({case.ailment.reason for case in untouched}):
        near = _together([case for case in untouched if case.ailment.reason is reason])
        if near:
            racks = len({_rack(case) for case in near})
            return f"{_named(near)} in {racks} racks are not well for one reason, {reason}, within ten minutes"
    return ""


def _together(cases: Collection[Case]) -> Sequence[Case]:
    """The first that were found within ten minutes of each other, are enough and in racks enough, and about one of
    which something would be done. Linear: half of a fleet may be here."""
    found = sorted(cases, key=lambda case: (case.ailment.since_ms, case.machine))
    times = [case.ailment.since_ms for case in found]
    elsewhere, acting = len(found), len(found)
    first: Sequence[Case] = ()
    for place in reversed(range(len(found))):
        if place + 1 < len(found) and _rack(found[place]) != _rack(found[place + 1]):
            elsewhere = place + 1  # the next that is in another rack
        if found[place].rules.remedies.act:
            acting = place  # the next about which something would be done
        end = bisect_right(times, times[place] + TOGETHER_MS)
        if end - place >= TOGETHER and elsewhere < end and acting < end:
            first = found[place:end]
    return first


def _rack(case: Case) -> str:
    return case.rack or f"of {case.machine} alone"


def end_of(remedy: Remedy, books: Books, *, back: bool, gone: bool) -> End | None:
    """How a remedy that was taken has ended; None: its machine is under it still, however it is. `back`: it is in
    service, in a boot after that of the remedy; `gone`: retired, or in the inventory no more."""
    if gone:
        return "gone"
    if remedy.what == "quarantine":
        stands = any(intent.owner == remedy.owner for intent in books.intents.get(remedy.machine, ()))
        return None if stands else "readmitted"
    order = books.orders.get(remedy.drain)
    if order is not None and order.end in ("taken-off", "replaced", "undone", "withdrawn"):
        return order.end
    waits = order is not None and order.end is None
    return "back" if back and not waits else None


def _named(cases: Sequence[Case]) -> str:
    return first_few([case.machine for case in cases], NAMED)


def _said_by(rules: Rules) -> str:
    return f" ({rules.said_by or 'default'})"


def recorded(case: Case, decision: Decision, outcome: Literal["taken", "withheld"], now_ms: int) -> Remedy:
    """As it is written down."""
    fields = {"at_ms": now_ms, "machine": case.machine, "what": decision.what, "outcome": outcome}
    words = decision.words if outcome == "withheld" else ""
    return Remedy.model_validate({**fields, **case.ailment.model_dump(), "words": words})


def standing(case: Case, decision: Decision) -> Standing:
    """As it is shown."""
    left = 0 if decision.due else max(0, case.rules.remedies.wait - case.waited_ms // 1000)
    return Standing(
        machine=case.machine,
        reason=case.ailment.reason,
        since_ms=case.ailment.since_ms,
        message=case.ailment.message,
        what=decision.what or "",
        left_seconds=left if decision.what else 0,
        words=f"{decision.words}{decision.now}",
    )
