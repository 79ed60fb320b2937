"""`--help` teaches: every command shows itself at work."""

import shlex
from collections.abc import Iterator

import click
import pytest

from netboot.cli.commands import cli
from netboot.lifecycle.phases import Phase
from tests.commands import Run


def commands(name: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for sub in group.list_commands(context):
        command = group.get_command(context, sub)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(f"{name}{sub} ", command)
        elif not command.hidden:
            yield f"{name}{sub}", command


@pytest.mark.parametrize(("name", "command"), list(commands("", cli)))
def test_every_command_shows_itself_at_work(name: str, command: click.Command) -> None:
    examples = [line.strip() for line in (command.help or "").splitlines() if f"netboot {name}" in line]
    assert examples
    for example in examples:
        words = shlex.split(example[example.index(f"netboot {name}") :].partition("|")[0].partition("   ")[0])
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("-") and word != "-"} <= known


def test_a_phase_that_there_is_not_is_not_waited_for(run: Run) -> None:
    ran = run("boot", "watch", "--until", "Nope")
    assert ran.status == 2
    assert "Invalid value for '--until': 'Nope' is not one of" in ran.err
    assert all(phase in ran.err for phase in Phase)
