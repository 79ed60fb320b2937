"""What a view's signature says of it: which query and body it reads, and what it answers.

A view takes the variables of its path, and where it reads them `query` and `body`, each a model; it returns a model.
That one signature checks requests, makes answers and is described in the API's document (`netboot.web.openapi`). A view
that returns a `Response` makes it by itself.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial, wraps
from types import UnionType
from typing import Any, ClassVar, NamedTuple, Union, get_args, get_origin, get_type_hints

from flask import Response
from pydantic import BaseModel, ConfigDict

from images.values.strict import Strict
from netboot.web import inputs, moments

View = Callable[..., Any]
Around = Callable[[Callable[[], Any], Mapping[str, Any]], Response]
"""Makes the answer from what calls the view, once what it reads has been checked, and the variables of its path."""


class Shown(Strict):
    """Base of what views answer, by its names on the wire."""

    model_config = ConfigDict(serialize_by_alias=True)
    http_status: ClassVar[int] = 200
    http_kept: ClassVar[bool] = True
    """False: it may hold a secret, or who did what, and nobody on the way may keep it."""


class Signature(NamedTuple):
    """Of a view. `answers`: empty where it makes its `Response` by itself."""

    query: type[Strict] | None
    body: type[Strict] | None
    answers: tuple[type[BaseModel], ...]


def signature(view: View) -> Signature:
    """What its annotations say."""
    hints = get_type_hints(view)
    said = hints.get("return")
    answers = get_args(said) if get_origin(said) in (Union, UnionType) else (said,)
    models = tuple(each for each in answers if isinstance(each, type) and issubclass(each, BaseModel))
    return Signature(hints.get("query"), hints.get("body"), models)


def _plainly(call: Callable[[], Any], _path: Mapping[str, Any]) -> Response:
    return shown(call())


def bound(view: View, around: Around = _plainly) -> View:
    """The view as Flask calls it."""
    said = signature(view)
    if not said.answers and said.query is None:
        return view

    @wraps(view)
    def answer(**path: Any) -> Response:
        read: dict[str, Any] = {}
        if said.query is not None:
            read["query"] = inputs.asked(said.query)
        else:
            inputs.only(())
        if said.body is not None:
            read["body"] = inputs.parsed(said.body)
        else:
            inputs.bare()
        return around(partial(view, **path, **read), path)

    return answer


def plain(value: BaseModel) -> dict[str, Any]:
    """A model as plain JSON values, as they are on the wire."""
    said: dict[str, Any] = moments.on_wire(value.model_dump(mode="json", by_alias=True))
    return said


def shown(model: BaseModel | Response) -> Response:
    """A model as an answer; what is one already, as it is."""
    if isinstance(model, Response):
        return model
    headers: Mapping[str, str] = {} if getattr(model, "http_kept", True) else {"Cache-Control": "no-store"}
    text = json.dumps(plain(model), ensure_ascii=False, separators=(",", ":")) + "\n"
    return Response(text, getattr(model, "http_status", 200), headers, mimetype="application/json")
