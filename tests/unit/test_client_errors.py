"""What an answer of the service comes to in the client: three outcomes, or a failure."""

import pytest

from netboot.client import CannotTellError, ClientError, FailedError, NotAllowedError, UnknownError
from netboot.client.errors import of_problem

SAID = {"code": "x", "title": "t", "detail": "it is so", "remedy": "do that"}


@pytest.mark.parametrize(
    ("kind", "statuses"),
    [
        (UnknownError, (404,)),
        (NotAllowedError, (401, 403, 409, 422)),
        (CannotTellError, (502, 503, 504)),
        (FailedError, (400, 405, 413, 415, 500)),
    ],
)
def test_an_outcome_is_by_the_status(kind: type[ClientError], statuses: tuple[int, ...]) -> None:
    for status in statuses:
        error = of_problem(SAID | {"status": status})
        assert (type(error), str(error)) == (kind, "it is so\nRemedy: do that")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("still-running", CannotTellError),
        ("outcome-unknown", CannotTellError),
        ("answer-not-kept", FailedError),
        ("done-in-part", FailedError),
    ],
)
def test_of_what_was_asked_for_before_none_was_not_allowed(code: str, kind: type[ClientError]) -> None:
    error = of_problem(SAID | {"status": 409, "code": code})
    assert (type(error), error.problem is not None and error.problem.code) == (kind, code)


def test_faults_stand_before_what_they_come_to() -> None:
    error = of_problem(SAID | {"status": 422, "faults": ["list:2: no", "list:3: no"], "field": "file"})
    assert error.message == "list:2: no\nlist:3: no\nit is so"
    assert error.problem is not None
    assert (error.problem.field, error.problem.faults) == ("file", ("list:2: no", "list:3: no"))


@pytest.mark.parametrize("said", [{}, {"status": 404}, SAID, SAID | {"status": "x"}])
def test_what_is_no_problem_of_ours_is_none(said: dict[str, object]) -> None:
    with pytest.raises((KeyError, ValueError)):
        of_problem(said)
