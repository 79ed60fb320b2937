"""The one table of failures has a row for everything that can be raised on purpose."""

import logging
from types import ModuleType

import pytest

from images import errors as images
from images.values.strict import Fault, FaultsError
from netboot.failures import TABLE, UNEXPECTED, Answer, answer_to
from netboot.join import errors as join
from netboot.lifecycle import errors as lifecycle


def declared(module: ModuleType) -> set[type[BaseException]]:
    return {value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Exception)}


BUILDS = {
    images.RecipeError,
    images.NoSuchRecipeError,
    images.CommandError,
    images.TooMuchOutputError,
    images.SourceUnavailableError,
    images.LockError,
}
"""Raised by builds alone, and no server builds (an import contract); so are those of `images.values.finding`."""


def test_every_exception_that_a_server_may_meet_has_a_row_of_its_own() -> None:
    # these never leave: whoever meets them reads again, or is a controller and waits
    inner = {join.ConflictError, join.InvalidError, join.NotLeadingError, join.ElectionRefusedError}
    of_join = declared(join) - inner
    assert declared(lifecycle) | (declared(images) - BUILDS) | of_join | {FaultsError} == set(TABLE)


@pytest.mark.parametrize("answer", [*TABLE.values(), UNEXPECTED])
def test_every_row_makes_sense(answer: Answer) -> None:
    assert 400 <= answer.status < 600
    assert answer.code and answer.message and answer.remedy
    assert (answer.status in (429, 503)) == (answer.retry_after is not None)
    assert answer.level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def test_codes_tell_the_rows_apart() -> None:
    codes = [answer.code for answer in TABLE.values() if answer.code != "internal"]
    assert len(codes) == len(set(codes))


def test_cannot_tell_is_never_taken_for_not_found() -> None:
    for kind, answer in TABLE.items():
        if issubclass(kind, lifecycle.CannotTellError):
            assert (answer.status, answer.script) == (503, "unavailable")
        if answer.script == "refused":
            assert answer.status in (400, 401, 404)


def test_a_subclass_is_answered_as_the_nearest_of_its_bases() -> None:
    class DiskFullError(lifecycle.JournalUnavailableError):
        pass

    assert answer_to(DiskFullError()) is TABLE[lifecycle.JournalUnavailableError]


@pytest.mark.parametrize("error", [RuntimeError("/etc/secret"), KeyError("x"), OSError(5, "disk"), MemoryError()])
def test_what_nobody_foresaw_has_no_detail(error: Exception) -> None:
    answer = answer_to(error)
    assert (answer.status, answer.code, answer.text(error)) == (500, "internal", "internal error")


def test_words_written_for_the_client_reach_it_in_one_safe_line() -> None:
    error = lifecycle.NoSuchMachineError("no machine 'gpu\n\x1b[31m1'; did you mean 'gpu-1'?")
    assert answer_to(error).text(error) == "no machine 'gpu  [31m1'; did you mean 'gpu-1'?"
    assert answer_to(error).text(lifecycle.NoSuchMachineError()) == "no such machine"
    faults = FaultsError([Fault("a.yaml", 1, "x", "y" * 900)])
    assert len(answer_to(faults).text(faults)) == 500


def test_words_written_for_the_log_do_not() -> None:
    error = images.StoreError("/srv/store/blobs cannot be written: no space")
    assert answer_to(error).text(error) == "the store cannot be used right now"
