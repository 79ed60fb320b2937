"""The control plane: the operators' API, health and metrics (Flask)."""

from flask import Flask

from netboot.web import (
    boots,
    channels,
    discovered,
    enrolments,
    errors,
    explain,
    join_tokens,
    machines,
    metrics,
    node_health,
    readiness,
    watch,
)
from netboot.web.dependencies import EXTENSION, Dependencies

LARGEST_BODY = 64 * 1024
"""Bytes; the largest honest body is a channel and a digest."""


def create_app(own: Dependencies) -> Flask:
    """The application; every request finds `own` in it (`dependencies`)."""
    app = Flask("netboot.web", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY
    app.extensions[EXTENSION] = own
    errors.install(app)
    plain = (readiness, metrics, machines, node_health, discovered, explain, boots, watch, channels)
    for module in (*plain, enrolments, join_tokens):
        app.register_blueprint(module.blueprint)
    return app
