"""The latest of many names, in bounded memory. Safe for threads."""

import threading
from collections import OrderedDict

MOST = 20_000


class Remembered:
    """Forgets the oldest beyond `most`: whoever asks must be right, only slower, where something was forgotten."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._lock = most, threading.Lock()
        self._names: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        with self._lock:
            return name in self._names

    def add(self, name: str) -> None:
        """Remember it."""
        with self._lock:
            self._names[name] = None
            self._names.move_to_end(name)
            if len(self._names) > self._most:
                self._names.popitem(last=False)
