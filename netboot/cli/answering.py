"""What `netboot doctor` says of the service that answers at `management.url`."""

from collections.abc import Iterator
from typing import Literal

from pydantic import ValidationError

from netboot.cli.diagnosis import Diagnosis
from netboot.client import transport
from netboot.config import Config
from netboot.config_urls import own_host
from netboot.lifecycle.errors import StateUnavailableError
from netboot.readiness import Readiness
from netboot.stores import bootkey

SERVICE_SECONDS = (3.0, 10.0)
_OTHER = (
    "stop that one, or give one of the two another port (`management.listen`, and `management.url` where it is set); "
    "then start this one: `netboot serve`"
)


def diagnosis(config: Config) -> Iterator[Diagnosis]:
    """Whether it answers, is this site's, and what it says of itself."""
    import requests

    url, tls = config.management.base_url, config.management.tls
    try:
        with transport.session(tls.authority if tls is not None else None) as session:
            answer = session.get(f"{url}/readyz", timeout=SERVICE_SECONDS, allow_redirects=False)
            readiness = Readiness.model_validate_json(answer.content)
    except requests.exceptions.SSLError as error:
        why, remedy = transport.why_not(error, url)
        yield Diagnosis("service", "running", "refuse", f"the service at {url} is not believed: {why}", remedy)
        return
    except requests.exceptions.ConnectionError:
        yield Diagnosis("service", "running", "refuse", f"nothing answers at {url}", "start it: `netboot serve`")
        return
    except (requests.exceptions.RequestException, ValidationError):
        remedy = "look at management.listen and management.url, and at the service's log"
        yield Diagnosis("service", "running", "refuse", f"what answers at {url} is not netboot, or is stuck", remedy)
        return
    said = _whose(config, url, readiness.site)
    yield said
    if said.outcome == "refuse":
        return
    for name, detail in readiness.details.items():
        # Which of them is vital the service knows; where it is not ready, any of those that are not in order may be.
        # A machine that cannot boot is wrong in any case.
        vital = not readiness.ready or name == "machines"
        wrong: Literal["warn", "refuse"] = "refuse" if vital else "warn"
        yield Diagnosis("service", name, "ok" if detail.ok else wrong, detail.message, detail.remedy)


def _whose(config: Config, url: str, site: str) -> Diagnosis:
    """Whether that is the service of this site. `site`: the mark that it says."""
    name, own = "running", config.management.url
    try:
        key = bootkey.there(config)
    except StateUnavailableError as error:
        words = f"whose service answers at {url} cannot be told: {error}"
        return Diagnosis("service", name, "unknown", words, "ask as the account of the service, or as root")
    if key is None and not (own is None or own_host(own)):
        words = f"whose service answers at {url} cannot be told from here: {bootkey.file_of(config)} is not there"
        return Diagnosis("service", name, "unknown", words, "ask on the host of the service")
    if not site:
        words = f"whose service answers at {url} cannot be told: it does not say it"
        return Diagnosis("service", name, "unknown", words, "see its log: it cannot read its key of boot ids")
    if key is None or bootkey.mark_of(key) != site:
        words = f"something else answers at {url}: a service of another site, or with another `data`"
        return Diagnosis("service", name, "refuse", words, _OTHER)
    return Diagnosis("service", name, "ok", f"answers at {url}")
