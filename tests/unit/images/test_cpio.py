"""The archive's form: complete, ordered, the same whatever the order of its entries, and strict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.build.gates.early import members
from images.errors import ImageError
from images.formats import cpio

ENTRIES = [
    cpio.directory("etc", 0o700),
    cpio.file("etc/a", b"hello"),
    cpio.file("etc-b", b""),
    cpio.symlink("bin/sh", "busybox"),
    cpio.character_device("dev/console", 5, 1),
]


def names(data: bytes) -> list[str]:
    found, at = [], 0
    while at < len(data) and data[at : at + 6] == b"070701":
        field = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        found.append(data[at + 110 : at + 110 + field[11] - 1].decode())
        end = at + 110 + field[11]
        end += -end % 4
        at = end + field[6] + -field[6] % 4
    return found


def test_parents_come_first_and_are_made_where_they_lack() -> None:
    assert names(cpio.archive(ENTRIES)) == [
        *("bin", "bin/sh", "dev", "dev/console", "etc", "etc/a", "etc-b", "TRAILER!!!"),
    ]


@given(st.permutations(ENTRIES))
def test_the_order_of_entries_changes_nothing(entries: list[cpio.Entry]) -> None:
    assert cpio.archive(entries) == cpio.archive(ENTRIES)


@pytest.mark.parametrize("kept", [5, 1])
def test_a_file_that_the_archive_cuts_short_is_not_given(kept: int) -> None:
    whole = cpio.archive([cpio.file("a", b"hello"), cpio.file("b", b"hello")])
    assert dict(members(whole)) == {"a": b"hello", "b": b"hello"}
    given = members(whole[: whole.rindex(b"hello") + kept])
    assert next(given) == ("a", b"hello")
    if kept == 5:
        assert next(given) == ("b", b"hello")
    with pytest.raises(ImageError):
        next(given)


def test_one_small_archive_byte_by_byte() -> None:
    record = (
        b"070701" + b"00000001" + b"000081A4" + b"00000000" * 2 + b"00000001" + b"00000007" + b"00000002"
        + b"00000000" * 4 + b"00000002" + b"00000000" + b"a\0" + b"hi\0\0"
    )  # fmt: skip
    trailer = b"070701" + b"00000000" * 4 + b"00000001" + b"00000000" * 6 + b"0000000B" + b"00000000" + b"TRAILER!!!\0"
    data = cpio.archive([cpio.file("a", b"hi")], mtime=7)
    assert data.rstrip(b"\0") == (record + trailer).rstrip(b"\0")
    assert len(data) == 512


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([cpio.file("/a", b"")], "'/a' is not a plain relative path"),
        ([cpio.file("a/../b", b"")], "'a/../b' is not a plain relative path"),
        ([cpio.file("", b"")], "'' is not a plain relative path"),
        ([cpio.file("a\0b", b"")], "'a\\x00b' is not a plain relative path"),
        ([cpio.file("a", b""), cpio.directory("a")], "'a' is there twice"),
        ([cpio.symlink("a", "b"), cpio.file("a/c", b"")], "'a/c' is inside of 'a', which is not a directory"),
        ([cpio.file("a" * 5000, b"")], "a path of more than 4095 bytes: '" + "a" * 60 + "'…"),
    ],
)
def test_what_cannot_be_in_an_archive(entries: list[cpio.Entry], message: str) -> None:
    with pytest.raises(ValueError) as error:
        cpio.archive(entries)
    assert str(error.value) == message
