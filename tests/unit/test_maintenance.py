"""Maintenance windows and the freeze, by the clocks of places that change theirs."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from images.values.strict import FaultsError
from netboot.machines.inventory import load_inventory
from netboot.machines.maintenance import DAYS, Freeze, Permission, Window, frozen, may_act
from netboot.machines.values import Inventory

NIGHTS = Window(name="nights", days=("Mon", "Tue", "Wed", "Thu"), start="22:00", end="04:00", time_zone="Europe/Berlin")


def at(moment: str) -> int:
    """Milliseconds of a moment of UTC."""
    return round(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("moment", "until"),
    [
        ("2026-11-23T20:59:59", None),  # Monday, 21:59:59 in Berlin
        ("2026-11-23T21:00", "2026-11-24T03:00"),
        ("2026-11-24T02:59:59", "2026-11-24T03:00"),
        ("2026-11-24T03:00", None),
        ("2026-11-27T02:00", "2026-11-27T03:00"),  # Friday morning is Thursday's
        ("2026-11-27T21:00", None),
        ("2026-07-20T20:00", "2026-07-21T02:00"),  # in summer an hour earlier
        ("2026-07-20T19:59", None),
    ],
)
def test_a_window_over_midnight_is_of_the_day_on_which_it_opens(moment: str, until: str | None) -> None:
    assert NIGHTS.opened(at(moment)) == (at(until) if until else None)


@pytest.mark.parametrize(
    ("moment", "opens"),
    [
        ("2026-11-23T20:00", "2026-11-23T21:00"),
        ("2026-11-23T21:00", "2026-11-24T21:00"),  # it is open: the one after
        ("2026-11-26T21:00", "2026-11-30T21:00"),  # Thursday night: Monday
        ("2026-10-24T12:00", "2026-10-26T21:00"),  # over the end of summer time
    ],
)
def test_when_it_opens_next(moment: str, opens: str) -> None:
    assert NIGHTS.opens(at(moment)) == at(opens)


def test_a_window_whose_end_is_its_start_is_a_whole_day() -> None:
    sunday = Window(name="sunday", days=("Sun",), start="06:00", end="06:00")
    assert sunday.opened(at("2026-11-22T06:00")) == at("2026-11-23T06:00")
    assert sunday.opened(at("2026-11-23T05:59")) == at("2026-11-23T06:00")
    assert sunday.opened(at("2026-11-23T06:00")) is None


@given(
    st.sets(st.sampled_from(DAYS), min_size=1),
    st.times(),
    st.times(),
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Asia/Kathmandu"]),
    st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1)),  # noqa: DTZ001 - Hypothesis wants naive bounds
)
def test_what_is_said_of_a_window_agrees(days: Any, start: Any, end: Any, zone: str, moment: datetime) -> None:
    window = Window(name="w", days=tuple(days), start=f"{start:%H:%M}", end=f"{end:%H:%M}", time_zone=zone)
    now = round(moment.replace(tzinfo=UTC).timestamp() * 1000)
    until, opens = window.opened(now), window.opens(now)
    assert opens is not None
    assert now < opens <= now + timedelta(days=15) / timedelta(milliseconds=1)
    assert window.opened(opens) is not None
    assert until is None or window.opened(until - 1) == until
    if until is not None:
        assert now < until <= now + timedelta(hours=26) / timedelta(milliseconds=1)
    allowed = may_act([window], None, None, now)
    assert (allowed.may, allowed.until_ms) == ((True, until) if until is not None else (False, opens))


@pytest.mark.parametrize(
    ("field", "value"),
    [("start", "24:00"), ("start", "9:00"), ("days", []), ("days", ["Mo"]), ("days", ["Mon", "Mon"])],
)
def test_what_is_no_window(field: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        Window.model_validate({"name": "w", "start": "22:00", "end": "04:00", field: value})


@pytest.mark.parametrize("zone", ["Berlin", "../etc/passwd", "localtime", "posixrules", ""])
def test_a_time_zone_that_is_not_known_is_a_fault_of_the_file_and_shuts_what_is_in_force(
    zone: str, tmp_path: Path
) -> None:
    file = tmp_path / "site.yaml"
    file.write_text(f'maintenance:\n- {{name: w, start: "22:00", end: "04:00", time_zone: "{zone}"}}\n')
    with pytest.raises(FaultsError) as raised:
        load_inventory(tmp_path)
    assert str(raised.value) == (
        f"{file}:2: maintenance[0].time_zone: no such time zone is known here: a name of the IANA database, like "
        "Europe/Berlin or UTC"
    )


def test_a_window_that_is_in_force_where_its_time_zone_is_not_known_is_shut_and_keeps_nobody_from_booting() -> None:
    text = (
        '{"machines": [], "maintenance": [{"name": "w", "start": "22:00", "end": "04:00", "time_zone": "Mars/Base"}]}'
    )
    windows = Inventory.model_validate_json(text).maintenance
    assert (windows[0].opened(NOW), windows[0].opens(NOW)) == (None, None)
    assert may_act(windows, None, None, NOW) == Permission(
        False, "no maintenance window is open; the time zone of w is not known here"
    )
    assert may_act([*windows, NIGHTS], None, None, NOW).until_ms == NIGHTS.opens(NOW)


@pytest.mark.parametrize(
    ("start", "end", "moment", "until", "opens"),
    [
        # clocks go from two to three on 2026-03-29: an hour that is left out is the next one
        ("02:10", "02:50", "2026-03-29T01:20", "2026-03-29T01:50", "2026-03-30T00:10"),
        ("02:30", "03:10", "2026-03-29T01:05", None, "2026-03-30T00:30"),  # it would end before it begins
        # and from three to two on 2026-10-25: the first half past two ends it, for good
        ("01:00", "02:30", "2026-10-25T00:29", "2026-10-25T00:30", "2026-10-26T00:00"),
        ("01:00", "02:30", "2026-10-25T01:05", None, "2026-10-26T00:00"),
    ],
)
def test_hours_that_clocks_leave_out_or_repeat(
    start: str, end: str, moment: str, until: str | None, opens: str
) -> None:
    window = Window(name="w", start=start, end=end, time_zone="Europe/Berlin")
    assert window.opened(at(moment)) == (at(until) if until else None)
    assert window.opens(at(moment)) == at(opens)


NOW = at("2026-11-23T12:00")
FREEZE = Freeze(who="alice", reason="power work", since_ms=NOW, until_ms=NOW + 10)
OPEN, OTHER = Window(name="open", start="11:00", end="13:00"), Window(name="longer", start="11:30", end="14:00")


def test_may_act_says_why_in_words() -> None:
    until = at("2026-11-23T14:00")
    assert may_act((), None, None, NOW) == Permission(may=True, reason="no maintenance window is declared: at any time")
    assert may_act((OPEN, OTHER), None, None, NOW) == Permission(True, "maintenance window longer is open", until)
    assert may_act((NIGHTS,), None, None, NOW) == Permission(
        False, "no maintenance window is open; the next one is nights", at("2026-11-23T21:00")
    )
    for windows in ((), (OPEN,), (NIGHTS,)):
        assert may_act(windows, FREEZE, None, NOW) == Permission(False, "frozen by alice: power work", NOW + 10)
        assert may_act(windows, FREEZE, None, NOW + 10) == may_act(windows, None, None, NOW + 10)


@pytest.mark.parametrize(
    ("stands", "asked", "did", "until"),
    [(10, 5, "", 10), (10, 10, "", 10), (10, 20, "extended", 20), (10, None, "extended", None), (None, 20, "", None)],
)
def test_nobody_s_freeze_is_cut_short(stands: int | None, asked: int | None, did: str, until: int | None) -> None:
    before = Freeze(who="alice", reason="a", since_ms=0, until_ms=stands)
    word = Freeze(who="bob", reason="b", since_ms=1, until_ms=asked)
    assert frozen(before, word) == (before.model_copy(update={"until_ms": until}), did)
    assert frozen(None, word) == (word, "put-on")
    if stands is not None:
        later = word.model_copy(update={"since_ms": stands})
        assert frozen(before, later) == (later, "put-on")
