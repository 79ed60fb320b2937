"""`/v1/explain?mac=&uuid=&serial=&arch=`: what whoever claims this would get, and why. Nothing is recorded."""

from flask import Blueprint, Response, jsonify, request

from netboot.lifecycle.claims import parse_claim
from netboot.lifecycle.decide import decide
from netboot.web import query, render
from netboot.web.auth import protect
from netboot.web.dependencies import dependencies

blueprint = Blueprint("explain", __name__)
protect(blueprint)


@blueprint.get("/v1/explain")
def explained() -> Response:
    """The decision on a claim."""
    query.only(("mac", "uuid", "serial", "arch", "platform"))
    claim = parse_claim(request.query_string.decode("ascii", "replace"))
    decision = decide(dependencies().live.view(), claim)
    return jsonify({"claim": render.plain(claim), "decision": render.plain(decision)})
