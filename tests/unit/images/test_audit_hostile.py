"""Data about vulnerabilities that is damaged, hostile or odd: never taken for "in order"."""

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from images.artifact import advisories, audit
from images.artifact.advisories import Advisory, BadDataError
from images.artifact.audit import Source
from images.errors import CommandError
from images.values.debian_versions import earlier


def quiet(step: int) -> None:
    """Nobody is shown how far it is."""


def read(path: Path) -> list[Advisory]:
    return list(advisories.read(path, "ubuntu", "noble", quiet))


def osv(events: list[Any], **more: Any) -> dict[str, Any]:
    ranges = [{"type": "ECOSYSTEM", "events": events}]
    return {"id": "USN-1-1", "affected": [{"package": PACKAGE, "ranges": ranges}]} | more


PACKAGE = {"ecosystem": "Ubuntu:24.04:LTS", "name": "a"}
ENDED = [{"introduced": "0"}, {"fixed": "2"}]


@pytest.mark.parametrize(
    "version",
    ["", ":1", "x:1", "1 2", "99999999999:1", "1-", "1:", "--help", "abc", "é", "2;", "1\0", "\ud800", "1" * 2**18],
)
def test_what_is_no_version_is_unknown_and_neither_fixed_nor_affected(version: str) -> None:
    before = earlier([("1.0", version), ("1.0", "2.0"), ("1.0", "0.9")], quiet)
    assert before == {("1.0", version): None, ("1.0", "2.0"): True, ("1.0", "0.9"): False}
    if version:
        verdict = audit.judge(Source("a", "1.0", "debian"), Advisory("CVE-2099-1", "a", (("", version),)), before)
        assert (verdict.state, verdict.fixed) == ("unknown", "")


def test_without_dpkg_nothing_is_said_of_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("images.values.debian_versions._SCRIPT", "echo 127")
    with pytest.raises(CommandError) as caught:
        earlier([("1", "2")], quiet)
    assert str(caught.value) == (
        "exit status 127 from: dpkg --compare-versions\nit compared nothing; is dpkg installed?"
    )


@pytest.mark.parametrize(
    "events",
    [
        [{"fixed": "2"}, {"introduced": "0"}],
        [{"introduced": "0"}, {"introduced": "5"}, {"fixed": "6"}],
        [{"introduced": "0"}, {"fixed": "1"}, {"fixed": "2"}],
        [{"introduced": "0"}, {"fixed": "1"}, {"last_affected": "2"}],
        [],
    ],
)
def test_events_in_no_order_say_nothing(events: list[Any]) -> None:
    assert [one.ranges for one in advisories.of_osv(osv(events), "ubuntu", "noble")] == [None]


@pytest.mark.parametrize(
    "record",
    [
        osv([{"introduced": "0"}, {"fixed": 2}]),
        osv(ENDED, id="USN\x1b[2J"),
        osv(ENDED, id="\ud800"),
        {
            "id": "USN-1-1",
            "affected": [osv(ENDED)["affected"][0] | {"ecosystem_specific": {"urgency": "\x1b]0;x\x07"}}],
        },
    ],
)
def test_what_is_no_text_or_a_terminal_would_obey_is_refused(record: Any) -> None:
    with pytest.raises(BadDataError, match=r"^a record is not as OSV has them$"):
        list(advisories.of_osv(record, "ubuntu", "noble"))


def test_a_record_of_several_is_called_by_its_own_name_and_one_that_was_not_withdrawn_counts() -> None:
    several = osv(ENDED, upstream=["CVE-2024-1", "CVE-2024-2"], withdrawn=None)
    assert [one.id for one in advisories.of_osv(several, "ubuntu", "noble")] == ["USN-1-1"]
    one = osv(ENDED, upstream=["CVE-2024-1"], aliases=["CVE-2024-1"])
    assert [found.id for found in advisories.of_osv(one, "ubuntu", "noble")] == ["CVE-2024-1"]


def test_an_archive_that_unpacks_to_more_than_data_has_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps(osv(ENDED)).encode() + b" " * (3 << 20)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", text)
    with tarfile.open(tmp_path / "a.tar.xz", "w:xz") as tar:
        member = tarfile.TarInfo("a.json")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    (tmp_path / "plain.json").write_bytes(text)
    assert [len(read(path)) for path in sorted(tmp_path.iterdir())] == [1, 1, 1]
    monkeypatch.setattr(advisories, "_MEMBER", 1 << 20)
    monkeypatch.setattr(advisories, "_FILE", 2 << 20)
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(BadDataError, match=r" has 3 MiB unpacked: no data about vulnerabilities is so large$"):
            read(path)


def test_an_archive_that_python_cannot_unpack_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "locked.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", json.dumps(osv(ENDED)))
    data = bytearray(path.read_bytes())
    for begin, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(begin) + flags] |= 1  # "encrypted"
    path.write_bytes(data)
    with pytest.raises(BadDataError, match=r"locked\.zip cannot be read: .* is encrypted"):
        read(path)


def test_what_is_no_regular_file_is_refused() -> None:
    """A pipe would be waited for, and a device read for ever."""
    with pytest.raises(BadDataError) as caught:
        read(Path("/dev/null"))
    assert str(caught.value) == "/dev/null is no regular file: write what a pipe gives to a file first"


def test_a_key_of_the_tracker_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "tracker.json").write_text('{"open\nssl": {}}')
    with pytest.raises(BadDataError, match=r"tracker\.json is no JSON: Invalid control character"):
        list(advisories.read(tmp_path / "tracker.json", "debian", "bookworm", quiet))


@pytest.mark.parametrize(
    ("signed", "source"),
    [
        ("linux-signed", "linux"),
        ("linux-signed-amd64", "linux"),
        ("linux-signed-arm64", "linux"),
        ("linux-signed-6.1-amd64", "linux-6.1"),
        ("linux-signed-hwe-6.8", "linux-hwe-6.8"),
        ("linux-signed-azure", "linux-azure"),
    ],
)
def test_a_signed_kernel_is_looked_up_as_what_was_compiled(signed: str, source: str) -> None:
    properties = [
        {"name": "netboot:source", "value": signed},
        {"name": "netboot:source-version", "value": "6.8.0-1+1"},
    ]
    part = {
        "type": "library",
        "version": "6.8.0-1",
        "purl": "pkg:deb/ubuntu/linux-image@6.8.0-1",
        "properties": properties,
    }
    assert audit.sources(json.dumps({"components": [part]}).encode()) == (Source(source, "6.8.0-1", "ubuntu"),)
