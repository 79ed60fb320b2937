"""Boot ids tell whose they are, and cannot be made up."""

import uuid
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from netboot.lifecycle.bootid import belongs, is_of, machine_of_boot, mint, minted_ms, numbers
from netboot.lifecycle.published import View
from tests.joining import declared, snapshot_of

KEY = bytes(range(32))
IMAGE = "a" * 64
names = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True)
moments = st.integers(min_value=0, max_value=2**48 - 1)
digests = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
counts = st.integers(min_value=0, max_value=1_000)


def test_known_ids() -> None:
    assert mint(KEY, "gpu-001", "f" * 64, 1_700_000_000_000, 63) == "018bcfe5-6800-8fff-bfff-c8dd6b13e782"
    image = "12345" + "0" * 59
    assert mint(KEY, "gpu-001", image, 1_700_000_000_000, 64 + 6).startswith("018bcfe5-6800-8123-8645-")


@given(names, digests, moments, counts)
def test_an_id_is_a_uuid_of_version_8_and_says_when_and_of_which_image(
    name: str, image: str, now: int, number: int
) -> None:
    boot = mint(KEY, name, image, now, number)
    assert str(uuid.UUID(boot)) == boot
    assert (uuid.UUID(boot).version, uuid.UUID(boot).variant) == (8, uuid.RFC_4122)
    assert minted_ms(boot) == now
    assert belongs(KEY, boot, name)
    assert is_of(boot, image, None)


@given(names, digests, digests, counts)
def test_its_image_is_what_is_on_record_or_has_the_first_five_digits_of_the_id(
    name: str, image: str, other: str, number: int
) -> None:
    boot = mint(KEY, name, image, 1, number)
    assert is_of(boot, image[:5] + other[5:], None)
    assert is_of(boot, other, None) == (image[:5] == other[:5])
    assert is_of(boot, other, other)
    assert is_of(boot, image, other) == (image == other)
    for place in range(5):
        digit = f"{int(image[place], 16) ^ 1:x}"
        assert not is_of(boot, image[:place] + digit + image[place + 1 :], None)


@given(names, names, moments, counts)
def test_it_belongs_to_nobody_else(name: str, other: str, now: int, number: int) -> None:
    assert belongs(KEY, mint(KEY, name, IMAGE, now, number), other) == (name == other)


@given(names, digests, moments, counts, st.integers(min_value=0, max_value=127))
def test_any_flipped_bit_unmakes_it(name: str, image: str, now: int, number: int, bit: int) -> None:
    """So nobody has an id of this machine say another image."""
    raw = int(mint(KEY, name, image, now, number).replace("-", ""), 16) ^ (1 << bit)
    assert not belongs(KEY, str(uuid.UUID(int=raw)), name)


def test_boots_of_one_machine_image_and_millisecond_are_told_apart() -> None:
    assert len({mint(KEY, "gpu-001", IMAGE, 1, number) for number in islice(numbers(), 64)}) == 64
    assert len({next(numbers()) for _ in range(1_000)}) > 1, "workers of one host seldom begin with the same"


def test_another_key_did_not_mint_it() -> None:
    assert not belongs(b"other", mint(KEY, "gpu-001", IMAGE, 1, 2), "gpu-001")


@given(st.text(max_size=60))
def test_anything_malformed_belongs_to_nobody(text: str) -> None:
    assert not belongs(KEY, text, "gpu-001")


def test_spelling_is_exact() -> None:
    boot = mint(KEY, "gpu-001", IMAGE, 1_700_000_000_000, 2)
    for other in (boot.upper(), boot + "\n", " " + boot, boot.replace("-", ""), f"{{{boot}}}"):
        assert not belongs(KEY, other, "gpu-001")


def test_a_name_or_a_card_leads_to_the_machine_and_the_id_proves_it() -> None:
    first = declared("gpu-001", match={"macs": ("52:54:00:00:00:01",)})
    second = declared("gpu-002", match={"macs": ("52:54:00:00:00:02",)})
    index = View.of(snapshot_of(first, second)).index
    boot = mint(KEY, "gpu-001", IMAGE, 1_700_000_000_000, 2)
    other = "52:54:00:00:00:02"
    assert machine_of_boot(index, KEY, boot, "gpu-001", None) == first
    assert machine_of_boot(index, KEY, boot, None, "52:54:00:00:00:01") == first
    assert machine_of_boot(index, KEY, boot, "gpu-001", other) == first
    assert machine_of_boot(index, KEY, boot, "gpu-002", "52:54:00:00:00:01") == first
    assert machine_of_boot(index, KEY, boot, "gpu-002", other) is None
    assert machine_of_boot(index, KEY, boot, "gpu-009", None) is None
    assert machine_of_boot(index, KEY, boot, None, None) is None
    assert machine_of_boot(index, b"other", boot, "gpu-001", None) is None
