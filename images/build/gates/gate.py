"""What a gate is, which there are, and what they find: every file of `images/build/gates/checks/` has a `GATE`."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from images.build.gates.facts import Facts
from images.values.finding import Finding

CHECKS = "images.build.gates.checks"


@dataclass(frozen=True, slots=True)
class Gate:
    """`check` gives every finding; `scope` says in a few words what there was to look at; `passed_over`, where a recipe
    can allow something, what was found and is no finding."""

    name: str
    check: Callable[[Facts], list[Finding]]
    scope: Callable[[Facts], str]
    passed_over: Callable[[Facts], list[str]] = lambda _: []


def all_gates() -> tuple[Gate, ...]:
    """Every gate, by name: the order in which findings are told."""
    names = sorted(info.name for info in pkgutil.iter_modules(importlib.import_module(CHECKS).__path__))
    return tuple(importlib.import_module(f"{CHECKS}.{name}").GATE for name in names)


def findings(facts: Facts, gates: Iterable[Gate]) -> list[Finding]:
    """Every finding of every gate."""
    return [finding for gate in gates for finding in gate.check(facts)]


def report(facts: Facts, gates: Iterable[Gate]) -> list[dict[str, str | list[str]]]:
    """What was looked at, by gate, and what was passed over where there is anything: the step's output, for people."""
    return [_line(gate, facts, gate.passed_over(facts)) for gate in gates]


def _line(gate: Gate, facts: Facts, passed_over: list[str]) -> dict[str, str | list[str]]:
    line: dict[str, str | list[str]] = {"gate": gate.name, "looked_at": gate.scope(facts)}
    return line | {"passed_over": passed_over} if passed_over else line
