"""How a machine proves who it is, in words: for `machine show|approve|enrolments` and `explain`."""

from collections.abc import Iterator
from typing import Any

from netboot.cli.times import ago, moment

ALERTS_SHOWN = 3


def facts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What `machine show` and `explain` say of a machine's identity."""
    one = found["enrolment"]
    if one is None:
        yield "enrolment", found["enrolment_problem"]
    else:
        yield "enrolment", _state(one)
        if one["window"]:
            yield "window", f"{_WINDOWS[one['window']]} until {moment(one['window_until_ms'])}"
        if one["ek_sha256"]:
            yield "EK", one["ek_sha256"]
            yield from _certificate(one)
        if one["conflict"]:
            yield "CONFLICT", one["conflict"]
    yield "PCR policy", found["pcr_policy"]
    for alert in found["alerts"][:ALERTS_SHOWN]:
        yield "ALERT", f"{moment(alert['at_ms'])}  {alert['said']}"


_WINDOWS = {"enrol": "it may enrol a TPM", "boot": "it may join without a TPM, once,"}


def shown(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What an operator looks at before approving: what the machine said beside what the inventory says."""
    one, match = found["enrolment"], found["match"] or {}
    said = one["details"]
    yield "machine", one["machine"]
    yield "state", _state(one)
    yield "EK (SHA-256)", one["ek_sha256"] or "none"
    yield from _certificate(one)
    for name, key in (("MACs", "macs"), ("serial", "serial"), ("UUID", "uuid")):
        yield f"{name} it says", _words(said[key])
        yield f"{name} declared", _words(match.get(key))
    yield "asked from", said["peer"] or "not known"
    if said["said"]:
        yield "it also said", said["said"]
    yield "PCR policy", found["pcr_policy"]


def _certificate(one: dict[str, Any]) -> Iterator[tuple[str, str]]:
    certificate = one["certificate"]
    if certificate is None:
        return
    if certificate["verdict"] == "absent":
        yield "EK certificate", "none"
        return
    if certificate["tpm"] or certificate["issuer"]:
        yield "EK certificate", certificate["subject"] or certificate["tpm"] or "no subject"
        yield "made by", certificate["issuer"]
    yield "chain", f"{_VERDICTS[certificate['verdict']]}{certificate['words']}"


_VERDICTS = {"good": "", "bad": "NOT GOOD: ", "unchecked": ""}


def _state(one: dict[str, Any]) -> str:
    source = f", {one['source']}" if one["source"] else ""
    since = f", since {moment(one['since_ms'])}" if one["since_ms"] and one["source"] != "inventory" else ""
    return f"{_STATES[one['state']]}{source}{since}"


_STATES = {
    "none": "none: no TPM on record",
    "pending": "pending: no token before `netboot machine approve`",
    "approved": "approved",
    "retired": "retired: no tokens, no renewals",
}


def row(one: dict[str, Any]) -> tuple[object, ...]:
    """One line of a list."""
    window = f"{one['window']} until {moment(one['window_until_ms'])}" if one["window"] else ""
    since = ago(one["since_ms"]) if one["since_ms"] else ""
    return one["machine"], one["state"], since, (one["ek_sha256"] or "")[:16], one["source"], window, one["conflict"]


def _words(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) and value else value or "not given"
