"""The management server: the operators' API, health and metrics (Flask)."""

from flask import Flask

from netboot.web import (
    boots,
    channels,
    discovered,
    enrolments,
    errors,
    explain,
    health,
    join_tokens,
    machines,
    metrics,
    node_health,
    watch,
)
from netboot.web.parts import EXTENSION, Parts

LARGEST_BODY = 64 * 1024
"""Bytes; the largest honest body is a channel and a digest."""


def create_app(parts: Parts) -> Flask:
    """The application; every request finds `parts` in it."""
    app = Flask("netboot.web", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY
    app.extensions[EXTENSION] = parts
    errors.install(app)
    plain = (health, metrics, machines, node_health, discovered, explain, boots, watch, channels)
    for module in (*plain, enrolments, join_tokens):
        app.register_blueprint(module.blueprint)
    return app
