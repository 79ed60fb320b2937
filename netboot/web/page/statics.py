"""Scripts and styles under addresses that say their content, so that nobody is shown those of another version."""

import hashlib
from pathlib import Path
from typing import Any

from flask import Flask, Response, request

VERSION = "Netboot-Page"
"""Header of what an open page asks: `Statics.version` of when it was loaded."""
DIGITS = 16


class Statics:
    """The files of an application. `version`: of all of them."""

    def __init__(self, page: Flask) -> None:
        folder = Path(page.static_folder or "")
        self._digests = {each.name: _digest(each.read_bytes()) for each in sorted(folder.iterdir()) if each.is_file()}
        self.version = _digest("".join(self._digests.values()).encode())
        page.url_defaults(self._addressed)
        page.after_request(self._kept)

    def refreshed(self) -> Response | None:
        """For a page that was loaded before an update: its scripts would not fit what it asks for."""
        exchanged = "HX-Request" in request.headers
        if exchanged and request.headers.get(VERSION, self.version) != self.version:
            return Response(status=204, headers={"HX-Refresh": "true"})
        return None

    def _addressed(self, endpoint: str, values: dict[str, Any]) -> None:
        if endpoint == "static" and values.get("filename") in self._digests:
            values["v"] = self._digests[values["filename"]]

    def _kept(self, response: Response) -> Response:
        if request.endpoint == "static":
            name = str((request.view_args or {}).get("filename"))
            asked = request.args.get("v", "")
            ours = response.status_code < 400 and asked == self._digests.get(name)
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if ours else "no-cache"
        return response


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]
