"""The schema of `data/enrolment.db` and how an older one becomes it. What was released is never changed again."""

import sqlite3
from pathlib import Path

from netboot.stores import shared_file

_APPROVED_BY_NAME = """EXISTS (SELECT 1 FROM history AS h WHERE h.machine = machines.machine
    AND h.ek_sha256 = machines.ek_sha256 AND h.act IN ('approved', 'imported'))"""
MIGRATIONS = (
    (
        """CREATE TABLE machines (
            machine TEXT PRIMARY KEY, ek_sha256 TEXT UNIQUE, state TEXT NOT NULL, source TEXT NOT NULL,
            generation INTEGER NOT NULL, "window" TEXT, window_id TEXT NOT NULL, window_until_ms INTEGER NOT NULL,
            details TEXT NOT NULL, since_ms INTEGER NOT NULL, revision INTEGER NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE eks (
            ek_sha256 TEXT PRIMARY KEY, machine TEXT NOT NULL, replaced INTEGER NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE history (
            id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, machine TEXT NOT NULL, act TEXT NOT NULL,
            operator TEXT NOT NULL, reason TEXT NOT NULL, ek_sha256 TEXT, said TEXT NOT NULL
        )""",
        "CREATE INDEX history_of_machine ON history (machine, id)",
    ),
    (
        "ALTER TABLE machines ADD COLUMN retired_from TEXT NOT NULL DEFAULT 'none'",
        # before this, whoever brought a machine back approved whatever EK was on record, shown or not
        f"""UPDATE machines SET state = 'pending' WHERE state = 'approved' AND NOT {_APPROVED_BY_NAME}
            AND EXISTS (SELECT 1 FROM history AS h WHERE h.machine = machines.machine AND h.act = 'returned')""",  # noqa: S608 - our own text
        f"""UPDATE machines SET retired_from = iif({_APPROVED_BY_NAME}, 'approved', 'pending')
            WHERE state = 'retired' AND ek_sha256 IS NOT NULL""",  # noqa: S608 - our own text
    ),
    (
        """CREATE TABLE alerts (
            machine TEXT NOT NULL, kind TEXT NOT NULL, first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL,
            count INTEGER NOT NULL, said TEXT NOT NULL, PRIMARY KEY (machine, kind)
        ) WITHOUT ROWID""",
        "CREATE INDEX alerts_by_age ON alerts (last_ms)",
        # before this, each new key was a line of the history
        """INSERT INTO alerts SELECT machine, 'earlier', min(at_ms), max(at_ms), count(*),
            (SELECT said FROM history AS h WHERE h.machine = history.machine AND h.act = 'alert' ORDER BY h.id DESC)
            FROM history WHERE act = 'alert' GROUP BY machine""",
        "DELETE FROM history WHERE act = 'alert'",
    ),
)
VERSION = len(MIGRATIONS)


def connect(path: Path) -> sqlite3.Connection:
    """The file, made or brought up to date where that is needed, in autocommit mode, every commit durable.

    Raises:
        StateUnavailableError: it is newer than this program. sqlite3.Error, OSError.
    """
    return shared_file.connect(path, MIGRATIONS)
