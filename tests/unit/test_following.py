"""`-w`: what is printed first, and then."""

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from netboot.cli import following
from netboot.cli.forms import Output

Listing = list[dict[str, Any]]


class Service:
    """What a client gives: a listing that is another each time, and a line of its stream before each."""

    def __init__(self, *listings: Listing) -> None:
        self._listings = iter(listings)
        self._left = len(listings) - 1
        self.watch = self

    def items(self) -> Listing:
        return next(self._listings)

    def watch_lines(self) -> Iterator[dict[str, str]]:
        for _ in range(self._left):
            yield {"heartbeat": "now"}


def row(each: Mapping[str, Any]) -> tuple[object, ...]:
    return each["name"], each["state"]


@pytest.fixture
def follow(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setattr(following, "_AT_MOST_EACH_SECONDS", 0.0)

    def followed(form: str, *listings: Listing) -> tuple[str, str]:
        service = Service(*listings)
        client: Any = type("Client", (), {"watch": type("Watch", (), {"watch": lambda _: service.watch_lines()})()})()
        following.follow(client, Output(form), service.items, row, ("machine", "state"), "none yet")
        return capsys.readouterr()

    return followed


ONE, READY = {"name": "gpu-001", "state": "Booted"}, {"name": "gpu-001", "state": "Ready"}
TWO = {"name": "b", "state": "a\x1b[31m"}


def test_what_changes_is_said_and_nothing_else(follow: Any) -> None:
    said = follow("table", [ONE], [ONE], [READY], [READY, TWO], [TWO])
    assert said.out == "machine  state\ngpu-001  Booted\ngpu-001  Ready\nb        a?[31m\ngpu-001  is gone\n"
    assert follow("table", [], [ONE]).out == "machine  state\ngpu-001  Booted\n"


def test_programs_get_one_thing_at_a_time(follow: Any) -> None:
    lines = follow("json", [ONE, TWO], [READY, TWO], [TWO]).out.splitlines()
    assert list(map(json.loads, lines)) == [ONE, TWO, READY, {"gone": READY}]
    assert follow("name", [ONE], [READY]).out == "gpu-001\ngpu-001\n"
    assert follow("jsonpath=$.state", [ONE], [READY]).out == "Booted\nReady\n"
    assert follow("yaml", [ONE]).out == "---\nname: gpu-001\nstate: Booted\n"


def test_a_fleet_that_boots_is_looked_at_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service([ONE], *[[READY]] * 5)
    moments = iter([0.0, 0.2, 0.9, 1.1, 1.1, 1.2, 2.0])
    monkeypatch.setattr(following, "monotonic", lambda: next(moments))
    asked: list[Listing] = []
    client: Any = type("Client", (), {"watch": type("Watch", (), {"watch": lambda _: service.watch_lines()})()})()
    monkeypatch.setattr("sys.stdout", io.StringIO())

    def items() -> Listing:
        asked.append([])
        return service.items()

    following.follow(client, "table", items, row, ("machine", "state"), "")
    assert len(asked) == 2
