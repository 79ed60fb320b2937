"""Faults of the section `management`: tokens, the certificate, and whether tokens cross a network unencrypted."""

import stat
from collections.abc import Iterator
from pathlib import Path

from images.values.strict import Fault
from netboot.config_management import Management
from netboot.lifecycle.errors import NoTokensError
from netboot.stores import access_tokens


def faults(management: Management, file: Path) -> Iterator[Fault]:
    """All of them. `file`: the configuration."""
    named = 0
    try:
        named = len(access_tokens.read(management.tokens))
        yield from _mode(management.tokens, "the file of tokens") if management.tokens.exists() else ()
    except (NoTokensError, OSError) as error:
        yield Fault(str(management.tokens), 0, "", str(error))
    if not named or management.token_file.exists():
        yield from _token_file(management.token_file)
    if management.exposed:
        remedy = (
            "give it `management.tls`, or listen on loopback behind a proxy that brings TLS; or say "
            "`management.plain_http: true`, where that network is yours alone"
        )
        message = f"operators' tokens would cross a network unencrypted at {management.listen}: {remedy}"
        yield Fault(str(file), 0, "management.listen", message)


def _token_file(path: Path) -> Iterator[Fault]:
    remedy = f"make one with `(umask 077; openssl rand -hex 32 > {path})`"
    try:
        length = len(path.read_text().strip())
        yield from _mode(path, "the operator's token")
    except (OSError, UnicodeDecodeError):
        yield Fault(str(path), 0, "", f"the operator's token cannot be read: {remedy}")
        return
    if length < 16:
        yield Fault(str(path), 0, "", f"the operator's token has fewer than 16 characters: {remedy}")


def _mode(path: Path, what: str) -> Iterator[Fault]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield Fault(str(path), 0, "", f"others can read {what} (mode {mode:04o}): `chmod 600 {path}`")
