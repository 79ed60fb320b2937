"""Query parameters: a few, each with its bounds."""

from collections.abc import Collection

from flask import request

from netboot.lifecycle.errors import BadClaimError


def only(names: Collection[str]) -> None:
    """Refuse parameters that are not there: a misspelt filter must not look like an answer.

    Raises:
        BadClaimError: naming them.
    """
    unknown = sorted(set(request.args) - set(names))
    if unknown:
        raise BadClaimError(f"unknown parameters: {', '.join(unknown)[:100]}; there are: {', '.join(sorted(names))}")


def whole(name: str, default: int, least: int, most: int) -> int:
    """A whole number.

    Raises:
        BadClaimError: it is not one, or out of bounds.
    """
    text = request.args.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19 and least <= int(text) <= most):
        raise BadClaimError(f"{name} must be a whole number from {least} to {most}")
    return int(text)


def flag(name: str) -> bool:
    """`1`, `true`, `yes`, or the opposite; not there is no.

    Raises:
        BadClaimError: anything else.
    """
    text = request.args.get(name, "no").lower()
    if text not in {"1", "true", "yes", "0", "false", "no"}:
        raise BadClaimError(f"{name} must be yes or no")
    return text in {"1", "true", "yes"}
