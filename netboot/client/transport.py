"""HTTP to the service, and why it cannot be had: whose word is taken for its certificate, through which proxy."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    import requests

_EXPIRED, _NOT_YET = 10, 9
_UNKNOWN = frozenset({2, 18, 19, 20, 21})
_NAMES = frozenset({62, 64})
"""Numbers of `X509_V_ERR_…` in OpenSSL's x509_vfy.h: HOSTNAME_MISMATCH, IP_ADDRESS_MISMATCH."""


def session(authority: Path | None, proxy: str | None = None) -> "requests.Session":
    """A session that believes certificates by `authority`, or where that is None by what the system trusts; `proxy`: by
    way of whom, for https alone, so that it sees no token."""
    import requests

    made = requests.Session()
    made.trust_env = False  # neither a proxy nor ~/.netrc has a say in where the token goes
    if authority is not None:
        made.verify = str(authority)
    if proxy is not None:
        made.proxies = {"https": proxy}
    return made


def address(server: str) -> str:
    """The address of a service, without a slash at its end.

    Raises:
        ValueError: it is none.
    """
    if not server.startswith(("http://", "https://")):
        remedy = "write it whole, like https://netboot.example:8081"
        raise ValueError(f"{server!r} is no address of the service, which begins with http:// or https://: {remedy}")
    return server.rstrip("/")


def why_not(error: Exception, server: str) -> tuple[str, str]:
    """Why `server` could not be asked, in words, and what to do; that is "" where nobody can tell."""
    import ssl

    import requests

    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _not_believed(cause)
    text = str(error)
    if "WRONG_VERSION_NUMBER" in text or "RECORD_LAYER_FAILURE" in text or "HTTP_REQUEST" in text:
        return "it does not speak TLS", "ask it as http://, or see that a proxy with TLS is where the address says"
    if ("CERTIFICATE" in text and "locate" in text) or "invalid path" in text:
        return "the file of authorities cannot be read", "see --certificate-authority"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy does not let us through", "see $NETBOOT_PROXY, or `proxy` of the context"
    if isinstance(error, requests.exceptions.Timeout):
        return "it does not answer in time", ""
    if "Connection refused" in text:
        return "nothing listens there", ""
    if server.startswith("http://") and any(map(_no_http, causes)):
        return "it does not answer in plain HTTP", "where it speaks TLS, ask it as https://"
    return str(causes[-1]).split(": ", 1)[-1][:200], ""


def _no_http(cause: BaseException) -> bool:
    """What a listener that wants TLS makes of a request without it."""
    import http.client

    return isinstance(cause, (http.client.BadStatusLine, ConnectionResetError))


def _not_believed(error: "ssl.SSLCertVerificationError") -> tuple[str, str]:
    code = error.verify_code
    if code == _EXPIRED:
        return "its certificate has expired", "`netboot config management-certificate` makes it anew, at the service"
    if code == _NOT_YET:
        return "its certificate is not valid yet", "see the clocks of this machine and of the service"
    if code in _NAMES:
        said = error.verify_message.removeprefix("Hostname mismatch, ").removeprefix("IP address mismatch, ")
        return f"its certificate is for another name: {said}", "use a name that the certificate has"
    if code in _UNKNOWN:
        remedy = "name the authority that signed it: --certificate-authority, or `netboot context add`"
        return "its certificate is by an authority that is not known here", remedy
    return f"its certificate is not believed: {error.verify_message}", "see the certificate of the service"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """It and what is below it; libraries of HTTP hand that on in three ways."""
    seen: list[BaseException] = []
    todo: list[Any] = [error]
    while todo:
        each = todo.pop(0)
        if isinstance(each, BaseException) and each not in seen:
            seen.append(each)
            yield each
            todo += [each.__cause__, each.__context__, getattr(each, "reason", None), *each.args]


def asked_twice(ask: Callable[[], Any]) -> Any:
    """What is answered; where the connection broke, to the same once more: by its key it is not done twice."""
    import requests

    try:
        return ask()
    except requests.exceptions.ConnectTimeout:
        raise
    except requests.exceptions.ConnectionError:
        return ask()
