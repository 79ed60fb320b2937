"""Which service is meant: where it is, whose token is sent, by which authority its certificate is believed."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from images.values import files
from netboot.client.errors import FailedError, NotAllowedError
from netboot.client.named import unreadable
from netboot.client.transport import address

if TYPE_CHECKING:
    from netboot.client.contexts import Context


@dataclass(frozen=True, slots=True)
class TokenFile:
    """The first token of a file, read whenever it is sent, so that another can take its place."""

    path: Path

    def __call__(self) -> str:
        """The token.

        Raises:
            UnknownError: the file is not there. NotAllowedError: it may not be read. FailedError: it holds none.
        """
        try:
            lines = [line.strip() for line in files.small(self.path).decode("ascii", "replace").splitlines()]
        except OSError as error:
            raise unreadable(self.path, error, "name your own with --token-file", "token file") from None
        tokens = [line for line in lines if line and not line.startswith("#")]
        if not tokens or not tokens[0].isascii():
            raise FailedError(f"token file {self.path} holds no token", "ask the service's operator for one")
        return tokens[0]


@dataclass(frozen=True, slots=True)
class LoginToken:
    """That of the login of a context, renewed where it ends."""

    context: str

    def __call__(self) -> str:
        """The token.

        Raises:
            NotAllowedError: the login has ended. CannotTellError: the issuer does not answer.
        """
        from netboot.client import contexts, renewal  # what speaks to issuers is large: only where somebody logged in

        kept = contexts.read().named(self.context)
        if kept is None or kept.login is None:
            raise NotAllowedError(f"context {self.context} has no login", renewal.AGAIN)
        return renewal.token(self.context, kept.login)


@dataclass(frozen=True, slots=True)
class Service:
    """One service. A token shows nowhere."""

    server: str
    """Like `https://netboot.example:8081`."""
    token: str | Callable[[], str] = field(default="", repr=False)
    """Or what gives it, asked whenever it is sent."""
    hint: str = ""
    """Where the address came from, for messages."""
    authority: Path | None = None
    """PEM, by which its certificate is believed; None: by what the system trusts."""
    proxy: str | None = None
    """By way of whom, for https alone, so that it sees no token."""


class Site(Protocol):
    """What a site's configuration says, for who has one."""

    @property
    def named(self) -> bool:
        """Whether somebody said which configuration: then no context is in use."""
        ...

    def service(self) -> Service:
        """What it says of its own service."""
        ...


def find(
    server: str | None = None,
    token_file: Path | None = None,
    authority: Path | None = None,
    context: str | None = None,
    *,
    site: Site | None = None,
) -> Service:
    """The service that is named here; what is not, the environment says (`NETBOOT_SERVER`, `NETBOOT_TOKEN_FILE`,
    `NETBOOT_CERTIFICATE_AUTHORITY`, `NETBOOT_PROXY`, `NETBOOT_CONTEXT`), then a context: the one that is named, or
    where no server is, the one in use. `site`: where neither says enough.

    Raises:
        UnknownError: there is no such context. NotAllowedError: it has no token. FailedError: nothing says which
        service is meant. ValueError: the address is none. What `site` raises.
    """
    server = server or os.environ.get("NETBOOT_SERVER")
    token_file = token_file or _file("NETBOOT_TOKEN_FILE")
    authority = authority or _file("NETBOOT_CERTIFICATE_AUTHORITY")
    proxy, hint = os.environ.get("NETBOOT_PROXY"), "--server or $NETBOOT_SERVER"
    chosen = _context(context, server is not None or (site is not None and site.named))
    if chosen is not None:
        hint = hint if server is not None else f"context {chosen.name}"
        token = _token(chosen, token_file)
        authority = authority or chosen.certificate_authority
        return Service(address(server or chosen.server), token, hint, authority, proxy or chosen.proxy)
    if server is not None and token_file is not None:
        return Service(address(server), TokenFile(token_file), hint, authority, proxy)
    if site is None:
        raise FailedError("nothing says which service is meant", "name its address and a token file, or a context")
    own = site.service()
    own_token = TokenFile(token_file) if token_file is not None else own.token
    if server is not None:
        return Service(address(server), own_token, hint, authority, proxy)
    return Service(address(own.server), own_token, own.hint, authority or own.authority, proxy)


def _token(context: "Context", token_file: Path | None) -> "TokenFile | LoginToken":
    if token_file is None and context.login is not None:
        return LoginToken(context.name)
    if (file := token_file or context.token_file) is None:
        remedy = "name one with --token-file, or `netboot login`"
        raise NotAllowedError(f"context {context.name} has no token", remedy)
    return TokenFile(file)


def _context(given: str | None, elsewhere: bool) -> "Context | None":
    """The one that is named; or the one in use, where nothing else says which service is meant."""
    named = given or os.environ.get("NETBOOT_CONTEXT")
    if named is None and elsewhere:
        return None
    from netboot.client import contexts  # brings pydantic

    there = contexts.read()
    return contexts.known(there, named) if named is not None else there.named(there.current or "")


def _file(variable: str) -> Path | None:
    named = os.environ.get(variable)
    return Path(named) if named is not None else None
