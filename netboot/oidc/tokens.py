"""Tokens of an issuer (JSON Web Tokens, RFC 7519): who signed them, for whom, until when. PyJWT does the signatures.

Which algorithm a key verifies is said by the key, never by the token: an RSA key of RS256, P-256 of ES256, Ed25519 of
EdDSA (RFC 8725, 3.1). So neither `none` nor a public key taken for a secret gets anybody in.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jwt

from netboot.lifecycle.errors import BadTokenError, LoginExpiredError, LoginRefusedError

ALGORITHMS = ("RS256", "ES256", "EdDSA")
LEEWAY_SECONDS = 60
"""By which the issuer's clock and ours may differ."""
LONGEST = 16 * 1024
"""Characters of a token."""
_LATEST = 253_402_300_800
"""The year 10,000, of which no calendar here knows."""
_TYPES = ("jwt", "at+jwt", "application/at+jwt")
_ESSENTIAL = ("iss", "aud", "exp", "iat", "sub")


@dataclass(frozen=True, slots=True)
class Said:
    """By which key a token says that it is signed; nothing of it is verified."""

    algorithm: str
    key_id: str


@dataclass(frozen=True, slots=True)
class Expected:
    """What a token must say. `clients`: ours, of which one must have asked for it, where it says who did (`azp`)."""

    issuer: str
    audiences: Collection[str]
    clients: Collection[str]
    nonce: str | None = None


def peek(token: str, ours: str) -> Said | None:
    """What it says; None: it is no JSON Web Token that names the issuer `ours`.

    Raises:
        BadTokenError: it is one, of a kind that is never taken.
    """
    if len(token) > LONGEST:
        return None
    try:
        header = jwt.get_unverified_header(token)
        issuer = jwt.decode(token, options={"verify_signature": False}).get("iss")
    except (jwt.PyJWTError, ValueError, RecursionError):
        return None
    if issuer != ours:
        return None
    algorithm, key_id, kind = header.get("alg"), header.get("kid", ""), header.get("typ", "JWT")
    if algorithm not in ALGORITHMS:
        named = "".join(c if c.isprintable() else "?" for c in str(algorithm)[:16])
        raise BadTokenError(f"the token is signed by {named}: only {', '.join(ALGORITHMS)} are taken")
    if not isinstance(kind, str) or kind.lower() not in _TYPES or not isinstance(key_id, str):
        raise BadTokenError("the token is of a kind that is not taken here")
    return Said(str(algorithm), key_id)


def verified(token: str, key: Any, algorithm: str, expected: Expected, now: float) -> Mapping[str, Any]:
    """Its claims. `key`: that verifies `algorithm`; `now`: seconds since 1970.

    Raises:
        BadTokenError: it is not by that key, or not for us. LoginExpiredError: its time is over.
    """
    options: Any = {"require": list(_ESSENTIAL), "verify_exp": False, "verify_nbf": False, "verify_iat": False}
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=list(expected.audiences),
            issuer=expected.issuer,
            options=options,
        )
    except jwt.InvalidSignatureError:
        raise BadTokenError("the token's signature is not its issuer's") from None
    except jwt.InvalidAudienceError:
        raise BadTokenError(f"the token is not for {' or '.join(expected.audiences)} (aud)") from None
    except jwt.MissingRequiredClaimError as error:
        raise BadTokenError(f"the token does not say {error.claim}") from None
    except jwt.PyJWTError:
        raise BadTokenError("the token is none that can be used here") from None
    _in_time(claims, now)
    _ours(claims, expected)
    return claims


def moment_of(claims: Mapping[str, Any], name: str) -> float:
    """A time of the claims, in seconds since 1970.

    Raises:
        BadTokenError: it is none.
    """
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LATEST:
        raise BadTokenError(f"the token's {name} is no time")
    return float(value)


def expires_of(token: str) -> int:
    """When a token says that it ends, milliseconds since 1970, for who holds it: it is not verified.

    Raises:
        LoginRefusedError: it does not say.
    """
    try:
        return round(moment_of(jwt.decode(token, options={"verify_signature": False}), "exp") * 1000)
    except (jwt.PyJWTError, KeyError, BadTokenError):
        raise LoginRefusedError(
            "the issuer gave a token that does not say when it ends: no JSON Web Token for this audience"
        ) from None


def _in_time(claims: Mapping[str, Any], now: float) -> None:
    """Raises LoginExpiredError, BadTokenError."""
    expires = moment_of(claims, "exp")
    if expires + LEEWAY_SECONDS <= now:
        raise LoginExpiredError(f"the login ended at {_written(expires)}")
    for name in ("nbf", "iat"):
        if name in claims and moment_of(claims, name) - LEEWAY_SECONDS > now:
            raise BadTokenError(f"the token is not valid before {_written(moment_of(claims, name))} ({name})")


def _ours(claims: Mapping[str, Any], expected: Expected) -> None:
    """Who asked for it, by OpenID Connect Core 1.0, 3.1.3.7. Raises BadTokenError."""
    party = claims.get("azp")
    if party is None and isinstance(claims["aud"], list) and len(claims["aud"]) > 1:
        raise BadTokenError("the token is for several (aud), and does not say who asked for it (azp)")
    if party is not None and party not in expected.clients:
        raise BadTokenError(f"the token was made for another client than {' or '.join(expected.clients)} (azp)")
    if expected.nonce is not None and claims.get("nonce") != expected.nonce:
        raise BadTokenError("the token is of another login than this one (nonce)")


def _written(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
