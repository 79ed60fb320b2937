"""What pydantic says of a value that does not fit its model, in the words that our messages have."""

from dataclasses import dataclass

from pydantic import ValidationError


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
