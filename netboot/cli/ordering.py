"""What commands that order something have in common: why, whether it is only tried, the request, and words for what
stands."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from netboot.cli import complete
from netboot.cli.client import Client, Connection, api_command
from netboot.cli.dry_run import Option, dry_run_option
from netboot.cli.output import show
from netboot.cli.times import moment

Answer = TypeVar("Answer", bound=Mapping[str, Any])
why_option: Option = click.option("--reason", required=True, help="Why, for whoever finds it so.")
may_say_why_option: Option = click.option("--reason", default="", help="Why, for the history.")


def by_name(_context: click.Context, _option: click.Parameter, value: str) -> str:
    """An argument MACHINE. One that asked and is in no inventory has no name yet, and is known by its MAC."""
    if re.fullmatch(r"([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}", value):
        remedy = f"`netboot machine declare {value} --name NAME --profile PROFILE` takes one that is in no inventory"
        raise click.BadParameter(f"{value} is a MAC address, and machines go by their names; {remedy}")
    return value


class _OfAMachine(click.Command):
    """Whoever takes it for what declares a machine gives it a MAC, and options that it has not: the MAC counts."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's. Raises click.BadParameter: as `by_name`, before an option that there is not."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption:
            machine = next(each for each in self.params if each.name == "machine")
            try:
                for word in given:
                    by_name(ctx, machine, word)
            except click.BadParameter as error:
                error.ctx, error.param = ctx, machine
                raise
            raise


def machine_act(
    how: Callable[[Client], Callable[[str, Any], Answer]],
    words: Callable[[Answer], str],
    *options: Option,
    why: Option = why_option,
) -> Callable[[Callable[[], None]], click.Command]:
    """A command of `netboot machine` that sends what its options say, each by its name in the API, and prints `words`
    of the answer; `how`: the act. The function that is decorated is its name and its help."""

    def made(function: Callable[[], None]) -> click.Command:
        name = function.__name__.replace("_", "-")

        def act(machine: str, connection: Connection, output: str, **body: Any) -> None:
            end = body.pop("until", {})
            answer = how(connection.open())(machine, body | end)
            show(output, answer, (), (), words(answer))

        act.__doc__ = function.__doc__
        command: Callable[..., None] = api_command(act)
        outwards: tuple[Option, ...] = (
            dry_run_option,
            *reversed(options),
            why,
            click.argument("machine", callback=by_name, shell_complete=complete.machines),
        )
        for option in outwards:
            command = option(command)
        return click.command(name, cls=_OfAMachine)(command)

    return made


def standing(what: Mapping[str, Any]) -> str:
    """Since when, by whom, until when where it ends by itself, and why."""
    end = what.get("until")
    until = f", until {moment(end)}" if end is not None else ""
    return f"since {moment(what['since'])} by {what['who']}{until}: {what['reason']}"
