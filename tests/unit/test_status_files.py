"""What processes say of themselves, in a folder that others of them write too."""

import errno
import os
import secrets
from pathlib import Path

import pytest

from netboot.boot.metrics import Counters
from netboot.lifecycle.errors import CannotTellError
from netboot.status.boot import BootStatus
from netboot.stores import status
from netboot.stores.status import StatusFile, StatusFolder, wipe, write_status

SAID = Counters().status(1, open_connections=2, journal_lag=3)


def test_what_is_said_is_read(tmp_path: Path) -> None:
    write_status(tmp_path, "boot-0", SAID)
    assert StatusFolder(tmp_path).read("boot-0", BootStatus) == SAID
    assert [path.name for path in tmp_path.iterdir()] == ["boot-0.json"]


def test_a_link_in_its_place_is_replaced_and_what_it_leads_to_is_left(tmp_path: Path) -> None:
    folder, other = tmp_path / "status", tmp_path / "boot-id.key"
    folder.mkdir()
    other.write_text("a key")
    (folder / "boot-0.json").symlink_to(other)
    with pytest.raises(CannotTellError) as caught:
        StatusFolder(folder).read("boot-0", BootStatus)
    assert str(caught.value).endswith(f"boot-0.json cannot be read: {os.strerror(errno.ELOOP)}")
    write_status(folder, "boot-0", SAID)
    assert (other.read_text(), StatusFolder(folder).read("boot-0", BootStatus)) == ("a key", SAID)


def test_nobody_knows_the_name_under_which_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also who does writes through no link: it is made anew, or not at all."""
    other = tmp_path / "boot-id.key"
    other.write_text("a key")
    monkeypatch.setattr(secrets, "token_hex", lambda _count: "known")
    folder = tmp_path / "status"
    folder.mkdir()
    (folder / ".boot-0.known").symlink_to(other)
    with pytest.raises(FileExistsError):
        write_status(folder, "boot-0", SAID)
    assert other.read_text() == "a key"


def test_what_cannot_be_written_is_said_once_and_what_was_written_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, away = tmp_path / "status", tmp_path / "away"
    file = StatusFile(folder, "publisher")
    file.write(SAID)
    folder.rename(away)
    folder.touch()
    for number in (1, 2, 3):
        file.write(SAID.model_copy(update={"at_ms": number}))
    folder.unlink()
    away.rename(folder)
    assert StatusFolder(folder).read("publisher", BootStatus) == SAID, "its age tells that it is not of now"
    for number in (4, 5):
        file.write(SAID.model_copy(update={"at_ms": number}))
    assert [record.getMessage() for record in caplog.records] == [
        "status of the publisher cannot be written: File exists",
        "status of the publisher is written again",
    ]
    assert StatusFolder(folder).read("publisher", BootStatus) == SAID.model_copy(update={"at_ms": 5})


def test_what_is_no_file_or_has_no_end_cannot_be_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with (tmp_path / "long.json").open("wb") as file:
        file.truncate(status.LONGEST + 1)
    for name, why in (("pipe", "it is no file"), ("long", f"it is longer than {status.LONGEST} bytes")):
        with pytest.raises(CannotTellError) as caught:
            StatusFolder(tmp_path).read(name, BootStatus)
        assert str(caught.value) == f"cannot tell: {tmp_path}/{name}.json cannot be read: {why}"


def test_nothing_of_an_earlier_run_is_left(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "link.json").symlink_to("nowhere")
    (tmp_path / "boot-0.json").write_text("{}")
    wipe(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_boot_server_goes_on_from_counts_that_it_can_have_had() -> None:
    before = SAID.model_copy(
        update={"scripts": {"boot": 7, "unknown": -1, "refused": 2**60, "invented": 5}, "bytes_sent": -4, "refused": 9}
    )
    counters = Counters()
    counters.go_on(before)
    assert counters.scripts == {"boot": 7, "unknown": 0, "refused": 0, "unavailable": 0, "discovery": 0}
    assert (counters.bytes_sent, counters.refused) == (0, 9)
