"""`Range` and conditional headers, as RFC 9110 sections 13 and 14 have them. Pure.

What we choose where the RFC lets a server choose: a request for several ranges, and a malformed one, is answered with
the whole file (14.2: a server may ignore `Range`). No client of ours asks for several, and a multipart answer would
let one request order thousands of pieces.
"""

import re
from typing import Literal

_ONE = re.compile(r"bytes=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*", re.IGNORECASE | re.ASCII)
_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')

Span = tuple[int, int]
"""Offset and length, in bytes."""


def wanted_span(header: str | None, size: int) -> Span | Literal["whole", "unsatisfiable"]:
    """Which bytes of a file of `size` bytes a `Range` header asks for."""
    match = _ONE.fullmatch(header) if header is not None and len(header) <= 64 else None
    if match is None or match[1] == match[2] == "":
        return "whole"
    if match[1] == "":
        length = min(int(match[2]), size)
        return (size - length, length) if length else "unsatisfiable"
    first = int(match[1])
    last = int(match[2]) if match[2] else size - 1
    if match[2] and last < first:
        return "whole"  # malformed: to be ignored
    if first >= size:
        return "unsatisfiable"
    return first, min(last, size - 1) - first + 1


def none_match(header: str, tag: str) -> bool:
    """Whether `If-None-Match` has our tag (weak comparison), so that 304 is the answer."""
    return header.strip() == "*" or tag in (found.removeprefix("W/") for found in _TAG.findall(header))


def still_same(header: str, tag: str) -> bool:
    """Whether `If-Range` has our tag (strong comparison). A date never matches, for we send none."""
    return header.strip() == tag
