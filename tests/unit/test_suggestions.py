"""What is suggested for a command that there is not."""

import click
import pytest

from netboot.cli.main import cli
from netboot.cli.suggestions import DESTRUCTIVE, meant
from tests.commands import Run
from tests.unit.test_cli_help import commands

NAMES = {name: name.split()[-1] for name, _ in commands("", cli)}
GROUPS = {name.rpartition(" ")[0] for name in NAMES}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("machine create", "'declare'"),
        ("chanel", "'channel'"),
        ("machine holdd", "'hold' or 'holds' or 'unhold'"),
        ("machine del", "'delete-node'"),
        ("machine delete", "'undeclare'"),
        ("key retir", "'retire'"),
        ("key remove", None),
        ("image ls", "'list'"),
        ("image remove", "'rm'"),
        ("boot zzz", None),
    ],
)
def test_what_is_suggested(run: Run, words: str, said: str | None) -> None:
    ran = run(*words.split())
    *group, typed = words.split()
    means = f"Did you mean {said}?" if said else f"`{' '.join(('netboot', *group))} --help` lists them."
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.splitlines()[-1] == f"Error: No such command {typed!r}. {means}"


def test_what_destroys_is_named_for_a_slip_of_it_alone() -> None:
    there = set(NAMES.values())
    assert there >= DESTRUCTIVE, "each is a command"
    for group in GROUPS:
        inside = {name.split()[-1] for name in NAMES if name.rpartition(" ")[0] == group}
        for typed in there - inside - DESTRUCTIVE:
            assert not set(meant(typed, inside)) & DESTRUCTIVE, (group, typed)
    assert meant("create", ["retire", "replace", "readmit"]) == []


def test_options_are_suggested_by_click(run: Run) -> None:
    assert run("image", "gc", "--dry-rn").err.endswith("Did you mean '--dry-run'?\n")
    assert issubclass(click.NoSuchCommand, click.UsageError)
