"""The tables `crashes` and `consoles` of `data/state.db`: the texts that traces name; within a transaction of
`netboot.stores.state_writer`, whose part this is."""

import sqlite3
from collections.abc import Iterable, Sequence

from netboot.lifecycle import state
from netboot.lifecycle.events import ConsoleRecord, CrashRecord
from netboot.lifecycle.trace import Trace
from netboot.stores.packing import pack

_PRUNE = (
    "WITH sent AS (SELECT boot, standing, since, row_number() OVER (PARTITION BY standing, peer ORDER BY since DESC, "
    "boot DESC) AS turn FROM boots CROSS JOIN consoles USING (boot) WHERE machine = ?), "
    "ordered AS (SELECT boot, turn, row_number() OVER (PARTITION BY standing ORDER BY turn, since DESC, boot DESC) AS "
    "place FROM sent) DELETE FROM consoles WHERE boot IN (SELECT boot FROM ordered WHERE turn > ? OR place > ?)"
)


def keep(db: sqlite3.Connection, trace: Trace, found: Sequence[CrashRecord | ConsoleRecord]) -> None:
    """The texts that the trace names, and no others: it says which of them are kept. One that is sent again takes the
    place of what was there, which may have been damaged."""
    _keep_crashes(db, trace, [record for record in found if isinstance(record, CrashRecord)])
    _keep_console(db, trace, [record for record in found if isinstance(record, ConsoleRecord)])


def _keep_crashes(db: sqlite3.Connection, trace: Trace, found: Iterable[CrashRecord]) -> None:
    named = {crash.sha256 for crash in trace.crashes}
    told = {record.sha256: record for record in found}
    db.executemany(
        "INSERT OR REPLACE INTO crashes (boot, sha256, body) VALUES (?, ?, ?)",
        [(trace.boot, sha256, pack(told[sha256].model_dump_json())) for sha256 in named & told.keys()],
    )
    stored = [sha256 for (sha256,) in db.execute("SELECT sha256 FROM crashes WHERE boot = ?", (trace.boot,)).fetchall()]
    dropped = [(trace.boot, sha256) for sha256 in stored if sha256 not in named]
    db.executemany("DELETE FROM crashes WHERE boot = ? AND sha256 = ?", dropped)


def _keep_console(db: sqlite3.Connection, trace: Trace, told: Iterable[ConsoleRecord]) -> None:
    """As the trace has it: when it came first, and from where."""
    named = trace.console
    for record in told:
        if named is not None and (record.uptime_ms, record.sha256) == named.which:
            kept = record.model_copy(update={"at_ms": named.at_ms, "peer": named.peer})
            row = (trace.boot, kept.peer, pack(kept.model_dump_json()))
            db.execute("INSERT OR REPLACE INTO consoles (boot, peer, body) VALUES (?, ?, ?)", row)
            return


def prune_consoles(db: sqlite3.Connection, machines: Iterable[str]) -> None:
    """Of each machine and standing those of the newest boots stay, of each address that sent some: first the newest of
    each, then the second, so that who makes up boots in a machine's name hides none that came from another address.
    What goes would go later as well: however many are taken at once, the same stay."""
    bounds = (state.CONSOLES_OF_ADDRESS, state.CONSOLES_KEPT)
    db.executemany(_PRUNE, [(machine, *bounds) for machine in machines])
