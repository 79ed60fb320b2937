"""The application of the management listener (Flask): every route that there is."""

from functools import cache

from flask import Flask, Response, jsonify, request

from netboot.machines.declared import LARGEST_ITEM
from netboot.readiness import Readiness
from netboot.web import (
    audits,
    boots,
    channels,
    declared,
    delete_node,
    drains,
    drift,
    enrolments,
    errors,
    etags,
    events,
    fleet,
    freeze,
    idempotency,
    images,
    inputs,
    intents,
    inventory,
    join_tokens,
    logins,
    machines,
    metrics,
    node_health,
    operators,
    page,
    preconditions,
    proofs,
    readiness,
    refusals,
    remedies,
    renaming,
    request_metrics,
    roles,
    rollouts,
    watch,
    watches,
)
from netboot.web.binding import View, bound
from netboot.web.dependencies import EXTENSION, Dependencies
from netboot.web.openapi import Raw, Route, Schema, document

LARGEST_BODY = LARGEST_ITEM
"""Bytes: an item of the inventory is the largest that most take."""

EITHER = ("If-Match", "If-None-Match")
LINES = Raw(watch.LINES, other=(watch.EVENTS,), headers=(watch.LAST_ID,))

OPEN = (
    Route("GET", "/healthz", readiness.healthy, guarded=False, raw=Raw("application/json", model=readiness.Healthy)),
    Route("GET", "/readyz", readiness.ready, guarded=False, raw=Raw("application/json", (200, 503), Readiness)),
    Route("GET", "/metrics", metrics.metrics, guarded=False, raw=Raw("text/plain")),
    Route("GET", "/v1/login", logins.offered, guarded=False, refuses=(400,)),
)
"""What anybody may ask."""


def described() -> Response:
    """This document."""
    inputs.only(())
    return jsonify(api_document())


