"""Machines that asked and may not boot, with what they said of their hardware where they were discovered."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, get_args

from images.values.types import Architecture
from netboot.lifecycle.decide import Claim, Refused, Unknown, decide
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.hardware import KEPT_MS, HardwareReport, suggested
from netboot.lifecycle.published import View
from netboot.lifecycle.sightings import Discovered, Told
from netboot.lifecycle.state import DISCOVERED_KEPT
from netboot.machines.found import declaration
from netboot.web.binding import Shown, plain
from netboot.web.dependencies import dependencies
from netboot.web.render import grown
from netboot.web.shapes import Document

SEEN_DIGITS = 32
"""Of a digest of what strangers say: of 16, two reports with the same one are found within hours on one machine, and
the second could take the place of the first once that was looked at."""


class Sighting(Shown):
    """A machine that asked and may not boot. `key`: the first of MAC, UUID, serial and address that it has; `hardware`:
    what it said of itself at `taken_ms`, null where it was not discovered within the last hour; `suggested_class`: of
    the inventory's classes one whose hardware that is; `told_from`: the address that said so, which need not be that of
    who asked; `told_otherwise_from`: another that said within the hour that it is this machine, or the same with
    another TPM; `match`: by what it would be declared, empty where it has no MAC; `seen`: a digest of that."""

    key: str
    outcome: Literal["unknown", "refused"]
    mac: str | None
    uuid: str | None
    serial: str | None
    architecture: str | None
    reason: str
    peer: str
    first_ms: int
    last_ms: int
    hardware: HardwareReport | None
    taken_ms: int | None
    suggested_class: str | None
    told_from: str | None
    told_otherwise_from: str | None
    match: Document
    seen: str


def sightings(limit: int) -> list[Sighting]:
    """The latest seen first; without those that the inventory has let boot since."""
    deps = dependencies()
    now = deps.clock.now_ms()
    told = {record.report.mac: record for record in deps.sightings.hardware() if abs(now - record.at_ms) <= KEPT_MS}
    return [_sighting(each, told.get(each.mac or ""), now) for each in _waiting(limit)]


def _waiting(limit: int) -> list[Discovered]:
    deps = dependencies()
    try:
        view = deps.live.view()
    except CannotTellError:
        return deps.sightings.discovered(limit)  # as they were heard
    found: list[Discovered] = []
    for most in (limit, DISCOVERED_KEPT):
        heard = deps.sightings.discovered(most)
        found = [each for each in heard if _may_not_boot(view, each)]
        if len(found) >= limit or len(heard) < most:
            break
    return found[:limit]


def _may_not_boot(view: View, found: Discovered) -> bool:
    architecture = next((each for each in get_args(Architecture) if each == found.architecture), None)
    claim = Claim(mac=found.mac, uuid=found.uuid, serial=found.serial, architecture=architecture)
    return isinstance(decide(view, claim), Unknown | Refused)


def _sighting(found: Discovered, told: Told | None, now: int) -> Sighting:
    report = told.report if told is not None else None
    hardware = plain(report) if report is not None else None
    match = _match({**plain(found), "hardware": hardware})
    by = [match, found.architecture]
    return grown(
        Sighting,
        found,
        hardware=report,
        taken_ms=told.at_ms if told is not None else None,
        suggested_class=suggested(report, dependencies().live.view().snapshot.inventory.classes)
        if report is not None
        else None,
        told_from=told.peer if told is not None else None,
        told_otherwise_from=(told.other or None) if told is not None and now - told.other_ms <= KEPT_MS else None,
        match=match,
        seen=hashlib.sha256(json.dumps(by, sort_keys=True).encode()).hexdigest()[:SEEN_DIGITS],
    )


def _match(said: Mapping[str, Any]) -> dict[str, Any]:
    """What it would be recognised by; empty: it has no MAC, or none that is one, and is declared by nobody here."""
    with suppress(ValueError):
        return dict(declaration("", "", said)["match"])
    return {}
