"""Asking the service what to expect, and telling it what was found."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ..agent.errors import AgentError, RefusedError
from ..agent.files import put, small
from ..agent.net import Server
from ..agent.settings import RUN, Settings
from .expected import CLASS, Expected, read_expected
from .machine import Machine, Offset
from .runner import bounded

ASK_SECONDS = 60.0
KEPT = RUN / "health-expected.json"


def ask(settings: Settings, root: Path) -> tuple[Expected, Offset | None]:
    """What the class should have, and how far our clock is off; where nobody answers, what was said last."""
    answered = bounded(Machine(root), ASK_SECONDS, lambda: _ask_service(settings))
    if answered is None:
        kept = small(root / KEPT, 64 * 1024)
        if kept is None:
            return Expected(), None
        try:
            return read_expected(json.loads(kept), "kept"), None
        except ValueError:
            return Expected(), None
    put(root / KEPT, json.dumps(answered["expected"]).encode(), 0o644)
    if answered["class"] is None:
        (root / CLASS).unlink(missing_ok=True)
    else:
        put(root / CLASS, json.dumps(answered["class"]).encode(), 0o644)
    return read_expected(answered["expected"], "service"), Offset(answered["ahead_ms"], answered["within_ms"])


def _ask_service(settings: Settings) -> dict[str, Any] | None:
    query = urlencode({"machine": settings.name, "mac": settings.mac})
    server = Server(settings.report, seconds=ASK_SECONDS / 2)
    before, started = time.time(), time.monotonic()
    try:
        answer = server.call("GET", f"/v1/boots/{settings.boot}/health?{query}")
    except AgentError:
        return None
    took = time.monotonic() - started
    if not isinstance(answer, dict) or not isinstance(answer.get("expected"), dict):
        return None
    now_ms = answer.get("now_ms")
    if type(now_ms) is not int or not 0 <= now_ms < 2**53:
        return None
    ahead = before * 1000 + took * 500 - now_ms
    hardware = answer.get("class") if isinstance(answer.get("class"), dict) else None
    told = {"expected": answer["expected"], "class": hardware}
    return {**told, "ahead_ms": round(ahead), "within_ms": round(took * 500) + 1}


def tell(settings: Settings, document: dict[str, Any], pause: Callable[[float], object] = time.sleep) -> str:
    """Send it; "" when it is durable there, else why it is not, in words. Three tries: the next run has newer news."""
    reason = ""
    for wait in (2, 5, 0):
        try:
            Server(settings.report, seconds=15).call("POST", f"/v1/boots/{settings.boot}/health", document)
        except RefusedError as error:
            reason = str(error)
            if error.status < 500 and error.status not in (408, 429):
                break
        except AgentError as error:
            reason = str(error)
        else:
            return ""
        pause(wait)
    return reason
