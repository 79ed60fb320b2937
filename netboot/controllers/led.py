"""A controller of which one leads: it works in every replica, and says with how it is who does."""

from collections.abc import Callable

from netboot.controllers.elector import Elector
from netboot.controllers.runner import Controller
from netboot.status.approver import ApproverStatus
from netboot.status.leading import LeaderStatus
from netboot.status.nodes import NodesStatus
from netboot.status.reporting import Reporting
from netboot.status.resources import ShipperStatus

UNWRITTEN = "what it says of itself cannot be written down: `disk` of /readyz, and the log, say why"
REMEDY = "see docs/ha.md, and the log; `netboot cluster manifests | kubectl apply -f -` has the Lease and the rights"


class Led:
    """`long_seconds`: for how long nobody may lead before that is something to see to: two Lease durations."""

    def __init__(self, controller: Controller, elector: Elector, long_seconds: float) -> None:
        self._controller, self._elector, self._long_seconds = controller, elector, long_seconds
        self._written = True

    def start(self) -> None:
        """The controller's threads, and the elector's."""
        self._elector.start()
        self._controller.start()

    def stop(self) -> None:
        """Begin nothing new; then lead no more."""
        self._controller.stop()
        self._elector.stop()

    def saying(self, say: Callable[[Reporting], bool]) -> Callable[[Reporting], None]:
        """`say`, which tells whether it could write: on a disk that takes not even that, nothing of what becomes of
        requests and Nodes is taken either, and what needs to be read of it stands still."""

        def said(status: Reporting) -> None:
            self._written = say(status)

        return said

    def status(self) -> Reporting:
        """The controller's, of which the elector hears too. Who follows is in order; that nobody leads is for every
        replica to say."""
        said, leader = self._controller.status(), self._elector.status()
        if not isinstance(said, ApproverStatus | NodesStatus | ShipperStatus):
            return said
        self._elector.can(said.message if not said.followed else "" if self._written else UNWRITTEN)
        vacant = leader.vacant_seconds > 0
        fields = {"leader": leader, "followed": said.followed and not vacant}
        if said.ok and (words := vacancy(leader, self._long_seconds)):
            fields |= {"ok": False, "message": words, "remedy": REMEDY}
        return said.model_copy(update=fields)


def vacancy(leader: LeaderStatus, long_seconds: float) -> str:
    """What is to be seen to of the election itself; "": nothing. `long_seconds`: see `Led`."""
    if leader.vacant_seconds > long_seconds:
        why = f": {leader.problem}" if leader.problem else ""
        return f"nobody has led for {leader.vacant_seconds:.0f} s{why}"
    known = leader.leads or (leader.leader and not leader.vacant_seconds)  # one renewal that fails is not the end
    return f"who leads cannot be told: {leader.problem}" if leader.problem and not known else ""
