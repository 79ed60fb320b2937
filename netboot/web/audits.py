"""`GET /v1/audit?machine=&limit=&before=`: who did what, the newest first."""

from flask import Response, jsonify, request

from netboot.web import inputs, render
from netboot.web.dependencies import dependencies


def listed() -> Response:
    """Acts, and what was refused; `next`: where the older ones begin, for `before`, or null."""
    inputs.only(("machine", "limit", "before"))
    limit, before = inputs.whole("limit", 50, 1, 1_000), inputs.whole("before", 0, 1, 2**62)
    found = dependencies().audit.records(request.args.get("machine"), before or None, limit)
    records = [{"id": number, **render.plain(record)} for number, record in found]
    return jsonify({"audit": records, "next": found[-1][0] if len(found) == limit else None})
