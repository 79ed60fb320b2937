"""What an ELF file says, and that damage is an error with words and never anything else."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from images.formats import elf
from tests.unit.images.elf_samples import module, module_of, program

PROGRAM = program(("libbsd.so.0", "libc.so.6"), "/lib64/ld-linux-x86-64.so.2")


def test_libraries_and_interpreter() -> None:
    assert elf.linkage(PROGRAM) == elf.Linkage(("libbsd.so.0", "libc.so.6"), "/lib64/ld-linux-x86-64.so.2")
    assert elf.linkage(program(("libmd.so.0",))) == elf.Linkage(("libmd.so.0",), None)
    assert elf.linkage(program()) == elf.Linkage((), None)


def test_modinfo_keeps_repeated_keys_in_order() -> None:
    data = module_of(b"firmware=b.bin\0\0\0firmware=a.bin\0license=GPL\0parm=x:a=b\0odd\0")
    assert elf.modinfo(data) == {"firmware": ["b.bin", "a.bin"], "license": ["GPL"], "parm": ["x:a=b"]}
    assert elf.modinfo(program()) == {}


@pytest.mark.parametrize("data", [b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + bytes(99), b"\x7fELF\x02\x02" + bytes(99)])
def test_other_files_are_named_for_what_they_are_not(data: bytes) -> None:
    for reader in (elf.linkage, elf.modinfo):
        with pytest.raises(ValueError) as error:
            reader(data)
        assert str(error.value) == "not an ELF file of 64 bits, little endian"


@given(st.integers(0, len(PROGRAM) - 1), st.binary(min_size=1, max_size=4), st.booleans())
@example(39, b"\xff", False)
def test_damage_is_a_value_error_or_another_answer(at: int, what: bytes, cut: bool) -> None:
    for good in (PROGRAM, module(firmware="x.bin")):
        data = good[:at] if cut else good[:at] + what + good[at + len(what) :]
        for reader in (elf.linkage, elf.modinfo):
            try:
                reader(data)
            except ValueError as error:
                assert str(error)
