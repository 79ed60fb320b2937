"""Who is at the page: sessions in memory, by ids that say nothing. The token is kept here, never in a browser."""

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass

IDLE_SECONDS = 12 * 3600
"""An open page asks every few seconds, so that one on a wall stays."""
LONGEST_SECONDS = 30 * 86_400
RENEWED_SECONDS = 60
"""Before its token's end a session that can be is renewed."""
AGAIN_SECONDS = 15
"""Between two tries."""
MOST = 1_000
"""Sessions; the one that was used longest ago makes room."""
MOST_OF_ONE = 100
"""The same of one token, or person, so that nobody ends the sessions of others by logging in again and again."""


@dataclass(slots=True)
class _Session:
    token: str
    whose: str
    began: float
    used: float
    refresh: str = ""
    until: float = float("inf")
    again: float = float("-inf")
    """From when on it may be tried to renew it."""


class Sessions:
    """`now`: a clock in seconds that is never set. A restart of the process ends all of them.

    Ids are looked up by their hashes, so that how long that takes says nothing of an id.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._sessions: dict[bytes, _Session] = {}

    def begin(self, token: str, whose: str = "", refresh: str = "", seconds: float = float("inf")) -> str:
        """The id of a new one, of 256 random bits. `whose`: of a person, who has another token with each login;
        `refresh`: by which its token is renewed at its issuer, "": it is not; `seconds`: until its token ends."""
        named, now = secrets.token_urlsafe(32), self._now()
        with self._lock:
            of_it = [each for each, session in self._sessions.items() if session.whose == (whose or token)]
            if len(of_it) >= MOST_OF_ONE or len(self._sessions) >= MOST:
                crowd = of_it if len(of_it) >= MOST_OF_ONE else self._sessions
                del self._sessions[min(crowd, key=lambda each: self._sessions[each].used)]
            self._sessions[_hash(named)] = _Session(token, whose or token, now, now, refresh, now + seconds)
        return named

    def token(self, named: str) -> str | None:
        """The operator's token of that session; None: there is none, or not any more."""
        now = self._now()
        with self._lock:
            session = self._sessions.get(_hash(named))
            if session is None:
                return None
            if now - session.used > IDLE_SECONDS or now - session.began > LONGEST_SECONDS:
                del self._sessions[_hash(named)]
                return None
            session.used = now
            return session.token

    def to_renew(self, named: str) -> str | None:
        """By what the token of that session is to be renewed now. None: it is not to be, or somebody is at it, or it
        did not work a moment ago."""
        with self._lock:
            session = self._sessions.get(_hash(named))
            now = self._now()
            if session is None or not session.refresh or now < session.again or session.until - now > RENEWED_SECONDS:
                return None
            session.again = now + AGAIN_SECONDS
            return session.refresh

    def renewed(self, named: str, token: str, whose: str, refresh: str, seconds: float) -> bool:
        """The session goes on with that token; `refresh` "": by what renewed this one it is renewed again. False, and
        it has ended: the token is somebody else's than who logged in (OpenID Connect Core 1.0, 12.2)."""
        with self._lock:
            session = self._sessions.get(_hash(named))
            if session is not None and session.whose != whose:
                del self._sessions[_hash(named)]
                return False
            if session is not None:
                session.token, session.until, session.again = token, self._now() + seconds, float("-inf")
                session.refresh = refresh or session.refresh
            return True

    def end(self, named: str) -> str:
        """Nobody gets in with it any more; by what its token could have been renewed, "": by nothing."""
        with self._lock:
            session = self._sessions.pop(_hash(named), None)
            return session.refresh if session is not None else ""

    def form_token(self, named: str) -> str:
        """What a form of this session has to send with it: no other site can know it."""
        return hmac.new(self._key, named.encode(), hashlib.sha256).hexdigest()

    def fits(self, named: str, form_token: str) -> bool:
        """Whether it is that; in constant time."""
        return hmac.compare_digest(self.form_token(named).encode(), form_token.encode())


def _hash(named: str) -> bytes:
    return hashlib.sha256(named.encode()).digest()
