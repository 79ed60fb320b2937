"""`netboot migrate --to files`: what it would undo is asked about, and what it says is what is on record afterwards."""

import os
import pwd
import re
import time
from pathlib import Path
from typing import Any

import pytest
from click import ClickException

from images.values import files
from netboot.cli import ownership
from netboot.cli.cluster_objects import text_of
from netboot.cli.site_objects import enrolment_objects, on_record
from netboot.clock import rfc3339
from netboot.config import Config
from netboot.join.enrolment import Act, Import, Release, Replace, Retire
from netboot.lifecycle.intents import Change, PutOn
from netboot.lifecycle.transitions import Mark
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.intents import SqliteIntents, make
from tests.commands import Run
from tests.sites import make_site
from tests.unit.test_migrate import A, B, C, enrolment, hold, put_on

D = "d4" * 32
UNTIL_MS = 4_070_908_800_000
BACK = ("migrate", "--to", "files", "--from", "exported")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Of a site that never ran, in whose folder one works."""
    made = make_site(tmp_path / "site")
    monkeypatch.chdir(tmp_path / "site")
    Path("exported").mkdir()
    return made


def written(name: str, *documents: dict[str, Any]) -> None:
    Path("exported", name).write_text(text_of(documents))


def enrolled(config: Config) -> SqliteEnrolments:
    """What people did, of which files that are older know nothing."""
    config.data.mkdir()
    store = SqliteEnrolments(config.data / "enrolment.db")
    for name, order in (
        ("gone", Import(D)),
        ("gone", Release()),
        ("released", Import(A)),
        ("released", Release()),
        ("retired", Import(B)),
        ("retired", Retire()),
        ("swapped", Import(C)),
        ("swapped", Replace("", 0)),
    ):
        store.apply([(name, order)], Act("alice"), 1)
    return store


def approved(name: str, ek: str, **more: Any) -> dict[str, Any]:
    return enrolment(name, ek_sha256=ek, source="imported", **more)


OLD = (approved("released", A), approved("retired", B), enrolment("swapped", generation=1))
UNDONE = f"""\
gone: generation: 1 → 0
released: generation: 1 → 0
retired: state: retired → approved
swapped: replaced: {C[:16]}... → none
"""


def test_what_would_be_undone_is_named_and_not_done_unasked(config: Config, run: Run) -> None:
    store = enrolled(config)
    now = time.time_ns() // 1_000_000
    store.alert("released", "other-key", "a thief", now)
    store.alert("swapped", "counters", "forgotten since long", 1)
    before = (store.records(), store.replaced(), store.all_alerts(), store.history(None, 50))
    written("enrolments.yaml", *OLD)
    vanishes = f"alert other-key: 1 until {rfc3339(now)} → none"
    told = UNDONE.replace("released: generation: 1 → 0", f"released: generation: 1 → 0; {vanishes}")
    for more in ((), ("--dry-run",), ("-o", "json")):
        ran = run(*BACK, *more)
        assert (ran.status, ran.out) == (4, "")
        assert ran.err == (
            f"Error: nothing was written, for this would be undone:\n{told}"
            "Remedy: see that this is meant, and that exported/enrolments.yaml is no older than what is on record "
            "here; then give the command again with --yes, or correct the file\n"
        )
        assert (store.records(), store.replaced(), store.all_alerts(), store.history(None, 50)) == before
    assert run(*BACK, "--yes", "--dry-run").status == 0
    assert store.records() == before[0]
    done = run(*BACK, "--yes", "-o", "json")
    assert (done.status, done.json["enrolments"]) == (
        0,
        {
            "changed": 3,
            "same": 0,
            "gone": ["gone"],
            "machines": {
                "gone": [
                    f"ek_sha256: {D} → none",
                    "state: approved → none",
                    "source: imported → none",
                    "generation: 1 → 0",
                ],
                "released": ["generation: 1 → 0", vanishes],
                "retired": ["state: retired → approved", "before it: approved → none"],
                "swapped": [f"replaced: {C[:16]}... → none"],
            },
        },
    )
    assert (store.replaced(), store.all_alerts(), store.record("retired").state) == ({}, [], "approved")
    lines = {(one.machine, one.ek_sha256, one.said) for one in store.history(None, 5) if one.act == "migrated"}
    assert lines == {
        ("gone", None, "nothing is on record any more"),
        ("released", A, "approved, generation 1 → approved, generation 0"),
        ("retired", B, "retired, generation 0 → approved, generation 0"),
        ("swapped", C, "not taken out of it any more"),
    }


def test_what_undoes_nothing_is_done_and_each_machine_is_named(config: Config, run: Run) -> None:
    """Also who is let in no more; and a TPM that is taken out of another machine than before is refused as it was."""
    store = enrolled(config)
    written(
        "enrolments.yaml",
        approved("gone", D, generation=2),
        enrolment("swapped", generation=1),
        enrolment("other", replaced=[C]),
        approved("released", A, generation=1, retired=True),
        approved("retired", B, retired=True, details={"serial": "S1"}),
    )
    ran = run(*BACK)
    assert (ran.status, ran.err) == (0, "")
    assert (
        ran.out.partition("enrolments")[2]
        == f"""\
  5        0               \n  gone: generation: 1 → 2
  other: replaced: none → {C[:16]}...
  released: state: approved → retired; before it: none → approved
  retired: details: what is said of the TPM
  swapped: replaced: {C[:16]}... → none

