"""Frames with and without the tag of a VLAN (IEEE 802.1Q)."""

from hypothesis import given
from hypothesis import strategies as st

from lab.vlan import tagged, untagged

FRAMES = st.binary(min_size=14, max_size=60)
NUMBERS = st.integers(1, 4094)


def test_the_tag_is_behind_the_addresses() -> None:
    frame = bytes(range(12)) + b"\x08\x00data"
    assert tagged(frame, 5) == bytes(range(12)) + b"\x81\x00\x00\x05\x08\x00data"
    assert untagged(frame, 5) is None
    assert untagged(bytes(range(12)) + b"\x81\x00\xa0\x05\x08\x00data", 5) == frame  # priority 5


@given(FRAMES, NUMBERS, NUMBERS)
def test_what_was_tagged_is_of_that_vlan_and_of_no_other(frame: bytes, number: int, other: int) -> None:
    assert untagged(tagged(frame, number), number) == frame
    assert other == number or untagged(tagged(frame, number), other) is None
