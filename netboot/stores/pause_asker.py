"""Asks outside whether anything may begin, over TLS: a hook or Prometheus (`pause` of netboot.yaml)."""

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import requests
import urllib3

from images.values.faults import root_cause, unverified
from images.values.sessions import session
from netboot import credentials
from netboot.config_outside import PauseSignal
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.signal_answers import LONGEST_ANSWER, of_hook, of_prometheus
from netboot.machines.maintenance import Signal

_BLOCK = 8192
_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Cache-Control": "no-cache",
    "Connection": "close",
}


class Asker:
    """One question at a time, each over a connection of its own: neither a proxy nor ~/.netrc has a say in where the
    token goes, and no answer leads elsewhere. The token and the authority are read anew each time."""

    def __init__(
        self,
        place: PauseSignal,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._place, self._monotonic, self._now = place, monotonic, now

    @property
    def where(self) -> str:
        """Whom it asks, as messages name it."""
        return self._place.where

    def ask(self) -> Signal:
        """What is said now.

        Raises:
            CannotTellError: it cannot be asked, answers late, or something else.
        """
        begun = self._monotonic()
        body = self._body(begun)
        if self._monotonic() - begun > self._place.deadline_seconds:
            raise self._late()
        if self._place.hook is not None:
            return of_hook(body, self.where)
        return of_prometheus(body, self.where, self._now())

    def _body(self, begun: float) -> bytes:
        headers = {**_HEADERS, **self._token()}
        with ExitStack() as held:
            asking = held.enter_context(session())
            asking.verify = self._authority(held)
            try:
                answer = held.enter_context(closing(asking.get(headers=headers, **self._question())))
                return self._bounded(answer, begun)
            except requests.exceptions.SSLError as error:
                raise CannotTellError(_of_tls(error)) from None
            except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError):
                raise self._late() from None
            except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
                raise CannotTellError(f"it cannot be reached: {root_cause(error)}") from None

    def _question(self) -> dict[str, Any]:
        place = self._place
        seconds = place.deadline_seconds
        how = {"timeout": seconds, "allow_redirects": False, "stream": True}
        if place.hook is not None:
            return {"url": place.hook, **how}
        query = {"query": place.query, "timeout": f"{seconds:g}s"}
        return {"url": f"{place.prometheus}/api/v1/query", "params": query, **how}

    def _bounded(self, answer: requests.Response, begun: float) -> bytes:
        if answer.status_code != 200:
            raise CannotTellError(f"it answers {answer.status_code}, and not 200")
        data = bytearray()
        while block := answer.raw.read1(_BLOCK):  # what has come, so that who sends a byte at a time is late too
            data += block
            if len(data) > LONGEST_ANSWER:
                raise CannotTellError(f"it answers with more than {LONGEST_ANSWER} bytes")
            if self._monotonic() - begun > self._place.deadline_seconds:
                raise self._late()
        return bytes(data)

    def _late(self) -> CannotTellError:
        return CannotTellError(f"it did not answer within {self._place.deadline_seconds:g} s")

    def _authority(self, held: ExitStack) -> bool | str:
        path = self._place.authority
        if path is None:
            return True
        try:
            return str(held.enter_context(credentials.named(path)))
        except OSError as error:
            raise CannotTellError(credentials.unread(f"pause.authority: {path}", error)) from None

    def _token(self) -> dict[str, str]:
        path = self._place.token_file
        return {"Authorization": f"Bearer {read_token(path)}"} if path is not None else {}


def read_token(path: Path) -> str:
    """The token of a file.

    Raises:
        CannotTellError: it cannot be read, others can read it, or it is no token. The message does not repeat it.
    """
    try:
        return credentials.secret(path, "pause.token_file")
    except credentials.UnusableSecretError as error:
        raise CannotTellError(str(error)) from None


def _of_tls(error: requests.exceptions.SSLError) -> str:
    if unverified(error):
        return f"its certificate is not believed: {root_cause(error)}; see pause.authority"
    return f"TLS failed, not for its certificate: {root_cause(error)}"
