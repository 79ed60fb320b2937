"""The words that our messages have: what pydantic says of a value, OpenSSL of a host; lists that may be long."""

import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

REQUIRED = "this key is required"


@dataclass(frozen=True, slots=True)
class FirstFault:
    """The first thing that is wrong with a value that some program made: where, and in which words."""

    location: tuple[int | str, ...]
    message: str

    @property
    def key(self) -> str:
        """Dotted, like `artifacts.root.size`; empty: the value as such is wrong."""
        return ".".join(map(str, self.location))

    def __str__(self) -> str:
        return f"{self.key}: {self.message}" if self.location else self.message


def first_fault(error: ValidationError) -> FirstFault:
    """Pydantic's first error; what was given is not in it, for it may be a secret, or long, or not printable."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return FirstFault(first["loc"], bare(first["msg"]))


def bare(message: str) -> str:
    """A validator's own words, without the name of the exception that carried them."""
    return message.removeprefix("Value error, ")


def root_cause(error: BaseException) -> str:
    """The words of the exception that was first: those above it name objects in memory, or say the same less well."""
    *_, first = _causes(error)
    if isinstance(first, ssl.SSLCertVerificationError):
        return first.verify_message
    reason = getattr(first, "reason", None)  # OpenSSL's; one that Python's own code makes has none
    if isinstance(first, ssl.SSLError) and reason:
        return str(reason).lower().replace("_", " ")  # `strerror` says it twice, and a line of Python's source
    return (first.strerror if isinstance(first, OSError) else None) or str(first)


def unverified(error: BaseException) -> bool:
    """Whether a certificate that was not believed is the cause. TLS fails for other reasons, too, which the next try
    may not meet."""
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception, then what it came of, the very first last."""
    while True:
        yield error
        cause = error.__cause__ or error.__context__
        if cause is None:
            return
        error = cause


def first_few(items: Sequence[object], most: int = 3) -> str:
    """`a, b, c and 4 more`: the first `most` of a list, and how many are left out."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(map(str, items[:most])) + more
