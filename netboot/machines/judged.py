"""Whether thresholds, floors, checks and tests that the inventory names are those of the health checks, and values of
their unit. A machine says it too (`expectations`), when it is up; here it is said with its line, before. Names of
deadlines are said so, too.
"""

import difflib
from collections.abc import Collection, Iterator

from images.node.health.floors import FLOORS
from images.node.health.names import ALWAYS, CHECKS, TESTS
from images.node.health.thresholds import THRESHOLDS
from images.values.strict import Fault
from netboot.machines.boot_limit import NONE
from netboot.machines.deadlines import DEFAULTS
from netboot.machines.declared import Declared

MOST = {"°C": 150, "%": 255}
"""By unit. 255 is as far as an NVMe disk counts its Percentage Used (NVM Express Base Specification, SMART log)."""
Place = tuple[str, ...]


def unknown_names(items: list[Declared]) -> Iterator[Fault]:
    """Of all profiles, machines and classes. What is of another form has its own fault."""
    for item in items:
        if item.kind in ("profile", "class"):
            for name in item.inner("deadlines"):
                if isinstance(name, str) and name not in DEFAULTS:
                    yield item.fault(_no("deadline", name, DEFAULTS), "deadlines", name)
            if item.value.get("boot_limit") == NONE:
                yield item.fault("from 1 to 15 boots; or none, and no loop is told", "boot_limit")
        if item.kind in ("profile", "machine"):
            yield from _thresholds(item, item.inner("health").get("thresholds"), ("health", "thresholds"))
        elif item.kind == "class":
            yield from _thresholds(item, item.value.get("thresholds"), ("thresholds",))
            yield from _listed(item, item.value.get("skip_checks"), ("skip_checks",), "check", CHECKS)
            yield from _required(item, item.inner("gate").get("required"))
            active = item.inner("active")
            yield from _listed(item, active.get("skip"), ("active", "skip"), "test", TESTS)
            floors = active.get("floors")
            for name in floors if isinstance(floors, dict) else ():
                if name not in FLOORS:
                    yield item.fault(_no("floor", str(name), FLOORS), "active", "floors", str(name))


def _thresholds(item: Declared, said: object, place: Place) -> Iterator[Fault]:
    for name, value in said.items() if isinstance(said, dict) else ():
        known = THRESHOLDS.get(name)
        if known is None:
            yield item.fault(_no("threshold", str(name), THRESHOLDS), *place, str(name))
        elif type(value) in (int, float) and value >= 0:
            if known.unit == "times" and value % 1 != 0:
                yield item.fault(f"counts {known.what}: must be a whole number", *place, name)
            elif known.unit in MOST and value > MOST[known.unit]:
                yield item.fault(f"is in {known.unit}: must be from 0 to {MOST[known.unit]}", *place, name)


def _listed(item: Declared, said: object, place: Place, kind: str, known: tuple[str, ...]) -> Iterator[Fault]:
    for number, name in enumerate(said if isinstance(said, list) else ()):
        if name == ALWAYS and kind == "check":
            yield item.fault(f"{ALWAYS} says what a machine did not understand: it cannot be skipped", *place, number)
        elif isinstance(name, str) and name not in known:
            yield item.fault(_no(kind, name, known), *place, number)


def _required(item: Declared, said: object) -> Iterator[Fault]:
    """A check that no node ever has the result of would keep each of them from work for ever."""
    known = (*CHECKS, *(f"active-{name}" for name in TESTS))
    for number, name in enumerate(said if isinstance(said, list) else ()):
        if isinstance(name, str) and name not in known and not name.startswith("own-"):
            yield item.fault(_no("check", name, known), "gate", "required", number)


def _no(kind: str, name: str, known: Collection[str]) -> str:
    lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    hint = f"did you mean {lower[near[0]]!r}?" if near else f"there are {', '.join(known)}"
    return f"no {kind} is named {name!r}; {hint}"
