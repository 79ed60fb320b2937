"""Rounds, what tools say, and who is slow with whom."""

import json
import time
from itertools import combinations, islice
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from netboot.fabric.schedule import rounds
from netboot.fabric.tools import Tool, iperf3, not_yet, perftest, why
from netboot.fabric.verdict import FEWEST, LEAST_SHORTFALL, Measurement, judge, spread

HOSTS = st.lists(st.text("abcdef", min_size=1, max_size=4), min_size=2, max_size=25, unique=True)


@given(HOSTS)
def test_everybody_meets_everybody_once_and_nobody_is_in_two_pairs(hosts: list[str]) -> None:
    plan = list(rounds(hosts))
    assert len(plan) == len(hosts) - 1 + len(hosts) % 2
    assert sorted(tuple(sorted(pair)) for pairs in plan for pair in pairs) == sorted(combinations(sorted(hosts), 2))
    for pairs in plan:
        busy = [host for pair in pairs for host in pair]
        assert len(busy) == len(set(busy)) == len(hosts) - len(hosts) % 2


@pytest.mark.parametrize("hosts", [[], ["a"]])
def test_one_alone_meets_nobody(hosts: list[str]) -> None:
    assert [pair for pairs in rounds(hosts) for pair in pairs] == []


def test_some_rounds_of_ten_thousand_are_had_without_the_others() -> None:
    hosts = [f"n{number}" for number in range(10_000)]
    started = time.process_time()
    assert [len(pairs) for pairs in islice(rounds(hosts), 2)] == [5000, 5000]
    assert time.process_time() - started < 5


def test_blank_lines_without_end_are_read_in_no_time() -> None:
    """What a machine sends is a stranger's: a pattern that tries each line's start to the end stands still on this."""
    header = "#bytes #iterations BW peak[Gb/sec] BW average[Gb/sec]"
    started = time.process_time()
    assert perftest("\n" * 300_000) is None
    assert perftest(header + "\n" * 300_000) is None
    assert perftest(f" {header}  MsgRate[Mpps]\n 8388608  100  390.1  389.2  0.0058\n") == 389.2
    assert time.process_time() - started < 5


def measured(hosts: list[str], rate: Any) -> list[Measurement]:
    """All pairs, both ways. `rate`: (source, target) -> Gbit/s."""
    return [
        Measurement(source, target, rate(source, target))
        for pairs in rounds(hosts)
        for pair in pairs
        for source, target in (pair, pair[::-1])
    ]


def noisy(source: str, target: str) -> float:
    """390 Gbit/s, and up to 2 % less: the same for a pair in every run."""
    return 390 - sum(map(ord, f"{source}>{target}")) * 7919 % 800 / 100


MANY = [f"gpu-{number:03}" for number in range(12)]


def test_a_fabric_in_order_has_nobody_slow() -> None:
    found = judge(measured(MANY, noisy))
    assert (found.hosts, found.pairs, found.unmeasured) == ((), (), ())


@pytest.mark.parametrize("way", ["sends", "receives"])
def test_a_host_that_is_slow_one_way_is_found_and_its_partners_are_not(way: str) -> None:
    bad = MANY[5]

    def rate(source: str, target: str) -> float:
        return noisy(source, target) / 2 if bad == (source if way == "sends" else target) else noisy(source, target)

    found = judge(measured(MANY, rate))
    assert [(one.host, one.way) for one in found.hosts] == [(bad, way)]
    assert found.pairs == ()


def test_a_pair_that_is_slow_is_found_and_neither_of_its_hosts() -> None:
    def rate(source: str, target: str) -> float:
        return 200.0 if (source, target) == (MANY[2], MANY[7]) else noisy(source, target)

    found = judge(measured(MANY, rate))
    assert found.hosts == ()
    assert [(one.source, one.target, one.gbps) for one in found.pairs] == [(MANY[2], MANY[7], 200.0)]


def test_few_hosts_cannot_be_told_apart_but_by_a_floor() -> None:
    def rate(source: str, _: str) -> float:
        return 20.0 if source == "a" else 390.0

    two = measured(["a", "b"], rate)
    assert (judge(two).hosts, judge(two).pairs) == ((), ())
    assert [(one.source, one.gbps) for one in judge(two, floor=300).pairs] == [("a", 20.0)]


