"""The words that our messages have: what pydantic says of a value, OpenSSL of a host; lists that may be long."""

import difflib
import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

REQUIRED = "this key is required"

LONGEST_KEY = 100
"""Characters of one part of where a fault is."""


@dataclass(frozen=True, slots=True)
class FirstFault:
    """The first thing that is wrong with a value that some program made: where, and in which words."""

    location: tuple[int | str, ...]
    message: str

    @property
    def key(self) -> str:
        """Dotted, like `artifacts.root.size`; empty: the value as such is wrong. A key may be a stranger's own: what no
        line of a log can show of it is a question mark, and a long one is cut."""
        return ".".join(
            "".join(c if c.isprintable() else "?" for c in str(part)[:LONGEST_KEY]) for part in self.location
        )

    def __str__(self) -> str:
        return f"{self.key}: {self.message}" if self.location else self.message


def first_fault(error: ValidationError) -> FirstFault:
    """Pydantic's first error; what was given is not in it, for it may be a secret, or long, or not printable."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return FirstFault(first["loc"], bare(first["msg"]))


def first_told(error: ValidationError, valid: Callable[[tuple[int | str, ...]], Sequence[str]]) -> FirstFault:
    """The first error of a value that somebody wrote, in the words of `told`. `valid`: the keys that there are where
    one was not known."""
    item, words = next(told(error.errors(include_url=False)))
    if item["type"] == "extra_forbidden":
        words = unknown_key(str(item["loc"][-1]), valid(item["loc"][:-1]))
    return FirstFault(item["loc"], REQUIRED if item["type"] == "missing" else words)


def bare(message: str) -> str:
    """A validator's own words, without the name of the exception that carried them."""
    return message.removeprefix("Value error, ")


_MUST_BE = {
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "keys with values",
    "model_type": "keys with values",
}
_SHORT = "too_short"
_WRITTEN = {
    "string_type": "must be text: put a number, true, false or a date into quotes",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "path_type": "must be a path",
    "invalid_key": "a key must be text: put it into quotes",
    "ip_v4_address": "must be an IPv4 address",
    "ip_v6_address": "must be an IPv6 address",
    "ip_v4_network": "must be a network like 192.0.2.0/24",
    "ip_v6_network": "must be a network like 2001:db8::/32",
    "none_required": "must be left out",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "greater_than_equal": "must be {ge} at least",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be {le} at most",
    "less_than": "must be less than {lt}",
    "string_too_short": "must have {min_length} characters at least",
    "string_too_long": "must have {max_length} characters at most",
    "too_long": "must have {max_length} entries at most, and has {actual_length}",
    "string_pattern_mismatch": "has characters, or a form, that it may not have",
}
"""What pydantic says of its own types, by the kind of the error, with names of its context."""


def told(errors: Sequence[ErrorDetails]) -> Iterator[tuple[ErrorDetails, str]]:
    """Each error of a value that somebody wrote, in words about what was written: there is no tuple in YAML, and a list
    is not too short for that its entries have faults of their own."""
    for item in errors:
        context: dict[str, Any] = item.get("ctx") or {}
        least = context.get("min_length")
        if item["type"] == _SHORT and isinstance(item["input"], list) and len(item["input"]) >= (least or 0):
            continue
        if item["type"] in _MUST_BE:
            yield item, f"must be {_MUST_BE[item['type']]}"
        elif item["type"] == _SHORT:
            yield item, f"must have {least} entr{'y' if least == 1 else 'ies'} at least, and has {len(item['input'])}"
        elif item["type"] == "string_too_short" and least == 1:
            yield item, "must not be empty"
        elif item["type"] in _WRITTEN:
            said = {name: f"{value:g}" if isinstance(value, float) else value for name, value in context.items()}
            yield item, _WRITTEN[item["type"]].format_map(said)
        else:
            yield item, bare(item["msg"]).replace("Input should ", "must ", 1)


_TAB = "a tab stands here: YAML is indented by spaces, write some in its place"


def stumbled(error: yaml.MarkedYAMLError, text: str) -> str:
    """What YAML's parser says; of a character that it stumbles over, which one that is and what to do."""
    mark = error.problem_mark
    problem = str(error.problem)
    if "found a tab character" in problem:
        return _TAB
    if mark is None or "cannot start any token" not in problem:
        return problem
    line = text.split("\n")[mark.line]
    if "\t" in line[: mark.column + 1]:
        return _TAB
    return f"{line[mark.column : mark.column + 1]!r} begins no value: put the value into quotes"


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


def dotted(location: tuple[int | str, ...]) -> str:
    """Where a fault is, like `machines[0].match.macs[1]`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def unknown_key(name: str, valid: Sequence[str]) -> str:
    """What is said of a key that there is not: which may have been meant."""
    near = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"valid keys: {', '.join(sorted(valid))}"
    return f"unknown key; {hint}"


def item_of(location: Sequence[int | str], value: Any) -> str:
    """`list/name` of the item of a list that this leads into; "" where it leads into none that has a name."""
    if len(location) < 2 or not isinstance(location[1], int):
        return ""
    items = value.get(location[0])
    item = items[location[1]] if isinstance(items, list) and location[1] < len(items) else None
    name = item.get("name") if isinstance(item, dict) else None
    return f"{location[0]}/{name}" if isinstance(name, str) else ""
