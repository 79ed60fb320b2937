"""Package mirrors, asked before anything is built: do they answer, and what is it that they have today?

The InRelease files' digests are an input of the bootstrap: the same state of a mirror gives the same image.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path

import requests
from requests.utils import should_bypass_proxies

from images import run
from images.errors import CommandError, SourceUnavailableError
from images.recipe.recipe import Source
from images.values.digests import PLACE
from images.values.faults import root_cause, unverified
from images.values.sessions import session

CONNECT_SECONDS, READ_SECONDS = 5.0, 20.0
MAX_INRELEASE = 16 * 1024 * 1024

_CLEARSIGNED = b"-----BEGIN PGP SIGNED MESSAGE-----"


@dataclass(frozen=True, slots=True)
class Mirror:
    """A source as the bootstrap takes it: what the recipe says, the keys' bytes, and each suite's InRelease digest."""

    url: str = field(metadata=PLACE)
    suites: tuple[str, ...]
    components: tuple[str, ...]
    keyring: bytes
    keyring_suffix: str
    releases: tuple[str, ...]
    """SHA-256 of each suite's InRelease file, in the order of `suites`."""
    newest: int
    """Seconds since 1970 at which the newest of the suites was published."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Why a suite cannot be had, in a message with its remedy. `definite`: the mirror answers, and does not have it."""

    message: str
    definite: bool = False


def probe(sources: tuple[Source, ...]) -> tuple[Mirror, ...]:
    """Ask every mirror for every suite's InRelease file, at once. Signatures are apt's to check, when it is read again.

    Raises:
        SourceUnavailableError: naming each mirror and suite that does not answer, why, and the remedy.
    """
    answers = ask(sources)
    failures = [silence.message for answer in answers if not isinstance(answer, Mirror) for silence in answer]
    if failures:
        raise SourceUnavailableError("\n".join(failures))
    return tuple(answer for answer in answers if isinstance(answer, Mirror))


def ask(sources: tuple[Source, ...]) -> tuple[Mirror | tuple[Silence, ...], ...]:
    """Of each source what its mirror has; or why not, for each suite that it lacks or that nobody answers for."""
    suites = [(source, suite) for source in sources for suite in source.suites]
    proxies = proxy_environment()
    with ThreadPoolExecutor(max_workers=8) as pool:
        answers = dict(zip(suites, pool.map(lambda pair: _ask(pair[0].url, pair[1], proxies), suites), strict=True))
    return tuple(_answer(source, [answers[source, suite] for suite in source.suites]) for source in sources)


def have(addresses: tuple[str, ...]) -> tuple[Silence | None, ...]:
    """Whether there is a file at each address, asked by HEAD; None: there is."""
    proxies = proxy_environment()
    with ThreadPoolExecutor(max_workers=8) as pool:
        return tuple(pool.map(lambda address: _has(address, proxies), addresses))


def _has(address: str, proxies: Mapping[str, str]) -> Silence | None:
    words = f"the mirror lists it, and does not have its file (404 for {address})"
    gone = Silence(f"{words}; try later, take another mirror, or name the version before", definite=True)
    if address.startswith(("file:", "copy:")):
        return None if Path(address.partition(":")[2]).is_file() else gone
    try:
        with session() as asking:
            timeout, through = (CONNECT_SECONDS, READ_SECONDS), _for_requests(address, proxies)
            answer = asking.head(address, timeout=timeout, proxies=through, allow_redirects=True)
    except (requests.RequestException, OSError) as error:
        return Silence(f"{address} cannot be asked for: {_reason(error)}")
    if answer.status_code == 404:
        return gone
    return None if answer.ok else Silence(f"{address} cannot be asked for: it answers {answer.status_code}")


def _answer(source: Source, answers: list[tuple[str, int] | Silence]) -> Mirror | tuple[Silence, ...]:
    failures = tuple(answer for answer in answers if isinstance(answer, Silence))
    return failures or _mirror(source, [answer for answer in answers if not isinstance(answer, Silence)])


def _mirror(source: Source, answers: list[tuple[str, int]]) -> Mirror:
    return Mirror(
        url=source.url,
        suites=source.suites,
        components=source.components,
        keyring=source.signed_by.read_bytes(),
        keyring_suffix=source.signed_by.suffix,
        releases=tuple(digest for digest, _ in answers),
        newest=max(date for _, date in answers),
    )


