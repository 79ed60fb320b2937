"""Racks and boots as shapes: where each thing is drawn, in numbers that templates write down. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from markupsafe import Markup

from netboot.clock import moment_ms
from netboot.lifecycle.summary import MachineStatus

COLUMNS = 16
"""Machines beside each other in a rack that has more than so many."""
CELL = 12
RANKS: Mapping[str, int] = {status: rank for rank, status in enumerate(MachineStatus)}
KEPT = 128
"""Machines of a rack that is drawn once for all that look while it is so; a larger one is drawn each time, for it is
another after each change, and thousands of those would be kept."""
DOTTED = frozenset({MachineStatus.IN_SERVICE, MachineStatus.OFF})
"""Words that are drawn as one line of dots for a whole run: most machines are these."""
WIDE = 1000
NAMED = 8
"""Machines of a rack, or such as stand beside each other and are alike, whose name is said."""


class Shape(NamedTuple):
    """Machines as they stand. `svg`: of numbers and words of ours alone; `counts`: by status, the gravest first."""

    svg: Markup
    counts: Mapping[str, int]
    worst: str


class Drawn(NamedTuple):
    """A rack. `named`: in words, which machines are neither in service nor off, the gravest first."""

    rack: str
    machines: int
    shape: Shape
    named: str


def racks(told: Sequence[Mapping[str, Any]]) -> list[Drawn]:
    """The API's racks, each as wide as the widest."""
    columns = min(COLUMNS, max((rack["machines"] for rack in told), default=1))
    return [Drawn(rack["rack"], rack["machines"], _drawn(rack, columns), _named(rack["runs"])) for rack in told]


def _named(runs: Sequence[Mapping[str, Any]]) -> str:
    there = sorted((run for run in runs if run["status"] not in DOTTED), key=lambda run: _rank(run["status"]))
    said = [f"{run['first']}{_unit(run)}{_after(run['count'])}: {run['status']}" for run in there[:NAMED]]
    more = sum(run["count"] for run in there[NAMED:])
    return ", ".join([*said, f"{more} more"] if more else said)


def _unit(run: Mapping[str, Any]) -> str:
    return f" in unit {run['position']}" if run["position"] is not None else ""


def _after(count: int) -> str:
    return f" and {count - 1} after it" if count > 1 else ""


def _rank(status: str) -> int:
    return RANKS.get(status, RANKS[MachineStatus.UNKNOWN])


def _drawn(rack: Mapping[str, Any], columns: int) -> Shape:
    runs = [{**run, "gap": _apart(before, run)} for before, run in pairwise((None, *rack["runs"]))]
    drawn = tuple((run["status"], run["count"], run["gap"]) for run in runs)
    return (_kept if rack["machines"] <= KEPT else _shape)(drawn, columns)


def _apart(before: Mapping[str, Any] | None, run: Mapping[str, Any]) -> bool:
    """Whether a line is before a run: units are free, or machines of which no unit is said begin there."""
    return bool(run["gap"]) or (before is not None and before["position"] is not None and run["position"] is None)


def _shape(runs: tuple[tuple[str, int, bool], ...], columns: int) -> Shape:
    """Read as a text is: the first machine is the highest. A gap is a line before whoever is below it."""
    parts, counts, at = list[str](), Counter[str](), 0
    for said, count, gap in runs:
        status, left = said if said in RANKS else MachineStatus.UNKNOWN, count
        counts[status] += left
        if gap:
            parts.append(f'<path class="free" d="M{at % columns * CELL + 0.5} {at // columns * CELL + 1}v10"/>')
        while left:
            row, column = divmod(at, columns)
            together = min(left, columns - column) if status in DOTTED else 1
            parts.append(_part(status, column * CELL, row * CELL, together))
            at, left = at + together, left - together
    by_rank = dict(sorted(counts.items(), key=lambda item: RANKS[item[0]]))
    size = f"{columns * CELL} {-(-max(at, 1) // columns) * CELL}"
    svg = f'<svg viewBox="0 0 {size}" aria-hidden="true" focusable="false">{"".join(parts)}</svg>'
    return Shape(Markup(svg), by_rank, next(iter(by_rank), MachineStatus.UNKNOWN))  # noqa: S704 - see Shape


_kept = lru_cache(4096)(_shape)


def _part(status: str, x: int, y: int, count: int) -> str:
    if status in DOTTED:
        return f'<path class="run w-{status}" d="M{x + 6} {y + 6}h{(count - 1) * CELL}.01"/>'
    return f'<use class="w-{status}" href="#s-{status}" x="{x + 1}" y="{y + 1}" width="10" height="10"/>'


def merged(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Neighbours that are alike as one run, as the API has racks."""
    found: list[dict[str, Any]] = []
    for run in runs:
        if found and found[-1]["status"] == run["status"] and not _apart(found[-1], run):
            found[-1]["count"] += run["count"]
        else:
            found.append(dict(run))
    return found


class Bar(NamedTuple):
    """A part of a boot, from 0 to WIDE. `goes_on`: it has no end yet; `mark`: where it is late, None: that is not
    drawn."""

    step: str
    until: str
    ms: int
    x: float
    width: float
    missing: Sequence[str]
    longest: bool
    goes_on: bool = False
    mark: float | None = None


def waterfall(spans: Sequence[Mapping[str, Any]], goes_on: Mapping[str, Any] | None = None) -> list[Bar]:
    """The API's parts of a boot, and the one that goes on, drawn to scale. A deadline to come is drawn where that takes
    no more room than what was."""
    parts = list(spans)
    if goes_on is not None:
        parts.append({**goes_on, "until": "now", "end_at": goes_on["now_at"], "missing": ()})
    if not parts:
        return []
    moments = [(moment_ms(part["begin_at"]), moment_ms(part["end_at"])) for part in parts]
    begin = moments[0][0]
    whole = max(max(ended for _, ended in moments) - begin, 1)
    longest = max(ended - began for began, ended in moments)
    due = moment_ms(goes_on["deadline"]) - begin if goes_on is not None and goes_on["deadline"] else None
    if due is not None and due <= 2 * whole:
        whole = max(whole, due)
    bars = [
        Bar(
            part["step"],
            part["until"],
            ms := ended - began,
            round((began - begin) * WIDE / whole, 1),
            round(max(ms * WIDE / whole, 2), 1),
            part["missing"],
            ms == longest and ms > 0,
        )
        for part, (began, ended) in zip(parts, moments, strict=True)
    ]
    if goes_on is not None:
        mark = round(due * WIDE / whole, 1) if due is not None and due <= whole else None
        bars[-1] = bars[-1]._replace(goes_on=True, mark=mark)
    return bars
