"""The `netboot` command, called in this process."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from netboot.cli.main import main


class Ran(NamedTuple):
    """Exit status and what was said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


def caller(capsys: pytest.CaptureFixture[str]) -> Run:
    """`caller(capsys)("image", "list")`: as a shell would see it."""

    def call(*arguments: object) -> Ran:
        status = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as error:
            status = int(error.code or 0)
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return call


def said(run: Run, *arguments: str) -> str:
    """What a command says that succeeds, and complains of nothing."""
    ran = run(*arguments)
    assert (ran.status, ran.err) == (0, "")
    return ran.out
