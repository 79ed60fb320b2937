"""The management server: the operators' API, health and metrics (Flask)."""

from collections.abc import Callable

from flask import Flask, Response, request

from netboot.web import (
    audits,
    boots,
    channels,
    delete_node,
    drains,
    drift,
    enrolments,
    errors,
    events,
    fleet,
    freeze,
    images,
    intents,
    inventory,
    join_tokens,
    logins,
    machines,
    metrics,
    node_health,
    operators,
    page,
    proofs,
    readiness,
    remedies,
    request_ids,
    roles,
    rollouts,
    watch,
)
from netboot.web.dependencies import EXTENSION, Dependencies

LARGEST_BODY = 64 * 1024
"""Bytes; the largest honest body is a channel and a digest."""

OPEN: tuple[tuple[str, str, Callable[..., Response]], ...] = (
    ("GET", "/healthz", readiness.healthy),
    ("GET", "/readyz", readiness.ready),
    ("GET", "/metrics", metrics.metrics),
    ("GET", "/v1/login", logins.offered),
)
"""What anybody may ask."""

ROUTES: tuple[tuple[str, str, Callable[..., Response]], ...] = (
    *OPEN,
    ("GET", "/v1/whoami", logins.whoami),
    ("GET", "/v1/audit", audits.listed),
    ("GET", "/v1/fleet", fleet.summary),
    ("GET", "/v1/fleet/machines", fleet.machines),
    ("GET", "/v1/machines", machines.listed),
    ("GET", "/v1/machines/<name>", machines.shown),
    ("GET", "/v1/machines/<name>/explain", machines.explained),
    ("GET", "/v1/machines/<name>/health", node_health.shown),
    ("GET", "/v1/machines/<name>/events", events.listed),
    ("GET", "/v1/machines/<name>/events/watch", events.watched),
    ("GET", "/v1/explain", machines.claim_explained),
    ("GET", "/v1/discovered", boots.discovered),
    ("GET", "/v1/boots", boots.listed),
    ("GET", "/v1/boots/<boot>", boots.shown),
    ("GET", "/v1/boots/<boot>/proof", proofs.shown),
    ("GET", "/v1/boots/watch", watch.watched),
    ("GET", "/v1/channels", channels.listed),
    ("GET", "/v1/channels/<name>", channels.shown),
    ("PUT", "/v1/channels/<name>", channels.moved),
    ("GET", "/v1/images/<digest>/uses", images.used),
    ("GET", "/v1/drift", drift.shown),
    ("GET", "/v1/rollouts", rollouts.listed),
    ("POST", "/v1/rollouts", rollouts.started),
    ("GET", "/v1/rollouts/<int:number>", rollouts.shown),
    ("POST", "/v1/rollouts/<int:number>/pause", rollouts.pause),
    ("POST", "/v1/rollouts/<int:number>/resume", rollouts.resume),
    ("POST", "/v1/rollouts/<int:number>/undo", rollouts.undo),
    ("GET", "/v1/inventory/diff", inventory.compared),
    ("POST", "/v1/inventory/accept", inventory.accepted),
    ("GET", "/v1/enrolments", enrolments.listed),
    ("POST", "/v1/enrolments", enrolments.imported),
    ("GET", "/v1/machines/<name>/enrolment", enrolments.shown),
    ("POST", "/v1/machines/<name>/enroll", enrolments.enroll),
    ("POST", "/v1/machines/<name>/approve", enrolments.approve),
    ("POST", "/v1/machines/<name>/release", enrolments.release),
    ("POST", "/v1/machines/<name>/replace", enrolments.replace),
    ("POST", "/v1/machines/<name>/retire", enrolments.retire),
    ("GET", "/v1/freeze", freeze.shown),
    ("POST", "/v1/freeze", freeze.frozen),
    ("POST", "/v1/unfreeze", freeze.ended),
    ("GET", "/v1/intents", intents.listed),
    ("GET", "/v1/machines/<name>/intents", intents.shown),
    ("POST", "/v1/machines/<name>/hold", intents.hold),
    ("POST", "/v1/machines/<name>/unhold", intents.unhold),
    ("POST", "/v1/machines/<name>/quarantine", intents.quarantine),
    ("POST", "/v1/machines/<name>/readmit", intents.readmit),
    ("POST", "/v1/machines/<name>/accept", intents.accept),
    ("POST", "/v1/machines/<name>/unaccept", intents.unaccept),
    ("GET", "/v1/drains", drains.listed),
    ("GET", "/v1/machines/<name>/drains", drains.shown),
    ("POST", "/v1/machines/<name>/drain", drains.drain),
    ("POST", "/v1/machines/<name>/reboot", drains.reboot),
    ("POST", "/v1/machines/<name>/undrain", drains.undrain),
    ("POST", "/v1/machines/<name>/delete-node", delete_node.delete_node),
    ("GET", "/v1/remedies", remedies.listed),
    ("GET", "/v1/remedies/<int:number>", remedies.shown),
    ("POST", "/v1/remedies/pause", remedies.pause),
    ("POST", "/v1/remedies/resume", remedies.resume),
    ("GET", "/v1/tokens", join_tokens.listed),
    ("POST", "/v1/tokens", join_tokens.created),
    ("DELETE", "/v1/tokens/<token_id>", join_tokens.revoked),
)
"""Everything that there is to ask for: docs/http-management.md."""


def create_app(dependencies: Dependencies) -> Flask:
    """The application; every request finds `dependencies` in it, and but for `OPEN` wants an operator."""
    app = Flask("netboot.web", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY
    app.extensions[EXTENSION] = dependencies
    errors.install(app)
    request_ids.install(app)
    for method, path, view in ROUTES:
        app.add_url_rule(path, f"{method} {path}", view, methods=[method])
    app.before_request(_let_in)
    app.after_request(operators.refused)
    page.install(app, dependencies.clock.now_ms, dependencies.logins)
    return app


def _let_in() -> None:
    unguarded = {path for _, path, _ in OPEN}
    if request.url_rule is not None and request.url_rule.rule not in unguarded:
        roles.require(operators.operator(), request.method, request.url_rule.rule)
