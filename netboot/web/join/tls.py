"""The certificate of join's listener: read once, and again when its files changed."""

import logging
import ssl
import threading
from pathlib import Path

from netboot.lifecycle.errors import StateUnavailableError

log = logging.getLogger(__name__)


class Certificate:
    """`context()` is cheap. A new certificate that cannot be used leaves the one before in force."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._paths = (certificate, key)
        self._lock = threading.Lock()
        self._seen: object = None
        self._context: ssl.SSLContext | None = None
        self.problem: str | None = None
        """Why the files as they are now are not in force; None: they are."""

    def context(self) -> ssl.SSLContext:
        """The context in force.

        Raises:
            StateUnavailableError: there is none that can be used, and never was.
        """
        with self._lock:
            seen = tuple(map(_look, self._paths))
            if self._context is None or seen != self._seen:
                self._read(seen)
            assert self._context is not None
            return self._context

    def _read(self, seen: object) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        try:
            context.load_cert_chain(*self._paths)
        except (OSError, ssl.SSLError) as error:
            why = error.strerror or error.reason if isinstance(error, ssl.SSLError) else error.strerror
            self.problem = (
                f"the certificate {self._paths[0]} and its key {self._paths[1]} cannot be used: {why}; "
                "`netboot config join-certificate` makes them anew"
            )
            if self._context is None:
                raise StateUnavailableError(self.problem) from None
            log.error("%s; the one before stays in force", self.problem)  # noqa: TRY400 - the words are all there is
            self._seen = seen
            return
        self._context, self._seen, self.problem = context, seen, None


def _look(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
