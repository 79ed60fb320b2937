"""How one logs in here, and as whom one is known."""

from flask import Response, jsonify

from netboot.web import inputs
from netboot.web.dependencies import dependencies
from netboot.web.operators import operator


def offered() -> Response:
    """What `netboot login` has to know before anybody is known: nothing of it is secret."""
    inputs.only(())
    logins = dependencies().logins
    if logins is None:
        return jsonify({"oidc": None})
    oidc = logins.people.oidc
    said = {"issuer": oidc.issuer, "client_id": oidc.for_cli, "scopes": list(oidc.scopes), "audience": oidc.audience}
    return jsonify({"oidc": said})


def whoami() -> Response:
    """Who asks, with which role, and until when."""
    inputs.only(())
    who = operator()
    return jsonify(
        {
            "name": who.who,
            "role": str(who.role),
            "issuer": who.issuer or None,
            "token": who.fingerprint,
            "expires_ms": who.expires_ms,
        }
    )
