"""The schema of `data/state.db` and how an older one becomes it. What was released is never changed again."""

import json
import sqlite3

from netboot.lifecycle.bootid import minted_ms
from netboot.lifecycle.errors import StateUnavailableError

MIGRATIONS = (
    """
    CREATE TABLE cursors (journal TEXT PRIMARY KEY, identity INTEGER NOT NULL, last INTEGER NOT NULL) WITHOUT ROWID;
    -- `boot` sorts by age, for an id begins with the time of its minting
    CREATE TABLE boots (
        boot TEXT PRIMARY KEY, machine TEXT NOT NULL, reported INTEGER NOT NULL, state TEXT NOT NULL,
        trace TEXT NOT NULL, fed INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX boots_of_machine ON boots (machine, reported, boot);
    CREATE TABLE claims (machine TEXT PRIMARY KEY, served INTEGER NOT NULL, last_ms INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE discovered (key TEXT PRIMARY KEY, last_ms INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX discovered_by_age ON discovered (last_ms);
    CREATE TABLE feed (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL);
    """,
    """
    -- `standing`: 0 claimed, 1 reported, 2 proven; `proven_ms`: since when
    DROP INDEX boots_of_machine;
    ALTER TABLE boots RENAME COLUMN reported TO standing;
    ALTER TABLE boots ADD COLUMN proven_ms INTEGER;
    CREATE INDEX boots_of_machine ON boots (machine, standing, boot, proven_ms);
    """,
    """
    -- the latest health report of a boot
    CREATE TABLE health (
        boot TEXT PRIMARY KEY, machine TEXT NOT NULL, at_ms INTEGER NOT NULL, status TEXT NOT NULL, body TEXT NOT NULL
    );
    CREATE INDEX health_of_machine ON health (machine, boot);
    """,
    """
    -- rows that could not be read, of journals and of this file: for people to look at
    CREATE TABLE set_aside (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, origin TEXT NOT NULL,
        row TEXT NOT NULL, reason TEXT NOT NULL, body BLOB NOT NULL
    );
    -- `at_ms`: the latest moment of a record taken; records up to `again_id` that are not later than `again_ms` were
    -- counted before the journal was replaced by an older copy of itself
    ALTER TABLE cursors ADD COLUMN at_ms INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE cursors ADD COLUMN again_id INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE cursors ADD COLUMN again_ms INTEGER NOT NULL DEFAULT 0;
    UPDATE cursors SET at_ms = coalesce((SELECT max(last_ms) FROM claims), 0);
    """,
    """
    -- `since`: the number of the fact that gave the boot its standing, as facts arrived: what is newer, it says, and no
    -- clock; `image`: what its script served
    CREATE TABLE images (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE);
    DROP INDEX boots_of_machine;
    ALTER TABLE boots ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE boots ADD COLUMN image INTEGER;
    INSERT OR IGNORE INTO images (digest) SELECT image_in(trace) FROM boots WHERE image_in(trace) IS NOT NULL;
    UPDATE boots SET since = 1000 * coalesce(proven_ms, minted_in(boot)),
        image = (SELECT id FROM images WHERE digest = image_in(trace));
    ALTER TABLE boots DROP COLUMN proven_ms;
    CREATE INDEX boots_of_machine ON boots (machine, standing, since);
    CREATE INDEX boots_by_age ON boots (since);
    -- `arrived`: the number of the fact
    ALTER TABLE health ADD COLUMN arrived INTEGER NOT NULL DEFAULT 0;
    UPDATE health SET arrived = 1000 * at_ms;
    CREATE INDEX health_by_age ON health (arrived);
    DROP INDEX discovered_by_age;
    ALTER TABLE discovered ADD COLUMN arrived INTEGER NOT NULL DEFAULT 0;
    UPDATE discovered SET arrived = 1000 * last_ms;
    CREATE INDEX discovered_by_age ON discovered (arrived);
    -- machines that reported anything, with their current and pending boots: made from `boots` and `health`, so that
    -- nobody who counts has to read these
    CREATE TABLE machines (
        machine TEXT PRIMARY KEY, boot TEXT NOT NULL, state TEXT NOT NULL, image INTEGER, pending TEXT,
        pending_image INTEGER, checked TEXT, checked_ms INTEGER
    ) WITHOUT ROWID;
    INSERT INTO machines
        SELECT c.machine, c.boot, c.state, c.image, p.boot, p.image, health.status, health.at_ms
        FROM (
            SELECT *, row_number() OVER (PARTITION BY machine ORDER BY standing DESC, since DESC, boot DESC) AS place
            FROM boots WHERE standing > 0
        ) AS c
        LEFT JOIN (
            SELECT *, row_number() OVER (PARTITION BY machine ORDER BY since DESC, boot DESC) AS place
            FROM boots WHERE standing = 1
        ) AS p ON p.machine = c.machine AND p.place = 1 AND c.standing = 2 AND p.since > c.since
        LEFT JOIN health ON health.boot = c.boot
        WHERE c.place = 1;
    -- machines that the inventory no longer has; `seconds`: for how long, counted while the service ran
    CREATE TABLE removed (machine TEXT PRIMARY KEY, seconds INTEGER NOT NULL) WITHOUT ROWID;
    """,
    """
    -- texts of crashes (`sha256`: of the text) with the boots that found them; the trigger is for boots that are
    -- forgotten: one that is written anew is replaced, which fires none (sqlite.org/lang_conflict.html)
    CREATE TABLE crashes (
        id INTEGER PRIMARY KEY, boot TEXT NOT NULL, sha256 TEXT NOT NULL, body BLOB NOT NULL, UNIQUE (boot, sha256)
    );
    CREATE TRIGGER crashes_go_with_their_boot AFTER DELETE ON boots
        BEGIN DELETE FROM crashes WHERE boot = old.boot; END;
    """,
    """
    -- traces say what was decided, and have certificates: a program of before would set each of them aside, so it is to
    -- refuse the file
    SELECT 1;
    """,
    """
    -- what machines that nobody has declared said of their hardware, the latest of each
    CREATE TABLE hardware (mac TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
    """,
    """
    -- `arrived`: the number of the fact
    ALTER TABLE hardware ADD COLUMN arrived INTEGER NOT NULL DEFAULT 0;
    UPDATE hardware SET arrived = 1000 * at_ms;
    """,
    """
    -- of each machine the last time that whoever asked in its name was told to wait
    CREATE TABLE waits (machine TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
    """,
    """
    -- the last lines of a boot's console, and from where they came; they go with it, as texts of crashes do
    CREATE TABLE consoles (boot TEXT PRIMARY KEY, peer TEXT NOT NULL, body BLOB NOT NULL);
    CREATE TRIGGER consoles_go_with_their_boot AFTER DELETE ON boots
        BEGIN DELETE FROM consoles WHERE boot = old.boot; END;
    """,
    """
    -- how often a machine was written down is kept no more: each boot server wrote it
    UPDATE discovered SET body = json_remove(body, '$.times') WHERE json_valid(body);
    UPDATE waits SET body = json_remove(body, '$.times') WHERE json_valid(body);
    """,
)
VERSION = len(MIGRATIONS)
_NEWER = "it was written by a newer netboot (schema {}, this one knows {}); run that version, or restore a backup"


def version_of(db: sqlite3.Connection) -> int:
    """The schema's number; 0: an empty file."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def _minted_in(boot: object) -> int:
    """When the boot of that id was minted, as far as can be told."""
    try:
        return minted_ms(str(boot))
    except ValueError:
        return 0


def _image_in(trace: object) -> str | None:
    """The image that a trace says was served; None: it says none, or cannot be read."""
    try:
        image = json.loads(trace)["script"]["image"]  # type: ignore[arg-type]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return image if isinstance(image, str) else None


def migrate(db: sqlite3.Connection) -> None:
    """Bring the schema up to `VERSION`, each step whole or not at all. `db` is in autocommit mode.

    Raises:
        StateUnavailableError: the file is newer than this program.
    """
    version = version_of(db)
    if version > VERSION:
        raise StateUnavailableError(_NEWER.format(version, VERSION))
    db.create_function("minted_in", 1, _minted_in)
    db.create_function("image_in", 1, _image_in)
    for number in range(version, VERSION):
        try:
            db.executescript(f"BEGIN IMMEDIATE; {MIGRATIONS[number]}; PRAGMA user_version = {number + 1}; COMMIT")
        except sqlite3.Error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
