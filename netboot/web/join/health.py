"""`/healthz`, `/readyz` of this process alone."""

from typing import Any

from flask import Blueprint, Response, jsonify

from netboot.lifecycle.errors import CannotTellError
from netboot.web import render
from netboot.web.join.parts import Desk, desk

blueprint = Blueprint("join-health", __name__)


@blueprint.get("/healthz")
def healthy() -> Response:
    """This process answers."""
    return render.uncached(jsonify({"healthy": True}))


@blueprint.get("/readyz")
def ready() -> Response:
    """200: machines of every cluster can join through this process; else 503 with what stands in the way."""
    found = said(desk())
    response = jsonify(found)
    response.status_code = 200 if found["ready"] else 503
    return render.uncached(response)


def said(own: Desk) -> dict[str, Any]:
    """`{"ready", "problems", "clusters"}` of a process."""
    problems = own.problems()
    try:
        own.parts.view()
    except CannotTellError as error:
        problems.append(str(error))
    clusters = own.fitness.words()
    problems += [said["message"] for said in clusters.values() if not said["ok"]]
    if not clusters:
        problems.append("no cluster is configured: add `clusters` to netboot.yaml")
    if own.stopping():
        problems.insert(0, "the service is stopping")
    return {"ready": not problems, "problems": problems, "clusters": clusters}
