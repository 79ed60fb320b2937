"""Conditions and deadlines of a machine, as `machine list` and `machine show` print them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from images.values.durations import in_words
from netboot.cli.times import age
from netboot.machines.deadlines import DEFAULTS

COLUMNS = ("condition", "status", "reason", "since", "what was found")


def brief(conditions: Sequence[Mapping[str, Any]] | None) -> str:
    """One of them, for a list: that it is in service, or the first that says why not, and for how long."""
    if not conditions:
        return "cannot be told" if conditions is None else ""
    by_type = {each["type"]: each for each in conditions}
    if by_type["InService"]["status"] == "True":
        return "InService"
    wrong = [each for each in conditions if each["status"] != "True" and each["reason"] != "NoCluster"]
    joins = by_type["InService"]["reason"] != "NoCluster"
    if not joins and by_type["Booted"]["status"] == "True":
        return "Booted"
    return f"{wrong[0]['type']}: {wrong[0]['reason']} for {age(wrong[0]['lastTransitionTime'])}"


def rows(conditions: Sequence[Mapping[str, Any]] | None) -> list[tuple[object, ...]]:
    """All of them."""
    keys = ("type", "status", "reason", "lastTransitionTime", "message")
    return [tuple(each[key] for key in keys) for each in conditions or ()]


def deadlines(machine: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Those that its class or profile declares, and its limit of boots; nothing where all are the default."""
    said = [
        f"{name} {in_words(each['seconds']) if each['seconds'] else 'none'} ({each['said_by']})"
        for name, each in ((name, machine["deadlines"][name]) for name in DEFAULTS)
        if each["said_by"]
    ]
    if said:
        yield "deadlines", f"{', '.join(said)}; others by default"
    limit = machine["boot_limit"]
    if limit["said_by"]:
        yield "boot limit", f"{limit['boots'] or 'none'} ({limit['said_by']})"
