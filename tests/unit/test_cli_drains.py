"""What `netboot machine show` says of orders."""

from typing import get_args

import pytest

from netboot.cli.drains import facts
from netboot.cli.times import moment
from netboot.clock import rfc3339
from netboot.lifecycle.drains import End
from netboot.web.moments import on_wire
from tests.drains import START, drain

ENDS = {
    "taken-off": "taken off",
    "replaced": "replaced",
    "undone": "undone",
    "rebooted": "done",
    "withdrawn": "taken back",
}


def test_every_end_is_here() -> None:
    assert set(ENDS) == set(get_args(End))


@pytest.mark.parametrize(("end", "word"), ENDS.items())
def test_an_order_that_ended_says_how_in_whatever_way_it_did(end: str, word: str) -> None:
    ended = drain("gpu-001", "5f0c", "reboot", end=end, ended_ms=START + 60_000, words="so it was")
    shown = {"drains": [on_wire(ended.model_dump() | {"state": None})]}
    since = f"ordered since {moment(rfc3339(START))} by alice: DIMM 4"
    assert facts(shown) == [("reboot", f"{word} {moment(rfc3339(START + 60_000))}: so it was ({since})")]
