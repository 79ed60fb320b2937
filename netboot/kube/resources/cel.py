"""Rules in the Common Expression Language, as the API server checks them of an object (`x-kubernetes-validations`)."""

import re
from collections.abc import Iterable
from typing import Any

Schema = dict[str, Any]
RULES = "x-kubernetes-validations"
MOST_REPEATS = 1000
"""Of one part of a pattern: `maxRepeat` of Go's regexp/syntax."""
_NOT_RE2 = re.compile(r"\(\?(?!:)|\\[1-9]|\\[ZAGkgpPX]|[*+?}]\+")
"""Look-around, back-references, possessive quantifiers, Python's own anchors and flags:
https://github.com/google/re2/wiki/Syntax."""


class NotExpressibleError(TypeError):
    """A model says what no schema of a custom resource can say as it stands. A defect of ours, never an operator's."""


def rule(expression: str, message: str) -> Schema:
    """One rule about `self`, and what is said where it does not hold."""
    return {"rule": expression, "message": message}


def with_rules(schema: Schema, *rules: Schema) -> Schema:
    """The schema with more rules."""
    return {**schema, RULES: [*schema.get(RULES, ()), *rules]}


def literal(text: str) -> str:
    """A text or a pattern, as CEL has it."""
    if "'" in text or "\n" in text:
        raise NotExpressibleError(f"{text!r} cannot stand between single quotes")
    return f"r'{text}'"


def listed(texts: Iterable[str]) -> str:
    """A list of texts, as CEL has it."""
    return f"[{', '.join(map(literal, texts))}]"


def pattern(text: str) -> str:
    """A pattern of Python's that means the same to Go's `regexp`, which API servers use.

    Raises:
        NotExpressibleError: it has something that Go's does not have, or that means another thing there.
    """
    repeats = [int(number) for number in re.findall(r"[{,](\d+)(?=[,}])", text)]
    if _NOT_RE2.search(text) or any(number > MOST_REPEATS for number in repeats):
        raise NotExpressibleError(f"the pattern {text!r} is none of RE2")
    if not (text.startswith("^") and text.endswith("$")):
        raise NotExpressibleError(f"the pattern {text!r} does not hold a whole text: ^…$")
    return text
