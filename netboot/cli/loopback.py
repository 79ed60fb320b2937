"""URLs for machines that lead each of them to itself: warned of, for they are right where `curl` plays the machine."""

from collections.abc import Iterator

from netboot.config import Config
from netboot.config_urls import own_host


def warnings(config: Config) -> list[str]:
    """Of all that is given to machines."""
    words = "leads a machine to itself; where machines are to come, give the address by which they reach this host"
    return [f"{key}: {url} {words}" for key, url in _given(config) if own_host(url)]


def _given(config: Config) -> Iterator[tuple[str, str]]:
    yield "provisioning.url", config.provisioning.url
    yield from (("origins", url) for url in config.origins)
    if config.join is not None:
        yield "join.url", config.join.url
    for name, cluster in config.clusters.items():
        yield from ((f"clusters.{name}.endpoints", url) for url in cluster.endpoints)
