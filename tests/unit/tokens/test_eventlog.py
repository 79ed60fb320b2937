"""Event logs: replayed they give the PCRs; any other log, or any bytes, are refused with words."""

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tokens.soft import spec_header
from tokens.errors import EventLogError, MalformedError, TokenError
from tokens.eventlog import check_log, read_event_log, replay

SHA1, SHA256 = 0x4, 0xB
BANKS = {SHA1: 20, SHA256: 32}


def event(pcr: int, data: bytes, kind: int = 0x8) -> bytes:
    digests = struct.pack("<H", SHA1) + hashlib.sha1(data).digest()
    digests += struct.pack("<H", SHA256) + hashlib.sha256(data).digest()
    return struct.pack("<III", pcr, kind, 2) + digests + struct.pack("<I", len(data)) + data


LOG = spec_header(BANKS) + event(0, b"firmware") + event(7, b"keys") + event(0, b"more")


def extend(*measured: bytes) -> bytes:
    value = bytes(32)
    for data in measured:
        value = hashlib.sha256(value + hashlib.sha256(data).digest()).digest()
    return value


def test_a_log_leads_to_the_pcrs() -> None:
    events = read_event_log(LOG)
    assert replay(events, SHA256) == {0: extend(b"firmware", b"more"), 7: extend(b"keys")}
    quoted = {(SHA256, 0): extend(b"firmware", b"more"), (SHA256, 7): extend(b"keys"), (SHA256, 5): bytes(32)}
    check_log(events, quoted)
    check_log(read_event_log(LOG + b"\xff" * 40), quoted)


@pytest.mark.parametrize(("index", "value"), [(0, extend(b"firmware")), (5, extend(b"x")), (7, bytes(32))])
def test_a_log_that_leads_elsewhere_names_the_pcr(index: int, value: bytes) -> None:
    with pytest.raises(EventLogError) as caught:
        check_log(read_event_log(LOG), {(SHA256, index): value})
    assert str(caught.value) == f"the event log does not lead to the quoted PCR {index}"


def test_a_log_of_as_many_banks_as_there_may_be_and_of_the_largest_size() -> None:
    assert read_event_log(spec_header(dict.fromkeys(range(0x100, 0x110), 20))) == ()
    log = spec_header(BANKS) + event(0, b"")
    data = bytes((1 << 20) - len(log))
    assert [one.data for one in read_event_log(spec_header(BANKS) + event(0, data))] == [data]


def test_the_startup_locality_is_where_pcr_0_begins() -> None:
    start = event(0, b"StartupLocality\0\x03", kind=0x3)
    first = hashlib.sha256(bytes(31) + b"\x03" + hashlib.sha256(b"firmware").digest()).digest()
    assert replay(read_event_log(spec_header(BANKS) + start + event(0, b"firmware")), SHA256) == {0: first}


def test_an_event_without_the_bank_s_digest_is_refused() -> None:
    bare = struct.pack("<III", 4, 8, 1) + struct.pack("<H", SHA1) + bytes(20) + struct.pack("<I", 0)
    with pytest.raises(EventLogError) as caught:
        replay(read_event_log(spec_header(BANKS) + bare), SHA256)
    assert str(caught.value) == "an event of PCR 4 has no sha256 digest"


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (b"", "ends after 0 bytes, 4 more were announced at 0"),
        (struct.pack("<II20xI", 0, 8, 0), "not a crypto-agile event log"),
        (struct.pack("<II20xI", 0, 3, 16) + b"Spec ID Event02\0", "not a crypto-agile event log"),
        (spec_header({SHA256: 20}), "digests of 20 bytes for algorithm 0x000b"),
        (LOG[:-1], f"ends after {len(LOG) - 1} bytes, 4 more were announced at {len(LOG) - 4}"),
        (spec_header(BANKS) + struct.pack("<III", 0, 8, 3), "an event with 3 digests in a log of 2 banks"),
        (spec_header({}), "an event log of 0 banks"),
        (spec_header(dict.fromkeys(range(0x100, 0x111), 20)), "an event log of 17 banks"),
        (bytes((1 << 20) + 1), "an event log of 1048577 bytes, at most 1048576 are read"),
    ],
)
def test_what_is_not_a_log_says_why(log: bytes, message: str) -> None:
    with pytest.raises(MalformedError) as caught:
        read_event_log(log)
    assert str(caught.value) == message


MUTATED = st.builds(lambda at, extra: LOG[:at] + extra + LOG[at:], st.integers(0, len(LOG)), st.binary(max_size=8))


@given(st.binary(max_size=200) | MUTATED)
def test_any_bytes_are_a_log_or_a_token_error(data: bytes) -> None:
    try:
        replay(read_event_log(data), SHA256)
    except TokenError as error:
        assert str(error)
