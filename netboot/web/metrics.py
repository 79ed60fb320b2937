"""`/metrics`: Prometheus' text format, without a token."""

from flask import Blueprint, Response

from netboot.web.parts import parts

blueprint = Blueprint("metrics", __name__)


@blueprint.get("/metrics")
def metrics() -> Response:
    """What the boot workers counted, and what is so now."""
    return Response(parts().metrics(), content_type="text/plain; version=0.0.4; charset=utf-8")
