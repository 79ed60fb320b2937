"""What the command line says of orders to drain and to reboot."""

from typing import get_args

from netboot.cli.drains import ENDS, facts
from netboot.lifecycle.drains import End


def test_each_way_in_which_an_order_ends_has_a_word() -> None:
    assert ENDS.keys() == set(get_args(End))
    rollout = {"what": "reboot", "who": "rollout 1 of channel stable", "reason": "to image next", "since_ms": 0}
    ended = {"end": "withdrawn", "ended_ms": 60_000, "words": "it is held, by ann: DIMM 4"}
    ((what, words),) = facts({"drains": [rollout | ended]})
    assert (what, words.partition(" (")[0]) == ("reboot", "taken back 1970-01-01 00:01:00: it is held, by ann: DIMM 4")
