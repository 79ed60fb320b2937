"""What distributions publish about vulnerabilities, read from files: Debian's security tracker, and OSV records.

Debian: https://security-tracker.debian.org/tracker/data/json, {source package: {CVE: {releases: {suite: …}}}}.
OSV (https://ossf.github.io/osv-schema/): one record, a list of them, or an archive (zip, tar) with a file for each, as
Ubuntu's security team and osv.dev publish them.
"""

import json
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from images.artifact.data_date import DataDate
from images.errors import ImageError
from images.values import files

Range = tuple[str, str]
"""Affected from the first version ("": from the beginning) up to, and without, the second ("": no fix is published)."""

NUMBERS = {"bookworm": "12", "trixie": "13", "jammy": "22.04", "noble": "24.04"}
"""Releases by their suites: OSV names them by number."""
_CVE = re.compile(r"CVE-[0-9]{4}-[0-9]+")
_KEY = re.compile(r'[\s,{]*"((?:[^"\\]|\\.)*)"\s*:\s*')
_NEVER = "0"
"""Debian's `fixed_version` where no version of a release was ever affected."""
_BEGINNING = "0"
"""OSV's `introduced` where every version up to the fix is affected."""


@dataclass(frozen=True, slots=True)
class Advisory:
    """What one record says of one source package in one release."""

    id: str
    """CVE-…; the record's own where it is of none, or of several."""
    package: str
    ranges: tuple[Range, ...] | None
    """Which versions are affected; (): none ever was; None: the record does not know."""
    urgency: str = ""
    """As its publisher says it."""
    note: str = ""


_RECORD = frozenset({"schema_version", "id", "modified", "published", "withdrawn", "affected", "aliases", "details"})
"""Any of them is the first key of an OSV record; the tracker's are source packages."""
_HEAD = 4096
"""Characters of a file by which its kind is told."""
_FILE, _MEMBER = 1 << 30, 64 << 20
"""Bytes that a file and a record of an archive may have, unpacked: the tracker has 70 MB, a record some at most."""
_DAMAGED = (
    *(OSError, EOFError, UnicodeDecodeError, zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error),
    *(RuntimeError, NotImplementedError),  # zipfile: encrypted, or packed by a method that Python lacks
)


class BadDataError(ImageError):
    """A file that is no data about vulnerabilities, or of a kind that is not read."""


def read(
    path: Path, distribution: str, suite: str, done: Callable[[int], None], date: DataDate | None = None
) -> Iterator[Advisory]:
    """What a file says of a release; `done` is told the bytes of it that have been read, `date` as of when all is.

    Raises:
        BadDataError: it cannot be read, is damaged, or is something else.
    """
    if not path.is_file():
        raise BadDataError(f"{path} is no regular file: write what a pipe gives to a file first")
    try:
        if zipfile.is_zipfile(path):
            records = _zipped(path, done)
        elif tarfile.is_tarfile(path):
            records = _archived(path, done)
        else:
            yield from _plain(path, distribution, suite, done, date)
            return
        for name, text in records:
            yield from _dated(_json(text, f"{path}: {name}"), distribution, suite, date)
    except _DAMAGED as error:
        raise BadDataError(f"{path} cannot be read: {error}") from None


def _dated(record: Any, distribution: str, suite: str, date: DataDate | None) -> Iterator[Advisory]:
    if date is not None and isinstance(record, dict):
        date.record(record.get("modified"))
    yield from of_osv(record, distribution, suite)


def _zipped(path: Path, done: Callable[[int], None]) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.filename.endswith(".json"):
                _bounded(member.file_size, _MEMBER, member.filename)
                yield member.filename, archive.read(member).decode()
            done(member.compress_size)


def _archived(path: Path, done: Callable[[int], None]) -> Iterator[tuple[str, str]]:
    """A compressed archive is read once, from its beginning to its end."""
    with files.opened(path) as packed, tarfile.open(fileobj=packed, mode="r|*") as archive:
        before = 0
        for member in archive:
            file = archive.extractfile(member) if member.isfile() and member.name.endswith(".json") else None
            if file:
                _bounded(member.size, _MEMBER, member.name)
                yield member.name, file.read().decode()
            done(packed.tell() - before)
            before = packed.tell()


def _bounded(size: int, limit: int, name: str) -> None:
    if size > limit:
        raise BadDataError(f"{name} has {size >> 20} MiB unpacked: no data about vulnerabilities is so large")


