"""What a request says: query parameters, each with its bounds, and JSON of a declared shape, or a 400 in words."""

from collections.abc import Collection
from typing import TypeVar

from flask import request
from pydantic import BaseModel, ValidationError

from images.values.faults import first_fault
from netboot.lifecycle.errors import BadClaimError

M = TypeVar("M", bound=BaseModel)


def parsed(model: type[M]) -> M:
    """The body of this request.

    Raises:
        BadClaimError: not JSON of that shape; names the first fault. werkzeug's for what is not JSON at all.
    """
    try:
        return model.model_validate(request.get_json())
    except ValidationError as error:
        fault = first_fault(error)
        if not fault.key:
            raise BadClaimError(f"the body: {fault.message}") from None
        raise BadClaimError(fault.message, field=fault.key) from None


def one_line(text: str) -> str:
    """What people say, and other people's terminals show: no control characters, no second line.

    Raises:
        ValueError: it has some.
    """
    if not text.isprintable():
        raise ValueError("must be one line of printable text")
    return text


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
