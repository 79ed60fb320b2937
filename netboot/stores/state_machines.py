"""The tables `machines`, `images` and `removed` of `data/state.db`: what those who count read instead of every boot;
within a transaction of `netboot.stores.state_writer`, whose part this is."""

import sqlite3
from collections.abc import Collection, Iterable

from netboot.lifecycle import state

_REFRESH = (
    "INSERT INTO machines (machine, boot, state, image, pending, pending_image, checked, checked_ms) "
    "SELECT c.machine, c.boot, c.state, c.image, p.boot, p.image, health.status, health.at_ms "
    "FROM (SELECT * FROM boots WHERE machine = :machine AND standing > 0 ORDER BY standing DESC, since DESC, boot DESC "
    "LIMIT 1) AS c "
    "LEFT JOIN (SELECT boot, image, since FROM boots WHERE machine = :machine AND standing = 1 "
    "ORDER BY since DESC, boot DESC LIMIT 1) AS p ON c.standing = 2 AND p.since > c.since "
    "LEFT JOIN health ON health.boot = c.boot"
)
"""A machine's current boot: first those that proved themselves, of them the last to do so; then the one that began to
report last. `pending`: one that began to report since the current one proved itself."""


def refresh(db: sqlite3.Connection, machines: Iterable[str]) -> None:
    """Make the rows of these machines anew from their boots and health reports."""
    names = [(machine,) for machine in machines]
    db.executemany("DELETE FROM machines WHERE machine = ?", names)
    db.executemany(_REFRESH, [{"machine": machine} for (machine,) in names])


def refresh_stale(db: sqlite3.Connection) -> None:
    """The same for machines whose boot or health report has been set aside."""
    stale = db.execute(
        "SELECT machine FROM machines WHERE boot NOT IN (SELECT boot FROM boots) "
        "OR pending NOT IN (SELECT boot FROM boots) "
        "OR (checked IS NOT NULL AND boot NOT IN (SELECT boot FROM health))"
    )
    refresh(db, [machine for (machine,) in stale.fetchall()])


def images(db: sqlite3.Connection, digests: Collection[str]) -> dict[str, int]:
    """The number of each image, given out where it has none."""
    numbers = {}
    for digest in digests:
        db.execute("INSERT OR IGNORE INTO images (digest) VALUES (?)", (digest,))
        numbers[digest] = db.execute("SELECT id FROM images WHERE digest = ?", (digest,)).fetchone()[0]
    return numbers


def declare(db: sqlite3.Connection, declared: Collection[str], seconds: int) -> int:
    """Note which machines are in the inventory no more, and forget those that left longest ago; of how many it was."""
    query = "SELECT machine FROM claims UNION SELECT machine FROM machines UNION SELECT machine FROM waits"
    known = {name for (name,) in db.execute(query)}
    gone = dict(db.execute("SELECT machine, seconds FROM removed").fetchall())
    left = {name: gone[name] + seconds if name in gone else 0 for name in known if name not in declared}
    newest = sorted(left, key=lambda name: (left[name], name))
    kept = [name for name in newest[: state.REMOVED_KEPT] if left[name] < state.REMOVED_KEPT_SECONDS]
    forgotten = [(name,) for name in left.keys() - set(kept)]
    for table in ("boots", "health", "claims", "waits", "machines"):
        db.executemany(f"DELETE FROM {table} WHERE machine = ?", forgotten)  # noqa: S608 - names of our own
    db.execute("DELETE FROM removed")
    db.executemany("INSERT INTO removed (machine, seconds) VALUES (?, ?)", [(name, left[name]) for name in kept])
    return len(forgotten)
