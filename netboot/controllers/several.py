"""What is another for who writes how machines are, where several replicas do (docs/ha.md)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from netboot.controllers.sharing import Sharing
from netboot.lifecycle.object_status import Facts
from netboot.lifecycle.objects import MachineObject


@dataclass(frozen=True, slots=True)
class Several:
    """As it is where there is one. `ours`: what all that write call themselves; `leads`: whether this one writes more
    than facts of boots; `count`: how many there are."""

    ours: str = ""
    leads: Callable[[], bool] = lambda: True
    count: int = 1
    sharing: Sharing | None = None

    @property
    def problem(self) -> str:
        """Why what others told is not known here; empty: it is."""
        return self.sharing.problem if self.sharing is not None else ""

    def learn(self, facts: Mapping[str, Facts | None], objects: Iterable[MachineObject]) -> Mapping[str, Facts | None]:
        """What is known of machines, with what their objects say of boots. Of one that the inventory in force does not
        have nothing is learnt. Raises StateUnavailableError."""
        if self.sharing is None:
            return facts
        known = self.sharing.look([each for each in objects if facts.get(each.name) is not None])
        return {
            name: each._replace(known=known.get(name, ())) if each is not None else None for name, each in facts.items()
        }
