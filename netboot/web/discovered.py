"""`/v1/discovered`: machines that asked and may not boot."""

from flask import Blueprint, Response, jsonify

from netboot.web import query, render
from netboot.web.auth import protect
from netboot.web.dependencies import dependencies

blueprint = Blueprint("discovered", __name__)
protect(blueprint)


@blueprint.get("/v1/discovered")
def listed() -> Response:
    """The latest seen first."""
    query.only(("limit",))
    found = dependencies().sightings.discovered(query.whole("limit", 100, 1, 10_000))
    return jsonify({"discovered": [render.plain(one) for one in found]})