ROUTES: tuple[Route, ...] = (
    *OPEN,
    Route("GET", "/v1/openapi.json", described, raw=Raw("application/json", kind="object")),
    Route("GET", "/v1/whoami", logins.whoami),
    Route("GET", "/v1/audit", audits.listed),
    Route("GET", "/v1/audit/watch", watches.audit_records, raw=LINES),
    Route("GET", "/v1/fleet", fleet.summary),
    Route("GET", "/v1/fleet/watch", watches.fleet_changes, raw=LINES),
    Route("GET", "/v1/fleet/machines", fleet.machines),
    Route("GET", "/v1/machines", machines.listed),
    Route("GET", "/v1/machines/<name>", machines.shown, tag=etags.MACHINE),
    Route("GET", "/v1/machines/<name>/explain", machines.explained),
    Route("GET", "/v1/machines/<name>/health", node_health.shown),
    Route("GET", "/v1/machines/<name>/events", events.listed),
    Route("GET", "/v1/machines/<name>/events/watch", events.watched, raw=LINES),
    Route("GET", "/v1/explain", machines.claim_explained),
    Route("GET", "/v1/discovered", boots.discovered),
    Route("GET", "/v1/discovered/watch", watches.discovered_changes, raw=LINES),
    Route("GET", "/v1/boots", boots.listed, refuses=(404,)),
    Route("GET", "/v1/boots/<boot>", boots.shown),
    Route("GET", "/v1/boots/<boot>/proof", proofs.shown, refuses=(409,)),
    Route("GET", "/v1/boots/watch", watch.watched, raw=LINES, refuses=(404,)),
    Route("GET", "/v1/channels", channels.listed),
    Route("GET", "/v1/channels/<name>", channels.shown, tag=etags.CHANNEL),
    Route("PUT", "/v1/channels/<name>", channels.moved, on=etags.ON_CHANNEL),
    Route("GET", "/v1/images", images.listed),
    Route("GET", "/v1/images/<digest>", images.shown),
    Route("GET", "/v1/images/<digest>/packages", images.packages),
    Route("GET", "/v1/images/<digest>/sbom", images.sbom, raw=Raw(images.SBOM, kind="object")),
    Route("GET", "/v1/images/<digest>/diff", images.compared),
    Route("GET", "/v1/images/<digest>/uses", images.used),
    Route("GET", "/v1/drift", drift.listed),
    Route("GET", "/v1/rollouts", rollouts.listed),
    Route("POST", "/v1/rollouts", rollouts.started, on=etags.ON_CHANNEL, named="channel"),
    Route("GET", "/v1/rollouts/<int:number>", rollouts.shown, tag=etags.ROLLOUT),
    Route("GET", "/v1/rollouts/<int:number>/watch", watches.rollout_changes, raw=LINES),
    Route("GET", "/v1/rollouts/<int:number>/members", rollouts.members),
    Route("POST", "/v1/rollouts/<int:number>/pause", rollouts.pause, on=etags.ON_ROLLOUT),
    Route("POST", "/v1/rollouts/<int:number>/resume", rollouts.resume, on=etags.ON_ROLLOUT),
    Route("POST", "/v1/rollouts/<int:number>/undo", rollouts.undo, on=etags.ON_ROLLOUT),
    Route("GET", "/v1/inventory", declared.overview),
    Route("GET", "/v1/inventory/machines", declared.listed),
    Route("POST", "/v1/inventory/machines", declared.imported, largest=declared.LARGEST_LIST),
    Route("GET", "/v1/inventory/machines/<name>", declared.shown, tag=etags.DECLARED),
    Route("PUT", "/v1/inventory/machines/<name>", declared.put, on=etags.ON_DECLARED, needs=EITHER),
    Route("DELETE", "/v1/inventory/machines/<name>", declared.removed, on=etags.ON_DECLARED, needs=EITHER[:1]),
    Route("POST", "/v1/inventory/machines/<name>/rename", renaming.renamed, on=etags.ON_DECLARED),
    Route("POST", "/v1/discovered/<mac>/declare", declared.declare, refuses=(412,)),
    Route("GET", "/v1/inventory/diff", inventory.compared, tag=etags.INVENTORY, refuses=(422,)),
    Route("POST", "/v1/inventory/accept", inventory.accepted, on=etags.ON_INVENTORY),
    Route("GET", "/v1/inventory/<kind:kind>", inventory.listed),
    Route("GET", "/v1/inventory/<kind:kind>/<name>", inventory.shown, tag=etags.ITEM),
    Route("PUT", "/v1/inventory/<kind:kind>/<name>", inventory.put, on=etags.ON_ITEM, needs=EITHER),
    Route("DELETE", "/v1/inventory/<kind:kind>/<name>", inventory.removed, on=etags.ON_ITEM, needs=EITHER[:1]),
    Route("GET", "/v1/enrolments", enrolments.listed),
    Route("POST", "/v1/enrolments", enrolments.imported, takes=enrolments.LIST, largest=enrolments.LARGEST_LIST),
    Route("GET", "/v1/machines/<name>/enrolment", enrolments.shown, tag=etags.ENROLMENT),
    Route("POST", "/v1/machines/<name>/enroll", enrolments.enroll, on=etags.ON_ENROLMENT),
    Route("POST", "/v1/machines/<name>/approve", enrolments.approve, on=etags.ON_ENROLMENT),
    Route("POST", "/v1/machines/<name>/release", enrolments.release, on=etags.ON_ENROLMENT),
    Route("POST", "/v1/machines/<name>/replace", enrolments.replace, on=etags.ON_ENROLMENT),
    Route("POST", "/v1/machines/<name>/retire", enrolments.retire, on=etags.ON_ENROLMENT),
    Route("GET", "/v1/freeze", freeze.shown, tag=etags.FREEZE),
    Route("POST", "/v1/freeze", freeze.frozen, on=etags.ON_FREEZE),
    Route("POST", "/v1/unfreeze", freeze.ended, on=etags.ON_FREEZE),
    Route("GET", "/v1/intents", intents.listed),
    Route("GET", "/v1/machines/<name>/intents", intents.shown, tag=etags.INTENTS),
    Route("POST", "/v1/machines/<name>/hold", intents.hold, on=etags.ON_INTENTS),
    Route("POST", "/v1/machines/<name>/unhold", intents.unhold, on=etags.ON_INTENTS),
    Route("POST", "/v1/machines/<name>/quarantine", intents.quarantine, on=etags.ON_INTENTS),
    Route("POST", "/v1/machines/<name>/readmit", intents.readmit, on=etags.ON_INTENTS),
    Route("POST", "/v1/machines/<name>/accept", intents.accept, on=etags.ON_INTENTS),
    Route("POST", "/v1/machines/<name>/unaccept", intents.unaccept, on=etags.ON_INTENTS),
    Route("GET", "/v1/drains", drains.listed),
    Route("GET", "/v1/drains/watch", watches.drain_changes, raw=LINES),
    Route("GET", "/v1/machines/<name>/drains", drains.shown, tag=etags.DRAINS),
    Route("POST", "/v1/machines/<name>/drain", drains.drain, on=etags.ON_DRAINS),
    Route("POST", "/v1/machines/<name>/reboot", drains.reboot, on=etags.ON_DRAINS),
    Route("POST", "/v1/machines/<name>/undrain", drains.undrain, on=etags.ON_DRAINS),
    Route("POST", "/v1/machines/<name>/delete-node", delete_node.delete_node, on=etags.ON_MACHINE),
    Route("GET", "/v1/remedies", remedies.listed),
    Route("GET", "/v1/remedies/<int:number>", remedies.shown),
    Route("GET", "/v1/remedies/pause", remedies.paused, tag=etags.PAUSE),
    Route("POST", "/v1/remedies/pause", remedies.pause, on=etags.ON_PAUSE),
    Route("POST", "/v1/remedies/resume", remedies.resume, on=etags.ON_PAUSE),
    Route("GET", "/v1/tokens", join_tokens.listed),
    Route("POST", "/v1/tokens", join_tokens.created),
    Route("DELETE", "/v1/tokens/<token_id>", join_tokens.revoked),
)
"""Everything that there is to ask for: docs/http-management.md."""


