"""Where the time of a boot went, as a terminal shows it: literal lines."""

from typing import Any

import pytest

from netboot.cli.waterfall import BLOCKS, LEAST_BAR, MOST_BAR, waterfall
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
