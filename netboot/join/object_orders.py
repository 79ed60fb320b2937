"""Operators' orders where enrolments are objects: people write these, and are told by which command. Pure."""

import json
import shlex
from collections.abc import Sequence
from typing import Any

from netboot.join.enrolment import Change, short
from netboot.join.enrolment_objects import EnrolmentObject, spec_of_order
from netboot.lifecycle.errors import DoneInPartError


def by_kubectl(namespace: str, found: EnrolmentObject | None, change: Change, details: str) -> str:
    """What does what an order comes to, to the object as it was read: an older one is refused (`resourceVersion`)."""
    if found is None:
        spec = spec_of_order(None, change, details).model_dump(mode="json", exclude_defaults=True)
        metadata = {"name": change.record.machine, "namespace": namespace}
        made = {"apiVersion": "netboot.dev/v1alpha1", "kind": "Enrolment", "metadata": metadata, "spec": spec}
        return _said(f"kubectl create -f - <<< {shlex.quote(json.dumps(made))}")
    before = found.spec.model_dump(mode="json")
    after = spec_of_order(found, change, details).model_dump(mode="json")
    patch: dict[str, Any] = {"metadata": {"resourceVersion": found.version}}
    patch["spec"] = {key: value for key, value in after.items() if value != before[key]}
    what = f"enrolments.netboot.dev/{found.name} --type=merge"
    return _said(f"kubectl patch -n {namespace} {what} -p {shlex.quote(json.dumps(patch))}")


def _said(command: str) -> str:
    return (
        "enrolments are objects of Kubernetes here (enrolments_kubernetes), and netboot may not write what people want "
        f"of them. Who may write Enrolments does it by `{command}`"
    )


def both(ek_sha256: str, machines: Sequence[str]) -> str:
    """Why none of the machines that one TPM is approved for joins, and what to do."""
    return (
        f"the TPM (EK {short(ek_sha256)}) is approved for {' and '.join(machines)}: an EK belongs to one machine, and "
        "none of them joins until only one Enrolment has it as spec.ek_sha256"
    )


def in_part(done: Sequence[Change], error: Exception) -> DoneInPartError:
    """For orders of which those before this error are carried out, and name the machines."""
    names = ", ".join(change.record.machine for change in done if change.act)
    return DoneInPartError(f"done of {names}, and then no further: {error}")
