"""How a machine proves who it is, in words: for `machine show|approve|enrolments` and `explain`."""

from collections.abc import Iterator, Mapping
from typing import Any

from netboot.cli.output import is_wide
from netboot.cli.times import ago, moment


def facts(machine: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What `machine show` and `explain` say of a machine's identity."""
    enrolment = machine["enrolment"]
    if enrolment is None:
        yield "enrolment", machine["enrolment_problem"]
    else:
        yield "enrolment", _state(enrolment)
        if enrolment["window"]:
            yield "window", f"{_WINDOWS[enrolment['window']]} until {moment(enrolment['window_until'])}"
        if enrolment["ek_sha256"]:
            yield "EK", enrolment["ek_sha256"]
            yield from _certificate(enrolment)
        if enrolment["conflict"]:
            yield "CONFLICT", enrolment["conflict"]
    yield "PCR policy", machine["pcr_policy"]
    for alert in machine["alerts"]:
        often = f"{alert['count']} times since {moment(alert['first_at'])}: " if alert["count"] > 1 else ""
        yield "ALERT", f"{moment(alert['last_at'])}  {often}{alert['said']}"


_WINDOWS = {"enrol": "it may enrol a TPM", "boot": "it may join without a TPM, once,"}


def shown(machine: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What an operator looks at before approving: what the machine said beside what the inventory says."""
    enrolment, match = machine["enrolment"], machine["match"] or {}
    details = enrolment["details"]
    yield "machine", enrolment["machine"]
    yield "state", _state(enrolment)
    yield "EK (SHA-256)", enrolment["ek_sha256"] or "none"
    yield from _certificate(enrolment)
    for name, key in (("MACs", "macs"), ("serial", "serial"), ("UUID", "uuid")):
        yield f"{name} it says", _listed(details[key])
        yield f"{name} declared", _listed(match.get(key))
    yield "asked from", details["peer"] or "not known"
    if details["said"]:
        yield "it also said", details["said"]
    yield "PCR policy", machine["pcr_policy"]


def _certificate(enrolment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    certificate = enrolment["certificate"]
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


def _state(enrolment: Mapping[str, Any]) -> str:
    source = f", {enrolment['source']}" if enrolment["source"] else ""
    since = f", since {moment(enrolment['since'])}" if enrolment["since"] and enrolment["source"] != "inventory" else ""
    before = f", {enrolment['retired_from']} before" if enrolment["retired_from"] else ""
    return f"{_STATES[enrolment['state']]}{before}{source}{since}"


_STATES = {
    "none": "none: no TPM on record",
    "pending": "pending: no token before `netboot machine approve`",
    "approved": "approved",
    "retired": "retired: no tokens, no renewals",
}


def row(output: str, enrolment: Mapping[str, Any]) -> tuple[object, ...]:
    """An enrolment as a row of `netboot machine enrolments`."""
    window = f"{enrolment['window']} until {moment(enrolment['window_until'])}" if enrolment["window"] else ""
    since = ago(enrolment["since"]) if enrolment["since"] else ""
    return (
        enrolment["machine"],
        enrolment["state"],
        since,
        (enrolment["ek_sha256"] or "")[: None if is_wide(output) else 16],
        enrolment["source"],
        window,
        enrolment["conflict"],
    )


def _listed(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) and value else value or "not given"
