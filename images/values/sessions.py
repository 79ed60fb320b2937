"""Sessions over HTTP that go by what they are told alone, and that leave no connection open."""

from typing import Any
from weakref import WeakSet

import requests
from requests.adapters import HTTPAdapter


class _Adapter(HTTPAdapter):
    """urllib3 2 closes the connections of a pool when the collector takes the pool: a failure whose traceback refers to
    an answer keeps both (read in its `poolmanager`, seen with Python 3.12). And an answer that was not read to its end
    has its connection, which is in no pool: python-dxf leaves the 401 of a streamed request so."""

    def __init__(self) -> None:
        super().__init__()
        self._answers = WeakSet[requests.Response]()

    def send(self, *asked: Any, **how: Any) -> requests.Response:
        answer = super().send(*asked, **how)
        self._answers.add(answer)
        return answer

    def close(self) -> None:
        for answer in tuple(self._answers):
            answer.close()
        pools = self.poolmanager.pools
        for key in pools.keys():  # noqa: SIM118 # no dict: it cannot be iterated over
            pools[key].close()
        super().close()


def session() -> requests.Session:
    """One that takes nothing from the environment (no netrc, no proxy), and whose `close` closes what is open."""
    made = requests.Session()
    made.trust_env = False
    for scheme in ("http://", "https://"):
        made.mount(scheme, _Adapter())
    return made
