"""`/v1/boots?machine=&limit=`, `/v1/boots/<id>`."""

from flask import Blueprint, Response, jsonify, request

from netboot.lifecycle.errors import NoSuchBootError
from netboot.lifecycle.views import machine_named
from netboot.web import node_health, query, render
from netboot.web.auth import protect
from netboot.web.dependencies import dependencies

blueprint = Blueprint("boots", __name__)
protect(blueprint)


@blueprint.get("/v1/boots")
def listed() -> Response:
    """Boots and claims, the newest first."""
    query.only(("machine", "limit"))
    name = request.args.get("machine")
    found = dependencies().states.boots(name, query.whole("limit", 20, 1, 1_000))
    if name is not None and not found:
        machine_named(dependencies().live.view(), name)  # an empty answer is about a machine that there is
    return jsonify({"boots": [render.trace(one) for one in found]})


@blueprint.get("/v1/boots/<boot>")
def shown(boot: str) -> Response:
    """One boot's trace."""
    query.only(())
    found = dependencies().states.boot(boot)
    if found is None:
        raise NoSuchBootError("never heard of, or longer ago than is kept")
    return jsonify({**render.trace(found), "checked": node_health.report_of(found)})
