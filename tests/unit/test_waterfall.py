"""Where the time of a boot went, as a terminal shows it: literal lines."""

from typing import Any

import pytest

from netboot.cli.waterfall import BLOCKS, LEAST_BAR, MOST_BAR, PLAIN, waterfall
from netboot.clock import rfc3339
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.spans import spans
from netboot.lifecycle.trace import apply
from netboot.web.moments import on_wire
from tests.records import START, script
from tests.unit.test_spans import booted


def drawn(*without: Phase, in_service_ms: int | None = START + 28_000) -> list[dict[str, Any]]:
    return [on_wire(part._asdict()) for part in spans(booted(*without), in_service_ms)]


def test_a_bar_for_each_phase_where_the_one_before_ends() -> None:
    assert "\n".join(waterfall(drawn(), 80)) == (
        """\
ScriptServed    ###                                                        1.0 s
KernelFetched     ###                                                      1.0 s
InitrdFetched       ###                                                    1.0 s
Kernel                #######                                              3.0 s
InitrdStarted               #######                                        3.0 s
ImageFetched                      ###                                      1.0 s
ImageVerified                       ###                                    1.0 s
Switched                              ###########                          5.0 s
Booted                                          ##                         0.5 s
Joining                                          ####                      1.5 s
Attested                                            #                      0.1 s
TokenIssued                                         #####                  1.9 s
CSRApproved                                             ###                1.0 s
NodeRegistered                                            ###########      5.0 s
Ready                                                               #####  2.0 s

from ScriptServed to InService: 28.0 s
from the start of the kernel to InService: 25.0 s, of which no phase accounts for 0.0 %"""
    )


def test_time_that_no_phase_accounts_for_is_drawn_otherwise_and_named() -> None:
    lines = list(waterfall(drawn(Phase.BOOTED, Phase.JOINING, in_service_ms=None), 60, BLOCKS))
    assert lines[7:9] == [
        "Switched to Attested               ░░░░░░░░░           7.0 s",
        "Attested                                   █           0.1 s",
    ]
    assert lines[-3:] == [
        "from ScriptServed to Ready: 26.0 s",
        "from the start of the kernel to Ready: 23.0 s, of which no phase accounts for 30.4 %",
        "between Switched and Attested nobody heard of Booted and Joining",
    ]


@pytest.mark.parametrize(("width", "bar"), [(1, LEAST_BAR), (80, 57), (100_000, MOST_BAR)])
def test_bars_fill_what_there_is_and_have_a_least_and_a_most(width: int, bar: int) -> None:
    lines = list(waterfall(drawn(), width))[:15]
    assert {len(line) for line in lines} == {len("NodeRegistered") + 2 + bar + 2 + len("5.0 s")}
    assert all("#" in line for line in lines)


def test_a_part_without_any_time_has_no_bar_and_a_boot_of_one_moment_nothing_to_draw() -> None:
    flat = [{"step": "Booted", "until": "Joining", "begin_at": rfc3339(5), "end_at": rfc3339(5), "missing": ()}]
    assert list(waterfall(flat, 30)) == ["Booted                   0.0 s", "", "from Booted to Joining: 0.0 s"]
    parts = [on_wire(part._asdict()) for part in spans(apply(None, script("gpu-001", 0)))]
    assert list(waterfall(parts, 80)) == ["there is nothing to draw yet: one moment of it is known"]


def going(*, now: int, due: int | None, late: bool) -> dict[str, Any]:
    return {
        "step": "Switched",
        "begin_at": rfc3339(START + 11_000),
        "deadline": rfc3339(START + due) if due is not None else None,
        "late": late,
        "now_at": rfc3339(START + now),
    }


def test_what_goes_on_is_drawn_until_now_with_the_moment_from_which_on_it_is_late() -> None:
    parts = [each for each in drawn(in_service_ms=None) if each["end_at"] <= rfc3339(START + 11_000)]
    lines = list(waterfall(parts, 60, PLAIN, going(now=31_000, due=21_000, late=True)))
    assert lines[-6:] == [
        "ImageVerified             ###                          1.0 s",
        "Switched                    ::::::::::::|:::::::::::  20.0 s",
        "",
        "from ScriptServed to Switched: 11.0 s",
        "from the start of the kernel to Switched: 8.0 s, of which no phase accounts for 0.0 %",
        "it is at Switched for 20.0 s, and late for 10.0 s of that",
    ]


@pytest.mark.parametrize(
    ("due", "words"),
    [(21_000, ", and late in 4.0 s"), (None, ""), (12_000, "; its deadline stood still")],
)
def test_what_goes_on_in_time_says_when_it_will_be_late(due: int | None, words: str) -> None:
    lines = list(waterfall([], 30, BLOCKS, going(now=17_000, due=due, late=False)))
    assert (len(lines), lines[-1]) == (3, f"it is at Switched for 6.0 s{words}")
    assert ("│" in lines[0], "▒▒▒▒▒" in lines[0]) == (due == 12_000, True)
