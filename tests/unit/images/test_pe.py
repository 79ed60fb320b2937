"""Sections of EFI programs: read, and added."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.errors import RecipeError
from images.formats.pe import Section, with_sections
from tests.unit.images.pe_samples import program, sections

STUB = program((".text", b"code" * 200), (".sbat", b"sbat,1"), behind=b"symbols")
DATA = st.binary(max_size=5000)
NAMES = st.sampled_from([".osrel", ".cmdline", ".uname", ".initrd", ".linux"])


@given(st.lists(st.builds(Section, NAMES, DATA), max_size=5))
def test_what_is_added_is_there_and_what_was_there_too(added: list[Section]) -> None:
    made = with_sections(STUB, added)
    before = [(".text", b"code" * 200), (".sbat", b"sbat,1")]
    assert sections(made) == [*before, *((section.name, section.data) for section in added)]
    assert with_sections(STUB, added) == made


@given(st.lists(st.builds(Section, NAMES, DATA), min_size=1, max_size=5))
def test_sections_lie_on_pages_of_memory_one_after_the_other(added: list[Section]) -> None:
    made = with_sections(STUB, added)
    rows = [struct.unpack_from("<8sIIIIIIHHI", made, 0x80 + 24 + 240 + 40 * number) for number in range(2 + len(added))]
    end = 0
    for _, size, address, raw, at, *_ in rows:
        assert address >= end and address % 0x200 == at % 0x200 == raw % 0x200 == 0
        end = address + size
    assert all(row[2] % 4096 == 0 for row in rows[2:])
    assert [row[9] for row in rows[2:]] == [0x60000020 if one.name == ".linux" else 0x40000040 for one in added]
    optional = 0x80 + 24
    assert struct.unpack_from("<I", made, optional + 56)[0] == -(-end // 0x200) * 0x200, "the size in memory"
    assert struct.unpack_from("<I", made, optional + 64)[0] == 0, "no checksum is better than a wrong one"
    assert struct.unpack_from("<II", made, 0x80 + 12) == (0, 0), "symbols lay behind, and are gone"
    assert b"symbols" not in made


def test_no_room_in_the_headers() -> None:
    with pytest.raises(RecipeError) as caught:
        with_sections(program((".text", b"x"), room=0x200), [Section(".linux", b"")] * 3)
    assert str(caught.value) == "the EFI stub's headers have no room for 3 more sections"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the EFI stub is no EFI program: it ends within its headers"),
        (b"MZ" + bytes(58) + b"\xff\xff\xff\x7f", "the EFI stub is no EFI program: it ends within its headers"),
        (b"\x7fELF" + STUB[4:], "the EFI stub is no EFI program of 64 bits"),
        (STUB[:-700], "the EFI stub is damaged: a section ends behind the file's end"),
    ],
)
def test_what_is_no_program(data: bytes, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        with_sections(data, [])
    assert str(caught.value) == message


@given(st.binary(max_size=400), st.integers(0, 0x3FF))
def test_damage_is_refused_or_harmless_and_never_a_crash(noise: bytes, at: int) -> None:
    damaged = (STUB[:at] + noise + STUB[at + len(noise) :])[: len(STUB)]
    with contextlib.suppress(RecipeError):
        with_sections(damaged, [Section(".linux", b"kernel")])