def test_what_could_not_be_measured_is_neither_slow_nor_forgotten() -> None:
    gone = Measurement("a", "b", None, "b: this host is gone")
    found = judge([gone])
    assert (found.spread, found.unmeasured) == (None, (gone,))
    assert judge([]).unmeasured == ()


RATES = st.lists(st.floats(1, 1000), min_size=FEWEST, max_size=30)


@given(RATES, st.floats(0.01, 100))
def test_what_is_slow_does_not_hang_on_the_unit_or_the_order(rates: list[float], factor: float) -> None:
    before, after = spread(rates), spread(rate * factor for rate in reversed(rates))
    assert before is not None
    assert after is not None
    assume(all(abs(rate - before.least) > 1e-6 for rate in rates))
    assert sorted(rate < before.least for rate in rates) == sorted(rate * factor < after.least for rate in rates)


@given(RATES)
def test_less_than_a_tenth_below_the_median_is_never_slow(rates: list[float]) -> None:
    found = spread(rates)
    assert found is not None
    assert found.least <= found.median * (1 - LEAST_SHORTFALL) + 1e-9
    assert sum(rate < found.least for rate in rates) <= len(rates) / 2


REFUSED = "iperf3: error - unable to connect to server: Connection refused"
TABLE = """\
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 1500.000000 != 3300.016000. CPU Frequency is not max.
 8388608    560845           0.00               98.02                0.186950
"""


@pytest.mark.parametrize(
    ("said", "tcp", "rdma"),
    [
        ('{"end": {"sum_received": {"bits_per_second": 9.41e9}}}', 9.41, None),
        ('{"end": {"sum_received": {"bits_per_second": "9"}}}', None, None),
        ('{"end": {"sum_received": {"bits_per_second": 0}}}', None, None),
        ('{"end": {}, "error": "no route"}', None, None),
        (TABLE, None, 98.02),
        (TABLE.replace("Gb/sec", "MB/sec"), None, None),
        (TABLE.partition("8388608")[0], None, None),
        ("", None, None),
    ],
)
def test_what_a_tool_measured(said: str, tcp: float | None, rdma: float | None) -> None:
    assert (iperf3(said), perftest(said)) == (tcp, rdma)


@pytest.mark.parametrize(
    ("said", "again", "words"),
    [
        (REFUSED, True, REFUSED),
        (
            '{"start": {},\n"error":\t"unable to connect to server: Connection refused"\n}',
            True,
            "unable to connect to ",
        ),
        (" Couldn't connect to 192.0.2.7:18600\nUnable to init the socket connection", True, "Unable to init"),
        ("timeout: failed to run command 'iperf3': No such file or directory\n", False, "timeout: failed to run"),
        ("", False, "it said nothing"),
        ("a\x1b[31mb\n", False, "a [31mb"),
    ],
)
def test_why_there_is_no_number(said: str, again: bool, words: str) -> None:
    assert not_yet(said) is again
    assert why(said).startswith(words)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["end", "sum_received", "bits_per_second", "error"]), inner, max_size=3),
    ),
    max_leaves=9,
)


@given(st.one_of(JSON.map(json.dumps), st.text(max_size=200), st.text('{}":# 0123456789.\n', max_size=200)))
def test_whatever_a_tool_says_is_a_number_above_zero_or_none(said: str) -> None:
    for number in (iperf3(said), perftest(said)):
        assert number is None or 0 < number < 1e12
    assert why(said)
    not_yet(said)


def test_turns_have_ports_of_their_own_and_both_sides_end_by_themselves() -> None:
    for tool in (Tool("tcp"), Tool("rdma", device="mlx5_3")):
        ports = [next(word for word in tool.server(turn) if word.startswith("186")) for turn in range(4)]
        assert ports == ["18600", "18601", "18602", "18603"]
        assert tool.server(2)[:2] == tool.client(2, "x")[:2] == ["timeout", "48"]
    assert "mlx5_3" in Tool("rdma", device="mlx5_3").client(0, "192.0.2.7")
