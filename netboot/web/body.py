"""Bodies of requests: JSON of a declared shape, or a 400 that says what is wrong with it."""

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
        raise BadClaimError(f"{fault.key or 'the body'}: {fault.message}") from None
