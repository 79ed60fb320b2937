"""The token of a host, which commands there send: an admin's, by the name of `host-admin`, with an end.

The site keeps its hash in `management.tokens`, as of each that `netboot access token create` makes; its text is in
`management.token_file`, for its owner alone.
"""

from collections.abc import Iterator
from pathlib import Path
from time import time

from images.values import files
from netboot.cli.access_file import change, in_place_of
from netboot.cli.outcomes import cannot
from netboot.cli.times import moment
from netboot.config import Config
from netboot.config_management import Management
from netboot.lifecycle.errors import NoTokensError
from netboot.lifecycle.roles import Role
from netboot.stores import access_tokens
from netboot.stores.access_tokens import AccessToken, AccessTokens

NAME = "host-admin"
DAY_MS = 86_400_000
TTL_MS = 366 * DAY_MS
SOON_MS = 30 * DAY_MS
"""Before its end: from then on it is warned of."""
RENEW = "`netboot access token host` makes a new one"


def renew(config: Config, ttl_ms: int) -> AccessToken:
    """A new one in the place of what the file of texts had; the hash first, so that what fails in between is refused.

    Raises:
        ApiError: a file cannot be written, or takes no more. NoTokensError, StoreError: as `change`.
    """
    text, path = access_tokens.new_token(), config.management.token_file
    made = _entry(text, ttl_ms)
    change(config, "access-token-host", NAME, lambda there: in_place_of(there, made, config.management.tokens))
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.write(path, f"{text}\n".encode(), mode=access_tokens.MODE)
    except OSError as error:
        raise cannot(f"cannot write {path}", error) from None
    return made


def first(path: Path) -> bytes:
    """The file of hashes of a new site, whose file of texts `path` is; nobody is blocked: that is known.

    Raises:
        OSError.
    """
    texts = access_tokens.lines(files.small(path).decode(errors="replace"))
    named = [text for text in texts if access_tokens.is_named(text)]
    return access_tokens.to_bytes(AccessTokens(tokens=tuple(_entry(text, TTL_MS) for text in named[:1])))


def warnings(management: Management) -> Iterator[str]:
    """What opens more than it has to, and what of the token of this host ends, or opens nothing."""
    path = management.token_file
    try:
        named, texts = access_tokens.read(management.tokens).tokens, access_tokens.lines(files.small(path).decode())
    except (NoTokensError, OSError, UnicodeDecodeError):  # a fault, or there is none
        return
    plain = [text for text in texts if not access_tokens.is_named(text)]
    if any(len(text) >= access_tokens.SHORTEST for text in plain):
        yield (
            f"{path} still opens everything: its tokens are admins', in plain text, of nobody and without an end. Give "
            "whoever uses it elsewhere a token of their own (`netboot access token create NAME --role ROLE --ttl 90d > "
            "FILE`, then `netboot context add` or --token-file); for the commands of this host `netboot access token "
            "host` puts one with a name and an end in its place"
        )
    elif texts and not plain:
        yield from _ends(path, texts[0], named)


def _ends(path: Path, text: str, named: tuple[AccessToken, ...]) -> Iterator[str]:
    """Of the text that commands send, the first."""
    token = next((each for each in named if each.sha256 == access_tokens.hash_of(text)), None)
    if token is None:
        yield f"the token in {path} opens nothing, for it was revoked: {RENEW}"
        return
    left = token.expires_ms - round(time() * 1000)
    if left <= SOON_MS:
        ends = "ended" if left <= 0 else "ends"
        when = moment(token.expires_ms)
        yield f"the token {token.name} in {path}, by which commands of this host ask, {ends} at {when}: {RENEW}"


def _entry(text: str, ttl_ms: int) -> AccessToken:
    now = round(time() * 1000)
    return AccessToken(
        name=NAME, role=Role.ADMIN, sha256=access_tokens.hash_of(text), created_ms=now, expires_ms=now + ttl_ms
    )
