"""How things are said on the page: words, shapes, spans of time. Pure."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from netboot.clock import moment_ms, rfc3339
from netboot.lifecycle.health import WORST
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.sentences import without
from netboot.lifecycle.summary import MachineStatus
from netboot.lifecycle.transitions import STEPS
from netboot.stores.audit import TOLD, concerned, in_words, told


class Said(NamedTuple):
    """A word for people, and its sign, so that nothing is told by colour alone."""

    text: str
    sign: str


STATUSES: Mapping[str, Said] = {
    MachineStatus.LATE: Said("late", "▲"),
    MachineStatus.ILL: Said("ill", "✖"),
    MachineStatus.HELD: Said("held", "◆"),
    MachineStatus.COMING: Said("on its way", "▶"),
    MachineStatus.IN_SERVICE: Said("in service", "●"),
    MachineStatus.OFF: Said("off", "○"),
    MachineStatus.UNKNOWN: Said("unknown", "?"),
}
MEANING: Mapping[str, str] = {
    MachineStatus.LATE: "past its deadline, an hour behind its gate, or it boots again and again",
    MachineStatus.ILL: "failed, lost, its Node not Ready, or a check failed",
    MachineStatus.HELD: "kept from work by somebody",
    MachineStatus.COMING: "boots, joins or waits for its gate, in time",
    MachineStatus.IN_SERVICE: "works",
    MachineStatus.OFF: "never booted, disabled or retired",
    MachineStatus.UNKNOWN: "cannot be told right now",
}
OF_STATUS: Mapping[str, Said] = {
    "True": Said("True", "●"),
    "False": Said("False", "✖"),
    "Unknown": Said("Unknown", "?"),
}
OF_CHECK: Mapping[str, Said] = {
    "pass": Said("pass", "●"),
    "warn": Said("warn", "◆"),
    "fail": Said("fail", "✖"),
    "unknown": Said("unknown", "?"),
}
MEMBERS: Mapping[str, str] = {
    "done": MachineStatus.IN_SERVICE,
    "out": MachineStatus.COMING,
    "assigned": MachineStatus.HELD,
    "waiting": MachineStatus.OFF,
    "failed": MachineStatus.ILL,
    "skipped": MachineStatus.UNKNOWN,
    "kept": MachineStatus.OFF,
    "left": MachineStatus.OFF,
}
"""A rollout's states of machines, by the status whose colour and sign they have."""
OF_MEMBER: Mapping[str, str] = {
    "done": "in service with the image",
    "out": "left service, and is expected back",
    "assigned": "boots the image from its next boot on; not told to reboot yet",
    "waiting": "not its turn yet; boots what it had",
    "failed": "did not come back with the image; boots what it had",
    "skipped": "was not drained or not rebooted, or is held: it says nothing of the image",
    "kept": "of a control plane, and named by nobody; keeps what it had",
    "left": "of another channel now, retired, disabled, or no longer in the inventory",
}
"""What a rollout's state of a machine means, as `MEANING` of statuses."""
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z")
LARGEST = 16_000
"""Characters of one such value: what a form of the API sends is 64 KiB at most, and a page has a hundred."""
UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def span(ms: float) -> str:
    """A span of time in its two largest units: `2h 5m`."""
    seconds = max(0.0, ms / 1000)
    if seconds < 10:
        return f"{seconds:.1f}s"
    left, parts = int(seconds), []
    for size, unit in UNITS:
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    if left and seconds < 3_600:
        parts.append(f"{left}s")
    return " ".join(parts[:2])


def moment(at: str) -> str:
    """A moment of the API for people: UTC, whole seconds."""
    return rfc3339(moment_ms(at), "seconds")


def grouped(number: int) -> str:
    """Digits in groups of three, by a narrow space that does not break."""
    return f"{number:,}".replace(",", "\u202f")


def short(digest: str) -> str:
    """The beginning of a digest or id, as commands take it."""
    return digest[:12]


def spaced(words: str) -> str:
    """`NodeRegistered` as `Node registered`, where people read; programs see the word itself."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", words)
    return " ".join([parts[0], *(part if part.isupper() else part.lower() for part in parts[1:])]) if parts else words


def without_words(found: Mapping[str, Any]) -> str:
    """What was found of a machine but for its own words, which stand elsewhere."""
    return without(found["message"], found["said"], found["reason"])


def without_boot(message: str) -> str:
    """Without the id with which sentences about a boot begin: in lists the machine stands beside it."""
    return re.sub(r"^boot [0-9a-f-]{36}[:,]? ", "", message)


def unbroken(message: str) -> Markup:
    """With moments that no line breaks in the middle of."""
    return Markup(_MOMENT.sub(r'<span class="n">\g<0></span>', str(escape(message))))  # noqa: S704 - escaped just now


def whole(value: Mapping[str, Any] | None) -> str:
    """What an act found or left, a line for each thing; "": it is short, and is said beside it (`told`)."""
    if value is None or len(in_words(value)) <= TOLD:
        return ""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return (
        text if len(text) <= LARGEST else f"{text[:LARGEST]}…\nand {len(text) - LARGEST:,} characters more: /v1/audit"
    )


def gravest(checks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Checks of a report by what they found, the worst first; what is absent comes last."""
    rank = {status: place for place, status in enumerate(WORST)}
    return sorted(checks, key=lambda check: (rank.get(check["status"], len(rank)), check["name"]))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "span": span,
    "moment": moment,
    "ms": moment_ms,
    "rfc3339": rfc3339,
    "grouped": grouped,
    "short": short,
    "spaced": spaced,
    "told": told,
    "concerned": concerned,
    "whole": whole,
    "without_words": without_words,
    "gravest": gravest,
    "without_boot": without_boot,
    "unbroken": unbroken,
}
GLOBALS: Mapping[str, Any] = {
    "STATUSES": STATUSES,
    "TYPES": tuple(ConditionType),
    "MEANING": MEANING,
    "OF_STATUS": OF_STATUS,
    "OF_CHECK": OF_CHECK,
    "MEMBERS": MEMBERS,
    "OF_MEMBER": OF_MEMBER,
    "STEPS": STEPS,
    "REASONS": sorted(Reason),
}
