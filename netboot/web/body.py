"""Bodies of requests: JSON of a declared shape, or a 400 that says what is wrong with it."""

from typing import TypeVar

from flask import request
from pydantic import BaseModel, ValidationError

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
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise BadClaimError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None