Verified: on record is what exported says.
"""
    )
    again = run(*BACK, "-o", "json")
    assert again.json["enrolments"] == {"changed": 0, "same": 5, "gone": [], "machines": {}}
    assert store.replaced() == {"other": (C,)}


def test_what_is_read_otherwise_afterwards_is_not_verified(
    config: Config, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    written("enrolments.yaml", approved("a", A, replaced=[C]), approved("b", B))
    have = SqliteEnrolments.have

    def forget(self: SqliteEnrolments, records: Any, replaced: Any, *more: Any) -> None:
        have(self, records, {}, *more)

    monkeypatch.setattr(SqliteEnrolments, "have", forget)
    ran = run(*BACK)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        f"Error: what is read of {config.data}/enrolment.db is another thing of a\n"
        "Remedy: look at what else writes there, then give the same command again\n"
    )


def test_a_machine_is_once_in_a_file(config: Config, run: Run) -> None:
    """Else the second is on record, and the TPM of the first is nobody's."""
    written("enrolments.yaml", approved("a", A), approved("b", C), approved("a", B), approved("a", B))
    ran = run(*BACK)
    where = "exported/enrolments.yaml: items"
    assert (ran.status, ran.out, config.data.exists()) == (1, "", False)
    assert ran.err.startswith(
        f"{where}[2].metadata.name: a is that of items[0], too: take one out\n"
        f"{where}[3].metadata.name: a is that of items[0], too: take one out\n"
    )


def test_a_host_that_never_ran_gets_all_of_it(config: Config, run: Run) -> None:
    written("enrolments.yaml", approved("a", A))
    written("holds.yaml", hold("gpu-001"))
    assert run(*BACK, "--dry-run").status == 0
    assert not config.data.exists()
    ran = run(*BACK)
    assert (ran.status, ran.err) == (0, "")
    wanted = SqliteIntents(config.data / "intents.db").all(1)
    assert [(one.machine, one.mark, one.who) for one in wanted] == [("gpu-001", Mark.HELD, "hold/gpu-001")]
    assert [one.machine for one in SqliteEnrolments(config.data / "enrolment.db").records()] == ["a"]


def test_holds_of_a_host_that_lost_what_it_held_are_not_put_into_a_new_file(config: Config, run: Run) -> None:
    """Nor is anything else written."""
    store = enrolled(config)
    before = store.history(None, 50)
    written("enrolments.yaml", approved("a", A))
    written("holds.yaml", hold("gpu-001"))
    ran = run(*BACK, "--yes")
    file = config.data / "intents.db"
    assert (ran.status, ran.out, file.exists(), store.history(None, 50)) == (5, "", False, before)
    assert ran.err == (
        f"Error: nothing was written: {file} cannot be used: it is not there; what is held cannot be told: put that "
        "file of a backup there, or start the service once, which makes one\n"
    )


