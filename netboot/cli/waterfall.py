"""Where the time of a boot went, drawn for a terminal: a bar for each part. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from netboot.cli.times import ms

LEAST_BAR = 10
"""Columns, however narrow the terminal is."""
MOST_BAR = 100


class Marks(NamedTuple):
    """What bars are drawn with: time that a phase accounts for, time that none does, time that goes on, and the moment
    from which on that is late."""

    known: str
    unknown: str
    going: str
    due: str


BLOCKS = Marks("█", "░", "▒", "│")
PLAIN = Marks("#", ".", ":", "|")
"""For pipes, and terminals without the others."""


def waterfall(
    spans: Sequence[Mapping[str, Any]], width: int, marks: Marks = PLAIN, goes_on: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """The lines. `spans`: of the API, in order; `goes_on`: likewise; `width`: columns of the terminal.

    A part that took any time at all has a mark; parts begin where those before them end.
    """
    parts = [*spans, _going(goes_on)] if goes_on is not None else spans
    if not parts:
        yield "there is nothing to draw yet: one moment of it is known"
        return
    began, ended = ms(parts[0]["begin_at"]), ms(parts[-1]["end_at"])
    names = [_name(part) for part in parts]
    seconds = [f"{_took(part) / 1000:.1f} s" for part in parts]
    name_width, seconds_width = max(map(len, names)), max(map(len, seconds))
    bar_width = min(MOST_BAR, max(LEAST_BAR, width - name_width - seconds_width - 4))
    for part, name, took in zip(parts, names, seconds, strict=True):
        bar = _bar(part, began, ended, bar_width, marks)
        yield f"{name:<{name_width}}  {bar:<{bar_width}}  {took:>{seconds_width}}"
    yield ""
    yield from _sums(spans) if spans else ()
    if goes_on is not None:
        yield _goes_on(goes_on)


def _going(goes_on: Mapping[str, Any]) -> Mapping[str, Any]:
    """As the other parts are."""
    return {**goes_on, "until": "now", "end_at": goes_on["now_at"], "missing": ()}


def _goes_on(goes_on: Mapping[str, Any]) -> str:
    now, due = ms(goes_on["now_at"]), ms(goes_on["deadline"]) if goes_on["deadline"] else None
    words = f"it is at {goes_on['step']} for {(now - ms(goes_on['begin_at'])) / 1000:.1f} s"
    if goes_on["late"]:
        return f"{words}, and late" + (
            f" for {(now - due) / 1000:.1f} s of that" if due is not None and due < now else ""
        )
    if due is None:
        return words
    return f"{words}, and late in {(due - now) / 1000:.1f} s" if due > now else f"{words}; its deadline stood still"


def _name(span: Mapping[str, Any]) -> str:
    return f"{span['step']} to {span['until']}" if span["missing"] else str(span["step"])


def _took(span: Mapping[str, Any]) -> int:
    return ms(span["end_at"]) - ms(span["begin_at"])


def _bar(span: Mapping[str, Any], began: int, ended: int, width: int, marks: Marks) -> str:
    whole = max(1, ended - began)
    first = (ms(span["begin_at"]) - began) * width // whole
    beyond = -(-(ms(span["end_at"]) - began) * width // whole)
    length = beyond - first if _took(span) > 0 else 0
    mark = marks.unknown if span["missing"] else marks.going if "deadline" in span else marks.known
    bar = " " * first + mark * length
    due = span.get("deadline")
    if due is None or not began <= ms(due) < ended:
        return bar
    place = (ms(due) - began) * width // whole
    return bar[:place] + marks.due + bar[place + 1 :]


def _sums(spans: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    began, ended, until = ms(spans[0]["begin_at"]), ms(spans[-1]["end_at"]), spans[-1]["until"]
    yield f"from {spans[0]['step']} to {until}: {(ended - began) / 1000:.1f} s"
    after = [span for span in spans if ms(span["begin_at"]) >= _kernel(spans, ended)]
    if after:
        took = ended - ms(after[0]["begin_at"])
        lost = sum(_took(span) for span in after if span["missing"])
        share = 100 * lost / took if took else 0.0
        unknown = f"of which no phase accounts for {share:.1f} %"
        yield f"from the start of the kernel to {until}: {took / 1000:.1f} s, {unknown}"
    for span in spans:
        if span["missing"]:
            never = " and ".join(span["missing"])
            yield f"between {span['step']} and {span['until']} nobody heard of {never}"


def _kernel(spans: Sequence[Mapping[str, Any]], never: int) -> int:
    """When the kernel started."""
    return next((ms(span["begin_at"]) for span in spans if span["step"] == "Kernel"), never + 1)
