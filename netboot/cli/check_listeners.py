"""Whether machines reach this site's listeners by the URLs that they are told."""

from collections.abc import Iterator

from netboot.addresses import port_of
from netboot.config import Config


def warnings(config: Config) -> Iterator[str]:
    """URLs that lead to another port than that at which the service listens: what is between may map one to the other,
    and nobody here can know."""
    told = [("provisioning", config.provisioning.url, config.provisioning.listen)]
    if config.join is not None:
        told.append(("join", config.join.url, config.join.listen))
    for section, url, listen in told:
        if port_of(url) != listen.port:
            yield (
                f"{section}.url {url} leads machines to port {port_of(url)}, and {section}.listen is {listen}: they "
                "reach the service only where a load balancer or a proxy is between; else give both one port"
            )
