"""Why something was not done, as three outcomes that stay three: unknown, not allowed, cannot tell right now."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_UNKNOWN = frozenset({404})
_NOT_ALLOWED = frozenset({401, 403, 409, 412, 422})
_CANNOT_TELL = frozenset({502, 503, 504})

_NOT_TOLD = frozenset({"still-running", "outcome-unknown"})
"""Of an act that was asked for before with the same key."""
_FAILED = frozenset({"answer-not-kept", "corrupt", "done-in-part"})
"""None of the three: likewise, and it was done, or a part of it; what is stored is damaged, and stays so however often
one asks."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What the service said (RFC 9457): docs/http-management.md has the codes. `instance`: the request's id, as in the
    service's log; `field`: the value of the request that is to blame; `faults`: of a list, every one."""

    status: int
    code: str
    title: str
    detail: str
    remedy: str
    instance: str = ""
    field: str | None = None
    faults: tuple[str, ...] = ()


class ClientError(Exception):
    """Something was not done, and why in words. `remedy`: what to do, empty where nobody knows; `problem`: what the
    service said, None where it said nothing; `retry_after`: in how many seconds to ask again, where it said so."""

    def __init__(self, message: str, remedy: str = "", problem: Problem | None = None) -> None:
        super().__init__(f"{message}\nRemedy: {remedy}" if remedy else message)
        self.retry_after: float | None = None
        self.message, self.remedy, self.problem = message, remedy, problem


class UnknownError(ClientError):
    """There is no such thing."""


class NotAllowedError(ClientError):
    """It may not be: by the role, or as things are."""


class CannotTellError(ClientError):
    """Nobody can tell right now: try again."""


class FailedError(ClientError):
    """None of the three: the request makes no sense, something is broken, or it was done and its answer is gone."""


def of_problem(said: Mapping[str, Any]) -> ClientError:
    """What an answer in `application/problem+json` means.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    problem = Problem(
        status=int(said["status"]),
        code=str(said["code"]),
        title=str(said["title"]),
        detail=str(said["detail"]),
        remedy=str(said["remedy"]),
        instance=str(said.get("instance", "")),
        field=str(said["field"]) if said.get("field") is not None else None,
        faults=tuple(map(str, said.get("faults") or ())),
    )
    message = "\n".join([*problem.faults, problem.detail])
    return kind_of(problem.status, problem.code)(message, problem.remedy, problem)


def kind_of(status: int, code: str) -> type[ClientError]:
    """Which of the outcomes an answer with this status and code is."""
    if code in _NOT_TOLD:
        return CannotTellError
    if code in _FAILED:
        return FailedError
    if status in _UNKNOWN:
        return UnknownError
    if status in _NOT_ALLOWED:
        return NotAllowedError
    return CannotTellError if status in _CANNOT_TELL else FailedError
