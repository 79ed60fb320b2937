"""`netboot init` writes all of a site or nothing: what a run made that cannot go on is removed again."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from images.values import files
from netboot.cli import init_check
from netboot.cli.outcomes import cannot
from netboot.config import Config


@contextmanager
def all_or_nothing(config: Config, wanted: Iterable[Path]) -> Iterator[None]:
    """Around what fills a site. `wanted`: files that every site has. What was there before stays as it is."""
    places = (config.data / "any", config.store / "any", config.keys / "any")
    new = {_topmost(path) for path in (*wanted, *init_check.of_join(config), *places) if files.look(path) is None}
    keys = set(files.names(config.keys))
    try:
        yield
    except BaseException:
        new |= {config.keys / name for name in set(files.names(config.keys)) - keys}
        left = [path for path in sorted(new) if not _removed(path)]
        if left:
            click.echo(f"half a site stands: remove {', '.join(map(str, left))}, then give the command again", err=True)
        else:
            click.echo("nothing stays of what this run wrote: it is removed again", err=True)
        raise


def unwritten(folder: Path, error: Exception) -> Exception:
    """What ends it: of a full disk, in whichever words that came, with what helps where there is no image yet."""
    told: BaseException | None = error
    while told is not None:
        if isinstance(told, OSError) and (told is error or files.is_full(told)):
            return cannot(f"cannot write {told.filename or folder}", told)
        told = told.__cause__ or told.__context__
    return error


def _topmost(path: Path) -> Path:
    """What is not there of a path: the first of its folders, or the file itself."""
    missing = path
    while files.look(missing.parent) is None:
        missing = missing.parent
    return missing


def _removed(path: Path) -> bool:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError:
        return False
    return True