def _plain(
    path: Path, distribution: str, suite: str, done: Callable[[int], None], date: DataDate | None
) -> Iterator[Advisory]:
    _bounded(path.stat().st_size, _FILE, str(path))
    text = files.bytes_of(path, _FILE).decode()
    first = _KEY.match(text)
    if text.lstrip().startswith("[") or (first and first[1] in _RECORD):
        value = _json(text, str(path))
        for record in value if isinstance(value, list) else [value]:
            yield from _dated(record, distribution, suite, date)
        done(len(text))
    elif first and "statements" in text[:_HEAD] and "openvex" in text[:_HEAD]:
        raise BadDataError(
            f"{path} is OpenVEX, which is not read: give the OSV records of the same publisher, which say of which "
            "release and from which version on"
        )
    elif distribution == "debian":
        if date is not None:
            date.tracker(path)
        yield from _tracker(text, path, suite, done)
    else:
        raise BadDataError(f"{path} is no OSV record, and Debian's security tracker says nothing of {distribution}")


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadDataError(f"{where} is no JSON: {error}") from None


def _tracker(text: str, path: Path, suite: str, done: Callable[[int], None]) -> Iterator[Advisory]:
    """Package by package: the whole has 70 MB and more."""
    decoder, at = json.JSONDecoder(), 0
    while match := _KEY.match(text, at):
        try:
            entries, end = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError) as error:
            raise BadDataError(f"{path} is no JSON: {error}") from None
        yield from of_tracker(_json(f'"{match[1]}"', str(path)), entries, suite)
        done(end - at)
        at = end
    if text[at:].strip() not in ("}", "{}"):
        raise BadDataError(f"{path} is neither Debian's security tracker's JSON nor OSV, or it is cut short")


def of_tracker(package: str, entries: Any, suite: str) -> Iterator[Advisory]:
    """What Debian's tracker says of one source package in a suite.

    Raises:
        BadDataError: it is something else.
    """
    try:
        for name, entry in entries.items():
            release = entry["releases"].get(suite)
            if release is not None:
                note = " ".join(filter(None, (release.get("nodsa", ""), release.get("nodsa_reason", ""))))
                yield Advisory(_text(name), package, _tracked(release), _text(release.get("urgency", "")), note)
    except (AttributeError, KeyError, TypeError):
        raise BadDataError(f"{package!r} has no entries as Debian's security tracker has them") from None


def _tracked(release: Mapping[str, Any]) -> tuple[Range, ...] | None:
    status, fixed = release["status"], release.get("fixed_version", "")
    if status == "resolved" and fixed:
        return () if fixed == _NEVER else (("", _text(fixed)),)
    return (("", ""),) if status == "open" else None


def of_osv(record: Any, distribution: str, suite: str) -> Iterator[Advisory]:
    """What one OSV record says of source packages of a release; nothing where it was withdrawn.

    Raises:
        BadDataError: it is no record.
    """
    try:
        if record.get("withdrawn"):
            return
        names = " ".join((record["id"], *record.get("upstream", ()), *record.get("aliases", ())))
        cves = set(_CVE.findall(names))
        number = cves.pop() if len(cves) == 1 else _text(record["id"])
        for affected in record.get("affected", ()):
            ecosystem = affected.get("package", {}).get("ecosystem", "")
            if _is_of(ecosystem, distribution, suite):
                specific = affected.get("ecosystem_specific", {})
                urgency = specific.get("ubuntu_priority") or specific.get("urgency") or ""
                note = "the fix is in Ubuntu Pro" if ":Pro:" in ecosystem else ""
                name = affected["package"]["name"]
                yield Advisory(number, _text(name), _ranges(affected), _text(urgency), note)
    except (AttributeError, KeyError, TypeError):
        raise BadDataError("a record is not as OSV has them") from None


def _is_of(ecosystem: str, distribution: str, suite: str) -> bool:
    """`Debian:12`, `Ubuntu:24.04:LTS`, `Ubuntu:Pro:24.04:LTS`; not `Ubuntu:Pro:FIPS:…`, which are other packages."""
    name, *rest = ecosystem.removesuffix(":LTS").split(":")
    return name.lower() == distribution and rest in ([NUMBERS.get(suite)], ["Pro", NUMBERS.get(suite)])


def _text(value: Any) -> str:
    """What may be shown and compared: a terminal would obey control characters."""
    if not (isinstance(value, str) and value.isprintable()):
        raise TypeError
    return value


def _ranges(affected: Mapping[str, Any]) -> tuple[Range, ...] | None:
    """None where a range is not told by versions of packages, `introduced` and `fixed` by turns."""
    ranges: list[Range] = []
    for one in affected.get("ranges", ()):
        if one["type"] != "ECOSYSTEM":
            continue
        events = [(kind, _text(version)) for event in one["events"] for kind, version in event.items()]
        kinds = [kind for kind, _ in events]
        if kinds != (["introduced", "fixed"] * len(kinds))[: len(kinds)]:
            return None  # last_affected, limit; or events in no order
        ends = ["" if version == _BEGINNING else version for _, version in events]
        ranges += zip(ends[::2], [*ends[1::2], ""], strict=False)
    return tuple(ranges) or None
