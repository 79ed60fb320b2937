"""`netboot.lifecycle.upstream.Upstream` over a registry or a plain origin."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from time import sleep as _sleep

from images.artifact.keyring import KeyRing
from images.registry.credentials import Login, read_login
from images.registry.errors import AbsentError, RegistryError
from images.registry.pull import announce, missing, pull
from images.registry.reference import is_url, read_origin, read_reference
from images.registry.retry import RetryPolicy
from images.registry.sources import OriginSource, RegistrySource, Source
from images.store.store import Store
from netboot import credentials
from netboot.config import Config

ATTEMPTS = 5
"""Of each request; who calls tries the whole again, later."""
_STORE_SECONDS = 60.0


class StoreUpstream:
    """Fetches into the store. The keys that are trusted and the login are read anew each time."""

    def __init__(self, config: Config, sleep: Callable[[float], None] = _sleep) -> None:
        assert config.upstream is not None
        self._place = config.upstream
        self._store, self._ring = Store(config.store, wait=_STORE_SECONDS), KeyRing(config.keys, credentials.read)
        self._retry = RetryPolicy(attempts=ATTEMPTS, sleep=sleep)

    @property
    def where(self) -> str:
        return self._place.place

    def fetch(self, digest: str, progress: Callable[[int, int], None]) -> int:
        with self._open() as source:
            try:
                announced = announce(source, digest, self._ring.trusted(), self._retry)
            except AbsentError as error:
                raise AbsentError(f"{error}: push the image there with `netboot image push`") from None
            lacking = missing(self._store, announced.manifest)
            done, of = 0, sum(artifact.size for artifact in lacking.values())

            def told(step: int) -> None:
                nonlocal done
                done += step
                progress(done, of)

            told(0)
            return pull(source, announced, self._store, lacking, self._retry, told)

    @contextmanager
    def _open(self) -> Iterator[Source]:
        from images.registry.client import OciRegistry

        place = self._place
        with _named(place.authority) as authority:
            if is_url(place.place):
                origin, _ = read_origin(place.place)
                with closing(OriginSource(origin, authority=authority)) as source:
                    yield source
                return
            reference = read_reference(place.place)
            login = _login(place.credentials, reference.registry)
            with OciRegistry(reference, login, authority=authority, plain_http=place.plain_http) as registry:
                yield RegistrySource(registry)


def _login(path: Path | None, registry: str) -> Login | None:
    return read_login(path, registry, required=True, read=credentials.read) if path is not None else None


@contextmanager
def _named(authority: Path | None) -> Iterator[Path | None]:
    if authority is None:
        yield None
        return
    with ExitStack() as held:
        try:
            name = held.enter_context(credentials.named(authority))
        except OSError as error:
            raise RegistryError(credentials.unread(f"upstream.authority: {authority}", error)) from None
        yield name
