"""Tokens of an issuer: which are taken, as whom, and what is said of the others; and when its keys are asked for."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import example, given
from hypothesis import strategies as st

from netboot.config_access import Oidc
from netboot.lifecycle.errors import (
    BadTokenError,
    IssuerUnavailableError,
    LifecycleError,
    LoginExpiredError,
    LoginRefusedError,
    NoRoleError,
)
from netboot.lifecycle.roles import Person, Role, granted
from netboot.oidc.http import Answered
from netboot.oidc.issuer import Client, Granted, Issuer, read_metadata
from netboot.oidc.keys import APART_SECONDS, KEPT_SECONDS, REFRESH_SECONDS, Keys, KnownKeys, read_keys
from netboot.oidc.logins import AT_ONCE, Logins
from netboot.oidc.people import People, person_of
from netboot.oidc.tokens import Said, expires_of

ISSUER = "https://issuer.example"
NOW = 1_700_000_000
RSA = rsa.generate_private_key(65537, 2048)
EC, ED = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
KEYS: dict[str, Any] = {"RS256": RSA, "ES256": EC, "EdDSA": ED}
OIDC = Oidc(
    issuer=ISSUER,
    client_id="page",
    cli_client_id="cli",
    roles={"group:admins": "admin", "group:ops": "operator", "user:alice": "viewer"},
)
CLAIMS = {"iss": ISSUER, "aud": "cli", "exp": NOW + 600, "iat": NOW, "sub": "alice"}


def jwks() -> dict[str, Any]:
    made: list[dict[str, Any]] = []
    for name, key in KEYS.items():
        algorithm: Any = jwt.get_algorithm_by_name(name)
        made.append({**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": name, "use": "sig"})
    return {"keys": made}


class Asked:
    """In place of HTTP: an issuer's two documents, and how often the keys were asked for."""

    def __init__(self) -> None:
        self.keys, self.asked, self.problem = jwks(), 0, ""

    def get(self, url: str) -> Answered:
        if self.problem:
            raise IssuerUnavailableError(self.problem)
        if url == f"{ISSUER}/keys":
            self.asked += 1
            return Answered(200, self.keys)
        assert url == f"{ISSUER}/.well-known/openid-configuration"
        return Answered(200, metadata())


