"""What is known of machines, for what their objects say: `netboot.controllers.shipper.Known`, over files of `data`."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from netboot.lifecycle.conditions import Conditions
from netboot.lifecycle.decide import Boot, decide_machine
from netboot.lifecycle.history import ProvenBoots
from netboot.lifecycle.object_boots import MOST_BOOTS
from netboot.lifecycle.object_health import health_told
from netboot.lifecycle.object_status import Facts
from netboot.lifecycle.ports import Sightings, States
from netboot.lifecycle.published import View
from netboot.lifecycle.summary import MachineSummary, Summaries
from netboot.lifecycle.trace import Trace
from netboot.machines.values import Machine
from netboot.status import up_ms
from netboot.status.controllers import LifecycleStatus, ProjectionStatus, not_of_now
from netboot.stores.live import LiveView
from netboot.stores.status import StatusFolder

PAGE, MOST_PAGES = 500, 20
"""Entries of the feed in one look."""


class Seen(States, Sightings, ProvenBoots, Protocol):
    """The state, for reading."""


class Found(Conditions, Summaries, Protocol):
    """What was found of machines, for reading."""


class ObjectFacts:
    """For one thread."""

    def __init__(
        self, live: LiveView, states: Seen, conditions: Found, said: StatusFolder, *, shares: bool = False
    ) -> None:
        """`said`: what the controllers say of themselves; `shares`: other replicas go by what objects say."""
        self._shares = shares
        self._live, self._states, self._conditions, self._said = live, states, conditions, said
        self._view: View | None = None
        self._in_force: Mapping[str, tuple[Machine, str]] = {}
        self._summaries: Mapping[str, MachineSummary] = {}
        self._place: int | None = None
        self._found = set[str]()
        """What was found, and nobody was told: what came after it could not be read."""

    def changed(self) -> set[str] | None:
        if (view := self._live.view()) is not self._view:
            known, now = self._in_force, {each.name: _in_force(view, each) for each in view.snapshot.inventory.machines}
            self._found |= {name for name in known.keys() | now.keys() if known.get(name) != now.get(name)}
            self._view, self._in_force = view, now
        if (summaries := self._conditions.summaries()) is not self._summaries:
            judged, self._summaries = self._summaries, summaries  # what was found anew is another object
            self._found |= {name for name, each in summaries.items() if judged.get(name) is not each}
            self._found |= judged.keys() - summaries.keys()
        heard = self._heard()
        found, self._found = self._found, set()
        return None if heard is None else found | heard

    def _heard(self) -> set[str] | None:
        """Of which anything happened; None: that cannot be told."""
        if self._place is None:
            self._place = self._last()
            return None
        found = set[str]()
        for _ in range(MOST_PAGES):
            entries = self._states.feed(self._place, PAGE)
            if not entries and self._last() < self._place:  # the state was lost: entries begin anew
                self._place = None
                return None
            found |= {entry.machine for entry in entries}
            self._place = max((entry.id for entry in entries), default=self._place)
            if len(entries) < PAGE:
                break
        return found

    def _last(self) -> int:
        return max((entry.id for entry in self._states.feed(None, 1)), default=0)

    def facts(self, names: Sequence[str]) -> Mapping[str, Facts | None]:
        view = self._live.view()
        judged, states = self._conditions.judged(names), self._states.machines(names)
        proven, found = self._states.proven(names), dict[str, Facts | None]()
        profiles = {each.name: each for each in view.snapshot.inventory.profiles}
        classes = {each.name: each for each in view.snapshot.inventory.classes}
        for name in names:
            machine = view.index.named(name)
            if machine is None:
                found[name] = None
                continue
            state = states.get(name)
            under_way = state.pending or state.current if state is not None else None
            _, image = _in_force(view, machine)
            boots, of_class = self._boots(proven.get(name, ()), under_way), classes.get(machine.class_name or "")
            facts = Facts(machine, judged.get(name), boots, image, profiles.get(machine.profile), of_class)
            found[name] = self._numbered(facts, state.current if state is not None else None)
        return found

    def _numbered(self, facts: Facts, counts: Trace | None) -> Facts:
        """With numbers by which other replicas put boots in order, and the report of the boot that counts."""
        numbers = self._states.numbers([each.boot for each in facts.boots])
        facts = facts._replace(since={boot: since for boot, (since, _) in numbers.items()})
        report = self._states.health(counts.boot) if counts is not None and self._shares else None
        if report is None or report.boot not in numbers:
            return facts
        return facts._replace(health=health_told(report, numbers[report.boot][1]))

    def of_now(self) -> bool:
        projection = self._said.read("projection", ProjectionStatus)
        return not not_of_now(projection, self._said.read("lifecycle", LifecycleStatus), up_ms())

    def _boots(self, proven: Sequence[str], under_way: Trace | None) -> tuple[Trace, ...]:
        """The last that proved themselves, the newest first; before them one that is under way."""
        known = [self._states.boot(boot) for boot in proven[-MOST_BOOTS:][::-1]]
        there = tuple(each for each in known if each is not None)
        return there if under_way is None or under_way.boot in proven else (under_way, *there)


def _in_force(view: View, machine: Machine) -> tuple[Machine, str]:
    """The machine, and the digest of what it would be served; empty: nothing."""
    decision = decide_machine(view, machine)
    return machine, decision.image.digest if isinstance(decision, Boot) else ""
