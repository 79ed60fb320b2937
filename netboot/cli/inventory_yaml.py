"""What `netboot machine declare` and `machine import` make for an inventory that is kept in git, in place of declaring
by the API: YAML, printed, or a file of its own that is there whole or not at all."""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from images.errors import NotDurableError, StoreError
from images.values import files
from netboot.cli.outcomes import cannot
from netboot.cli.output import show

Command = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Yaml:
    """Where it goes. `path`: None, standard output; `force`: also over a file that is there."""

    path: Path | None
    force: bool

    def require_free(self) -> None:
        """See that nothing is lost by it.

        Raises:
            click.ClickException: there is something of that name, and nobody said that it may be replaced.
        """
        if self.path is not None and not self.force and os.path.lexists(self.path):
            raise click.ClickException(f"{self.path} is there already: name another, or give --force to replace it")

    def put(self, machines: Sequence[Mapping[str, Any]], output: str) -> None:
        """Print them, or write them whole: a file that is replaced keeps its mode.

        Raises:
            click.ClickException: as `require_free`, or the file system refuses. images.values.strict.FaultsError: they
            cannot be written.
        """
        from netboot.machines.written import text_of  # brings the whole inventory

        text = text_of("machine", *machines)
        if self.path is None:
            click.echo(text, nl=False)
            return
        self.require_free()
        try:
            there = files.look(self.path)
            files.write(self.path, text.encode(), mode=0o644 if there is None else stat.S_IMODE(there.st_mode))
        except StoreError as error:
            if isinstance(error, NotDurableError) or not isinstance(error.__cause__, OSError):
                raise
            raise cannot(f"cannot write {self.path}", error.__cause__) from None
        names = [machine["name"] for machine in machines]
        count = f"{len(names)} machine{'' if len(names) == 1 else 's'}"
        words = f"wrote {self.path}: {count}; `netboot config check` holds it against all else that is declared"
        show(output, {"file": str(self.path), "machines": names}, (), (), words, names=names)


def yaml_options(function: Command) -> Command:
    """Add `--print`, `--out` and `--force`: the command gets `yaml`, a `Yaml` or None."""

    @click.option("--print", "printed", is_flag=True, help="Print the YAML, for an inventory that is kept in git.")
    @click.option(
        "--out", type=click.Path(path_type=Path), help="Write the YAML into this file, whole: a file of the inventory."
    )
    @click.option("--force", is_flag=True, help="With --out, over a file of that name: it is replaced.")
    @wraps(function)
    def command(*, printed: bool, out: Path | None, force: bool, dry_run: bool, **rest: Any) -> None:
        if printed and out is not None:
            raise click.UsageError("--print shows the YAML and --out writes it: leave one of them out")
        if force and out is None:
            raise click.UsageError("--force replaces what --out names: give --out, too, or leave it out")
        if out is not None and dry_run:
            raise click.UsageError("--out writes a file: leave --dry-run out; --print shows the file")
        if out is not None and out == Path():
            raise click.BadParameter("it names no file: give one that ends in .yaml", param_hint="--out")
        if out is not None and (out.suffix != ".yaml" or out.name.startswith(".")):
            words = f"{str(out)!r} is no name of an inventory's file: give one that ends in .yaml"
            raise click.BadParameter(words, param_hint="--out")
        yaml = Yaml(out, force) if printed or out is not None else None
        if yaml is not None:
            yaml.require_free()
        function(yaml=yaml, dry_run=dry_run, **rest)

    return command
