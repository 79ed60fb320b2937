"""`netboot explain NAME --boot ID`: what was decided for a boot that there was, for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from netboot.cli.times import moment


def facts(explained: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and text of each line."""
    script = explained["script"]
    if script is not None:
        by = f", by {script['peer']}" if script["peer"] else ""
        digest = f", sha256 {script['script']}… without the boot id" if script["script"] else ""
        yield "script", f"asked for at {moment(script['at'])}{by}{digest}"
        yield "image", f"{script['image']} (assigned; what runs is the machine's word)"
        yield "profile", f"{script['profile']}, of channel {script['channel']}"
    yield from _decided(explained)
    for name, key, nothing in (
        ("proof", "attested", "it has not proven itself to join"),
        ("token", "token", "none was issued"),
        ("approval", "approval", "no certificate request of it was approved"),
    ):
        fact = explained[key]
        yield name, f"{fact['detail'] or 'yes'}, at {moment(fact['at'])}" if fact is not None else nothing
    gate = explained["gate"]
    since = gate["in_service_at"]
    yield "gate", f"first in service at {moment(since)}" if since is not None else "never seen in service"
    if gate["now"] is not None:
        yield "", f"now {gate['now']['reason']}: {gate['now']['message']}"


def _decided(explained: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    decided = explained["decided"]
    if decided is None:
        yield "because", f"cannot be told: {explained['decided_problem']}"
        return
    for because in decided["because"]:
        yield "because", because
    yield "kernel", " ".join(decided["kernel_arguments"])
    inputs = ", ".join(f"{name} {digest[:12]}" for name, digest in sorted(decided["inputs"].items()))
    yield "decided from", f"{decided['digest']}: {inputs}"
