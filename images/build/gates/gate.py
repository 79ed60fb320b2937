"""What a gate is: a name, its check, and a line about what it looked at, for the report."""

from collections.abc import Callable
from dataclasses import dataclass

from images.build.gates.facts import Facts
from images.values.finding import Finding


@dataclass(frozen=True, slots=True)
class Gate:
    """`check` gives every finding; `looked` says in a few words what there was to look at."""

    name: str
    check: Callable[[Facts], list[Finding]]
    looked: Callable[[Facts], str]
