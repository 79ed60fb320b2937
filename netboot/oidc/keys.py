"""The keys of an issuer (JSON Web Key Set, RFC 7517), and when they are asked for again."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import jwt

from netboot.lifecycle.errors import BadTokenError, IssuerUnavailableError
from netboot.oidc.tokens import Said

REFRESH_SECONDS = 3600.0
"""After which keys are asked for anew, so that one that its issuer takes away goes."""
KEPT_SECONDS = 24 * 3600.0
"""For which those that are known count while the issuer does not answer."""
APART_SECONDS = 30.0
"""Between two questions, whoever sends which token."""
MOST = 64
_MEMBERS = {"RSA": ("kty", "n", "e"), "EC": ("kty", "crv", "x", "y"), "OKP": ("kty", "crv", "x")}
_ALGORITHM = {("RSA", None): "RS256", ("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}
_RSA_BITS = range(2048, 8193)
Keys = Mapping[tuple[str, str], Any]
"""By key id and algorithm."""


def read_keys(document: object) -> Keys:
    """The keys of a set that verify tokens which we take; others are passed over.

    Raises:
        IssuerUnavailableError: it is no set, or two keys have one name.
    """
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list) or len(listed) > MOST:
        raise IssuerUnavailableError("its keys are no set of keys (jwks_uri)")
    keys: dict[tuple[str, str], Any] = {}
    for each in listed:
        known = _key(each) if isinstance(each, dict) else None
        if known is None:
            continue
        named, key = known
        if named in keys:
            raise IssuerUnavailableError(f"two of its keys have the same name {named[0][:64]!r} (jwks_uri)")
        keys[named] = key
    return keys


def _key(jwk: Mapping[str, Any]) -> tuple[tuple[str, str], Any] | None:
    kind, curve, key_id = jwk.get("kty"), jwk.get("crv"), jwk.get("kid", "")
    if not isinstance(kind, str) or not isinstance(key_id, str) or kind not in _MEMBERS:
        return None
    algorithm = _ALGORITHM.get((kind, curve if kind != "RSA" and isinstance(curve, str) else None))
    if algorithm is None or jwk.get("use", "sig") != "sig" or jwk.get("alg", algorithm) != algorithm:
        return None
    public = {name: jwk.get(name) for name in _MEMBERS[kind]}
    try:
        key = jwt.PyJWK(public, algorithm=algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    if kind == "RSA" and key.key_size not in _RSA_BITS:
        return None
    return (key_id, algorithm), key


class KnownKeys:
    """The keys of one issuer, as it said them last. Safe for threads; one of them asks, and none waits for it.

    `fetch`: asks for them; raises IssuerUnavailableError. `monotonic`: a clock in seconds that is never set.
    """

    def __init__(self, fetch: Callable[[], Keys], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._fetch, self._monotonic = fetch, monotonic
        self._asking = threading.Lock()
        self._keys: Keys = {}
        self._read = self._asked = float("-inf")
        self._problem = ""

    def key(self, said: Said) -> Any:
        """The key that a token names.

        Raises:
            BadTokenError: the issuer has no such key. IssuerUnavailableError: it cannot be told now.
        """
        key, anew = self._named(said), False
        if key is None or self._age() >= REFRESH_SECONDS:
            anew = self._ask()
            key = self._named(said)
        if key is not None and self._age() < KEPT_SECONDS:
            return key
        if anew and self._read == self._asked:
            raise BadTokenError("the token names a key that its issuer does not have (kid)")
        if self._read == self._asked:  # it may have a new one since, and is not asked again at once
            raise IssuerUnavailableError("the token names a key that it did not have when it was last asked (kid)")
        raise IssuerUnavailableError(self._problem)

    def _named(self, said: Said) -> Any:
        """Without a name: the only one of that algorithm."""
        if said.key_id:
            return self._keys.get((said.key_id, said.algorithm))
        fitting = [key for (_, algorithm), key in self._keys.items() if algorithm == said.algorithm]
        return fitting[0] if len(fitting) == 1 else None

    def _age(self) -> float:
        return self._monotonic() - self._read

    def _ask(self) -> bool:
        """Whether it was asked, and not a moment ago by somebody else."""
        if self._monotonic() - self._asked < APART_SECONDS or not self._asking.acquire(blocking=False):
            return False
        try:
            now = self._asked = self._monotonic()
            self._problem = "its keys are being asked for"
            self._keys = self._fetch()
            self._read = now
        except IssuerUnavailableError as error:
            self._problem = str(error)
        finally:
            self._asking.release()
        return True
