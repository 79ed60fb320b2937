"""Tables of `data/rollouts.db`, version by version; what was released is never changed again."""

STATE = "CASE WHEN json_valid(body) THEN json_extract(body, '$.state') END"
"""A member's, as its index has it: a query that says it otherwise reads all of them."""
MIGRATIONS = (
    (
        """CREATE TABLE rollouts (
            number INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, under_way INTEGER NOT NULL,
            released INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL
        )""",
        "CREATE UNIQUE INDEX one_of_a_channel ON rollouts (channel) WHERE under_way",
        """CREATE TABLE members (
            rollout INTEGER NOT NULL, machine TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (rollout, machine)
        ) WITHOUT ROWID""",
        """CREATE TABLE history (
            id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, rollout INTEGER NOT NULL, who TEXT NOT NULL,
            act TEXT NOT NULL, said TEXT NOT NULL
        )""",
        "CREATE INDEX history_of_rollout ON history (rollout, id)",
    ),
    (
        # `Counts` of a rollout's members, as they are: whoever writes one of these takes them away, and whoever has all
        # members at hand writes them
        "CREATE TABLE counts (rollout INTEGER PRIMARY KEY, body TEXT NOT NULL)",
        """CREATE TRIGGER counts_before_a_member_came AFTER INSERT ON members
            BEGIN DELETE FROM counts WHERE rollout = new.rollout; END""",
        """CREATE TRIGGER counts_before_a_member_changed AFTER UPDATE ON members
            BEGIN DELETE FROM counts WHERE rollout IN (old.rollout, new.rollout); END""",
        """CREATE TRIGGER counts_before_a_member_went AFTER DELETE ON members
            BEGIN DELETE FROM counts WHERE rollout = old.rollout; END""",
    ),
    (
        # `ByRack` of them, beside their `Counts`; null: not made yet
        "ALTER TABLE counts ADD COLUMN racks TEXT",
        f"CREATE INDEX members_by_state ON members (rollout, {STATE}, machine)",
    ),
    (
        # `netboot.stores.known_rollouts`: which word of an object is here, and of when all of them are
        """CREATE TABLE channels (
            name TEXT PRIMARY KEY, uid TEXT NOT NULL, generation INTEGER NOT NULL, version TEXT NOT NULL,
            written_ms INTEGER NOT NULL, image TEXT NOT NULL, image_name TEXT NOT NULL, who TEXT NOT NULL,
            since_ms INTEGER NOT NULL, number INTEGER NOT NULL, alone_ms INTEGER NOT NULL
        )""",
        "CREATE TABLE followed (id INTEGER PRIMARY KEY CHECK (id = 1), as_of_ms INTEGER NOT NULL)",
        # channels whose rollout is under way, and not here: why
        "CREATE TABLE hidden (channel TEXT PRIMARY KEY, why TEXT NOT NULL)",
    ),
)
VERSION = len(MIGRATIONS)
