"""`/v1/fleet[/machines]`: thousands of machines at a glance, without reading their boots (docs/http-management.md)."""

import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from flask import Response, current_app, jsonify, request

from netboot.lifecycle.errors import BadClaimError, CannotTellError
from netboot.lifecycle.glance import RANK, UNJUDGED, Glance, Word
from netboot.lifecycle.published import View
from netboot.machines.values import Machine
from netboot.status.controllers import RolloutsStatus
from netboot.web import inputs, render
from netboot.web.dependencies import Dependencies, dependencies
from netboot.web.readiness import judging

SHOWN, MOST = 100, 1_000
FIRST = 20
"""Machines that are late or ill, and that the summary names."""
FRESH_MS = 2_000
"""For so long a look is good, so that a page costs the same with fifty machines and with fifty thousand."""
LONGEST_TEXT = 200
FILTERS = ("name", "word", "reason", "step", "rack", "image", "class", "text")


class Seen(NamedTuple):
    """A machine of the inventory, and how it is."""

    machine: Machine
    glance: Glance


class Look(NamedTuple):
    """What was seen of all machines at one moment. `sorted`: those that want to be seen first, first."""

    view: View
    glances: Mapping[str, Glance]
    at_ms: int
    sorted: Sequence[Seen]
    summary: Mapping[str, Any]


class Looked:
    """The last look of an application: for whoever asks soon after it, or before anything else was found."""

    def __init__(self) -> None:
        self._lock, self._last = threading.Lock(), None

    _last: Look | None

    def look(self, deps: Dependencies) -> Look:
        """How all machines are, not longer ago than FRESH_MS.

        Raises:
            netboot.lifecycle.errors.CannotTellError: it cannot be told.
        """
        with self._lock:  # who asks meanwhile has the same, and does not count it again
            last, now = self._last, deps.clock.now_ms()
            view = deps.live.view()
            if last is not None and last.view is view and 0 < now - last.at_ms < FRESH_MS:
                return last
            glances = deps.glances.glances()
            if last is not None and last.view is view and last.glances is glances:
                self._last = last._replace(at_ms=now)
            else:
                seen = [Seen(each, glances.get(each.name, UNJUDGED)) for each in view.snapshot.inventory.machines]
                first = sorted(seen, key=_urgency)
                self._last = Look(view, glances, now, first, _summary(view, seen, first))
            return self._last


def summary() -> Response:
    """Counts by word, reason, step, image and rack, who wants to be seen first, and rollouts under way."""
    inputs.only(())
    deps = dependencies()
    found = _look(deps)
    return jsonify({"at_ms": found.at_ms, **found.summary, "rollouts": _rollouts(deps), "problem": judging(deps)})


def machines() -> Response:
    """Machines that fit all filters: late and ill ones first, of these the longest so."""
    inputs.only((*FILTERS, "limit", "offset"))
    limit, offset = inputs.whole("limit", SHOWN, 1, MOST), inputs.whole("offset", 0, 0, 10_000_000)
    wanted = {name: text for name in FILTERS if (text := request.args.get(name))}
    word = wanted.get("word")
    if word is not None and word not in list(Word):
        raise BadClaimError(f"word must be one of {', '.join(Word)}", field="word")
    if len(wanted.get("text", "")) > LONGEST_TEXT:
        raise BadClaimError(f"text must have at most {LONGEST_TEXT} characters", field="text")
    look = _look(dependencies())
    found = [each for each in look.sorted if _fits(each, wanted)] if wanted else look.sorted
    page = [_entry(each) for each in found[offset : offset + limit]]
    return jsonify({"at_ms": look.at_ms, "machines": page, "of": len(found), "offset": offset})


def _look(deps: Dependencies) -> Look:
    looked: Looked = current_app.extensions.setdefault("netboot.fleet", Looked())
    return looked.look(deps)


def _summary(view: View, seen: Sequence[Seen], first: Sequence[Seen]) -> dict[str, Any]:
    words = Counter(each.glance.word for each in seen)
    ailing = words[Word.LATE] + words[Word.ILL]
    return {
        "machines": len(seen),
        "words": {word: words[word] for word in Word},
        "reasons": _reasons(seen),
        "steps": dict(Counter(each.glance.step for each in seen if each.glance.step)),
        "images": _images(view, seen),
        "racks": _racks(seen),
        "first": [_entry(each) for each in first[: min(FIRST, ailing)]],
    }


def _rollouts(deps: Dependencies) -> list[dict[str, Any]] | None:
    """Those under way, as the controllers said last; None where that cannot be told."""
    try:
        said = deps.status.read("rollouts", RolloutsStatus)
    except CannotTellError:
        return None
    return [render.plain(each) for each in said.rollouts] if said is not None else None


def _urgency(seen: Seen) -> tuple[int, int, str]:
    return RANK[seen.glance.word], seen.glance.since_ms, seen.machine.name


def _fits(seen: Seen, wanted: Mapping[str, str]) -> bool:
    machine, found = seen
    said = {
        "name": machine.name,
        "word": found.word,
        "step": found.step,
        "rack": machine.rack or "",
        "image": found.image,
        "class": machine.class_name or "",
    }
    return all(
        text in (reason for _, reason in found.reasons)
        if name == "reason"
        else text.casefold() in f"{machine.name} {machine.rack or ''} {found.reason} {found.message}".casefold()
        if name == "text"
        else said[name] == text
        for name, text in wanted.items()
    )


def _entry(seen: Seen) -> dict[str, Any]:
    machine, found = seen
    told = found._asdict()
    del told["reasons"]
    return {"name": machine.name, "rack": machine.rack, "class": machine.class_name, "profile": machine.profile, **told}


def _reasons(seen: Iterable[Seen]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for reasons, count in Counter(each.glance.reasons for each in seen).items():  # few are different
        for kind, reason in reasons:
            found.setdefault(kind, Counter())[reason] += count
    return {kind: dict(counted) for kind, counted in found.items()}


def _images(view: View, seen: Iterable[Seen]) -> list[dict[str, Any]]:
    counted = Counter(each.glance.image for each in seen if each.glance.image)
    names = {digest: facts.name for digest, facts in view.snapshot.images.items()}
    return [{"image": image, "name": names.get(image), "machines": n} for image, n in counted.most_common()]


def _racks(seen: Sequence[Seen]) -> list[dict[str, Any]]:
    """Each with its machines in the order of the inventory, which is where they stand: how many in a row are alike."""
    by_rack: dict[str, list[Seen]] = {}
    for each in seen:
        by_rack.setdefault(each.machine.rack or "", []).append(each)
    return [
        {"rack": rack, "machines": len(there), "runs": [_run(word, run) for word, run in groupby(there, _word)]}
        for rack, there in sorted(by_rack.items(), key=lambda item: natural(item[0]))
    ]


def _word(seen: Seen) -> Word:
    return seen.glance.word


def _run(word: Word, run: Iterable[Seen]) -> dict[str, Any]:
    names = [each.machine.name for each in run]
    return {"word": word, "first": names[0], "count": len(names)}


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """The key by which r2 comes before r10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name) if part)
