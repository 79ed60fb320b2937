"""Writes onto Nodes what was decided of their gates, and knows which of them cannot be written to."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from images.values.backoff import Backoff
from netboot.controllers.nodes.gate import Decision, is_shut, told
from netboot.controllers.nodes.reports import Entry
from netboot.join.errors import ConflictError, InvalidError, NotLeadingError
from netboot.join.labels import differ
from netboot.join.node_said import GATE
from netboot.join.ports import Nodes, NodeView
from netboot.lifecycle.errors import CannotTellError

log = logging.getLogger(__name__)

AGAIN = Backoff(first=1.0, longest=60.0)
"""Until the taints of a Node are tried again that could not be changed."""
OPENINGS, OPENINGS_SECONDS = 3, 300.0
"""A gate that was opened so often within this stays shut for the rest of it: a node whose checks pass and fail in turn,
or that writes what it likes, has no more writes of ours."""


MOST_REFUSED = 3
"""Nodes, with one step, that the API server refuses or does not answer for: then it may be so with all."""
MOST_TOLD = 100
"""Nodes of whose gates others are told with one step."""


class Moves:
    """`lock`: under which entries change. `now_ms()`: the time of day; None: nobody is told of gates. `moved`: how many
    gates were opened and closed; `refused`: Nodes that cannot be changed, and why; `untold`: likewise of gates that
    others cannot be told of."""

    def __init__(
        self, nodes: Callable[[], Nodes], lock: threading.Lock, now_ms: Callable[[], int] | None = None
    ) -> None:
        self._nodes, self._lock, self._now_ms = nodes, lock, now_ms
        self.untold: dict[str, str] = {}
        self.moved: Counter[str] = Counter({"opened": 0, "closed": 0})
        self.refused: dict[str, str] = {}

    def require_none_refused(self, ours: Collection[str]) -> None:
        """Of these Nodes.

        Raises:
            CannotTellError: one cannot be changed.
        """
        self.refused = {name: why for name, why in self.refused.items() if name in ours}
        for name, why in sorted(self.refused.items()):
            raise CannotTellError(f"the taints of the Node {name} cannot be changed: {why}")
        self.untold = {name: why for name, why in self.untold.items() if name in ours}
        for name, why in sorted(self.untold.items()):
            raise CannotTellError(f"the condition {GATE} of the Node {name} cannot be written: {why}")

    def move(self, entry: Entry, node: NodeView, decision: Decision, labels: Mapping[str, str], now: float) -> bool:
        """Taints and labels with one write, so that no Pod is given to a Node before it says where it stands. Whether
        they are right now, or will be looked at again as they are since."""
        try:
            after = self._write(node, decision, labels)
        except (ConflictError, NotLeadingError):
            return True  # what it is since comes with the watch, and is due then; whoever leads sees to it
        except (CannotTellError, InvalidError) as error:
            if isinstance(error, InvalidError) and decision.taints == node.taints:
                say(entry, f"has no room for labels, for the apiserver does not take them: {error}", logging.ERROR)
                return True
            self.refused[node.name] = str(error)
            entry.failures += 1
            entry.again_at = now + AGAIN.bound(entry.failures)
            say(entry, f"cannot be changed: {error}", logging.ERROR)
            return False
        self.refused.pop(node.name, None)
        with self._lock:
            entry.failures = 0
            # Where the watch was quicker, what it brought may be older: its version keeps us from writing by it.
            entry.node = after if entry.node is node else entry.node._replace(taints=after.taints)
        if is_shut(node.taints) and not is_shut(after.taints):
            self.moved["opened"] += 1
            entry.opened = (*entry.opened, now)[-OPENINGS:]
            by = "is open, for its machine is accepted, and in spite of this" if decision.accepted else "is open"
            say(entry, f"{by}: {decision.words}", logging.INFO)
        elif decision.closes:
            self.moved["closed"] += 1
            say(entry, f"is closed ({decision.reason}): {decision.words}", logging.WARNING)
        elif decision.taints != node.taints:
            say(entry, "its hold is as that of its machine", logging.INFO)
        return True

    def tell(self, nodes: Iterable[NodeView]) -> None:
        """Others, by the condition GATE, how the gates of these are; those that could not be told come last."""
        if self._now_ms is None:
            return
        tried = refused = 0
        for node in sorted(nodes, key=lambda node: (node.name in self.untold, node.name)):
            said = told(node.taints)
            if not node.marked or node.gate == said:
                self.untold.pop(node.name, None)
            elif tried < MOST_TOLD and refused < MOST_REFUSED:
                tried += 1
                try:
                    self._nodes().tell_gate(node, said, self._now_ms())
                    self.untold.pop(node.name, None)
                except (ConflictError, NotLeadingError):
                    pass  # what it is since comes with the watch, and is due then
                except (CannotTellError, InvalidError) as error:
                    self.untold[node.name] = str(error)
                    refused += 1

    def _write(self, node: NodeView, decision: Decision, labels: Mapping[str, str]) -> NodeView:
        """A Node that has no room for labels has no way to stay open by that.

        Raises:
            ConflictError, InvalidError.
        """
        try:
            return self._nodes().taint(node, decision.taints, labels if differ(node, labels) else None)
        except InvalidError:
            if decision.taints == node.taints or decision.accepted:
                raise
            return self._nodes().taint(node, decision.taints)


def opened_often(entry: Entry, now: float) -> bool:
    """Whether it is to stay shut for a while."""
    return len(entry.opened) == OPENINGS and now - entry.opened[0] < OPENINGS_SECONDS


def say(entry: Entry, words: str, level: int) -> None:
    """Once, until there is something else to say."""
    if words != entry.said:
        entry.said = words
        fields = {"machine": entry.machine, "node": entry.node.name}
        log.log(level, "the gate of %s %s", entry.node.name, words, extra={"fields": fields})
