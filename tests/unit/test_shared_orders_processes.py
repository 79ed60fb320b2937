"""What processes know of who carries orders out, where replicas share them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from netboot.lifecycle.drains import FRESH_MS, DrainsStatus
from netboot.processes.nodes import _untold
from netboot.processes.shared import drained, led_here
from netboot.stores.intents import make
from netboot.stores.known_orders import UNTOLD_SECONDS, KnownOrders
from netboot.stores.status import StatusFile, StatusFolder
from tests.drains import START

SEE = "see `resources` and `rollouts` of `netboot doctor`"


def config(*, shares: bool) -> Any:
    place = SimpleNamespace(orders="orders.kubeconfig" if shares else None)
    return SimpleNamespace(inventory_kubernetes=place, clusters=dict.fromkeys(("one", "two", "three", "four")))


def test_where_orders_are_shared_who_leads_and_says_so_carries_them_out(tmp_path: Path) -> None:
    for cluster, leads, ago in (("one", True, 0), ("two", False, 0), ("three", True, FRESH_MS + 1)):
        StatusFile(tmp_path, f"drains-{cluster}").write(DrainsStatus(at_ms=START - ago, leads=leads))
    status = StatusFolder(tmp_path)
    assert drained(config(shares=True), status, lambda: START).keys() == {"one"}
    assert led_here(config(shares=True), status, lambda: START) == {"one"}
    assert drained(config(shares=False), status, lambda: START).keys() == {"one", "two", "three"}
    assert led_here(config(shares=False), status, lambda: START) == {"one", "two", "three", "four"}


@pytest.mark.parametrize(
    ("as_of", "words"),
    [
        (START, ""),
        (START - UNTOLD_SECONDS * 1000, ""),
        (START - UNTOLD_SECONDS * 1000 - 1, f"was read {UNTOLD_SECONDS} s ago: {SEE}"),
        (START + 3_600_000, f"is of 2026-01-01T01:00:00Z, and it is not so late yet: check NTP: {SEE}"),
        (None, f"has not been read yet: {SEE}"),
    ],
)
def test_how_old_what_others_ordered_may_be(tmp_path: Path, as_of: int | None, words: str) -> None:
    with make(path := tmp_path / "intents.db") as db:
        if as_of is not None:
            KnownOrders(db, {}).as_of(as_of)
    said = _untold(path, lambda: START)
    assert said == (f"what other replicas ordered, or took off, {words}" if words else "")
