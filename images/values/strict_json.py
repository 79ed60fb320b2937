"""JSON that any two parsers read alike: what they could differ about is refused (RFC 8259, 4, 6 and 8.1)."""

import json
import math
from collections import Counter
from typing import Any

LONGEST_NUMBER = 400
"""Characters; a double has at most 309 digits before its point."""


def read(body: bytes) -> Any:
    """What a JSON text says: in UTF-8, each name of an object once, no NaN and nothing infinite.

    Raises:
        ValueError: it is none, or could be read in two ways; says why.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    try:
        return json.loads(text, object_pairs_hook=_once, parse_int=_whole, parse_float=_finite, parse_constant=_finite)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    except RecursionError:
        raise ValueError("nested too deep") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object with {json.dumps(twice)[:100]} twice")
    return found


def _whole(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"a number that nobody can write down: {text[:20]}")
    return number
