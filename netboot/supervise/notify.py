"""What a service manager is told (sd_notify(3)): ready, stopping, how it is, and that the supervisor goes on."""

import os
import socket
import time
from collections.abc import MutableMapping
from contextlib import suppress

VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
"""Meant for the supervisor alone: gunicorn would answer to them as well."""


class Manager:
    """The service manager that started us, if one did that wants to be told. Telling it never blocks or fails."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        """Take what is ours out of `environment`, so that no process of ours inherits it."""
        started = environment.get("SYSTEMD_EXEC_PID") == str(os.getpid())
        address, usec, pid = (environment.pop(name, "") for name in VARIABLES)
        self._address = "\0" + address[1:] if address.startswith("@") else address
        watched = usec.isdecimal() and pid in ("", str(os.getpid()))
        self._every = int(usec) / 4e6 if watched else float("inf")
        self._beaten = float("-inf")
        self._deaf = started and not address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) if address else None

    def unheard(self) -> str:
        """What systemd, having started us, will not hear, in words; empty: nothing, or it is another who did.

        SYSTEMD_EXEC_PID is the process that it started for the unit (systemd.exec(5)).
        """
        if not self._deaf:
            return ""
        return (
            "systemd keeps this service by a unit of an earlier version (no Type=notify): a supervisor that hangs is "
            "not replaced; install deploy/netboot.service of this version"
        )

    def tell(self, *assignments: str) -> None:
        """Such as `READY=1`, `STATUS=…`, `STOPPING=1`."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.sendto("\n".join(assignments).encode(), socket.MSG_DONTWAIT, self._address)

    def close(self) -> None:
        """Tell it nothing more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def beat(self) -> None:
        """Tell it that the supervisor's loop goes round, often enough for its watchdog."""
        now = time.monotonic()
        if now - self._beaten >= self._every:
            self._beaten = now
            self.tell("WATCHDOG=1")
