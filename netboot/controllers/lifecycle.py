"""The lifecycle's loop: folds what the state has, what the cluster shows and the clocks into machines' conditions.

It looks at the machines of which something came, and at those whose deadline is there, so that a fleet in which nothing
happens costs a look at a dozen small files a second. A machine is judged from all that is known of it: nothing hangs on
the order in which it became known.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from netboot.controllers.found import Found, tell
from netboot.controllers.pieces import Going, unheard
from netboot.controllers.sight import REPORTS, Sight, cluster_place
from netboot.controllers.surroundings import Acts, Surroundings
from netboot.controllers.waiting import Waiting
from netboot.lifecycle.ailments import Ailing
from netboot.lifecycle.conditions import Judged, JudgedMachines
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.judge import Verdict, judge
from netboot.lifecycle.known import MOST_COUNTED, Declared, Known, counted, wants_claim
from netboot.lifecycle.ports import Clock, States
from netboot.lifecycle.seen_time import SeenTime
from netboot.lifecycle.state import MachineState
from netboot.status.controllers import LifecycleStatus

MOST = 100
"""Machines judged with one transaction; fewer after a failure."""
FIRST_MS = 30_000
"""How long nobody is judged after a start while the Nodes of a cluster have not been listed: else each restart of the
service would show every machine as one whose Node is gone, and move the moments of its conditions."""
KEEP_MS = 60_000
"""How often the clocks are written down where nothing else is: a crash sets them, and deadlines, back by so much."""


class LifecycleController:
    """`step` as often as you like. `declared(going)`: the machines in force, the very same object while they are; None:
    nothing is yet; `acts()` likewise; `look(up_ms)`: what can be seen."""

    def __init__(
        self,
        states: States,
        kept: JudgedMachines,
        declared: Callable[[Going], Mapping[str, Declared] | None],
        acts: Callable[[], Acts],
        look: Callable[[int], Sight],
        clock: Clock,
        up_ms: Callable[[], int],
    ) -> None:
        self._states, self._kept, self._look = states, kept, look
        self._declared, self._acts, self._clock, self._up_ms = declared, acts, clock, up_ms
        self._surroundings, self._waiting, self._found = Surroundings(), Waiting(), Found()
        self._clocks: SeenTime | None = None
        self._kept_at = self._started = 0
        self._at_once = MOST
        self._unseen: tuple[str, ...] = ()
        self._forget: set[str] = set()
        self._ailing: dict[str, Ailing] = {}
        self._problem = ""
        self._missing = False
        """Whether some of what was kept may be gone."""
        self.watched = False
        """Whether all machines have been judged since the start: what is found from then on was so a moment ago."""

    def told(self, machines: Iterable[str]) -> None:
        """Something came of these; called by other threads."""
        self._waiting.tell(machines)

    def step(self, going: Going = unheard) -> bool:
        """Look around, and judge some of the machines that wait for it; whether there are more. `going` is called again
        and again meanwhile, for another inventory or another list of Nodes is long."""
        try:
            more = self._step(going)
        except CannotTellError as error:
            self._problem, self._missing = str(error), True
            return False
        self._problem = ""
        return more

    def ailing(self) -> Mapping[str, Ailing] | None:
        """Machines that are not well; None: not all have been judged since the start. Called by other threads."""
        return dict(self._ailing) if self.watched else None

    def out(self) -> Collection[str] | None:
        """Machines that are out of service and fill a place of a budget; None as above. Called by other threads."""
        known = self._surroundings.declared
        there = {name for name in self._found.out.copy() if name in known and known[name].enabled}
        return there if self.watched else None

    def declared(self) -> Mapping[str, Declared]:
        """The machines that are judged. Called by other threads."""
        return self._surroundings.declared

    def status(self) -> LifecycleStatus:
        """For `/readyz` and metrics."""
        return LifecycleStatus(
            at_ms=self._clock.now_ms(),
            problem=self._problem,
            conditions=self._found.conditions(),
            overdue=self._found.overdue(),
            waiting=len(self._waiting),
            unseen=self._unseen,
            behind_seconds=round(self._waiting.longest_seconds(), 1),
            long_gated=self._found.long_gated(self._clock.now_ms()),
            unhealthy=self._found.unhealthy,
        )

    def _step(self, going: Going) -> bool:
        up_ms, declared = self._up_ms(), self._declared(going)
        if self._clocks is None:
            self._clocks, self._kept_at, self._started = SeenTime(self._kept.seen_time(), up_ms), up_ms, up_ms
        if declared is None:
            return False
        sight = self._look(up_ms)
        self._compare(declared, sight, going)
        if self._missing:  # what failed may have been a file that is made anew
            self._waiting.tell(declared.keys() - self._kept.names())
            self._missing = False
        self._pass_time(self._clocks, sight, up_ms)
        unlisted = set(self._surroundings.clusters()) - sight.nodes.keys()
        if unlisted and up_ms - self._started < FIRST_MS:
            return False
        names = self._waiting.take(self._at_once)
        try:
            self._judge(names, self._clocks, up_ms)
        except BaseException:
            self._waiting.tell(names)
            self._at_once = max(1, len(names) // 2)  # one that cannot be judged keeps none of the others waiting
            raise
        self._at_once = min(MOST, 2 * self._at_once)
        more = len(self._waiting) > 0
        self.watched = self.watched or not more
        return more

    def _compare(self, declared: Mapping[str, Declared], sight: Sight, going: Going) -> None:
        before = self._surroundings.declared
        if declared is not before:
            known = before.keys() if before else self._kept.names()
            self._forget = {name for name in (*self._forget, *known) if name not in declared}
            self._waiting.tell(self._surroundings.take_declared(declared, going))
        self._waiting.tell(self._surroundings.take_nodes(sight.nodes, going))
        self._waiting.tell(self._surroundings.take_words(sight.words))
        self._waiting.tell(self._surroundings.take_acts(self._acts()))

    def _pass_time(self, clocks: SeenTime, sight: Sight, up_ms: int) -> None:
        """Clocks go on where it can be seen; machines whose deadline has come by them wait to be looked at."""
        clusters = {each for each in self._surroundings.clusters() if cluster_place(each) in sight.seeing}
        seen, unseen = self._surroundings.places(clusters)
        clocks.look(sight.seeing | seen, up_ms)
        self._unseen = tuple(sorted(unseen | ({REPORTS} - sight.seeing)))
        self._waiting.pass_time(clocks.values)

    def _judge(self, names: Sequence[str], clocks: SeenTime, up_ms: int) -> None:
        declared = [self._surroundings.declared[name] for name in names if name in self._surroundings.declared]
        before = self._kept.judged([each.name for each in declared]) if declared else {}
        verdicts = [self._verdict(each, before.get(each.declared.name), clocks) for each in self._known(declared)]
        changed = [each.judged for each in verdicts if each.judged != before.get(each.judged.machine)]
        if changed or self._forget or up_ms - self._kept_at >= KEEP_MS:
            self._kept.keep(changed, self._forget, clocks.values)
            self._kept_at = up_ms
        self._surroundings.take_lost({each.judged.machine: each.lost for each in verdicts})
        for judged, dues, _, ailing in verdicts:
            self._found.put(judged)
            self._waiting.plan(judged.machine, dues)
            self._note(judged.machine, ailing)
        for judged in changed:
            tell(before.get(judged.machine), judged)
        for name in self._forget:
            self._found.drop(name)
            self._waiting.plan(name, ())
            self._note(name, None)
        self._forget.clear()

    def _note(self, machine: str, ailing: Ailing | None) -> None:
        if ailing is None:
            self._ailing.pop(machine, None)
        else:
            self._ailing[machine] = ailing

    def _known(self, declared: Sequence[Declared]) -> list[Known]:
        """All that there is about these."""
        states = self._states.machines([each.name for each in declared]) if declared else {}
        known = []
        for each in declared:
            state, node = states.get(each.name, MachineState(machine=each.name)), self._surroundings.node(each)
            newest = self._states.boots(each.name, 1) if wants_claim(state, node) else []
            claim = newest[0] if newest else None
            least = counted(each, state, claim, node)
            tries = self._states.since_ready(each.name, least, MOST_COUNTED) if least is not None else ()
            marks, word = self._surroundings.marks(each.name), self._surroundings.word(each)
            known.append(Known(each, state, claim, node, marks, tries, word))
        return known

    def _verdict(self, known: Known, before: Judged | None, clocks: SeenTime) -> Verdict:
        return judge(known, before, clocks.values, self._clock.now_ms())
