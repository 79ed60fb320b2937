"""Whom services of tests run as.

The service, whole (`tests.sockets.service`) or a process of it alone (`tests.sockets.join_site`), runs as an ordinary
account without any capability: where root runs the tests, as that of `lab.account.service_account`; where somebody else
does, as he does. The folder of its site, and what its configuration names beside it, or a link in it leads to, is
that account's whenever it is started. The tests themselves, what they do in that folder, and commands of operators
(`Service.netboot`) are of whoever runs the tests: root's are as `sudo netboot` on a host (docs/install.md). Mounts,
namespaces and other servers are root's where they need it, and a service in them is not.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lab.account import as_the_service
from lab.work import ROOT
from netboot.config import Config


def by_the_service(argv: Sequence[str], folder: Path, config: Config, paths: Sequence[Path] = ()) -> list[str]:
    """The command of a service whose site is in `folder`. `paths`: where else its Pythons search."""
    temporary = Path(tempfile.gettempdir())  # nothing of the host is given away
    named = {path.resolve() for path in (*_paths(config.model_dump()), *folder.rglob("*"))}
    beside = {path for path in named if path.is_relative_to(temporary) and not path.is_relative_to(folder.resolve())}
    own = [folder, *sorted(filter(Path.exists, beside))]
    around = {path.parent for path in own if path.is_file()}  # it may be replaced, and SQLite has others beside it
    return as_the_service(argv, own, [folder, ROOT, *paths, *sorted(around)])


def _paths(value: Any) -> Iterator[Path]:
    if isinstance(value, Path):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _paths(each)
