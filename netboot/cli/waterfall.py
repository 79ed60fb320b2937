"""Where the time of a boot went, drawn for a terminal: a bar for each part. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from netboot.cli.times import ms

LEAST_BAR = 10
"""Columns, however narrow the terminal is."""
MOST_BAR = 100


class Marks(NamedTuple):
    """What bars are drawn with: time that a phase accounts for, and time that none does."""

    known: str
    unknown: str


BLOCKS = Marks("█", "░")
PLAIN = Marks("#", ".")
"""For pipes, and terminals without the others."""


def waterfall(spans: Sequence[Mapping[str, Any]], width: int, marks: Marks = PLAIN) -> Iterator[str]:
    """The lines. `spans`: of the API, in order; `width`: columns of the terminal.

    A part that took any time at all has a mark; parts begin where those before them end.
    """
    if not spans:
        yield "there is nothing to draw yet: one moment of it is known"
        return
    began, ended = ms(spans[0]["begin_at"]), ms(spans[-1]["end_at"])
    names = [_name(span) for span in spans]
    seconds = [f"{_took(span) / 1000:.1f} s" for span in spans]
    name_width, seconds_width = max(map(len, names)), max(map(len, seconds))
    bar_width = min(MOST_BAR, max(LEAST_BAR, width - name_width - seconds_width - 4))
    for span, name, took in zip(spans, names, seconds, strict=True):
        bar = _bar(span, began, ended, bar_width, marks)
        yield f"{name:<{name_width}}  {bar:<{bar_width}}  {took:>{seconds_width}}"
    yield ""
    yield from _sums(spans)


def _name(span: Mapping[str, Any]) -> str:
    return f"{span['step']} to {span['until']}" if span["missing"] else str(span["step"])


def _took(span: Mapping[str, Any]) -> int:
    return ms(span["end_at"]) - ms(span["begin_at"])


def _bar(span: Mapping[str, Any], began: int, ended: int, width: int, marks: Marks) -> str:
    whole = max(1, ended - began)
    first = (ms(span["begin_at"]) - began) * width // whole
    beyond = -(-(ms(span["end_at"]) - began) * width // whole)
    length = beyond - first if _took(span) > 0 else 0
    return " " * first + (marks.unknown if span["missing"] else marks.known) * length


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
