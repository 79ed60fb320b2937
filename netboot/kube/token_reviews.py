"""Whose a token is by the word of an API server: TokenReview (authentication.k8s.io/v1)."""

import hashlib
import re
import threading
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, TypeVar

from kubernetes import client

from netboot.config_access import TokenReview
from netboot.join.errors import ClusterUnavailableError
from netboot.kube.connection import Connection, connect
from netboot.lifecycle.errors import BadTokenError, IssuerUnavailableError, NoRoleError
from netboot.lifecycle.roles import Person, granted
from netboot.turns import NoTurnError, Places, Turns

KNOWN_SECONDS = 5.0
"""For which an answer counts. The API server itself goes by what it found of a token for ten seconds (its
`TokenSuccessCacheTTL`): fifteen in all are what a token may open something for after the cluster has taken it back."""
MOST = 1000
AT_ONCE, IN_LINE, STRANGERS_IN_LINE = 4, 12, 8
"""Questions, and they with who waits, so that strangers keep neither our threads nor the API server busy; theirs is
shorter than all places of strangers (`netboot.processes.management`), so that logins find some."""
GOOD_SECONDS = 3600.0
"""For which one that was good has a line apart from tokens that nobody knows."""
_SHAPE = re.compile(r"[\w-]{2,8192}\.[\w-]{2,8192}\.[\w-]{2,8192}", re.ASCII)
"""Of a JSON Web Token: what else is sent here, like one of this site with a slip, is nobody else's business."""
_LONGEST_NAME = 256
Status = Mapping[str, Any]
_Kept = TypeVar("_Kept")


class Reviews:
    """Asks one API server, as an account that may create TokenReviews and nothing else. Safe for threads."""

    def __init__(self, place: TokenReview, now: Callable[[], float] = monotonic, places: Places | None = None) -> None:
        """`places`: of all lines of the listener together."""
        self._place, self._now = place, now
        strangers, known = (places.strangers, places.known) if places is not None else ((), ())
        self._connection: Connection | None = None
        self._lock = threading.Lock()
        self._strangers = Turns(AT_ONCE, STRANGERS_IN_LINE, places=strangers)
        self._friends = Turns(AT_ONCE, IN_LINE, places=known)
        self._known: dict[bytes, tuple[float, Status]] = {}
        self._good: dict[bytes, float] = {}
        """Until when they go before others."""

    def person(self, token: str) -> Person | None:
        """Whose token it is; None: it has not the form of one that is asked about.

        Raises:
            BadTokenError: the API server does not know it. NoRoleError: this site gives them no role.
            IssuerUnavailableError: it cannot be asked.
        """
        if not _SHAPE.fullmatch(token):
            return None
        hashed = hashlib.sha256(token.encode()).digest()
        with self._lock:
            until, status = self._known.get(hashed, (float("-inf"), {}))
            turns = self._friends if self._now() < self._good.get(hashed, float("-inf")) else self._strangers
        if self._now() >= until:
            status = self._asked(token, turns)
            self._keep(hashed, status)
        return person_of(status, self._place)

    def _keep(self, hashed: bytes, status: Status) -> None:
        with self._lock:
            _put(self._known, hashed, (self._now() + KNOWN_SECONDS, status))
            if status.get("authenticated") is True:
                _put(self._good, hashed, self._now() + GOOD_SECONDS)

    def _asked(self, token: str, turns: Turns) -> Status:
        """Raises IssuerUnavailableError."""
        try:
            with turns.turn():
                answer = self._reviewed(token)
        except NoTurnError:
            raise IssuerUnavailableError("too many tokens are being asked about at the API server") from None
        except ClusterUnavailableError as error:
            raise IssuerUnavailableError(f"the API server cannot say whose token it is: {error}") from None
        status = answer.get("status") if isinstance(answer, dict) else None
        return status if isinstance(status, dict) else {}

    def _reviewed(self, token: str) -> Any:
        connection = self._connect()
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": list(self._place.audiences)},
        }
        return connection.call(client.AuthenticationV1Api(connection.api).create_token_review, review)

    def _connect(self) -> Connection:
        """Made when it is first needed: the cluster may come after us."""
        with self._lock:
            if self._connection is None:
                self._connection = connect(self._place.kubeconfig)
            return self._connection


def _put(kept: dict[bytes, _Kept], hashed: bytes, value: _Kept) -> None:
    """As the latest, where `MOST` are kept."""
    kept.pop(hashed, None)
    while len(kept) >= MOST:
        del kept[next(iter(kept))]
    kept[hashed] = value


def person_of(status: Status, place: TokenReview) -> Person:
    """Who that is, by a TokenReview's status. Audiences are looked at here too: an API server that knows none of them
    answers for its own (kubernetes.io, TokenReview v1, `status.audiences`).

    Raises:
        BadTokenError: it is not authenticated, or for another audience. NoRoleError: this site gives them no role.
    """
    if status.get("authenticated") is not True:
        # Also with `error`, which says of an expired token what it says of one that could not be checked.
        raise BadTokenError("the API server does not take the token: it is by another, has expired or was revoked")
    if not set(_texts(status.get("audiences"))) & set(place.audiences):
        raise BadTokenError(f"the token is not for {' or '.join(place.audiences)} (audiences)")
    user = status.get("user")
    name = user.get("username") if isinstance(user, dict) else None
    if not isinstance(user, dict) or not isinstance(name, str) or not _named(name):
        raise BadTokenError("the API server names nobody whose token it is")
    role = granted(place.roles, name, _texts(user.get("groups")))
    if role is None:
        raise NoRoleError(f"k8s:{name} has no role here: management.token_review.roles names nobody of theirs")
    return Person(f"k8s:{name}", role, "kubernetes", None)


def _named(name: str) -> bool:
    return bool(name.strip()) and name.isprintable() and len(name) <= _LONGEST_NAME


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
