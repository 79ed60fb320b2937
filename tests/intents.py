"""What is wanted of machines, in memory: what other rooms' tests use, and what the contract suite holds against the one
on disk."""

import threading

from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.intent_rules import decide, end_of, ended, entries, ordered
from netboot.lifecycle.intents import Change, Entry, Intent, Order

GONE = "data/intents.db cannot be used: it is not there; what is held cannot be told"


class MemoryIntents:
    """The obvious way: a list. `broken`: nothing can be told."""

    def __init__(self) -> None:
        self.broken = False
        self._intents: list[Intent] = []
        self._entries: list[Entry] = []
        self._lock = threading.Lock()

    def of(self, machine: str, now_ms: int) -> list[Intent]:
        return [intent for intent in self.all(now_ms) if intent.machine == machine]

    def all(self, now_ms: int) -> list[Intent]:
        if self.broken:
            raise StateUnavailableError(GONE)
        return ordered(intent for intent in self._intents if intent.stands(now_ms))

    def history(self, machine: str | None, limit: int) -> list[Entry]:
        return [entry for entry in reversed(self._entries) if machine in (None, entry.machine)][:limit]

    def order(self, machine: str, order: Order, who: str, now_ms: int) -> Change:
        with self._lock:
            if self.broken:
                raise StateUnavailableError(GONE)
            before = [intent for intent in self._intents if intent.machine == machine]
            change = decide(machine, before, order, who, now_ms)
            if not change.act:
                return change
            over = ended(before, now_ms)
            altered = {(intent.machine, intent.mark, intent.owner) for intent in change.put}
            leaving = [*over, *change.removed]
            kept = [one for one in self._intents if one not in leaving]
            self._intents = [one for one in kept if (one.machine, one.mark, one.owner) not in altered]
            self._intents += change.put
            said = [end_of(intent) for intent in over] + entries(change, order, who, now_ms)
            for entry in said:
                self._entries.append(entry.model_copy(update={"id": len(self._entries) + 1}))
            return change
