"""What a request says: query parameters and JSON, each of a declared shape, or a 400 in words."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from flask import request
from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from werkzeug.exceptions import HTTPException, UnsupportedMediaType
from werkzeug.routing import IntegerConverter

from images.values import strict_json
from images.values.faults import first_told
from images.values.strict import fields
from netboot.lifecycle.errors import BadClaimError

M = TypeVar("M", bound=BaseModel)
CSV = "text/csv"
"""The one kind of body that is a list."""


class Whole:
    """Of a parameter: a whole number within bounds, in digits and nothing else."""

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = least, most

    def __get_pydantic_core_schema__(self, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "integer", "minimum": self._least, "maximum": self._most}

    def _read(self, value: object) -> int:
        text = str(value)
        if not (text.isascii() and text.isdigit() and len(text) < 20 and self._least <= int(text) <= self._most):
            raise ValueError(f"must be a whole number from {self._least} to {self._most}")
        return int(text)


class Number(IntegerConverter):
    """Of a path: a whole number in one spelling, that a database can hold; neither `03` nor `٣` is 3."""

    regex = "(?:0|[1-9][0-9]{0,17})"


def parsed(model: type[M]) -> M:
    """The body of this request, of just those types: no text for a number, no number for a boolean.

    Raises:
        BadClaimError: not JSON of that shape; names the first fault. UnsupportedMediaType: it is not said to be JSON.
    """
    _json()
    try:
        return model.model_validate_json(request.get_data(), strict=True)
    except ValidationError as error:
        fault = first_told(error, partial(fields, model))
        if not fault.key:
            raise BadClaimError(f"the body: {fault.message}") from None
        raise BadClaimError(fault.message, field=fault.key) from None


def of_kind(kind: str) -> None:
    """See that a body which is no JSON is said to be of its kind.

    Raises:
        UnsupportedMediaType: it is not.
    """
    if request.mimetype != kind:
        raise UnsupportedMediaType(f"The body has to be of the Content-Type {kind}")
    _uncoded()


def bare() -> None:
    """See that a DELETE, which says all by its path and query, has no body that somebody believes is heeded.

    Raises:
        BadClaimError: it has one.
    """
    if request.method == "DELETE" and request.get_data():
        raise BadClaimError("the body: there is none here; what is to be said stands in the query")


def dry_run() -> bool:
    """Whether it is asked only what would be, by the body, or by the query where there is none, or a list; not, where
    that cannot be read."""
    if request.method == "DELETE" or request.mimetype == CSV:
        return request.args.get("dry_run") == "true"
    return sent().get("dry_run") is True


def sent() -> Mapping[str, Any]:
    """The body, unchecked; nothing where it cannot be read, or is no object."""
    try:
        said = _json()
    except (BadClaimError, HTTPException):
        return {}
    return said if isinstance(said, dict) else {}


def _json() -> Any:
    if request.mimetype != "application/json":
        raise UnsupportedMediaType("The body has to be JSON, with Content-Type: application/json")
    _uncoded()
    if request.mimetype_params.get("charset", "utf-8").lower() != "utf-8":
        raise BadClaimError("JSON is UTF-8 alone", field="Content-Type")
    try:
        return strict_json.read(request.get_data())
    except ValueError as error:
        raise BadClaimError(f"the body is {error}") from None


def _uncoded() -> None:
    """See that a body is what somebody on the way, who looks into it, takes it for, too.

    Raises:
        BadClaimError: it is said to be compressed.
    """
    for name, plain in (("Content-Encoding", "identity"), ("Transfer-Encoding", "chunked")):
        if request.headers.get(name, plain).strip().lower() != plain:
            raise BadClaimError("a body is read as it is sent, and in no coding", field=name)


def asked(model: type[M]) -> M:
    """The query parameters of this request.

    Raises:
        BadClaimError: one that there is not, is there twice, or is not of that shape; names the first fault.
    """
    names = {field.alias or name for name, field in model.model_fields.items()}
    only(names)
    twice = sorted(name for name, values in request.args.lists() if len(values) > 1)
    if twice:
        raise BadClaimError("is given more than once", field=twice[0])
    values: dict[str, Any] = request.args.to_dict()
    try:
        return model.model_validate(values)
    except ValidationError as error:
        fault = first_told(error, partial(fields, model))
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
        raise BadClaimError(
            f"unknown parameters: {', '.join(unknown)[:100]}; there are: {', '.join(sorted(names)) or 'none'}"
        )
