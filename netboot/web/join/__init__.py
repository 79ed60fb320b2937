"""Join's listener: hello, attest, and its own health (Flask, TLS, processes of its own)."""

from flask import Flask

from netboot.join.messages import LONGEST_ATTEST
from netboot.web import errors
from netboot.web.join import exchange, health
from netboot.web.join.parts import EXTENSION, Desk


def create_app(desk: Desk) -> Flask:
    """The application; every request finds `desk` in it."""
    app = Flask("netboot.web.join", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LONGEST_ATTEST
    app.extensions[EXTENSION] = desk
    errors.install(app, "docs/http-join.md")
    for module in (health, exchange):
        app.register_blueprint(module.blueprint)
    return app
