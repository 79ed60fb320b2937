"""Asking the provisioning listener whether it is ready, as a machine would reach it: over its socket."""

import http.client
import json
import threading
import time
from collections.abc import Callable

from netboot.addresses import Address
from netboot.status import Condition

TIMEOUT_SECONDS = 2.0
KEPT_SECONDS = 1.0
"""An answer serves everybody who asks within this time."""


class Probe:
    """Callable; never raises. Safe for threads."""

    def __init__(self, address: Address, monotonic: Callable[[], float] = time.monotonic) -> None:
        host = address.host
        if address.wildcard:
            host = "::1" if ":" in host else "127.0.0.1"
        self._address, self._monotonic = Address(host, address.port), monotonic
        self._lock = threading.Lock()
        self._at, self._answer = float("-inf"), Condition(ok=False, message="not asked yet")

    def __call__(self) -> Condition:
        """Whether it is ready, and what it says of it."""
        with self._lock:
            if self._monotonic() - self._at > KEPT_SECONDS:
                self._answer = self._ask()
                self._at = self._monotonic()
            return self._answer

    def _ask(self) -> Condition:
        connection = http.client.HTTPConnection(self._address.host, self._address.port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            body = json.loads(answer.read(65536))
            problems = body.get("problems") or []
            return Condition(ok=answer.status == 200, message="; ".join(map(str, problems)) or "answers")
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as error:
            return Condition(ok=False, message=f"{self._address} does not answer: {error or type(error).__name__}")
        finally:
            connection.close()
