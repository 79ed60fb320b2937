"""`/v1/machines[/<name>]`, `/v1/machines/<name>/explain`."""

from flask import Blueprint, Response, jsonify

from netboot.lifecycle.decide import decide_machine
from netboot.lifecycle.views import machine_detail, machine_named, machine_views
from netboot.web import query, render
from netboot.web.auth import protect
from netboot.web.parts import parts

blueprint = Blueprint("machines", __name__)
protect(blueprint)

BOOTS_SHOWN = 10


@blueprint.get("/v1/machines")
def listed() -> Response:
    """Every machine of the inventory with its current boot."""
    query.only(())
    found = machine_views(parts().live.view(), parts().states.machines())
    return jsonify(
        {
            "machines": [
                {
                    **render.plain(one.machine),
                    "current": render.maybe_trace(one.current),
                    "pending": render.maybe_trace(one.pending),
                    "claims": render.plain(one.claims),
                }
                for one in found
            ]
        }
    )


@blueprint.get("/v1/machines/<name>")
def shown(name: str) -> Response:
    """One machine: what it would be served now, and its latest boots."""
    query.only(())
    states = parts().states
    view = parts().live.view()
    machine_named(view, name)
    detail = machine_detail(view, name, states.machines([name]).get(name), tuple(states.boots(name, BOOTS_SHOWN)))
    return jsonify(
        {
            **render.plain(detail.machine),
            "current": render.maybe_trace(detail.current),
            "pending": render.maybe_trace(detail.pending),
            "claims": render.plain(detail.claims),
            "decision": render.plain(detail.decision),
            "boots": [render.trace(boot) for boot in detail.boots],
        }
    )


@blueprint.get("/v1/machines/<name>/explain")
def explained(name: str) -> Response:
    """What this machine gets, however it is recognised, and why."""
    query.only(())
    view = parts().live.view()
    return jsonify({"decision": render.plain(decide_machine(view, machine_named(view, name)))})
