"""`/v1/drift`: machines that run something else than they would boot now."""

from netboot.lifecycle.drift import Drifts, drifts
from netboot.web.dependencies import dependencies


def shown() -> Drifts:
    """All of them, in the order of the inventory."""
    deps = dependencies()
    return drifts(deps.live.view(), deps.states.machines(), deps.conditions.conditions())
