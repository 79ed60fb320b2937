"""The audit log of what netboot does by itself; of what operators do, it is written where they ask."""

import logging

from netboot.lifecycle.remedies import WHO

log = logging.getLogger("netboot.audit")


def audit(act: str, **facts: object) -> None:
    """One line for each act, once it is done."""
    log.info("audit", extra={"fields": {"act": act, "operator": WHO, **facts}})
