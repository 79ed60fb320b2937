"""`netboot context`: which service commands ask, by name."""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem
from pydantic import ValidationError

from images.values import files
from images.values.faults import first_fault
from netboot.cli.login import ended
from netboot.cli.output import output_option, show
from netboot.client import contexts
from netboot.client.contexts import Context, Contexts, ContextsError, Login, change, known


@click.group()
def group() -> None:
    """Services by name, for those who work with several, or from elsewhere than a site's folder.

    The one in use goes before ./netboot.yaml; --config, --server, --context and their variables go before it.

    \b
    Example:
      netboot context add fra --server https://netboot.fra.example:8081 --token-file ~/fra.token
      netboot context use fra
    """


def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of contexts, for a shell that completes them; none where the file cannot be used."""
    try:
        names = [each.name for each in contexts.read().contexts]
    except ContextsError:
        return []
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


_LATER = click.Path(path_type=Path, readable=False)
"""Of a file that is read by the commands after this one."""


def _file(_context: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
    return value.expanduser().absolute() if value is not None else None


@group.command()
@click.argument("name")
@click.option("--server", required=True, help="Address of the management API, like https://netboot.example:8081.")
@click.option("--token-file", type=_LATER, callback=_file, help="File with the token; it is not copied.")
@click.option(
    "--certificate-authority",
    type=_LATER,
    callback=_file,
    help="PEM that vouches for its certificate.  [default: what the system trusts]",
)
@click.option("--proxy", help="By way of this HTTP proxy, like http://proxy.example:3128; TLS goes through it.")
def add(name: str, server: str, token_file: Path | None, certificate_authority: Path | None, proxy: str | None) -> None:
    """Add NAME, or replace it: its login, where it has one, is taken back. The first that is added is in use.

    \b
      netboot context add fra --server https://192.0.2.10:8081 --token-file fra.token --certificate-authority fra-ca.crt
    """
    said = {
        "name": name,
        "server": server,
        "token_file": token_file,
        "certificate_authority": certificate_authority,
        "proxy": proxy,
    }
    try:
        made = Context.model_validate(said)
    except ValidationError as error:
        fault = first_fault(error)
        raise click.BadParameter(fault.message, param_hint=fault.key or None) from None
    for path in filter(None, (token_file, certificate_authority)):
        if not files.is_file(path):
            click.echo(f"WARNING: there is no file {path} yet", err=True)

    logins: list[Login] = []

    def added(there: Contexts) -> Contexts:
        logins[:] = _logins(there, name)
        others = tuple(each for each in there.contexts if each.name != name)
        return Contexts(current=there.current or name, contexts=(*others, made))

    there = change(added)
    for login in logins:
        click.echo(f"logged out of {name}{ended(login)}", err=True)
    click.echo(f"context {name} is {server}{', and in use' if there.current == name else ''}")


@group.command()
@click.argument("name", shell_complete=complete)
def use(name: str) -> None:
    """Use NAME from now on.

    \b
      netboot context use fra
    """

    def used(there: Contexts) -> Contexts:
        known(there, name)
        return there.model_copy(update={"current": name})

    change(used)
    click.echo(f"context {name} is in use")


@group.command("list")
@output_option
def list_(output: str) -> None:
    """List contexts; an asterisk stands before the one in use.

    \b
      netboot context list
    """
    there = contexts.read()
    rows = [
        (
            "*" if each.name == there.current else "",
            each.name,
            each.server,
            each.login.issuer if each.login else each.token_file,
            each.certificate_authority,
        )
        for each in sorted(there.contexts, key=lambda each: each.name)
    ]
    columns = ("", "name", "server", "token or login", "authority")
    shown = {"current": there.current, "contexts": [_shown(each) for each in there.contexts]}
    show(output, shown, columns, rows, "no context: `netboot context add` makes one", names=[row[1] for row in rows])


def _shown(context: Context) -> dict[str, Any]:
    """Without what opens anything."""
    return context.model_dump(mode="json", exclude={"login": {"token", "refresh_token"}})


@group.command()
@click.argument("name", shell_complete=complete)
def remove(name: str) -> None:
    """Forget NAME, and take its login back at its issuer; files that it names stay where they are.

    \b
      netboot context remove fra
    """

    logins: list[Login] = []

    def removed(there: Contexts) -> Contexts:
        known(there, name)
        logins[:] = _logins(there, name)
        rest = tuple(each for each in there.contexts if each.name != name)
        return Contexts(current=there.current if there.current != name else None, contexts=rest)

    none = "; none is in use" if change(removed).current is None else ""
    click.echo(f"context {name} is forgotten{none}{''.join(map(ended, logins))}")


def _logins(there: Contexts, name: str) -> list[Login]:
    """What goes with the context of that name."""
    return [each.login for each in there.contexts if each.name == name and each.login is not None]
