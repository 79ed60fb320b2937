"""Boot ids tell whose they are, and cannot be made up."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from netboot.lifecycle.bootid import belongs, machine_of_boot, mint, minted_ms
from netboot.lifecycle.published import View
from tests.joining import declared, snapshot_of

KEY = bytes(range(32))
names = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True)
moments = st.integers(min_value=0, max_value=2**48 - 1)
random4 = st.binary(min_size=4, max_size=4)


def test_a_known_id() -> None:
    assert mint(KEY, "gpu-001", 1_700_000_000_000, b"\xff\xff\xff\xff") == "018bcfe5-6800-8fff-bfff-c8dd6b13e782"


@given(names, moments, random4)
def test_an_id_is_a_uuid_of_version_8_and_says_when(name: str, now: int, entropy: bytes) -> None:
    boot = mint(KEY, name, now, entropy)
    assert str(uuid.UUID(boot)) == boot
    assert (uuid.UUID(boot).version, uuid.UUID(boot).variant) == (8, uuid.RFC_4122)
    assert minted_ms(boot) == now
    assert belongs(KEY, boot, name)


@given(names, names, moments, random4)
def test_it_belongs_to_nobody_else(name: str, other: str, now: int, entropy: bytes) -> None:
    assert belongs(KEY, mint(KEY, name, now, entropy), other) == (name == other)


@given(names, moments, random4, st.integers(min_value=0, max_value=127))
def test_any_flipped_bit_unmakes_it(name: str, now: int, entropy: bytes, bit: int) -> None:
    raw = int(mint(KEY, name, now, entropy).replace("-", ""), 16) ^ (1 << bit)
    assert not belongs(KEY, str(uuid.UUID(int=raw)), name)


def test_another_key_did_not_mint_it() -> None:
    assert not belongs(b"other", mint(KEY, "gpu-001", 1, b"abcd"), "gpu-001")


@given(st.text(max_size=60))
def test_anything_malformed_belongs_to_nobody(text: str) -> None:
    assert not belongs(KEY, text, "gpu-001")


def test_spelling_is_exact() -> None:
    boot = mint(KEY, "gpu-001", 1_700_000_000_000, b"abcd")
    for other in (boot.upper(), boot + "\n", " " + boot, boot.replace("-", ""), f"{{{boot}}}"):
        assert not belongs(KEY, other, "gpu-001")


def test_a_name_or_a_card_leads_to_the_machine_and_the_id_proves_it() -> None:
    first = declared("gpu-001", match={"macs": ("52:54:00:00:00:01",)})
    second = declared("gpu-002", match={"macs": ("52:54:00:00:00:02",)})
    index = View.of(snapshot_of(first, second)).index
    boot = mint(KEY, "gpu-001", 1_700_000_000_000, b"abcd")
    other = "52:54:00:00:00:02"
    assert machine_of_boot(index, KEY, boot, "gpu-001", None) == first
    assert machine_of_boot(index, KEY, boot, None, "52:54:00:00:00:01") == first
    assert machine_of_boot(index, KEY, boot, "gpu-001", other) == first
    assert machine_of_boot(index, KEY, boot, "gpu-002", "52:54:00:00:00:01") == first
    assert machine_of_boot(index, KEY, boot, "gpu-002", other) is None
    assert machine_of_boot(index, KEY, boot, "gpu-009", None) is None
    assert machine_of_boot(index, KEY, boot, None, None) is None
    assert machine_of_boot(index, b"other", boot, "gpu-001", None) is None
