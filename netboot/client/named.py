"""Files and folders that somebody names to be read: which of the outcomes it is where one cannot be, and the words."""

import ssl
from pathlib import Path

from images.values import files
from netboot.client.errors import ClientError, FailedError, NotAllowedError, UnknownError


def unreadable(path: Path, error: OSError, remedy: str, kind: str = "") -> ClientError:
    """What is raised for a file that cannot be read. `remedy`: how another is named; `kind`: like `token file`."""
    what = f"{kind} {path}".lstrip()
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return UnknownError(f"there is no {what}", remedy)
    message = f"{what} cannot be read: {error.strerror or error}"
    if isinstance(error, PermissionError):
        return NotAllowedError(message, f"run this as an account that may read it, or {remedy}")
    return FailedError(message, remedy)


def check_authorities(path: Path, remedy: str) -> None:
    """See that certificates can be believed by a file, before anybody is asked.

    Raises:
        ClientError: it cannot be read, or has no certificate.
    """
    kind = "file of authorities"
    try:
        text = files.small(path).decode("ascii", "ignore")
    except OSError as error:
        raise unreadable(path, error, remedy, kind) from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise FailedError(f"{kind} {path} has no certificate in PEM", remedy) from None
