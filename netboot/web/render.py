"""Values of the service as JSON, as the API shows them."""

from collections.abc import Mapping
from typing import Any

from flask import Response
from pydantic import BaseModel

from netboot.lifecycle.conditions import MachineCondition
from netboot.lifecycle.crashes import Crashed
from netboot.lifecycle.state import is_claim, standing
from netboot.lifecycle.trace import Trace


def plain(value: BaseModel) -> dict[str, Any]:
    """A model as plain JSON values, by the names that it has on the wire."""
    return value.model_dump(mode="json", by_alias=True)


def trace(value: Trace) -> dict[str, Any]:
    """A trace with what follows from it: times in milliseconds since 1970. Of crashes how many:
    `crashed` has the others' facts."""
    return {
        **value.model_dump(mode="json", exclude={"crashes"}),
        "found_crashes": len(value.crashes),
        "claim": is_claim(value),
        "standing": standing(value).name.lower(),
        "state": value.state,
        "reason": value.reason,
        "started_ms": value.started_ms,
        "last_ms": value.last_ms,
        "last_served": value.last_served,
        "last_reported": value.last_reported,
        "last_observed": value.last_observed,
        "kernel_ms": value.kernel_ms,
        "seconds_to_ready": value.seconds_to_ready,
    }


def conditions(known: Mapping[str, tuple[MachineCondition, ...]] | None, name: str) -> list[dict[str, Any]] | None:
    """A machine's, as Kubernetes has them; an empty list: it was not judged yet; None: it cannot be told."""
    return [condition.document() for condition in known.get(name, ())] if known is not None else None


def crashed(value: Crashed, text: str | None) -> dict[str, Any]:
    """A crash, whose it was and who found it. `text`: None: it cannot be read (any more)."""
    facts = value.crash.model_dump(mode="json", exclude={"begins", "sha256"})
    return {**facts, "text": text, "boot": value.boot, "found_by": value.found_by}


def maybe_trace(value: Trace | None) -> dict[str, Any] | None:
    """The same of what may not be there."""
    return trace(value) if value is not None else None


def uncached(response: Response) -> Response:
    """What is true now is not to be kept by anybody."""
    response.headers["Cache-Control"] = "no-store"
    return response
