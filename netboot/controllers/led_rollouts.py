"""The loop that drives rollouts, where replicas share them: one replica does."""

from netboot.controllers.elector import Elector
from netboot.controllers.led import vacancy
from netboot.controllers.rollouts import RolloutController
from netboot.status.controllers import RolloutsStatus


class LedRollouts:
    """`long_seconds`: for how long nobody may lead before that is something to see to: two Lease durations."""

    def __init__(self, rollouts: RolloutController, elector: Elector, long_seconds: float) -> None:
        self._rollouts, self._elector, self._long_seconds = rollouts, elector, long_seconds

    def step(self) -> None:
        """Drive them, or look at what who leads has made of them; the elector hears what keeps this one from it."""
        self._rollouts.step(leads=self._elector.leads())
        self._elector.can(self._rollouts.unable)

    def status(self) -> RolloutsStatus:
        """The loop's, and who leads."""
        said, leader = self._rollouts.status(), self._elector.status()
        problems = filter(None, (said.problem, vacancy(leader, self._long_seconds)))
        return said.model_copy(update={"leader": leader, "problem": "; ".join(problems)})
