"""What is kept by a name that a machine had becomes its own, also where its new name is known already."""

from pathlib import Path

import pytest

from netboot.join.enrolment import Act, Import, OpenWindow
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.intents import PutOn
from netboot.lifecycle.transitions import Mark
from netboot.stores import intents
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.intents import SqliteIntents
from netboot.stores.renamed import LATE_SECONDS, Renamed, carry

EK, OTHER = "e1" * 32, "e2" * 32
NAMES = {"gpu-001": "r7-1"}


@pytest.fixture
def kept(tmp_path: Path) -> SqliteIntents:
    intents.make(tmp_path / "intents.db").close()
    return SqliteIntents(tmp_path / "intents.db")


@pytest.mark.parametrize(("ours", "theirs"), [(None, 5), (9, 5), (9, None)])
def test_what_is_wanted_for_longer_stays(
    tmp_path: Path, kept: SqliteIntents, ours: int | None, theirs: int | None
) -> None:
    kept.order("gpu-001", PutOn(Mark.QUARANTINED, "ours", ours), "alice", 1)
    kept.order("r7-1", PutOn(Mark.QUARANTINED, "of one that had the name before", theirs), "alice", 1)
    carry(tmp_path, NAMES)
    (stands,) = kept.of("r7-1", 2)
    assert stands.until_ms == (ours if theirs is not None else None)


def test_a_tpm_goes_before_a_record_without_one_and_after_another(tmp_path: Path) -> None:
    store, act = SqliteEnrolments(tmp_path / "enrolment.db"), Act("alice", "arrived")
    store.apply([("gpu-001", Import(EK, "{}"))], act, 1)
    store.apply([("r7-1", OpenWindow("enrol", "w", 5))], act, 1)
    carry(tmp_path, NAMES)
    assert store.record("r7-1").ek_sha256 == EK
    store.apply([("gpu-002", Import(OTHER, "{}"))], act, 1)
    carry(tmp_path, {"gpu-002": "r7-1"})
    assert (store.record("r7-1").ek_sha256, store.record("gpu-002").ek_sha256) == (EK, OTHER)


def test_what_was_written_by_the_name_before_in_the_meantime_follows(tmp_path: Path, kept: SqliteIntents) -> None:
    now = 0.0
    renamed = Renamed(tmp_path, lambda: now, {})
    renamed.carry(NAMES)
    for now in (1.0, LATE_SECONDS - 1):
        kept.order("gpu-001", PutOn(Mark.QUARANTINED, f"at {now}"), "alice", 1)
        renamed.carry(NAMES)
        assert [each.reason for each in kept.of("r7-1", 2)] == [f"at {now}"]
    kept.order("gpu-001", PutOn(Mark.QUARANTINED, "nobody has that name"), "alice", 1)
    now = LATE_SECONDS
    renamed.carry(NAMES)
    assert len(kept.of("gpu-001", 2)) == 1
    renamed.carry({**NAMES, "gpu-002": "r7-2"})
    assert kept.of("gpu-001", 2) == []


def test_a_broken_file_keeps_new_names_from_being_in_force_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "history.db").write_bytes(b"no database" * 999)
    renamed = Renamed(tmp_path, lambda: 0.0, NAMES)
    renamed.carry(NAMES)
    with pytest.raises(StateUnavailableError):
        renamed.carry({**NAMES, "gpu-002": "r7-2"})
