"""Sessions over HTTP that go by what they are told alone, and that leave no connection open."""

import requests
from requests.adapters import HTTPAdapter


class _Adapter(HTTPAdapter):
    """urllib3 2 closes the connections of a pool when the collector takes the pool: a failure whose traceback refers to
    an answer keeps both (read in its `poolmanager`, seen with Python 3.12)."""

    def close(self) -> None:
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
