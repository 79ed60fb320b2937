"""Who asks, and what they did: operators, by the bearer token that everything but health and metrics wants."""

import logging

from flask import g, request

from netboot.web.dependencies import dependencies
from netboot.web.tokens import Operator

log = logging.getLogger("netboot.audit")


def operator() -> Operator:
    """Who sent this request. Asked once a request: what was begun under a token that is taken back meanwhile is still
    done, answered and written down as that operator's.

    Raises:
        NotAuthenticatedError: no operator did. NoTokensError: nobody can be let in at the moment.
    """
    if "operator" not in g:
        g.operator = dependencies().tokens.operator(request.headers.get("Authorization"))
    who = g.operator
    assert isinstance(who, Operator)
    return who


def audit(act: str, **facts: object) -> None:
    """One line of the log for each act that changes who may join, once it is done. No secret is in it."""
    who = operator()
    fields = {"act": act, "operator": who.who, "token": who.fingerprint, "peer": request.remote_addr, **facts}
    log.info("audit", extra={"fields": fields})
