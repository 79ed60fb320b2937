"""All gates, in the order in which their findings are told."""

from collections.abc import Iterable

from images.build.gates import (
    architecture,
    identity,
    kernel,
    nouveau,
    nvidia,
    pairs,
    required,
    secrets,
    signatures,
    skew,
    sources,
)
from images.build.gates.facts import Facts
from images.build.gates.gate import Gate
from images.values.finding import Finding

GATES: tuple[Gate, ...] = (
    kernel.GATE,
    architecture.GATE,
    nvidia.GATE,
    nouveau.GATE,
    required.GATE,
    signatures.GATE,
    skew.GATE,
    pairs.GATE,
    sources.GATE,
    identity.GATE,
    secrets.GATE,
)


def findings(facts: Facts, gates: Iterable[Gate] = GATES) -> list[Finding]:
    """Every finding of every gate."""
    return [finding for gate in gates for finding in gate.check(facts)]


def report(facts: Facts, gates: Iterable[Gate] = GATES) -> list[dict[str, str]]:
    """What was looked at, by gate: the step's output, for people and for the image's provenance."""
    return [{"gate": gate.name, "looked_at": gate.looked(facts)} for gate in gates]