def metadata(**others: object) -> dict[str, Any]:
    said = {"authorization_endpoint": f"{ISSUER}/auth", "token_endpoint": f"{ISSUER}/token"}
    return {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys", **said, **others}


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def people(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Person | None]:
    monkeypatch.setattr("netboot.oidc.people.Asker", lambda authority, named: asked)
    return People(OIDC, lambda: NOW * 1000).person


def signed(
    algorithm: str = "RS256", kid: str | None = None, key: Any = None, typ: str = "JWT", **claims: object
) -> str:
    said = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    headers = {"kid": algorithm if kid is None else kid, "typ": typ}
    return jwt.encode(said, key or KEYS[algorithm], algorithm, headers)


def by_hand(header: dict[str, object], signature: Callable[[bytes], bytes], **claims: object) -> str:
    """What no library signs."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in (header, {**CLAIMS, **claims})
    ]
    text = b".".join(parts)
    return (text + b"." + base64.urlsafe_b64encode(signature(text)).rstrip(b"=")).decode()


@pytest.mark.parametrize("algorithm", list(KEYS))
def test_a_token_of_the_issuer_says_who_one_is(algorithm: str, people: Callable[[str], Person | None]) -> None:
    alice = Person("oidc:alice", Role.VIEWER, ISSUER, (NOW + 600) * 1000)
    assert people(signed(algorithm)) == alice
    assert people(signed(algorithm, aud=["page", "other"], azp="page")) == alice
    assert people(signed(algorithm, typ="at+jwt")) == alice
    assert people(signed(algorithm, kid="")) == alice, "the only key of its algorithm"
    assert people(signed(algorithm, exp=NOW - 59)) is not None, "clocks differ"
    assert people(signed(algorithm, nbf=NOW + 59, iat=NOW + 59)) is not None


def test_what_is_no_token_of_this_issuer_is_somebody_else_s(people: Callable[[str], Person | None]) -> None:
    for other in (
        "",
        "netboot_abc",
        "a.b.c",
        signed(iss="https://other.example"),
        signed(iss=f"{ISSUER}/"),
        "x" * 20_000,
    ):
        assert people(other) is None
    assert people(signed(iss=None)) is None
    assert people(by_hand({"alg": "RS256", "kid": "RS256", "crit": ["x"], "x": 1}, lambda _: b"")) is None, "not read"


_SECRET = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
STRANGER = rsa.generate_private_key(65537, 2048)


@pytest.mark.parametrize(
    ("token", "kind", "words"),
    [
        (
            by_hand({"alg": "none", "kid": "RS256"}, lambda _: b""),
            BadTokenError,
            "the token is signed by none: only RS256, ES256, EdDSA are taken",
        ),
        (
            by_hand({"alg": "HS256", "kid": "RS256"}, lambda text: hmac.digest(_SECRET, text, hashlib.sha256)),
            BadTokenError,
            "the token is signed by HS256: only RS256, ES256, EdDSA are taken",
        ),
        (
            by_hand({"alg": "ES256", "kid": "RS256"}, lambda _: bytes(64)),
            BadTokenError,
            "the token names a key that its issuer does not have (kid)",
        ),
        (
            by_hand({"alg": "RS256", "kid": "RS256"}, lambda _: b""),
            BadTokenError,
            "the token's signature is not its issuer's",
        ),
        (signed(key=STRANGER), BadTokenError, "the token's signature is not its issuer's"),
        (signed(kid="gone"), BadTokenError, "the token names a key that its issuer does not have (kid)"),
        (signed(typ="logout+jwt"), BadTokenError, "the token is of a kind that is not taken here"),
        (signed(aud="other"), BadTokenError, "the token is not for page or cli (aud)"),
        (signed(aud=None), BadTokenError, "the token does not say aud"),
        (signed(exp=None), BadTokenError, "the token does not say exp"),
        (signed(iat=None), BadTokenError, "the token does not say iat"),
        (
            signed(aud=["cli", "other"]),
            BadTokenError,
            "the token is for several (aud), and does not say who asked for it (azp)",
        ),
        (signed(azp="other"), BadTokenError, "the token was made for another client than page or cli (azp)"),
        (signed(exp=NOW - 60), LoginExpiredError, "the login ended at 2023-11-14T22:12:20Z"),
        (signed(exp=True), BadTokenError, "the token's exp is no time"),
        (signed(nbf=NOW + 61), BadTokenError, "the token is not valid before 2023-11-14T22:14:21Z (nbf)"),
        (signed(iat=NOW + 61), BadTokenError, "the token is not valid before 2023-11-14T22:14:21Z (iat)"),
        (
            signed(sub="mallory"),
            NoRoleError,
            f"oidc:mallory of {ISSUER} has no role here: management.oidc.roles names nobody of theirs",
        ),
    ],
)
def test_what_is_refused_and_in_which_words(
    token: str, kind: type[LifecycleError], words: str, people: Callable[[str], Person | None]
) -> None:
    with pytest.raises(kind) as refused:
        people(token)
    assert (type(refused.value), str(refused.value)) == (kind, words)


def test_without_keys_nobody_can_tell_and_with_known_ones_the_issuer_may_be_away(
    asked: Asked, people: Callable[[str], Person | None]
) -> None:
    asked.problem = "it cannot be reached: Connection refused"
    for _ in range(2):
        with pytest.raises(IssuerUnavailableError) as unknown:
            people(signed())
        assert str(unknown.value) == f"the issuer {ISSUER} cannot be asked: it cannot be reached: Connection refused"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
PARTS = st.fixed_dictionaries({}, optional=dict.fromkeys(("exp", "nbf", "iat", "aud", "azp", "sub", "groups"), JSON))


@example({}, {"alg": "\x1b[31m"})
@given(PARTS, st.fixed_dictionaries({}, optional=dict.fromkeys(("alg", "kid", "typ", "crit", "b64"), JSON)))
def test_whatever_a_token_says_it_is_somebody_or_refused_in_words(
    claims: dict[str, object], header: dict[str, object]
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("netboot.oidc.people.Asker", lambda authority, named: Asked())
        known = People(OIDC, lambda: NOW * 1000)
        token = by_hand({"alg": "EdDSA", "kid": "EdDSA", **header}, ED.sign, **claims)
        try:
            person = known.person(token)
        except LifecycleError as error:
            assert str(error).isprintable()
        else:
            assert person is None or person.role in Role


def test_what_only_looks_like_a_token_is_none(people: Callable[[str], Person | None]) -> None:
    deep = base64.urlsafe_b64encode(b'{"iss":' + b"[" * 5_000).rstrip(b"=").decode()
    for token in (f"{deep}.{deep}.", f"{signed().split('.')[0]}.{deep}.", "é.ü.ß", "\ud800.a.b", "..", "a" * 16_384):
        assert people(token) is None


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_keys_are_asked_for_at_a_bounded_rate_and_kept_while_the_issuer_is_away() -> None:
    clock, fetched, sets = Clock(), [0], [{("a", "RS256"): "key a"}]

    def fetch() -> Keys:
        fetched[0] += 1
        if not sets[0]:
            raise IssuerUnavailableError("away")
        return sets[0]

    keys = KnownKeys(fetch, clock)
    assert (keys.key(Said("RS256", "a")), fetched) == ("key a", [1])
    for _ in range(50):
        with pytest.raises(IssuerUnavailableError) as untold:
            keys.key(Said("RS256", "b"))
        assert str(untold.value) == "the token names a key that it did not have when it was last asked (kid)"
    assert fetched == [1], "strangers' tokens ask for nothing"
    clock.now, sets[0] = APART_SECONDS, {("b", "RS256"): "key b"}
    assert (keys.key(Said("RS256", "b")), fetched) == ("key b", [2]), "the issuer has a new key"
    clock.now = 2 * APART_SECONDS
    with pytest.raises(BadTokenError, match="names a key that its issuer does not have"):
        keys.key(Said("RS256", "a"))
    assert fetched == [3]
    clock.now, sets[0] = 2 * APART_SECONDS + REFRESH_SECONDS, {}
    assert (keys.key(Said("RS256", "b")), fetched) == ("key b", [4]), "asked anew after an hour, and away"
    with pytest.raises(IssuerUnavailableError, match="away"):
        keys.key(Said("RS256", "a"))
    clock.now = 2 * APART_SECONDS + KEPT_SECONDS
    with pytest.raises(IssuerUnavailableError, match="away"):
        keys.key(Said("RS256", "b"))


def test_a_set_of_keys_as_it_is_read() -> None:
    ours = jwks()["keys"]
    weak = rsa.generate_private_key(65537, 1024).public_key()
    algorithm: Any = jwt.get_algorithm_by_name("RS256")
    others = [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "secret"},
        {**ours[0], "kid": "encrypts", "use": "enc"},
        {**ours[0], "kid": "longer", "alg": "RS512"},
        {**ours[1], "kid": "curve", "crv": "P-384"},
        {**algorithm.to_jwk(weak, as_dict=True), "kid": "weak"},
        {"kty": "RSA", "kid": "torn"},
        "no key",
    ]
    assert set(read_keys({"keys": [*others, *ours]})) == {(name, name) for name in KEYS}
    none: tuple[object, ...] = ([], {}, {"keys": 1}, {"keys": [ours[0]] * 65})
    for bad in none:
        with pytest.raises(IssuerUnavailableError, match=r"its keys are no set of keys \(jwks_uri\)"):
            read_keys(bad)
    with pytest.raises(IssuerUnavailableError, match="two of its keys have the same name 'RS256'"):
        read_keys({"keys": [ours[0], ours[0]]})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answered(404, {}), "it answers 404 and no description at /.well-known/openid-configuration"),
        (
            Answered(200, metadata(issuer=f"{ISSUER}/")),
            f"it calls itself '{ISSUER}/': management.oidc.issuer must be that",
        ),
        (Answered(200, metadata(jwks_uri=None)), "its jwks_uri is no URL in TLS at port 443"),
        (
            Answered(200, metadata(token_endpoint="http://issuer.example/token")),
            "its token_endpoint is no URL in TLS at port 443",
        ),
        (
            Answered(200, metadata(revocation_endpoint="https://issuer.example:8443/x")),
            "its revocation_endpoint is no URL in TLS at port 443",
        ),
    ],
)
def test_what_an_issuer_must_say_of_itself(answer: Answered, words: str) -> None:
    with pytest.raises(IssuerUnavailableError) as refused:
        read_metadata(ISSUER, answer)
    assert str(refused.value) == words


def test_an_issuer_that_is_away_is_not_asked_by_everybody(asked: Asked) -> None:
    clock, tried = Clock(), [0]

    class Away(Asked):
        def get(self, url: str) -> Answered:
            tried[0] += 1
            raise IssuerUnavailableError("away")

    issuer = Issuer(ISSUER, Away(), clock)  # type: ignore[arg-type] # in its place
    for _ in range(9):
        with pytest.raises(IssuerUnavailableError, match="away"):
            issuer.endpoint("token_endpoint")
    assert tried == [1]


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"sub": ""}, "the token has no name in its claim sub (username_claim)"),
        ({"sub": "a\nb"}, "the token has no name in its claim sub (username_claim)"),
        ({"sub": "a" * 129}, "the token has no name in its claim sub (username_claim)"),
        ({"groups": {"admins": 1}}, "the token's claim groups is no list of groups (groups_claim)"),
        ({"groups": ["admins", 1]}, "the token's claim groups is no list of groups (groups_claim)"),
    ],
)
def test_claims_that_name_nobody(others: dict[str, object], words: str) -> None:
    with pytest.raises(BadTokenError) as refused:
        person_of({**CLAIMS, **others}, OIDC)
    assert str(refused.value) == words


def test_an_address_that_its_issuer_did_not_verify_is_nobody_s() -> None:
    by_mail = OIDC.model_copy(update={"username_claim": "email", "roles": {"user:a@x.example": "viewer"}})
    claims = {**CLAIMS, "email": "a@x.example"}
    for said in ({}, {"email_verified": True}):
        assert person_of({**claims, **said}, by_mail).name == "oidc:a@x.example"
    others: tuple[object, ...] = (False, "false", "true", 0, 1, None, [])
    for other in others:
        with pytest.raises(BadTokenError) as refused:
            person_of({**claims, "email_verified": other}, by_mail)
        assert str(refused.value) == "its issuer has not verified this e-mail address (email_verified)"


NAMES = st.sampled_from(["alice", "bob", "admins", "ops", "user:alice", "group:admins", ""])
ROLES = st.dictionaries(
    st.tuples(st.sampled_from(["user", "group"]), NAMES).map(":".join), st.sampled_from([str(role) for role in Role])
)


@given(ROLES, NAMES, st.lists(NAMES))
def test_the_highest_role_of_a_user_and_their_groups_and_of_nobody_else(
    roles: dict[str, str], user: str, groups: list[str]
) -> None:
    found = granted(roles, user, groups)
    theirs = [roles[key] for key in (f"user:{user}", *(f"group:{each}" for each in groups)) if key in roles]
    assert (found is None) == (not theirs)
    if found is not None:
        assert str(found) in theirs
        assert all(found.may(Role(each)) for each in theirs)
    assert granted({key: value for key, value in roles.items() if key.startswith("user:")}, "", groups) == (
        Role(roles["user:"]) if "user:" in roles else None
    ), "whoever may name a group is no user of that name"


def test_when_a_token_ends_for_who_holds_it() -> None:
    assert expires_of(signed()) == (NOW + 600) * 1000
    for other in ("opaque", signed(exp=None)):
        with pytest.raises(LoginRefusedError, match="does not say when it ends"):
            expires_of(other)


def test_strangers_who_finish_logins_keep_nobody_from_beginning_one_or_from_a_session(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every turn of strangers is taken, by answers that do not come."""
    held, hanging, granted_to = threading.Event(), threading.Semaphore(0), list[str]()

    def token(issuer: Issuer, client: Client, grant: Mapping[str, str]) -> Granted:
        if grant["grant_type"] == "authorization_code":
            hanging.release()
            held.wait(60)
            raise LoginRefusedError("invalid_grant")
        granted_to.append(grant["refresh_token"])
        return Granted("", "", "")

    monkeypatch.setattr("netboot.oidc.people.Asker", lambda authority, named: asked)
    monkeypatch.setattr(Issuer, "token", token)
    logins = Logins(People(OIDC, lambda: NOW * 1000), "https://netboot.example")

    def stranger(number: int) -> None:
        _, begun = logins.begin()
        with pytest.raises(LoginRefusedError):
            logins.finish(begun, {"state": begun.state, "code": "x"}, f"192.0.2.{number // 4}")

    strangers = [threading.Thread(target=stranger, args=(number,)) for number in range(AT_ONCE)]
    try:
        for each in strangers:
            each.start()
            assert hanging.acquire(timeout=60)
        assert logins.begin()[0].startswith(f"{ISSUER}/auth?")
        logins.refreshed("of a session")
        assert granted_to == ["of a session"]
    finally:
        held.set()
        for each in strangers:
            each.join()
