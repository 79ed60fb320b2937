"""Faults of the section `management`: tokens, the certificate, and whether tokens cross a network unencrypted."""

import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from images.values import files
from images.values.strict import Fault, FaultsError
from netboot import credentials
from netboot.authorities import read_authorities
from netboot.cli import joining
from netboot.cli.ends import in_words
from netboot.config_management import Management, Tls
from netboot.kube.errors import KubeconfigError
from netboot.kube.kubeconfig import read_kubeconfig
from netboot.lifecycle.errors import IssuerUnavailableError, NoTokensError
from netboot.oidc.logins import read_secret
from netboot.stores import access_tokens

SOON = timedelta(days=30)
_RENEW = "`netboot config management-certificate` makes it anew; one of your own is put in its place"


def faults(management: Management, file: Path) -> Iterator[Fault]:
    """All of them. `file`: the configuration."""
    named = 0
    try:
        there = access_tokens.read(management.tokens)
        named = len(there.tokens)
        if there is access_tokens.ABSENT and management.others:
            raise access_tokens.absent(management.tokens)
        yield from _mode(management.tokens, "the file of tokens") if management.tokens.exists() else ()
    except NoTokensError as error:
        yield Fault(str(management.tokens), 0, "", in_words(error))
    except OSError as error:
        yield Fault(str(management.tokens), 0, "", credentials.unread("the file of tokens", error))
    if not named or management.token_file.exists():
        yield from _token_file(management.token_file)
    yield from _others(management, file)
    if management.tls is not None:
        yield from _certificate(management.tls)
    if management.exposed:
        remedy = (
            "give it `management.tls`, or listen on loopback behind a proxy that brings TLS; or say "
            "`management.plain_http: true`, where that network is yours alone"
        )
        message = f"operators' tokens would cross a network unencrypted at {management.listen}: {remedy}"
        yield Fault(str(file), 0, "management.listen", message)


def ending(management: Management) -> Iterator[str]:
    """That the certificate ends within a month."""
    if management.tls is None:
        return
    try:
        end = x509.load_pem_x509_certificate(files.small(management.tls.certificate)).not_valid_after_utc
    except (OSError, ValueError):  # a fault
        return
    now = datetime.now(UTC)
    if now < end <= now + SOON:
        yield f"the operators' certificate {management.tls.certificate} ends at {end:%Y-%m-%d %H:%M} UTC; {_RENEW}"


def _certificate(tls: Tls) -> Iterator[Fault]:
    path = tls.certificate
    try:
        certificate = x509.load_pem_x509_certificate(files.small(path))
    except OSError as error:
        why = f"management.tls.certificate cannot be read: {error.strerror}"
        yield Fault(str(path), 0, "", f"{why}; {credentials.remedy(error, _RENEW)}")
        return
    except ValueError:
        yield Fault(str(path), 0, "", f"management.tls.certificate is not a certificate in PEM; {_RENEW}")
        return
    for fault in joining.validity(certificate, datetime.now(UTC)):
        yield Fault(str(path), 0, "", f"{fault}; {_RENEW}")
    yield from joining.key_faults(tls.key, "management.tls", certificate, _RENEW)


def _others(management: Management, file: Path) -> Iterator[Fault]:
    """Of who else vouches for people."""
    oidc, review = management.oidc, management.token_review
    if oidc is not None and oidc.client_secret_file is not None:
        try:
            read_secret(oidc.client_secret_file)
        except IssuerUnavailableError as error:
            yield Fault(str(file), 0, "", in_words(error))
    if oidc is not None and oidc.certificate_authority is not None:
        try:
            read_authorities(oidc.certificate_authority, "management.oidc.certificate_authority")
        except FaultsError as error:
            yield from error.faults
    if review is not None:
        try:
            read_kubeconfig(review.kubeconfig)
        except KubeconfigError as error:
            yield Fault(str(file), 0, "management.token_review.kubeconfig", in_words(error))


def _token_file(path: Path) -> Iterator[Fault]:
    remedy = "make one with `netboot access token host`"
    try:
        lines = files.small(path).decode().splitlines()
        yield from _mode(path, "the operator's token")
    except FileNotFoundError:
        yield Fault(str(path), 0, "", f"the operator's token is not there: {remedy}")
        return
    except (OSError, UnicodeDecodeError) as error:  # one that is there may be in use: nobody is told to replace it
        why, cure = "it is not UTF-8 text", "put it right there"
        if isinstance(error, OSError):
            why, cure = str(error.strerror or error), credentials.remedy(error, remedy)
        yield Fault(str(path), 0, "", f"the operator's token cannot be read: {why}: {cure}")
        return
    stripped = [(at, line.strip()) for at, line in enumerate(lines, 1)]
    tokens = [(at, len(text)) for at, text in stripped if text and not text.startswith("#")]
    least = f"fewer than {access_tokens.SHORTEST} characters"
    short = [at for at, length in tokens if length < access_tokens.SHORTEST]
    if len(short) == len(tokens):
        yield Fault(str(path), 0, "", f"the operator's token has {least}: {remedy}")
        return
    for at in short:
        cure = "remove the line, write a longer one, or begin it with # where it is a name"
        yield Fault(str(path), at, "", f"has {least}, so it is no token: {cure}")


def _mode(path: Path, what: str) -> Iterator[Fault]:
    if credentials.told_to_others(status := path.stat()):
        mode = stat.S_IMODE(status.st_mode)
        yield Fault(str(path), 0, "", f"others can read {what} (mode {mode:04o}): `chmod 600 {path}`")
