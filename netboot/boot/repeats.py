"""Boot ids that may be served once more: whose record has survived a power cut already.

A known machine's script is never refused because somebody asks for too many. What is limited is what is written down:
beyond it whoever asks again gets the boot id again that it got last, or, where it has none, the one that the machine's
script was served with last, to whomever. Ids that are older than `REPEAT_MS` are never served again.
"""

from collections import OrderedDict

REPEAT_MS = 60_000
MOST = 32_768
"""Of machines, and of pairs of a machine and an address; about 10 MB each."""
_Known = OrderedDict[tuple[str, str], tuple[str, str, int]]


class Repeats:
    """Remembers what was written down. `record`: what of the record does not differ from boot to boot of one script."""

    def __init__(self) -> None:
        self._known: tuple[_Known, _Known] = (OrderedDict(), OrderedDict())

    def remember(self, machine: str, peer: str, record: str, boot_id: str, now_ms: int) -> None:
        """The record of this boot is durable."""
        for known, key in zip(self._known, ((machine, peer), (machine, "")), strict=True):
            known[key] = (boot_id, record, now_ms)
            known.move_to_end(key)
            if len(known) > MOST:
                known.popitem(last=False)

    def boot_id(self, machine: str, peer: str, record: str, now_ms: int) -> str | None:
        """What may be served once more; None: nothing, for it is too old or was of another script."""
        for known, key in zip(self._known, ((machine, peer), (machine, "")), strict=True):
            boot_id, of_record, at_ms = known.get(key, ("", "", 0))
            if boot_id and of_record == record and 0 <= now_ms - at_ms < REPEAT_MS:
                return boot_id
        return None
