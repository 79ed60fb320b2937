"""`--dry-run[=client|server]`, as kubectl has it."""

from collections.abc import Callable, Sequence

import click

Option = Callable[[Callable[..., None]], Callable[..., None]]
SHOWS_REQUESTS = "netboot.cli.shows_requests"
"""In a context's `meta`: nothing is sent that would change anything."""


def explicit(arguments: Sequence[str]) -> list[str]:
    """The arguments, in which a bare `--dry-run` is the server's: click would take the next word, a machine's name, for
    the value that may be left out."""
    ours = arguments.index("--") if "--" in arguments else len(arguments)
    words = ("--dry-run=server" if one == "--dry-run" else one for one in arguments[:ours])
    return [*words, *arguments[ours:]]


def _option(help_: str, *, local: bool) -> Option:
    def told(ctx: click.Context, _: click.Parameter, value: str | None) -> bool:
        ctx.meta[SHOWS_REQUESTS] = value == "client" and not local
        return value is not None

    kinds = click.Choice(("client", "server"))
    return click.option("--dry-run", type=kinds, metavar="[=client|server]", callback=told, help=help_)


dry_run_option = _option(
    "Say what would happen, and do nothing; =client: show the request that would be sent.", local=False
)
local_dry_run_option = _option("Say what would happen, and do nothing.", local=True)
"""Of what works on files that are here: there is no server that could judge it, so both are one."""
