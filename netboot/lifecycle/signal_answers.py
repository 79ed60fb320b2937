"""What those answer who say whether anything may begin: a hook, or Prometheus. Pure.

Read strictly: what is not one of the two answers is neither, and whoever asked cannot tell.

Source: https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from images.values import strict_json
from images.values.faults import first_fault
from images.values.strict import Strict
from netboot.lifecycle.errors import CannotTellError
from netboot.machines.maintenance import Signal

LONGEST_ANSWER = 65_536
OTHER_TIME_SECONDS = 300
"""Between when a query was answered, as Prometheus says, and now."""
LONGEST_WORDS = 200
"""Characters of a reason that is not ours; the rest is cut off."""


class _Hook(Strict):
    pause: Annotated[bool, Field(strict=True)]
    reason: str = ""


class _Foreign(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", hide_input_in_errors=True)


Point = tuple[float | int, str]
"""Seconds since 1970, and a number as text."""


class _Sample(_Foreign):
    value: Annotated[Point, Field(strict=False)]


class _Vector(_Foreign):
    kind: Annotated[Literal["vector"], Field(alias="resultType")]
    result: Annotated[list[_Sample], Field(min_length=1, max_length=1)]


class _Scalar(_Foreign):
    kind: Annotated[Literal["scalar"], Field(alias="resultType")]
    result: Annotated[Point, Field(strict=False)]


class _Answer(_Foreign):
    status: Literal["success"]
    data: Annotated[_Vector | _Scalar, Field(discriminator="kind")]
    warnings: Annotated[list[Any], Field(max_length=0)] = []
    """Such as that one of several places could not be asked: then the number is not the whole truth."""
    partial: Annotated[Literal[False], Field(alias="isPartial")] = False
    """The same in VictoriaMetrics' words."""


def of_hook(body: bytes, where: str) -> Signal:
    """`{"pause": false}`, or `{"pause": true, "reason": "..."}`, and nothing else.

    Raises:
        CannotTellError: it is neither.
    """
    try:
        said = _Hook.model_validate(_json(body))
    except ValidationError as error:
        raise CannotTellError(f"it answers something else: {first_fault(error)}") from None
    if not said.pause:
        return Signal(may=True, reason=f"{where} lets things begin")
    return Signal(may=False, reason=f"{where} says: {_printable(said.reason) or 'pause'}")


def of_prometheus(body: bytes, where: str, now: float) -> Signal:
    """An instant query's answer that is one number: 0 lets things begin, any other does not. `now`: seconds since 1970.

    Raises:
        CannotTellError: it is none, several, or not a number; an error, or a warning that it may not be the whole; or
        it is of another time.
    """
    try:
        data = _Answer.model_validate(_json(body)).data
        at, text = data.result if data.kind == "scalar" else data.result[0].value
        number = float(text)
    except ValidationError as error:
        raise CannotTellError(f"it answers something else than one number: {first_fault(error)}") from None
    except ValueError:
        raise CannotTellError("it answers something else than one number") from None
    if not abs(at - now) <= OTHER_TIME_SECONDS:
        raise CannotTellError("its answer is of another time: a cache has it, or one of the two clocks is wrong")
    if number != number:
        raise CannotTellError("the query is NaN, which is no number")
    if number == 0:
        return Signal(may=True, reason=f"the query of {where} is 0, which lets things begin")
    return Signal(may=False, reason=f"the query of {where} is {number:g}, and 0 alone lets things begin")


def _json(body: bytes) -> Any:
    try:
        return strict_json.read(body)
    except ValueError:
        raise CannotTellError("it answers something else: no JSON") from None


def _printable(text: str) -> str:
    """One line that a terminal shows as it is."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:LONGEST_WORDS]
