"""The certificate of a listener: read once, and again when its files changed."""

import ssl
from pathlib import Path

from cryptography import x509

from netboot import credentials
from netboot.lifecycle.errors import StateUnavailableError
from netboot.reread import Reread


class Certificate:
    """The certificate in force, with its key: files that change together, one after the other. `remedy`: what makes
    them anew."""

    def __init__(self, certificate: Path, key: Path, remedy: str = "netboot config join-certificate") -> None:
        self._paths, self._remedy = (certificate, key), remedy
        self._files = Reread("certificate", lambda: self._paths, self._read, StateUnavailableError)

    @property
    def problem(self) -> str | None:
        """Why the files, as of the last look, are not in force; None: they are."""
        return self._files.problem

    @property
    def expires_ms(self) -> int | None:
        """When the one in force expires, milliseconds since 1970; None: there is none, and never was."""
        return self._files.value[1] if self._files.value is not None else None

    def context(self) -> ssl.SSLContext:
        """The context in force; cheap where nothing changed.

        Raises:
            StateUnavailableError: there is none that can be used, and never was.
        """
        return self._files.current()[0]

    def _read(self) -> tuple[ssl.SSLContext, int]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        try:
            with credentials.named(self._paths[0]) as certificate, credentials.named(self._paths[1]) as key:
                context.load_cert_chain(certificate, key)
                served = x509.load_pem_x509_certificates(certificate.read_bytes())[0]
        except (OSError, ssl.SSLError) as error:
            why = error.strerror or error.reason if isinstance(error, ssl.SSLError) else error.strerror
            raise StateUnavailableError(
                f"the certificate {self._paths[0]} and its key {self._paths[1]} cannot be used: {why}; "
                f"`{self._remedy}` makes them anew"
            ) from None
        return context, int(served.not_valid_after_utc.timestamp() * 1000)
