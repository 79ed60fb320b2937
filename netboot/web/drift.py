"""`/v1/drift`: machines that run something else than they would boot now."""

from flask import Response, jsonify

from netboot.lifecycle.drift import drifts
from netboot.web import inputs, render
from netboot.web.dependencies import dependencies


def shown() -> Response:
    """All of them, in the order of the inventory."""
    inputs.only(())
    deps = dependencies()
    return jsonify(render.plain(drifts(deps.live.view(), deps.states.machines(), deps.conditions.conditions())))
