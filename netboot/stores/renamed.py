"""What is kept by the names of machines becomes theirs by the names that they have now: TPMs, orders, history, places
in rollouts. What `state.db` holds, the projection sees to (`netboot.stores.state_renamed`).

Before anybody is served by a new name: who is held or in quarantine, and whose TPM is whose, is so by it from the
first moment on. The audit and proofs that were signed say what was so then, and are left as they are.
"""

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path

from netboot.lifecycle.errors import StateUnavailableError
from netboot.stores.shared_file import BUSY_SECONDS

LATE_SECONDS = 60.0
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "enrolment.db": ("machines", "eks", "history", "alerts"),
    "intents.db": ("intents", "history", "drains", "remedies"),
    "rollouts.db": ("members",),
    "shared-rollouts.db": ("members",),
    "history.db": ("boots", "transitions", "conditions", "proofs"),
}
"""Tables with a column `machine`, by their file."""
_BODIES = frozenset({"members", "transitions"})
"""Those whose column `body`, JSON, says it too."""
_YIELDING: Mapping[str, str] = {
    "machines": "DELETE FROM machines WHERE machine = :now AND ek_sha256 IS NULL AND state <> 'retired' AND EXISTS "
    "(SELECT 1 FROM machines AS b WHERE b.machine = :before AND b.ek_sha256 IS NOT NULL)",
    "intents": "DELETE FROM intents AS now WHERE machine = :now AND EXISTS (SELECT 1 FROM intents AS b "
    "WHERE b.machine = :before AND b.mark = now.mark AND b.owner = now.owner "
    "AND (b.until_ms IS NULL OR b.until_ms > now.until_ms))",
}
"""What the name of now has gives way: a record without a TPM, of a machine that had the name once, to one with, and
what is wanted for a time to what is wanted for longer. A quarantine is none that an old order of that name undoes."""


class Renamed:
    """Of the data folder `data`, for who publishes: `carry` as often as you like. `present`: what is in force."""

    def __init__(self, data: Path, monotonic: Callable[[], float], present: Mapping[str, str]) -> None:
        self._data, self._monotonic = data, monotonic
        self._present, self._since = present, monotonic()

    def carry(self, present: Mapping[str, str]) -> None:
        """`carry`, where the names are others than before, and for LATE_SECONDS more: who had not yet read that a
        machine has another name may have written by the one before.

        Raises:
            StateUnavailableError: names that are not in force yet must not be, now.
        """
        if present != self._present:
            carry(self._data, present)
            self._present, self._since = present, self._monotonic()
        elif present and self._monotonic() - self._since < LATE_SECONDS:
            with suppress(StateUnavailableError):  # a file that is broken keeps nobody's image from being set
                carry(self._data, present)


def carry(data: Path, present: Mapping[str, str]) -> None:
    """`present`: former name → the name of now. What was done already is found done; where both names have something
    of which there is one for each machine, what the name of now has stays, but for `_YIELDING`.

    Raises:
        StateUnavailableError: not now; it is for the caller to try again.
    """
    for name, tables in _COLUMNS.items() if present else ():
        path = data / name
        if not path.exists():
            continue
        try:
            with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as db:
                db.execute("PRAGMA synchronous=FULL")
                db.execute("BEGIN IMMEDIATE")
                for table in tables:
                    _carry(db, table, present)
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise StateUnavailableError(f"{path} cannot be written: {error}") from None


def _carry(db: sqlite3.Connection, table: str, present: Mapping[str, str]) -> None:
    if not db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone():
        return  # of an older version, and without such a table nothing is kept
    # one look, whatever the number of names: not each of these tables has an index by machine
    known = f"SELECT DISTINCT machine FROM {table} WHERE machine IN (SELECT value FROM json_each(?))"  # noqa: S608
    names = [
        {"now": present[former], "before": former}
        for (former,) in db.execute(known, (json.dumps(list(present)),)).fetchall()
    ]
    if table in _YIELDING:
        db.executemany(_YIELDING[table], names)
    body = ", body = json_set(body, '$.machine', :now)" if table in _BODIES else ""
    db.executemany(
        f"UPDATE OR IGNORE {table} SET machine = :now{body} WHERE machine = :before",  # noqa: S608 - names of our own
        names,
    )
