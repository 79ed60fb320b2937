"""What is kept by the names of machines becomes theirs by the names that they have now: TPMs, orders, history, places
in rollouts. What `state.db` holds, the projection sees to (`netboot.stores.state_renamed`).

Before anybody is served by a new name: who is held or in quarantine, and whose TPM is whose, is so by it from the
first moment on. The audit and proofs that were signed say what was so then, and are left as they are.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from netboot.lifecycle.errors import StateUnavailableError
from netboot.stores.shared_file import BUSY_SECONDS

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "enrolment.db": ("machines", "eks", "history", "alerts"),
    "intents.db": ("intents", "history", "drains", "remedies"),
    "rollouts.db": ("members",),
    "history.db": ("boots", "transitions", "conditions", "proofs"),
}
"""Tables with a column `machine`, by their file."""
_BODIES = frozenset({"members", "transitions"})
"""Those whose column `body`, JSON, says it too."""


def carry(data: Path, present: Mapping[str, str]) -> None:
    """`present`: former name → the name of now. What was done already is found done; where both names have something
    of which there is one for each machine, what the name of now has stays.

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
    body = ", body = json_set(body, '$.machine', :name)" if table in _BODIES else ""
    db.executemany(
        f"UPDATE OR IGNORE {table} SET machine = :name{body} WHERE machine = :former",  # noqa: S608 - names of our own
        [{"name": name, "former": former} for former, name in present.items()],
    )
