"""Base types of what operators declare and images are made of: names, digests, addresses."""

import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, StringConstraints
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function


@dataclass(frozen=True, slots=True)
class Matching:
    """A pattern whose fault says what is allowed, not how it is checked; a JSON Schema has the pattern.

    In `message`, `{value}` stands for what was given.
    """

    pattern: str
    message: str
    _compiled: re.Pattern[str] = field(init=False, repr=False, compare=False)
    """Ten of them check each record that the projection reads, and `re`'s own memory of patterns costs more than most
    matches."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compiled", re.compile(self.pattern, re.ASCII))

    def fits(self, value: str) -> bool:
        """Whether all of a text is as the pattern has it."""
        return self._compiled.fullmatch(value) is not None

    def check(self, value: str) -> str:
        """The value, for pydantic; else a ValueError."""
        if self._compiled.fullmatch(value) is None:
            raise ValueError(self.message.replace("{value}", repr(value)))
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(schema) | {"pattern": f"^({self.pattern})$"}


SHA256 = Matching(r"[0-9a-f]{64}", "must be a SHA-256 digest: 64 lower-case hexadecimal characters")
Sha256 = Annotated[str, SHA256]
NAME = Matching(
    r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?",
    "must be lower-case letters, digits, '-' and '.', at most 63, beginning and ending with a letter or digit",
)
Name = Annotated[str, NAME]
HttpUrl = Annotated[
    str,
    StringConstraints(max_length=300),
    Matching(
        r"https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?",
        "must be a URL like http://192.0.2.1:8080/images, without a user, a query, quotes or spaces",
    ),
]
"""A URL that is safe in a script, on a kernel command line and in a shell: no user, query, quotes or spaces."""
Architecture = Literal["amd64", "arm64"]
RootFormat = Literal["squashfs", "erofs"]
