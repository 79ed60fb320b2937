"""Rollouts that drain and reboot by themselves, and people who do so too, in any order, by processes that end at any
step: no machine is held for good or rebooted twice, no slot is lost, and no budget is broken."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from netboot.lifecycle.drains import Drain
from netboot.lifecycle.errors import RolloutRefusedError
from netboot.lifecycle.rollout import RolloutState
from netboot.lifecycle.rollout_orders import paused, resumed, undone
from netboot.machines.maintenance import Freeze
from tests.drain_world import KilledError
from tests.renewal_world import TICK, Site

COUNT, MOST = 5, 2
PICKS = st.integers(0, COUNT - 1)
LONG = 40 * 60 // TICK


class Renewals(RuleBasedStateMachine):
    """Five machines in five racks, of which two may be out."""

    @initialize()
    def begin(self) -> None:
        self.folder = TemporaryDirectory()
        self.site = Site(Path(self.folder.name), COUNT)
        self.site.start(canary=2, max_unavailable=str(MOST), bake=0, deadline=120, auto_undo=True)
        self.site.on_reserve = self.counted

    def counted(self, drains: list[Drain]) -> None:
        """A rollout has just reserved these: who is out now, whoever brought that about, is no more than may be."""
        if drains:
            assert len(self.site.out() - self.site.retired) <= MOST

    @rule(ticks=st.sampled_from([1, 1, 2, 6]))
    def passes(self, ticks: int) -> None:
        for _ in range(ticks):
            self.site.tick()

    @rule(steps=st.integers(1, 12), before=st.booleans())
    def is_to_end(self, steps: int, before: bool) -> None:
        self.site.kill = self.site.steps + steps, before

    @rule(pick=PICKS, what=st.sampled_from(["drain", "reboot"]), bare=st.booleans())
    def a_person_orders(self, pick: int, what: str, bare: bool) -> None:
        if self.site.up[self.site.names[pick]]:
            self.site.order(self.site.names[pick], what, bare=bare)

    @rule(pick=PICKS)
    def a_person_takes_it_off(self, pick: int) -> None:
        self.site.undrain(self.site.names[pick])

    @rule(pick=PICKS, holds=st.booleans())
    def a_person_holds(self, pick: int, holds: bool) -> None:
        self.site.hold(self.site.names[pick], holds=holds)

    @rule(act=st.sampled_from([lambda rollout, members: paused(rollout, members, "alice"), resumed, undone]))
    def a_person_tells_the_rollout(self, act: Callable[..., object]) -> None:
        self.tell(act)

    def tell(self, act: Callable[..., object]) -> None:
        try:
            self.site.store.change(1, act, lambda *_: None)  # type: ignore[arg-type]
        except (RolloutRefusedError, KilledError):
            return

    @rule(frozen=st.booleans())
    def freezes(self, frozen: bool) -> None:
        self.site.freeze = Freeze(who="alice", reason="", since_ms=0, until_ms=None) if frozen else None

    @rule(seeing=st.booleans())
    def can_be_seen(self, seeing: bool) -> None:
        self.site.seeing = seeing

    @rule(pick=PICKS, keeps=st.booleans())
    def a_budget_keeps_its_pod(self, pick: int, keeps: bool) -> None:
        (self.site.refuses.add if keeps else self.site.refuses.discard)(self.site.names[pick])

    @rule(pick=PICKS, deaf=st.booleans())
    def takes_no_orders(self, pick: int, deaf: bool) -> None:
        (self.site.deaf.add if deaf else self.site.deaf.discard)(self.site.names[pick])

    @rule(pick=PICKS)
    def crashes(self, pick: int) -> None:
        self.site.leave(self.site.names[pick])

    @rule(pick=PICKS)
    def is_away_for_long(self, pick: int) -> None:
        name = self.site.names[pick]
        if name in self.site.back:
            self.site.back[name] += 600_000

    @rule(pick=PICKS)
    def is_retired(self, pick: int) -> None:
        self.site.retired = self.site.retired or {self.site.names[pick]}

    @invariant()
    def no_order_reboots_twice(self) -> None:
        if hasattr(self, "site"):
            assert len(self.site.reboots) == len(set(self.site.reboots))

    def teardown(self) -> None:
        """What is in the way goes, and nobody orders anything more: all of it comes to its end."""
        if not hasattr(self, "site"):
            return
        site = self.site
        site.kill, site.freeze, site.seeing = None, None, True
        site.refuses, site.deaf = set(), set()
        for name in site.back:
            site.back[name] = min(site.back[name], site.now + 60_000)
        for name in site.names:
            site.hold(name, holds=False)
        for name in list(site.wanted):
            if site.wanted[name].what == "drain":
                site.undrain(name)
        for _ in range(LONG):
            site.tick()
            if site.rollout().state is RolloutState.PAUSED:
                self.tell(resumed)
            elif site.rollout().state is not RolloutState.RUNNING and not site.traces() and not site.back:
                break
        assert site.rollout().state not in (RolloutState.RUNNING, RolloutState.PAUSED), site.rollout()
        assert (site.traces(), site.out() - site.retired) == ([], set())
        site.close()
        self.folder.cleanup()


TestRenewals = Renewals.TestCase
TestRenewals.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
