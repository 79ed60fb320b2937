"""What our writer packs, GNU cpio unpacks to the same names, types, modes, contents and devices."""

import stat
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from images.formats import cpio

pytestmark = pytest.mark.tools

PART = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=9
)
PARTS = PART.filter(lambda part: part not in (".", ".."))
MODES = st.integers(0, 0o777).map(lambda mode: mode | 0o400)


@st.composite
def trees(draw: st.DrawFn) -> list[cpio.Entry]:
    """Folders at the top, and files and links in them or beside them: no path is a prefix of another's file."""
    folders = draw(st.lists(PARTS, unique=True, max_size=4))
    entries = [cpio.directory(f"d{name}", draw(MODES) | 0o700) for name in folders]
    places = ["", *(f"d{name}/" for name in folders)]
    for place, name in draw(st.lists(st.tuples(st.sampled_from(places), PARTS), unique=True, max_size=8)):
        if draw(st.booleans()):
            entries.append(cpio.file(f"{place}f{name}", draw(st.binary(max_size=600)), draw(MODES)))
        else:
            entries.append(cpio.symlink(f"{place}f{name}", draw(PARTS)))
    return entries


@settings(max_examples=60, deadline=None)
@given(trees(), st.integers(0, 2**31 - 1))
def test_round_trip(entries: list[cpio.Entry], mtime: int) -> None:
    with TemporaryDirectory() as folder:
        argv = ["cpio", "--extract", "--quiet", "--make-directories", "--preserve-modification-time"]
        subprocess.run(argv, cwd=folder, input=cpio.archive(entries, mtime), check=True, capture_output=True)
        found = {path.relative_to(folder).as_posix(): path for path in Path(folder).rglob("*")}
        assert set(found) == {entry.path for entry in entries}
        for entry in entries:
            path, status = found[entry.path], found[entry.path].lstat()
            assert stat.S_IFMT(status.st_mode) == stat.S_IFMT(entry.mode)
            if path.is_symlink():
                assert str(path.readlink()).encode() == entry.data
                continue
            assert status.st_mode == entry.mode
            if path.is_file():  # a folder's time is that of what cpio put into it last
                assert (path.read_bytes(), int(status.st_mtime)) == (entry.data, mtime)


def test_devices_and_owners_are_listed(tmp_path: Path) -> None:
    data = cpio.archive([cpio.character_device("dev/console", 5, 1), cpio.file("init", b"#!", 0o755)])
    listed = subprocess.run(["cpio", "-tvn", "--quiet"], input=data, check=True, capture_output=True).stdout.decode()
    shown = [[field for field in line.split() if field] for line in listed.splitlines()]
    assert [[line[0], line[2], line[3], line[-1]] for line in shown] == [
        ["drwxr-xr-x", "0", "0", "dev"],
        ["crw-------", "0", "0", "dev/console"],
        ["-rwxr-xr-x", "0", "0", "init"],
    ]
