"""The loop of rollouts, with what helps machines: one after the other, for both look at the same machines."""

from typing import Protocol

from netboot.controllers.remedies import RemedyController
from netboot.status.controllers import RolloutsStatus


class Rollouts(Protocol):
    """As `netboot.controllers.loop` has them."""

    def step(self) -> None:
        """Look at all."""
        ...

    def status(self) -> RolloutsStatus:
        """For `/readyz` and metrics."""
        ...


class AndRemedies:
    """`remedies` comes last: its failure keeps no rollout from going on."""

    def __init__(self, rollouts: Rollouts, remedies: RemedyController) -> None:
        self._rollouts, self._remedies = rollouts, remedies

    def step(self) -> None:
        """Look at rollouts, then at machines that are not well."""
        self._rollouts.step()
        self._remedies.step()

    def status(self) -> RolloutsStatus:
        """The rollouts'; where that is in order, what keeps remedies from being taken."""
        status, problem = self._rollouts.status(), self._remedies.problem
        return status.model_copy(update={"problem": status.problem or (f"remedies: {problem}" if problem else "")})
