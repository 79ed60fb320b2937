"""Who asks, and what they did: operators, by the bearer token that everything but health and metrics wants."""

import logging

from flask import request

from netboot.web.dependencies import dependencies
from netboot.web.tokens import Operator

log = logging.getLogger("netboot.audit")


def operator() -> Operator:
    """Who sent this request.

    Raises:
        NotAuthenticatedError: no operator did. NoTokensError: nobody can be let in at the moment.
    """
    return dependencies().tokens.operator(request.headers.get("Authorization"))


def audit(act: str, **facts: object) -> None:
    """One line of the log for each act that changes who may join, once it is done. No secret is in it."""
    who = operator()
    fields = {"act": act, "operator": who.who, "token": who.fingerprint, "peer": request.remote_addr, **facts}
    log.info("audit", extra={"fields": fields})
