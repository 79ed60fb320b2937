"""What was decided for a boot, as it is kept: the decision's own words and values, found again by its inputs' digest.

A decision is a pure function of what was published, so a script's record needs no more than the digest of what it was
made of: boot servers compute it once for each script that they render, and the words are kept once for all boots that
had the same.
"""

import hashlib
from collections.abc import Sequence

from images.values.strict import Strict
from images.values.types import Name, Sha256
from netboot.lifecycle.decide import Boot, decide_machine
from netboot.lifecycle.published import View
from netboot.lifecycle.snapshot import ImageFacts
from netboot.machines.values import Machine

DIGITS = 16
"""Of a digest in a record: enough to tell decisions of one site from each other, in few bytes."""


class Decided(Strict):
    """`digest`: of its inputs, as records have it; `inputs`: what it was made of → SHA-256 of that."""

    digest: str
    machine: Name
    profile: Name
    channel: Name
    image: Sha256
    image_name: Name
    kernel_arguments: tuple[str, ...]
    origins: tuple[tuple[str, ...], ...]
    because: tuple[str, ...]
    inputs: dict[str, str]


class Inputs:
    """What decisions by one snapshot are made of; what machines share is hashed once."""

    def __init__(self, view: View) -> None:
        self._view = view
        snapshot = view.snapshot
        self._service = _sha256([snapshot.url, *snapshot.origins, str(snapshot.kernel_from_origins)])
        self._shared: dict[tuple[str, str], str] = {}

    def digests(self, machine: Machine, image: ImageFacts) -> dict[str, str]:
        """By what it is. A machine without a class, rack or assignment has none of it."""
        view, found = self._view, {"machine": _sha256([machine.model_dump_json()]), "image": image.digest}
        found["profile"] = self._of("profile", machine.profile, view.profiles[machine.profile])
        if machine.class_name is not None:
            found["class"] = self._of("class", machine.class_name, view.classes[machine.class_name])
        if machine.rack is not None:
            found["rack"] = self._of("rack", machine.rack, view.racks[machine.rack])
        if (assigned := view.snapshot.assigned.get(machine.name)) is not None:
            found["assignment"] = _sha256([assigned.model_dump_json()])
        return found | {"service": self._service}

    def digest(self, machine: Machine, image: ImageFacts) -> str:
        """Of all of them, as records have it."""
        return _digest(self.digests(machine, image))

    def _of(self, kind: str, name: str, value: Strict) -> str:
        known = self._shared.get((kind, name))
        if known is None:
            known = self._shared[kind, name] = _sha256([value.model_dump_json()])
        return known


def decided(view: View, inputs: Inputs, machine: Machine) -> Decided | None:
    """What that machine gets by this view, as it is kept; None: no script that boots it."""
    decision = decide_machine(view, machine)
    if not isinstance(decision, Boot):
        return None
    digests = inputs.digests(machine, decision.image)
    return Decided(
        digest=_digest(digests),
        machine=machine.name,
        profile=decision.profile.name,
        channel=decision.channel,
        image=decision.image.digest,
        image_name=decision.image.name,
        kernel_arguments=decision.kernel_arguments,
        origins=decision.origins,
        because=decision.because,
        inputs=digests,
    )


def arguments_digest(words: Sequence[str]) -> str:
    """What tells two command lines apart, as records have it."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:DIGITS]


def digest_of_script(script: bytes) -> str:
    """Of a script whose boot id is left out, as records have it."""
    return hashlib.sha256(script).hexdigest()[:DIGITS]


def _digest(digests: dict[str, str]) -> str:
    return _sha256([f"{name} {digest}" for name, digest in digests.items()])[:DIGITS]


def _sha256(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
