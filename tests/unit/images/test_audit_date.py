"""As of when an audit's data is: said for each file, and warned of where it is old."""

import io
import json
import os
import tarfile
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.artifact import advisories
from images.artifact.data_date import DataDate
from tests.commands import Run
from tests.unit.images.test_audit import FIXTURES, site

__all__ = ["site"]

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def record(modified: object) -> dict[str, Any]:
    """An OSV record of Debian 12's bash."""
    package = {"ecosystem": "Debian:12", "name": "bash"}
    events = [{"introduced": "0"}, {"fixed": "1"}]
    affected = [{"package": package, "ranges": [{"type": "ECOSYSTEM", "events": events}]}]
    return {"id": "CVE-2099-1", "affected": affected} | ({} if modified is None else {"modified": modified})


def dated(path: Path, suite: str = "bookworm") -> tuple[str, str]:
    date = DataDate(NOW)
    list(advisories.read(path, "debian", suite, lambda step: None, date))
    return str(date), date.by


NEWEST = ("2026-11-20T05:00:00Z", "newest record")
TEXTS = [
    json.dumps(record(said)) for said in ("2026-11-01T00:00:00Z", "2026-11-20T07:00:00+02:00", "2026-11-19T00:00Z")
]


def test_it_is_the_newest_record_s_whatever_release_that_is_of(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(f"[{','.join(TEXTS)}]")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as packed:
        for number, text in enumerate(TEXTS):
            packed.writestr(f"{number}.json", text)
    with tarfile.open(tmp_path / "all.tar.xz", "w:xz") as archive:
        for number, text in enumerate(TEXTS):
            info = tarfile.TarInfo(f"{number}.json")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    assert {dated(path, suite) for path in tmp_path.iterdir() for suite in ("bookworm", "trixie")} == {NEWEST}


@pytest.mark.parametrize(
    "said", [None, 7, "", "yesterday", "2026-11-20T05:00:00", "2099-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59"]
)
def test_what_is_no_time_or_has_not_come_makes_nothing_newer(tmp_path: Path, said: object) -> None:
    (tmp_path / "one.json").write_text(json.dumps([record(said)]))
    assert dated(tmp_path / "one.json") == ("unknown", "unknown")
    (tmp_path / "two.json").write_text(json.dumps([json.loads(TEXTS[1]), record(said)]))
    assert dated(tmp_path / "two.json") == NEWEST


@given(st.text(max_size=40))
def test_any_text_may_stand_there(said: str) -> None:
    date = DataDate(NOW)
    date.record(said)
    assert date.as_of is None or date.as_of <= NOW + timedelta(days=1)


@pytest.mark.parametrize(("ago", "stale"), [(timedelta(days=7), False), (timedelta(days=7, seconds=1), True)])
def test_older_than_a_week_is_stale(ago: timedelta, stale: bool) -> None:
    assert DataDate(NOW, "newest record", NOW - ago).stale is stale
    assert not DataDate(NOW).stale


def test_the_command_says_it_of_each_file_and_warns_of_an_old_one(site: Path, run: Run) -> None:
    """The tracker's by the file, for it has no date in it; of several files the oldest counts."""
    tracker, osv = site / "tracker.json", site / "osv.json"
    tracker.write_bytes((FIXTURES / "tracker.json").read_bytes())
    fetched = datetime.now(UTC).replace(microsecond=0)
    os.utime(tracker, (fetched.timestamp(),) * 2)
    osv.write_text(json.dumps(record("2020-01-02T03:04:05Z")))
    days = (datetime.now(UTC) - datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)).days
    warning = (
        f"{osv} is as of 2020-01-02T03:04:05Z, {days} days ago: what was published since is not in it; fetch it again"
    )
    done = run("image", "audit", "sample", "--data", tracker, "--data", osv)
    assert done.out.splitlines()[-2:] == [
        f"data of {tracker}: as of {fetched:%Y-%m-%dT%H:%M:%SZ}, the file's own date: the tracker has none in it",
        f"data of {osv}: as of 2020-01-02T03:04:05Z, its newest record",
    ]
    assert done.err.splitlines()[-1] == f"warning: {warning}"
    value = run("image", "audit", "sample", "--data", tracker, "--data", osv, "-o", "json").json
    assert value["data"] == [
        {"file": str(tracker), "as_of": f"{fetched:%Y-%m-%dT%H:%M:%SZ}", "by": "file"},
        {"file": str(osv), "as_of": "2020-01-02T03:04:05Z", "by": "newest record"},
    ]
    assert (value["data_as_of"], value["warnings"]) == ("2020-01-02T03:04:05Z", [warning])


def test_of_a_record_without_a_date_it_is_unknown_and_so_it_is_of_all(site: Path, run: Run) -> None:
    (site / "osv.json").write_text(json.dumps(record(None)))
    files = ("--data", FIXTURES / "tracker.json", "--data", site / "osv.json")
    done = run("image", "audit", "sample", *files)
    assert done.out.splitlines()[-1] == f"data of {site}/osv.json: as of unknown"
    assert run("image", "audit", "sample", *files, "-o", "json").json["data_as_of"] == "unknown"
