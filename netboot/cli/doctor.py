"""`netboot doctor`: every precondition of a site, with remedies."""

import json
from pathlib import Path

import click

from netboot.cli.diagnosis import Diagnosis, diagnose
from netboot.cli.output import output_option
from netboot.cli.paths import config_option, config_path

_MARKS = {"ok": "ok", "advice": "note", "warn": "WARN", "refuse": "FAIL"}
_COLOURS = {"warn": "yellow", "refuse": "red"}


@click.command()
@config_option
@output_option
@click.option("--quiet", "-q", is_flag=True, help="Only what is not in order.")
def command(config: Path | None, output: str, quiet: bool) -> None:
    """Check everything that booting and joining need: files, keys, the service, each cluster; say what to do.

    Nothing is changed anywhere. Exit status 1 when something is wrong that forbids to boot or join (FAIL).

    \b
    Example:
      netboot doctor
      netboot doctor --output json | jq '.[] | select(.outcome == "refuse")'
    """
    found = diagnose(config_path(config))
    shown = [one for one in found if one.outcome in ("warn", "refuse")] if quiet else found
    if output == "json":
        click.echo(json.dumps([one._asdict() for one in shown], indent=2))
    else:
        for one in shown:
            _show(one)
        _sum_up(found)
    if any(one.outcome == "refuse" for one in found):
        raise click.exceptions.Exit(1)


def _show(one: Diagnosis) -> None:
    mark = click.style(f"{_MARKS[one.outcome]:4}", fg=_COLOURS.get(one.outcome))
    click.echo(f"{mark}  {one.where}: {one.name}: {one.words}")
    if one.remedy:
        click.echo(f"      → {one.remedy}")


def _sum_up(found: list[Diagnosis]) -> None:
    wrong = sum(one.outcome == "refuse" for one in found)
    doubtful = sum(one.outcome == "warn" for one in found)
    click.echo(f"\n{len(found)} looked at: {wrong} wrong, {doubtful} to look at")