_LARGEST = {(route.method, route.path): route.largest for route in ROUTES if route.largest is not None}


@cache
def api_document() -> Schema:
    """The API's document (OpenAPI 3.1)."""
    return document(ROUTES)


def create_app(dependencies: Dependencies) -> Flask:
    """The application; every request finds `dependencies` in it, and but for `OPEN` wants an operator."""
    app = Flask("netboot.web", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY
    app.url_map.merge_slashes = False  # it would send whoever writes `//`, with what they send, to what `Host` says
    app.url_map.converters.update({"int": inputs.Number, "kind": inventory.KindInPath})
    app.extensions[EXTENSION] = dependencies
    errors.install(app)
    asked, refused = request_metrics.Requests(), refusals.Refusals()

    def counted(of: Flask) -> None:
        request_metrics.install(of, asked)
        refusals.install(of, refused)

    counted(app)
    for route in ROUTES:
        app.add_url_rule(route.path, f"{route.method} {route.path}", _bound(route), methods=[route.method])
    app.before_request(_let_in)
    idempotency.install(app)
    app.after_request(operators.refused)
    app.after_request(_as_it_is)
    page.install(app, dependencies.clock.now_ms, dependencies.logins, counted)
    return app


def _bound(route: Route) -> View:
    if route.method != "GET":
        return bound(route.view, preconditions.acted_on(route.on, route.needs, route.named))
    return bound(route.view, preconditions.looked_at(route.tag)) if route.tagged else bound(route.view)


def _as_it_is(response: Response) -> Response:
    """A browser takes an answer for what it says to be, and for nothing that it could be run as."""
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _let_in() -> None:
    unguarded = {route.path for route in OPEN}
    if request.url_rule is not None and request.url_rule.rule not in unguarded:
        roles.require(operators.operator(), request.method, request.url_rule.rule)
        request.max_content_length = _LARGEST.get((request.method, request.url_rule.rule), LARGEST_BODY)
