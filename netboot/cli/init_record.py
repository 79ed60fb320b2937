"""What `netboot init --force` added to a site on which a service has run, in its audit."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from images.values import files
from netboot.cli import bundles
from netboot.cli.file_acts import Stood, record, recorded
from netboot.config import load_config

_FOLDERS = ("keys", "secrets", "tls", "inventory")


def recorded_in(folder: Path) -> AbstractContextManager[None]:
    """Around what fills a folder: which files are new, and the bundle of before and of now; nothing, of a new site.

    Raises:
        FaultsError: of the configuration that is there.
    """
    if files.look(folder / "netboot.yaml") is None:
        return nullcontext()
    config, there = load_config(folder / "netboot.yaml", shared=False), _made(folder)

    def stands() -> Stood:
        return {"files": len(_made(folder)), "bundle": bundles.in_store(config)}

    def write(before: Stood, after: Stood, result: str) -> None:
        wrote = sorted(str(path.relative_to(folder)) for path in _made(folder) - there)
        record(config.data, "init", {"wrote": wrote}, before=before, after=after, result=result)

    return recorded(stands, write)


def _made(folder: Path) -> frozenset[Path]:
    """Files that it makes, by their names alone."""
    return frozenset(path for name in _FOLDERS for path in (folder / name).rglob("*") if path.is_file())