def test_what_root_makes_is_of_whom_the_folder_is(config: Config, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service of another account could open none of it. `--owner`: where there is no folder yet."""
    given: list[tuple[str, Path]] = []

    def give(descriptor: int, folder: Path) -> None:
        name = Path(os.readlink(f"/proc/self/fd/{descriptor}")).name
        given.append((re.sub(r"^\.|\.[0-9]+-[0-9a-f]+$", "", name), folder))

    made: list[str] = []
    monkeypatch.setattr(files, "give", give)
    monkeypatch.setattr(ownership, "make_state", lambda config, owner: made.append(f"{config.data} {owner.pw_name}"))
    written("enrolments.yaml", approved("a", A))
    written("holds.yaml", hold("gpu-001"))
    assert run(*BACK).status == 0
    assert given == [(name, config.data) for name in ("lock", "intents.db", "enrolment.db")]
    us = pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert run(*BACK, "--owner", us).status == 0
    assert (len(given), made) == (3, [f"{config.data} {us}"])


def test_of_a_hold_machine_and_end_count_too(config: Config, run: Run) -> None:
    now = time.time_ns() // 1_000_000
    of = "kubernetes/netboot/"
    store = put_on(
        config,
        ("node-9", PutOn(Mark.HELD, "x", owner="kubernetes/othernamespace/maint")),
        ("node-3", PutOn(Mark.HELD, "x", now + 3_600_000, owner=f"{of}firmware")),
        ("node-4", PutOn(Mark.HELD, "x", UNTIL_MS + 1, owner=f"{of}later")),
        ("node-5", PutOn(Mark.HELD, "x", owner="kubernetes/othernamespace/moved")),
        ("node-6", PutOn(Mark.HELD, "x", owner="remedy")),
        ("node-7", PutOn(Mark.HELD, "x", owner="kubernetes/former")),
    )
    until = rfc3339(UNTIL_MS)

    def of_object(name: str, machine: str, **more: Any) -> dict[str, Any]:
        made = hold(machine, **more)
        return made | {"metadata": {"name": name, "namespace": "netboot"}}

    written(
        "holds.yaml",
        of_object("maint", "node-2"),
        of_object("firmware", "node-3"),
        of_object("later", "node-4", until=until),
        of_object("moved", "node-5"),
        of_object("node-6", "node-6"),
        of_object("former", "node-7"),
    )
    assert run(*BACK, "-o", "json").json["holds"] == {"changed": 4, "same": 2}
    people = [(one.machine, one.until_ms) for one in store.all(now) if one.owner == "operator"]
    assert people == [("node-2", None), ("node-3", None), ("node-5", None), ("node-6", None)]
    assert run(*BACK, "-o", "json").json["holds"] == {"changed": 0, "same": 6}


def test_of_several_holds_of_a_machine_one_is_made_with_the_latest_end(config: Config, run: Run) -> None:
    store = put_on(config)
    until, later = rfc3339(UNTIL_MS), rfc3339(UNTIL_MS + 1)
    named = [hold("a", until=until), hold("a", reason="fan 3", until=later), hold("a", reason="DIMM 5", until=until)]
    written("holds.yaml", *named)
    for more, counts in (("--dry-run", (2, 1)), ("--yes", (2, 1)), ("--dry-run", (0, 3)), ("--yes", (0, 3))):
        assert run(*BACK, more, "-o", "json").json["holds"] == {"changed": counts[0], "same": counts[1]}
    assert [(one.machine, one.reason, one.until_ms) for one in store.all(1)] == [("a", "DIMM 4", UNTIL_MS + 1)]


def test_a_machine_that_is_not_held_so_afterwards_is_named(
    config: Config, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_on(config)
    written("holds.yaml", hold("a"), hold("b"))
    monkeypatch.setattr(SqliteIntents, "order", lambda *_: Change(""))
    ran = run(*BACK)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        "Error: holds.yaml holds machines that are not held so now: a, b\n"
        "Remedy: look at what else writes there, then give the same command again\n"
    )


def test_that_the_service_reads_objects_is_said(config: Config, run: Run) -> None:
    with Path("netboot.yaml").open("a") as file:
        file.write("inventory_kubernetes: {holds: true}\nenrolments_kubernetes: {}\n")
    written("enrolments.yaml", approved("a", A))
    written("holds.yaml", hold("gpu-001"))
    keys = ["enrolments_kubernetes", "inventory_kubernetes.holds"]
    said = "WARNING: with {} in netboot.yaml the service reads objects, and not this: take it out\n"
    ran = run(*BACK)
    assert (ran.status, ran.err) == (0, "".join(map(said.format, keys)))
    assert run(*BACK, "-o", "json").json["read_of_objects"] == keys


def test_whom_nothing_but_a_tpm_that_was_taken_out_is_known_of_has_an_object(config: Config) -> None:
    """Else nobody would refuse that TPM any more. So it is with alerts."""
    config.data.mkdir()
    store = SqliteEnrolments(config.data / "enrolment.db")
    make(config.data / "intents.db").close()
    store.have([], {"gone-9": [C]}, [], Act(), 1)
    store.alert("gone-8", "counters", "cleared?", time.time_ns() // 1_000_000)
    found = {one.machine: one for one in on_record(config, None)}
    assert (sorted(found), found["gone-9"].spec.replaced) == (["gone-8", "gone-9"], (C,))
    assert [one.kind for one in found["gone-8"].status.alerts] == ["counters"]


def test_of_a_host_that_never_ran_nobody_is_on_record(config: Config) -> None:
    """Of one that ran and has no file it cannot be told."""
    found = [one["metadata"]["name"] for one in enrolment_objects(config, None, "netboot")]
    assert (found, config.data.exists()) == ([], False)
    config.data.mkdir()
    make(config.data / "intents.db").close()
    with pytest.raises(ClickException, match=r"enrolment\.db is not there"):
        enrolment_objects(config, None, "netboot")
