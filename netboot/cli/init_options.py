"""What the options of `netboot init` take, and `--owner` of `netboot restore`."""

import os
import pwd

import click
from click.core import ParameterSource
from pydantic import TypeAdapter, ValidationError

from images.values.types import Name
from netboot.addresses import parse_machine_url, parse_tls_url
from netboot.config_urls import somewhere

_NAME: TypeAdapter[str] = TypeAdapter(Name)


def site(_context: click.Context, _option: click.Parameter, value: str) -> str:
    """The name of a site."""
    try:
        return _NAME.validate_python(value)
    except ValidationError:
        raise click.BadParameter(
            "use lower-case letters, digits, '-' and '.', at most 63, like 'lab' or 'fra-1'"
        ) from None


def url(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """An address of the service: for join in TLS."""
    parse = parse_tls_url if option.name == "join_url" else parse_machine_url
    try:
        return None if value is None else somewhere(parse(value))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def account(_context: click.Context, _option: click.Parameter, value: str | None) -> pwd.struct_passwd | None:
    """An account of this host, to whom root gives files."""
    if value is None:
        return None
    if os.geteuid() != 0:
        raise click.BadParameter(f"root alone can give files away: run it as root, or as {value} and without --owner")
    try:
        return pwd.getpwnam(value)
    except KeyError:
        raise click.BadParameter(
            f"there is no account {value}: `adduser --system --group --no-create-home {value}` makes one"
        ) from None


def was_given(option: str) -> bool:
    """Whether somebody typed it, be it what it is without."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE
