"""`/healthz`, `/readyz`: without a token."""

from flask import Blueprint, Response, jsonify

from netboot.web import readiness, render
from netboot.web.parts import parts

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
def healthy() -> Response:
    """This process answers."""
    return render.uncached(jsonify({"healthy": True}))


@blueprint.get("/readyz")
def ready() -> Response:
    """Whether machines can boot now; and in every case, detail by detail, what is not as it should be."""
    found = readiness.assess(parts())
    response = jsonify(found.as_json())
    response.status_code = 200 if found.ready else 503
    return render.uncached(response)
