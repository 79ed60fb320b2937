"""Helps machines that are not well, within budgets: looks every few seconds, and writes down what it does or withholds.

What has to outlive the process is on record with the orders themselves. Waits are counted anew after a restart, by
clocks that stand still while nobody can see: it only acts later.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from netboot.controllers.audited import audit
from netboot.controllers.waits import Waits, wait_of
from netboot.controllers.watching import blind, unheard
from netboot.lifecycle.ailments import Ailing
from netboot.lifecycle.conditions import Ailment, Judged
from netboot.lifecycle.control_planes import LEFT_ALONE
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import Freezes, Signals, permission
from netboot.lifecycle.known import Declared
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.remedies import (
    MOST_SHOWN,
    WHO,
    Books,
    Case,
    End,
    Fleet,
    Pause,
    RemediesStatus,
    RemedyStore,
    Taking,
)
from netboot.lifecycle.remedy_policy import (
    Decision,
    common_cause,
    decide,
    end_of,
    fleet_wide,
    paused,
    recorded,
    standing,
    under_remedy,
    unrecorded,
)
from netboot.machines.maintenance import Window
from netboot.status.controllers import LifecycleStatus

log = logging.getLogger(__name__)

LOOK_MS = 5_000
MOST_WRITES = 50
"""With one look: each waits for the disk, and rollouts wait for all of them. The next look goes on."""


class Surveyed(NamedTuple):
    """What the controller looks at. `ailing()`: machines that are not well, None: not all were judged since the start;
    `declared()`: all; `judged(names)`: what was found of machines; `lifecycle()`: what its loop said last;
    `elsewhere()`: machine → which rollout has it; `windows()`: when something may begin; `evidence(machine, ailment)`:
    what is at hand; `out()`: those out of service, None as above; `control()`: those of a control plane. Each but the
    first two may raise CannotTellError."""

    ailing: Callable[[], Mapping[str, Ailing] | None]
    declared: Callable[[], Mapping[str, Declared]]
    judged: Callable[[Sequence[str]], Mapping[str, Judged]]
    lifecycle: Callable[[], LifecycleStatus | None]
    elsewhere: Callable[[], Mapping[str, str]]
    windows: Callable[[], Sequence[Window]]
    evidence: Callable[[str, Ailment], str]
    out: Callable[[], Collection[str] | None]
    control: Callable[[], Collection[str]]


class RemedyController:
    """`step` as often as you like; `say`: publishes."""

    def __init__(
        self,
        store: RemedyStore,
        seen: Surveyed,
        freezes: Freezes,
        signals: Signals,
        clock: Clock,
        up_ms: Callable[[], int],
        say: Callable[[RemediesStatus], object],
    ) -> None:
        self._store, self._seen, self._freezes, self._signals = store, seen, freezes, signals
        self._clock, self._up_ms, self._say = clock, up_ms, say
        self._looked: int | None = None
        self._out: Mapping[str, str] = {}
        self._waits = Waits()
        self._unread: dict[str, str] = {}  # machines whose evidence cannot be read, and why; they come last
        self._noted: dict[str, tuple[object, ...]] = {}
        self._taken: Counter[str] = Counter(reboot=0, quarantine=0)
        self._status = RemediesStatus(at_ms=0)
        self._found = ""  # by the last look, why this is a matter of the fleet, whoever has paused remedies

    def step(self) -> None:
        """Look, where it is time to."""
        up_ms = self._up_ms()
        if self._looked is not None and up_ms - self._looked < LOOK_MS:
            return
        self._looked = up_ms
        try:
            self._look(up_ms)
        except CannotTellError as error:
            self._status = self._status.model_copy(update={"problem": str(error)})
        self._say(self._status.model_copy(update={"at_ms": self._clock.now_ms()}))

    def _look(self, up_ms: int) -> None:
        ailing, declared, said = self._seen.ailing(), self._seen.declared(), self._seen.lifecycle()
        unseen = unheard(said, up_ms)
        if ailing is None and not unseen:
            unseen = "not all machines have been judged since the start"
        books = self._store.books(self._clock.now_ms())
        if not unseen:
            books = self._settled(books, declared)
        cases = self._cases(ailing or {}, books, said, unseen, up_ms)
        books = self._stopped(cases, books)
        decided, fleet = [], self._fleet(books, declared) if cases else Fleet(0, {})
        left = MOST_WRITES
        for case in cases:
            decision = decide(case, books, fleet)
            if left and decision.acts and self._take(case, declared):
                books = self._store.books(self._clock.now_ms())
                fleet = self._fleet(books, declared)
                decision, left = decide(case, books, fleet), left - 1
            elif left and decision.due and decision.words:
                left -= self._note(case, decision)
            if decision.acts and (why := self._unread.get(case.machine)):
                decision, left = decision._replace(words=f"what is at hand of its boot cannot be read: {why}"), 0
            decided.append((case, decision))
        self._publish(decided, books, unseen or blind(said))

    def _cases(
        self, ailing: Mapping[str, Ailing], books: Books, said: LifecycleStatus | None, unseen: str, up_ms: int
    ) -> list[Case]:
        """The longest ill first. Their waits go on where they can be seen."""
        hidden = set(said.unseen) if said is not None else set[str]()
        places = {each.declared.places.nodes for each in ailing.values()}
        self._waits.look(ailing, set() if unseen else places - hidden, up_ms)
        elsewhere, control = (self._seen.elsewhere(), self._seen.control()) if ailing else ({}, ())
        self._out = unrecorded((self._seen.out() or ()) if ailing else (), ailing, elsewhere)
        self._noted = {name: noted for name, noted in self._noted.items() if name in ailing}
        self._unread = {name: why for name, why in self._unread.items() if name in ailing}
        cases = []
        for name, each in ailing.items():
            place = each.declared.places.nodes
            where = unseen or (f"{place.rstrip('/')} cannot be looked at" if place in hidden else "")
            held = f"{each.holder}: netboot leaves it alone until it is let go" if each.holder else ""
            case = Case(
                machine=name,
                rack=each.declared.rack,
                ailment=each.ailment,
                ready=each.ready,
                rules=each.declared.rules,
                waited_ms=self._waits.waited(name, wait_of(name, each.ailment, books), place),
                unseen=where,
                elsewhere=held or (LEFT_ALONE if name in control else elsewhere.get(name, "")),
            )
            cases.append(case)
        return sorted(cases, key=lambda case: (case.machine in self._unread, case.ailment.since_ms, case.machine))

    def _settled(self, books: Books, declared: Mapping[str, Declared]) -> Books:
        """Those that have ended, written down."""
        under = [each for each in books.taken if each.end is None]
        judged = self._seen.judged([each.machine for each in under]) if under else {}
        ends: dict[int, End] = {}
        for each in under:
            found = judged.get(each.machine)
            service = found.condition(ConditionType.IN_SERVICE) if found is not None else None
            back = service is not None and service.status == "True" and found is not None and found.boot != each.boot
            retired = service is not None and service.reason is Reason.RETIRED
            end = end_of(each, books, back=back, gone=retired or each.machine not in declared)
            if end is not None:
                ends[each.id] = end
                log.info("a remedy ended", extra={"fields": {"machine": each.machine, "remedy": each.id, "end": end}})
        if not ends:
            return books
        self._store.settle(ends, self._clock.now_ms())
        return self._store.books(self._clock.now_ms())

    def _stopped(self, cases: Sequence[Case], books: Books) -> Books:
        """Where machines that are not well are a matter of the fleet, nothing begins until a person says so."""
        self._found = common_cause(cases, books)
        if not self._found or (books.pause is not None and books.pause.stands):
            return books
        if self._store.pause(Pause(stands=True, who=WHO, reason=self._found, since_ms=self._clock.now_ms())):
            audit("remedies-pause", reason=self._found)
            log.error("remedies are paused until `netboot remedies resume`", extra={"fields": {"reason": self._found}})
        return self._store.books(self._clock.now_ms())

    def _fleet(self, books: Books, declared: Mapping[str, Declared]) -> Fleet:
        said = permission(self._freezes, self._signals, self._seen.windows(), self._clock.now_ms())
        names = under_remedy(books.taken) | books.drains.keys() | books.intents.keys() | self._out.keys()
        racks = {name: declared[name].rack for name in names if name in declared}
        return Fleet(len(declared), racks, "" if said.may else f"nothing begins: {said.reason}", self._out)

    def _take(self, case: Case, declared: Mapping[str, Declared]) -> bool:
        """Carry it out, unless that is not to be any more by what is on record then."""
        try:
            evidence = self._seen.evidence(case.machine, case.ailment)
        except CannotTellError as error:
            self._unread[case.machine] = str(error)
            return False
        self._unread.pop(case.machine, None)
        taken = self._store.take(partial(self._taking, case, declared, evidence), self._clock.now_ms())
        if taken is not None:
            self._taken[taken.what] += 1
            about = {"machine": taken.machine, "remedy": taken.id, "reason": f"{taken.reason}: {taken.message}"}
            audit(f"remedy-{taken.what}", **about)
            log.warning("a remedy was begun", extra={"fields": {"what": taken.what, **about}})
        return taken is not None

    def _taking(self, case: Case, declared: Mapping[str, Declared], evidence: str, books: Books) -> Taking | None:
        decision = decide(case, books, self._fleet(books, declared))
        return Taking(recorded(case, decision, "taken", books.now_ms), evidence) if decision.acts else None

    def _note(self, case: Case, decision: Decision) -> bool:
        """Whether that is another reason than the one before."""
        told = (decision.what, case.ailment.reason, case.ailment.boot, decision.words)
        if self._noted.get(case.machine) == told:
            return False
        self._store.note(recorded(case, decision, "withheld", self._clock.now_ms()))
        self._noted[case.machine] = told
        return True

    def cause(self) -> str:
        """Why failures may be a matter of the fleet, for rollouts; "": nothing says so. Raises CannotTellError."""
        return fleet_wide(self._store.books(self._clock.now_ms()).pause) or self._found

    @property
    def problem(self) -> str:
        """Why it does not go on; "": it does."""
        return self._status.problem

    def _publish(self, decided: Sequence[tuple[Case, Decision]], books: Books, unseen: str) -> None:
        self._status = RemediesStatus(
            at_ms=books.now_ms,
            problem=next(iter(self._unread.values()), ""),
            unseen=unseen,
            paused=paused(books.pause) if books.pause is not None and books.pause.stands else "",
            ailing=len(decided),
            withheld=sum(decision.due and bool(decision.words) for _, decision in decided),
            under=len(under_remedy(books.taken)),
            machines=tuple(standing(case, decision) for case, decision in decided[:MOST_SHOWN]),
            taken=dict(self._taken),
        )
