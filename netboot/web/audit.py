"""Who did what: one line of the log for each act of an operator that changes who may join. No secret is in it."""

import logging

from flask import request

from netboot.web.auth import operator

log = logging.getLogger("netboot.audit")


def audit(act: str, **facts: object) -> None:
    """Write it down; call it when the act is done."""
    who = operator()
    fields = {"act": act, "operator": who.who, "token": who.fingerprint, "peer": request.remote_addr, **facts}
    log.info("audit", extra={"fields": fields})
