"""Sections of `management` about who may ask beside those who have netboot's own tokens: people by OpenID Connect, and
whomever a cluster knows by a token of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from images.values.strict import Strict
from images.values.types import Matching
from netboot.addresses import parse_url

LOOPBACK = ("127.0.0.1", "::1", "localhost")
Text = Annotated[str, Matching(r"[!-~]{1,256}", "must be 1 to 256 characters of ASCII, without a space")]
Claim = Annotated[
    str, Matching(r"[!-~]{1,128}", "must be the name of a claim: 1 to 128 characters of ASCII, without a space")
]
Subject = Annotated[
    str,
    Matching(r"(user|group):[^\x00-\x1f\x7f]{1,256}", "must be user:NAME or group:NAME, as the issuer names them"),
]
"""`user:` and a name, or `group:` and one: whoever may choose the name of the one has not the role of the other."""
Roles = Annotated[
    Mapping[Subject, Literal["viewer", "operator", "admin"]],
    Field(min_length=1, max_length=1000),
]
"""The highest counts; whom none of these names may do nothing."""


def parse_issuer(value: str) -> str:
    """The URL of an issuer, as it writes it, a slash at its end included: it is compared letter by letter.

    Raises:
        ValueError: it is none, or credentials would cross a network unencrypted.
    """
    if not parse_url(value).startswith("https://") and urlsplit(value).hostname not in LOOPBACK:
        raise ValueError("must be https://, or of this machine alone: logins travel here")
    return value


class Oidc(Strict):
    """An issuer of OpenID Connect, whose people may ask."""

    issuer: Annotated[str, AfterValidator(parse_issuer)]
    """As its tokens say it (`iss`)."""
    client_id: Text
    """The page's; the command line's too, where there is no `cli_client_id`."""
    client_secret_file: Path | None = None
    """The page's alone, in a file that nobody else may read; None: a public client."""
    cli_client_id: Text | None = None
    """A public client, for `netboot login`: people's machines keep no secret of the site."""
    scopes: Annotated[tuple[Text, ...], Field(min_length=1, max_length=32)] = ("openid", "profile", "email")
    audience: Text | None = None
    """Access tokens for this audience are taken; None: identity tokens, for our clients."""
    username_claim: Claim = "sub"
    groups_claim: Claim = "groups"
    roles: Roles
    certificate_authority: Path | None = None
    """PEM that vouches for its certificate; None: those that the system trusts."""

    @model_validator(mode="after")
    def _openid(self) -> "Oidc":
        if "openid" not in self.scopes:
            raise ValueError("scopes must have openid: without it there is no identity token")
        return self

    @property
    def for_cli(self) -> str:
        """The client that `netboot login` is."""
        return self.cli_client_id or self.client_id

    @property
    def clients(self) -> tuple[str, ...]:
        """Those that are ours."""
        return tuple(dict.fromkeys((self.client_id, self.for_cli)))

    @property
    def port(self) -> int:
        """Where it listens."""
        return port_of(self.issuer)


class TokenReview(Strict):
    """A cluster whose API server says whose a token is."""

    kubeconfig: Path = Path("secrets/review.kubeconfig")
    """Of an account that may create TokenReviews, and nothing else."""
    audiences: Annotated[tuple[Text, ...], Field(min_length=1, max_length=8)]
    """For one of which a token must be."""
    roles: Roles


def port_of(url: str) -> int:
    """The port of an http or https URL."""
    split = urlsplit(url)
    return split.port or (443 if split.scheme == "https" else 80)
