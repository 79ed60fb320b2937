"""`/v1/drift`: machines that run something else than they would boot now."""

from netboot.lifecycle.drift import Drift, drifts
from netboot.web.dependencies import dependencies
from netboot.web.pages import PageAsked, Paged, page


class Drifts(Paged):
    """`machines`: how many were looked at; `untold`: of these what their boot was served is not known; `unknown`: those
    that may boot and of which no boot is known. These names are in each page, whole."""

    machines: int
    drift: tuple[Drift, ...]
    untold: tuple[str, ...]
    unknown: tuple[str, ...]


def listed(query: PageAsked) -> Drifts:
    """All of them, in the order of the inventory."""
    deps = dependencies()
    whole = drifts(deps.live.view(), deps.states.machines(), deps.conditions.conditions())
    found, more = page(query, whole.drift, lambda each: f"{each.machine} {each.what}")
    return Drifts(
        machines=whole.machines, drift=tuple(found), untold=whole.untold, unknown=whole.unknown, next_page=more
    )
