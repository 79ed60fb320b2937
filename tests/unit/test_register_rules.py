"""Enrolment as a whole, in any order of events: whoever is let in was shown to an operator, imported, or is pinned.

Join and the approver ask one register, so they are asked here side by side.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from netboot.join.enrolment import Act, Approve, Import, OpenWindow, Order, Release, Replace, Retire
from netboot.join.errors import JoinError, RefusedError
from netboot.join.identify import by_tpm
from netboot.join.messages import Identifiers
from netboot.join.register import EnrolmentView, Register
from netboot.lifecycle.published import View
from netboot.machines.values import Machine
from tests.enrolments import MemoryEnrolments
from tests.joining import NOW, snapshot_of

NAMES = ("gpu-001", "gpu-002")
EKS = ("a1" * 32, "b2" * 32)
ALICE = Act("alice")
MACHINES, TPMS = st.sampled_from(NAMES), st.sampled_from(EKS)


def declared(name: str, pin: str | None) -> Machine:
    fields = {"name": name, "profile": "compute", "match": {"serial": name, "ek_sha256": pin}}
    return Machine.model_validate(fields)


class Enrolling(RuleBasedStateMachine):
    """`allowed`: what an operator has said yes to, having seen it; an operator acts on what was shown a while ago."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryEnrolments()
        self.pins: dict[str, str | None] = dict.fromkeys(NAMES)
        self.view = self._view()
        self.register = Register(self.store, lambda: self.view.snapshot.inventory)
        self.shown: dict[str, EnrolmentView] = {}
        self.allowed: set[tuple[str, str]] = set()
        self.now = NOW

    def _view(self) -> View:
        return View.of(snapshot_of(*(declared(name, pin) for name, pin in self.pins.items())))

    def order(self, machine: str, order: Order) -> bool:
        try:
            self.register.apply([(machine, order)], ALICE, self.now)
        except RefusedError:
            return False
        return True

    @rule(seconds=st.integers(1, 90))
    def wait(self, seconds: int) -> None:
        self.now += seconds * 1000

    @rule(machine=MACHINES, ek=TPMS, opens=st.booleans())
    def a_machine_shows_a_tpm(self, machine: str, ek: str, opens: bool) -> None:
        """With or without an operator who has just opened a window."""
        if opens:
            self.order(machine, OpenWindow("enrol", f"w{self.now}", self.now + 60_000))
        before = self.store.record(machine)
        try:
            self.register.propose(machine, ek, "", self.now)
        except RefusedError:
            assert self.store.record(machine) == before
            return
        assert self.store.record(machine) == before or before.open_window(self.now) == "enrol"

    @rule(machine=MACHINES)
    def looked_at(self, machine: str) -> None:
        self.shown[machine] = self.register.view(machine, self.now)

    @rule(machine=MACHINES, exactly=st.booleans(), at_once=st.booleans())
    def said_yes(self, machine: str, exactly: bool, at_once: bool) -> None:
        shown = None if at_once else self.shown.get(machine)
        shown = shown or self.register.view(machine, self.now)
        before = self.store.record(machine)
        revision = shown.revision if exactly else None
        if self.order(machine, Approve(shown.ek_sha256, revision)) and before.state != "retired":
            assert shown.ek_sha256 is not None
            self.allowed.add((machine, shown.ek_sha256))

    @rule(machine=MACHINES, ek=TPMS)
    def imported(self, machine: str, ek: str) -> None:
        if self.order(machine, Import(ek)) and self.pins[machine] is None:
            self.allowed.add((machine, ek))

    @rule(machine=MACHINES)
    def replaced(self, machine: str) -> None:
        old = self.store.record(machine).ek_sha256
        if self.order(machine, Replace(f"w{self.now}", self.now + 60_000)):
            self.allowed.discard((machine, str(old)))

    @rule(machine=MACHINES, order=st.sampled_from([Release(), Retire()]))
    def released_or_retired(self, machine: str, order: Order) -> None:
        assert self.order(machine, order)

    @rule(machine=MACHINES, ek=st.none() | TPMS)
    def the_inventory_is_edited(self, machine: str, ek: str | None) -> None:
        if ek is None or ek not in self.pins.values():
            self.pins[machine] = ek
            self.view = self._view()

    @invariant()
    def nothing_is_approved_unseen(self) -> None:
        for name in NAMES:
            ek = self.register.of(name).approved_ek
            assert ek is None or ek == self.pins[name] or (self.pins[name] is None and (name, ek) in self.allowed)
            if self.pins[name] is not None and self.store.record(name).state != "retired":
                assert ek == self.pins[name]

    @invariant()
    def join_lets_in_whom_the_approver_knows(self) -> None:
        joins: dict[str, str] = {}
        for ek in EKS:
            try:
                known = by_tpm(self.view, self.register, ek, Identifiers(), self.now)
            except JoinError:
                continue
            assert joins.setdefault(known.machine.name, ek) == ek
        approved = {name: self.register.of(name).approved_ek for name in NAMES}
        assert joins == {name: ek for name, ek in approved.items() if ek is not None}


Enrolling.TestCase.settings = settings(max_examples=120, stateful_step_count=30, deadline=None, derandomize=True)
TestEnrolling = Enrolling.TestCase
