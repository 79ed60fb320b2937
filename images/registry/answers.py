"""What a place over HTTP answers, or fails to, in words: found, absent, not allowed, cannot tell right now."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import requests
import urllib3

from images.registry.errors import AbsentError, DamagedError, DeniedError, RegistryError, UnreachableError
from images.values.faults import root_cause, unverified

TIMEOUT = (10.0, 60.0)
"""Seconds to connect, and of silence that are too many."""
BLOCK = 1 << 20
_AGAIN = (408, 425, 429)


@dataclass(frozen=True, slots=True)
class Stream:
    """Bytes of a blob from `start` on: where a place cannot continue, from 0 again."""

    start: int
    blocks: Iterator[bytes]


@contextmanager
def in_words(where: str, what: str) -> Iterator[None]:
    """Failures of `requests` as ours. `where`: the place; `what`: that was asked for.

    Raises:
        RegistryError and its kin.
    """
    try:
        yield
    except requests.exceptions.HTTPError as error:
        if error.response is None:
            raise UnreachableError(f"{where} cannot be reached: {error}") from None
        error.response.close()
        raise _refusal(error.response, where, what) from None
    except requests.exceptions.SSLError as error:
        if not unverified(error):
            raise UnreachableError(f"TLS with {where} failed, not for its certificate: {root_cause(error)}") from None
        raise RegistryError(
            f"{where} is not believed: {root_cause(error)}; give the authority of its certificate (--authority)"
        ) from None
    except requests.exceptions.ConnectTimeout:
        raise UnreachableError(f"{where} could not be reached within {TIMEOUT[0]:.0f} s") from None
    except requests.exceptions.Timeout:
        raise UnreachableError(f"{where} has said nothing for {TIMEOUT[1]:.0f} s") from None
    except urllib3.exceptions.ReadTimeoutError:
        raise UnreachableError(f"{where} has said nothing for {TIMEOUT[1]:.0f} s") from None
    except (requests.exceptions.ChunkedEncodingError, urllib3.exceptions.HTTPError):
        raise UnreachableError(f"{where} broke off in the middle of {what}") from None
    except (requests.exceptions.RequestException, OSError) as error:
        raise UnreachableError(f"{where} cannot be reached: {root_cause(error)}") from None


def stream(answer: requests.Response, offset: int, size: int, where: str, what: str) -> Stream:
    """The body of an answer to a request for bytes from `offset` on, of `size` in all.

    Raises:
        DamagedError: the place has another number of bytes.
    """
    start, total = (offset, _total(answer)) if answer.status_code == 206 else (0, _length(answer))
    if total is not None and total != size:
        answer.close()
        raise DamagedError(f"{what} of {where} is damaged: it has {total} bytes there, {size} were signed")
    return Stream(start, _read(answer, where, what))


def bounded(answer: requests.Response, most: int, where: str, what: str) -> bytes:
    """A small answer whole.

    Raises:
        RegistryError: it is larger than `most` bytes. UnreachableError: it broke off.
    """
    data = bytearray()
    for block in _read(answer, where, what):
        data += block
        if len(data) > most:
            raise RegistryError(f"{what} of {where} has more than {most} bytes: it is none of ours")
    return bytes(data)


def _read(answer: requests.Response, where: str, what: str) -> Iterator[bytes]:
    """As it arrives: `iter_content` would lose the part of a block that came before a connection broke."""
    with answer, in_words(where, what):
        while block := answer.raw.read1(BLOCK, decode_content=False):
            yield block


def _refusal(answer: requests.Response, where: str, what: str) -> RegistryError:
    status = answer.status_code
    if status == 401:
        return DeniedError(f"{where} wants a login for {what}")
    if status == 403:
        return DeniedError(f"{where} does not allow {what}: this account may not, ask who keeps it")
    if status == 404:
        return AbsentError(f"{where} has no {what}")
    if status in _AGAIN or status >= 500:
        return UnreachableError(f"{where} cannot answer right now: status {status} for {what}", _after(answer))
    return RegistryError(f"{where} refuses {what}: status {status}")


def _after(answer: requests.Response) -> float | None:
    """Only seconds; a date is for places with a clock like ours."""
    header = answer.headers.get("Retry-After", "")
    return float(header) if header.isascii() and header.isdigit() and len(header) < 6 else None


def _length(answer: requests.Response) -> int | None:
    return _number(answer.headers.get("Content-Length", ""))


def _total(answer: requests.Response) -> int | None:
    return _number(answer.headers.get("Content-Range", "").rpartition("/")[2])


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
