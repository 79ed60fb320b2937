"""The section `management` of `netboot.yaml`: the operators' listener, and who may ask there."""

from ipaddress import ip_address
from pathlib import Path
from typing import Self, TypeVar

from pydantic import model_validator

from images.values.strict import Strict
from netboot.addresses import Address, Listen, Url
from netboot.config_access import Oidc, TokenReview

_Section = TypeVar("_Section", bound=Strict)


def under(folder: Path, section: _Section, *names: str) -> _Section:
    """The section with these paths taken from `folder`."""
    paths = {name: getattr(section, name) for name in names}
    return section.model_copy(update={name: folder / path for name, path in paths.items() if path is not None})


class Tls(Strict):
    """The listener's certificate, PEM; read again when its files change."""

    certificate: Path = Path("tls/management.crt")
    """Its own first, then those between it and the authority."""
    key: Path = Path("tls/management.key")
    authority: Path | None = None
    """PEM, one or several: by what the command line of this site believes it; None: by those that the system trusts."""


class Management(Strict):
    """The listener of the operators' API, health and metrics."""

    listen: Listen = Address("127.0.0.1", 8081)
    token_file: Path = Path("secrets/operator.token")
    """Tokens of admins, one a line."""
    tokens: Path = Path("secrets/access.json")
    """Hashes of the tokens that `netboot access token` makes, and who is blocked; it need not be there where nobody
    else vouches for people."""
    tls: Tls | None = None
    plain_http: bool = False
    """No TLS, also where the address is not of this machine alone."""
    url: Url | None = None
    """How the command line and browsers reach it; None: at its listening address."""
    oidc: Oidc | None = None
    token_review: TokenReview | None = None

    @property
    def base_url(self) -> str:
        """Where the command line finds the API: `url`, or the listening address (loopback where that is a wildcard)."""
        if self.url is not None:
            return self.url
        host = self.listen.host
        if self.listen.wildcard:
            host = "::1" if ":" in host else "127.0.0.1"
        return f"{'http' if self.tls is None else 'https'}://{Address(host, self.listen.port)}"

    @property
    def others(self) -> bool:
        """Whether somebody else than this site vouches for people."""
        return self.oidc is not None or self.token_review is not None

    @property
    def exposed(self) -> bool:
        """Whether tokens cross a network unencrypted, and nobody said that they may."""
        host = self.listen.host
        return self.tls is None and not self.plain_http and not ip_address(host.partition("%")[0]).is_loopback

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.tls is not None and self.plain_http:
            raise ValueError("tls and plain_http exclude each other: remove one of them")
        return self

    def resolved(self, folder: Path) -> "Management":
        """The same with relative paths taken from `folder`."""
        tls = self.tls and under(folder, self.tls, "certificate", "key", "authority")
        oidc = self.oidc and under(folder, self.oidc, "client_secret_file", "certificate_authority")
        review = self.token_review and under(folder, self.token_review, "kubeconfig")
        own = {"tls": tls, "oidc": oidc, "token_review": review}
        return under(folder, self, "token_file", "tokens").model_copy(update=own)