def _ask(url: str, suite: str, proxies: Mapping[str, str]) -> tuple[str, int] | Silence:
    """The digest and the date (seconds since 1970) of a suite's InRelease file, or what is wrong."""
    folder = f"{url.rstrip('/')}/{suite.lstrip('/') if suite.endswith('/') else f'dists/{suite}/'}"
    body = _read(folder) if url.startswith("file:") else _get(url, suite, f"{folder}InRelease", proxies)
    if isinstance(body, Silence):
        return body
    date = re.search(rb"^Date: (.+)$", body, re.MULTILINE)
    if not body.startswith(_CLEARSIGNED) or not date or len(body) > MAX_INRELEASE:
        return _unsigned(url, suite)
    try:
        when = parsedate_to_datetime(date[1].decode("ascii", "replace"))
    except ValueError:
        return _unavailable(url, suite, "its InRelease file has no date that can be read")
    return hashlib.sha256(body).hexdigest(), int(when.timestamp())


def _unsigned(url: str, suite: str) -> Silence:
    if url.startswith("file:"):
        return Silence(
            f"the repository {url} cannot be used: its InRelease is not a signed file with a date; "
            "sign it (gpg --clearsign): there is no way to use packages that nobody signed",
            definite=True,
        )
    return _unavailable(
        url, suite, "what it answers is not a signed InRelease file (a captive portal, or a proxy's page?)"
    )


def _get(url: str, suite: str, address: str, proxies: Mapping[str, str]) -> bytes | Silence:
    """What a mirror answers, or what is wrong with it."""
    try:
        with session() as asking:  # proxies come from the same place for apt and for us
            answer = asking.get(
                address,
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                proxies=_for_requests(address, proxies),
                stream=True,
            )
            with answer:
                body = answer.raw.read(MAX_INRELEASE + 1, decode_content=True) if answer.status_code == 200 else b""
    except (requests.RequestException, OSError) as error:
        return _unavailable(url, suite, _reason(error))
    if answer.status_code == 404:
        return Silence(
            f"the mirror {url} has no suite {suite} (404 for {address}); "
            "check the suite's name and the mirror's address in the recipe's sources",
            definite=True,
        )
    if answer.status_code != 200:
        return _unavailable(url, suite, f"it answers {answer.status_code} {answer.reason}")
    return bytes(body)


def _read(folder: str) -> bytes | Silence:
    """The InRelease file of a folder of this machine (`file:///…`), or what is wrong with it."""
    path = Path(folder.removeprefix("file://")) / "InRelease"
    try:
        with path.open("rb") as file:
            return file.read(MAX_INRELEASE + 1)
    except OSError as error:
        return Silence(
            f"the repository file://{path.parent} cannot be used: {path} cannot be read ({error.strerror}). "
            "Make it (apt-ftparchive release, signed by gpg --clearsign), or name another place under 'sources'",
            definite=isinstance(error, FileNotFoundError),
        )


def _for_requests(address: str, proxies: Mapping[str, str]) -> dict[str, str]:
    if should_bypass_proxies(address, proxies.get("no_proxy", "")):
        return {}
    return {name.removesuffix("_proxy"): value for name, value in proxies.items() if name != "no_proxy"}


def _unavailable(url: str, suite: str, reason: str) -> Silence:
    return Silence(
        f"the mirror {url} does not answer for suite {suite}: {reason}. "
        "Check the network, set http_proxy (or apt's Acquire::http::Proxy) where a proxy is needed, "
        "or name another mirror under 'sources' in the recipe"
    )


def _reason(error: Exception) -> str:
    """The cause in a few words; requests' own text is a pile of nested representations."""
    text = str(error)
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy does not let us through"
    if isinstance(error, requests.exceptions.SSLError):
        cause = root_cause(error)
        return "its TLS certificate cannot be verified" if unverified(error) else f"TLS with it failed: {cause}"
    if isinstance(error, requests.exceptions.Timeout):
        return "no answer in time"
    if "NameResolutionError" in text or "Name or service not known" in text or "Failed to resolve" in text:
        return "its name cannot be resolved"
    for known in ("Connection refused", "No route to host", "Network is unreachable", "Connection reset by peer"):
        if known in text:
            return known.lower()
    return type(error).__name__


def proxy_environment() -> dict[str, str]:
    """The proxies that apt would use here, as environment variables: the environment's own, else apt's configuration.

    They go to tools by environment and not by argument: a proxy's address may hold a password; arguments are public.
    """
    names = ("http_proxy", "https_proxy", "no_proxy")
    proxies = {name: value for name in names if (value := os.environ.get(name) or os.environ.get(name.upper()))}
    for name, option in (("http_proxy", "Acquire::http::Proxy"), ("https_proxy", "Acquire::https::Proxy")):
        if name not in proxies and (value := _apt_option(option)):
            proxies[name] = value
    return proxies


def _apt_option(option: str) -> str | None:
    try:
        shown = run.run(["apt-config", "dump", "--format", "%f %v%n", option], timeout=10)
    except CommandError:
        return None  # not a Debian; then there is no apt configuration to honour
    value = next((line.partition(" ")[2].strip() for line in shown.splitlines() if line.startswith(f"{option} ")), "")
    return value if value and value != "DIRECT" else None
