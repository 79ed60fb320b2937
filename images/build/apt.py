"""apt over a folder of its own: what mirrors have, and what packages would come to, without installing any.

As mmdebstrap has it (no Recommends, no translations), and nothing of this machine's apt: neither its configuration
(apt.conf(5): `Dir` moves every place) nor its packages. Needs no root.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from images.build.sources import proxy_environment
from images.run import run

_CONFIGURATION = """\
Dir "{folder}";
Dir::State::status "{folder}/var/lib/dpkg/status";
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
pkgCacheGen::ForceEssential ",";
"""
"""`ForceEssential`: else apt counts itself as essential, which mmdebstrap does not."""
_FOLDERS = (
    *("var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/lib/dpkg"),
    *("etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/sources.list.d"),
)
_VERSION = re.compile(r"^ (?:\*\*\*|   ) (\S+) -?\d+")
_INSTALLED = re.compile(r"Inst (\S+) (?:\[\S+\] )?\((\S+) .*\[(\S+)\]\)")
_PLACE = re.compile(r"'(\S+)' ([^\s_]+)_\S+ \d+")
_SECONDS = 600.0
_ESSENTIAL = "?essential"


@dataclass(frozen=True, slots=True)
class Versions:
    """Of one package, in apt's order: what it would install ("": only others provide it), and all that there are."""

    candidate: str
    every: tuple[str, ...]


class Apt:
    """`folder` is made; it is the caller's to remove."""

    def __init__(self, folder: Path, architecture: str) -> None:
        self.lists = folder / "var/lib/apt/lists"
        for name in _FOLDERS:
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "var/lib/dpkg/status").touch()
        self._sources = folder / "etc/apt/sources.list.d/netboot.sources"
        configuration = folder / "apt.conf"
        configuration.write_text(_CONFIGURATION.format(folder=folder, architecture=architecture), encoding="utf-8")
        self._environment = proxy_environment() | {"APT_CONFIG": str(configuration)}

    def update(self, sources: str) -> None:
        """Fetch the lists of these sources (deb822 form, sources.list(5)), and verify who signed them.

        Raises:
            CommandError: something could not be had, or was signed by nobody that it may be signed by.
        """
        self._sources.write_text(sources, encoding="utf-8")
        run(["apt-get", "-qq", "update"], env=self._environment, timeout=_SECONDS)

    def versions(self, names: Iterable[str]) -> Mapping[str, Versions]:
        """What the lists have of these packages; what they do not know is not in it."""
        wanted = sorted(set(names))
        return (
            policies(run(["apt-cache", "policy", *wanted], env=self._environment, timeout=_SECONDS)) if wanted else {}
        )

    def places(self, exact: Iterable[str]) -> Mapping[str, str]:
        """The address of each package's file, by the package's name; `exact`: name=version."""
        wanted = sorted(set(exact))
        if not wanted:
            return {}
        shown = run(["apt-get", "-qq", "--print-uris", "download", *wanted], env=self._environment, timeout=_SECONDS)
        found = [match for match in map(_PLACE.match, shown.splitlines()) if match]
        return {unquote(match[2]): match[1] for match in found}

    def installs(self, wanted: Iterable[str]) -> tuple[tuple[str, str, str], ...]:
        """Name, version and architecture of all that would be installed for `wanted` into an empty root.

        Raises:
            CommandError: they cannot be installed together; with apt's words.
        """
        argv = ["apt-get", "-qq", "--simulate", "install", _ESSENTIAL, *sorted(set(wanted))]
        lines = run(argv, env=self._environment, timeout=_SECONDS).splitlines()
        return tuple(sorted((match[1], match[2], match[3]) for match in map(_INSTALLED.match, lines) if match))


def policies(shown: str) -> dict[str, Versions]:
    """`apt-cache policy`'s answer: a package's name at the beginning of a line, and what is known of it below."""
    found: dict[str, Versions] = {}
    name = ""
    for line in shown.splitlines():
        if not line.startswith(" ") and line.endswith(":"):
            name = line[:-1]
            found[name] = Versions("", ())
        elif line.startswith("  Candidate: ") and name:
            candidate = line.removeprefix("  Candidate: ")
            found[name] = Versions("" if candidate == "(none)" else candidate, ())
        elif name and (match := _VERSION.match(line)):
            found[name] = Versions(found[name].candidate, (*found[name].every, match[1]))
    return found
