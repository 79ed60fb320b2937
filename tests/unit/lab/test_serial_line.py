"""What a machine says on its serial port is kept, however late it is read."""

import contextlib
import os

from lab.machines import serial_line


def test_a_whole_boot_is_held_until_somebody_reads_it() -> None:
    """Character by character, as QEMU writes it, which drops what it cannot write."""
    said = b"Command line: console=tty0 console=ttyS0,115200n8 panic=30\r\n" * 2000
    with contextlib.ExitStack() as stack:
        with serial_line(stack) as (ours, theirs):
            os.set_blocking(theirs, False)
            for character in said:
                assert os.write(theirs, bytes([character])) == 1
        heard = bytearray()
        while data := os.read(ours, 65536):
            heard += data
    assert bytes(heard) == said
